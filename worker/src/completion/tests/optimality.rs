//! Solutions satisfy the conditions of the convex problem, by nalgebra's decomposition.

use nalgebra::{DMatrix, DVector, SVD};
use proptest::prelude::*;

use super::super::centre::Centred;
use super::super::solver::Solver;
use super::Example;
use crate::Cpu;

/// P X, the mask, and the solver of an example; none where there is nothing to solve.
fn problem(example: &Example) -> Option<(DMatrix<f64>, DMatrix<f64>, Solver)> {
    let data = example.data();
    let places: Vec<usize> = (0..data.values.len()).filter(|&at| data.observed[at]).collect();
    if places.is_empty() {
        return None;
    }
    let centred = Centred::new(&data, &places).unwrap();
    let solver = centred.solver(Cpu::detect()).unwrap()?;
    let (n, m) = (data.rows, data.columns);
    let mask = DMatrix::from_fn(n, m, |i, j| f64::from(u8::from(data.observed[i * m + j])));
    let value =
        |i, j| if mask[(i, j)] == 1.0 { data.values[i * m + j] - centred.means[j] } else { 0.0 };
    Some((DMatrix::from_fn(n, m, value), mask, solver))
}

fn solution(solver: &Solver, shape: (usize, usize)) -> DMatrix<f64> {
    DMatrix::from_fn(shape.0, shape.1, |i, j| solver.at(i, j))
}

/// U, the singular values and V. Of the taller orientation, because nalgebra 0.35 is wrong about some
/// wide matrices of low rank; that the product gives the matrix back is checked.
fn decomposed(matrix: &DMatrix<f64>) -> (DMatrix<f64>, DVector<f64>, DMatrix<f64>) {
    if matrix.nrows() < matrix.ncols() {
        let (u, values, v) = decomposed(&matrix.transpose());
        return (v, values, u);
    }
    let svd = SVD::new(matrix.clone(), true, true);
    let (u, v) = (svd.u.unwrap(), svd.v_t.unwrap().transpose());
    let back = &u * DMatrix::from_diagonal(&svd.singular_values) * v.transpose();
    assert!((back - matrix).norm() <= 1e-12 * (1.0 + matrix.norm()));
    (u, svd.singular_values, v)
}

/// P(X - Z) = lambda (U V^T + W) with |W|_2 <= 1, U^T W = 0 and W V = 0.
#[test]
fn the_subgradient_condition_holds() {
    for shape in [(60, 40), (40, 60), (33, 33)] {
        for share in [0.9, 0.5, 0.1, 0.02] {
            let example = Example::new(11, shape, 3, 0.3, 0.5);
            let (x, mask, mut solver) = problem(&example).unwrap();
            let largest = solver.largest().unwrap();
            assert!((largest - x.singular_values().max()).abs() < 1e-13 * largest);
            let lambda = share * largest;
            let fit = solver.solve(lambda, 1e-10, 100_000).unwrap();
            let z = solution(&solver, shape);
            let (u, values, v) = decomposed(&z);
            let kept: Vec<usize> =
                (0..values.len()).filter(|&k| values[k] > 1e-7 * largest).collect();
            assert!(kept.len() <= fit.rank);
            let (u, v) = (u.select_columns(&kept), v.select_columns(&kept));
            let gradient = (x - &z).component_mul(&mask) / lambda;
            let w = &gradient - &u * v.transpose();
            assert!((u.transpose() * &w).abs().max() < 1e-6, "{shape:?} {share}");
            assert!((&w * &v).abs().max() < 1e-6, "{shape:?} {share}");
            assert!(w.singular_values().max() < 1.0 + 1e-7, "{shape:?} {share}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One exact step of soft-impute moves the missing entries by no more than the tolerance, wherever
    /// the solver began: at zero, or at the solution for another lambda.
    #[test]
    fn an_exact_step_stays_within_the_tolerance(
        seed in 0_u64..100_000,
        shape in (1_usize..30, 1_usize..30),
        rank in 0_usize..6,
        missing in 0.1_f64..0.9,
        shares in (0.01_f64..1.1, 0.01_f64..1.1),
        digits in 2_i32..9,
    ) {
        let example = Example::new(seed, shape, rank, 0.5, missing);
        if let Some((x, mask, mut solver)) = problem(&example) {
            let tolerance = libm::pow(10.0, -f64::from(digits));
            let largest = solver.largest().unwrap();
            for lambda in [shares.0 * largest, shares.1 * largest] {
                solver.solve(lambda, tolerance, 100_000).unwrap();
                let z = solution(&solver, shape);
                let free = mask.map(|seen| 1.0 - seen);
                let (u, mut values, v) = decomposed(&(&x + z.component_mul(&free)));
                values.apply(|s| *s = if *s > lambda { *s - lambda } else { 0.0 });
                let next = u * DMatrix::from_diagonal(&values) * v.transpose();
                let step = (next - z).component_mul(&free).norm();
                prop_assert!(step <= 1.2 * tolerance * x.norm() + 1e-12, "{} {}", step, x.norm());
            }
        }
    }
}
