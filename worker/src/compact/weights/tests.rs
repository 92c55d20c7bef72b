use super::super::fixture::{fourier, normals, points, stream};
use super::*;

#[test]
fn weights_of_exact_functions_are_recovered() {
    let mut s = stream(0);
    let cosines = fourier(12, 2, 0.2, &mut s);
    let inputs = points(60, 2, &mut s);
    let expected = normals(12 * 5, 1);
    let mut phi = vec![0.0; 12];
    let mut responses = vec![0.0; 5 * 60];
    for (m, x) in inputs.chunks(2).enumerate() {
        cosines.phi(Cpu::detect(), x, &mut phi);
        for (i, w) in expected.chunks(12).enumerate() {
            responses[i * 60 + m] = w.iter().zip(&phi).map(|(w, p)| w * p).sum();
        }
    }
    let data = Dataset::new(&inputs, 2, &responses).unwrap();
    let exact = weights(Cpu::detect(), &cosines, &data, 0.0).unwrap();
    assert!(exact.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9));
    let shrunk = weights(Cpu::detect(), &cosines, &data, 1e-2).unwrap();
    let size = |w: &[f64]| w.iter().map(|w| w * w).sum::<f64>();
    assert!(size(&shrunk) < size(&exact));
    assert_eq!(exact, weights(Cpu::plain(), &cosines, &data, 0.0).unwrap());
}

/// With a ridge, (Phi Phi^T + lambda I) W = Phi y.
#[test]
fn a_ridge_solves_its_normal_equations() {
    let mut s = stream(2);
    let cosines = fourier(8, 1, 0.3, &mut s);
    let (inputs, responses) = (points(20, 1, &mut s), normals(20, 3));
    let data = Dataset::new(&inputs, 1, &responses).unwrap();
    let w = weights(Cpu::detect(), &cosines, &data, 0.1).unwrap();
    let rows: Vec<Vec<f64>> = inputs
        .iter()
        .map(|&x| {
            let mut phi = vec![0.0; 8];
            cosines.phi(Cpu::detect(), &[x], &mut phi);
            phi
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for k in 0..8 {
        let residual: f64 =
            rows.iter().zip(&responses).map(|(phi, y)| phi[k] * (y - dot(phi, &w))).sum();
        assert!((residual - 0.1 * 20.0 / 8.0 * w[k]).abs() < 1e-12);
    }
}

#[test]
fn what_has_no_weights_is_refused() {
    let run = |cosines: &Cosines, inputs: &[f64], ridge: f64| {
        let responses = vec![1.0; inputs.len()];
        let data = Dataset::new(inputs, 1, &responses).unwrap();
        weights(Cpu::detect(), cosines, &data, ridge).unwrap_err()
    };
    let cosines = fourier(3, 1, 0.3, &mut stream(4));
    let few = run(&cosines, &[0.1, 0.2], 0.0);
    assert_eq!(few, Error::TooFewPoints { features: 3, points: 2 });
    assert_eq!(run(&cosines, &[0.5; 9], 0.0), Error::Rank { features: 3, rank: 1 });
    assert_eq!(run(&cosines, &[0.5; 9], -1.0), Error::Ridge { ridge: -1.0 });
    let plane = fourier(3, 2, 0.3, &mut stream(5));
    assert_eq!(run(&plane, &[0.5; 9], 0.0), Error::Dimension { points: 1, features: 2 });
}
