use std::cell::Cell;

use super::super::acquisition::{Acquisition, Belief, Rule};
use super::super::fixture::{belief, fourier, stream, uniform};
use super::*;

const K: usize = 50;

/// A full grid that includes the corners, as candidates.
fn grid(cosines: &Cosines, side: usize) -> Candidates {
    let d = cosines.dimension();
    let count = (0..d).fold(1, |n, _| n * side);
    let axis = |i: usize, j: usize| {
        let digit = (0..j).fold(i, |rest, _| rest / side) % side;
        digit as f64 / (side - 1) as f64
    };
    let points: Vec<f64> = (0..count * d).map(|at| axis(at / d, at % d)).collect();
    let columns = Panels::from_rows(&points, d).transpose();
    Candidates { dimension: d, points, features: Some(cosines.batch(Cpu::detect(), &columns)) }
}

fn grid_maximum(objective: &impl Objective, grid: &Candidates) -> f64 {
    let mut values = vec![0.0; grid.count().next_multiple_of(PANEL)];
    objective.values(grid, &mut values);
    values[..grid.count()]
        .iter()
        .fold(f64::NEG_INFINITY, |most, &v| if v > most { v } else { most })
}

/// What a maximisation of every kind lacks of the best on a grid, relative to 1 + |value|, for one prior after the other.
fn gaps(d: usize, side: usize, priors: u64, each: usize) -> Vec<f64> {
    let cpu = Cpu::detect();
    let mut gaps = Vec::new();
    for prior in 0..priors {
        let mut s = stream(100 * d as u64 + prior);
        let cosines = fourier(K, d, 0.1 + 0.4 * uniform(&mut s), &mut s);
        let effort = Effort::for_cosines(&cosines, &Domain::unit(d));
        let search = Search::for_cosines(cpu, &cosines, Domain::unit(d), effort);
        let grid = grid(&cosines, side);
        let mut run = |belief: &Belief, rule| {
            let objective = Acquisition::new(cpu, &cosines, belief, rule);
            let found = search.maximise(&objective, &[]);
            assert_eq!(found.value.to_bits(), objective.value(&found.at).to_bits());
            assert!(found.at.iter().all(|x| (0.0..=1.0).contains(x)));
            // PI without noise and with all of f known is as large as its deviation is small.
            let scale = 1.0 + found.value.abs();
            gaps.push((grid_maximum(&objective, &grid) - found.value) / scale);
        };
        for _ in 0..each {
            let mut weights = vec![0.0; K];
            s.normals(&mut weights);
            run(&Belief::certain(&weights), Rule::Mean);
            let noise = if uniform(&mut s) < 0.5 { 0.01 } else { 0.0 };
            let (belief, best) = belief(&cosines, 2 + s.below(20), noise, &mut s);
            run(&belief, Rule::Ucb { zeta: 3.3 });
            run(&belief, Rule::Pi { target: best + 0.5 });
        }
    }
    gaps
}

/// At most one in a hundred may lack more than rounding, and none more than `most`.
fn assert_close(gaps: &[f64], most: f64) {
    let missed: Vec<f64> = gaps.iter().copied().filter(|&gap| gap > 1e-9).collect();
    assert!(
        missed.len() * 100 <= gaps.len(),
        "{} of {} missed: {missed:?}",
        missed.len(),
        gaps.len()
    );
    assert!(missed.iter().all(|&gap| gap <= most), "{missed:?}");
}

#[test]
fn the_best_of_a_dense_grid_is_reached_in_one_dimension() {
    assert_close(&gaps(1, 4001, 40, 5), 0.0);
}

#[test]
fn the_best_of_a_dense_grid_is_reached_in_two_dimensions() {
    assert_close(&gaps(2, 129, 20, 5), 0.1);
}

#[test]
fn the_best_of_a_grid_is_reached_in_three_dimensions() {
    assert_close(&gaps(3, 33, 3, 4), 0.1);
}

/// -sum of squares around a centre that may lie outside the box.
struct Bowl {
    centre: Vec<f64>,
    calls: Cell<usize>,
}

impl Objective for Bowl {
    fn value(&self, x: &[f64]) -> f64 {
        let parts = x.iter().zip(&self.centre).enumerate();
        -parts.fold(0.0, |sum, (j, (x, c))| sum + (j + 1) as f64 * (x - c) * (x - c))
    }

    fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.calls.set(self.calls.get() + 1);
        for (j, entry) in gradient.iter_mut().enumerate() {
            *entry = -2.0 * (j + 1) as f64 * (x[j] - self.centre[j]);
        }
        self.value(x)
    }
}

#[test]
fn maxima_inside_on_faces_and_in_corners_are_found() {
    let domain = Domain::new(&[-1.0, 0.0, 10.0], &[1.0, 5.0, 11.0]).unwrap();
    let effort = Effort { candidates: 64, starts: 3 };
    let search = Search::new(domain, vec![2.0, 5.0, 1.0], effort);
    for (centre, nearest) in [
        ([0.3, 2.0, 10.5], [0.3, 2.0, 10.5]),
        ([0.3, 7.0, 10.5], [0.3, 5.0, 10.5]),
        ([-3.0, 7.0, 0.0], [-1.0, 5.0, 10.0]),
    ] {
        let bowl = Bowl { centre: centre.to_vec(), calls: Cell::new(0) };
        let found = search.maximise(&bowl, &[]);
        let close = found.at.iter().zip(nearest).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(close, "{:?}", found.at);
        assert!(found.value >= bowl.value(&nearest) - 1e-14);
        assert!(bowl.calls.get() < 150, "{}", bowl.calls.get());
    }
}

/// Two equal tops and a narrow third that only a hint can find.
struct Tops;

impl Tops {
    const TOPS: [(f64, f64, f64); 3] = [(0.2, 0.1, 1.0), (0.8, 0.1, 1.0), (0.5, 1e-4, 2.0)];
}

impl Objective for Tops {
    fn value(&self, x: &[f64]) -> f64 {
        self.value_and_gradient(x, &mut [0.0])
    }

    fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        gradient[0] = 0.0;
        Self::TOPS.iter().fold(0.0, |sum, &(centre, width, height)| {
            let z = (x[0] - centre) / width;
            let value = height * libm::exp(-0.5 * z * z);
            gradient[0] -= z / width * value;
            sum + value
        })
    }
}

#[test]
fn hints_are_looked_at() {
    let effort = Effort { candidates: 32, starts: 3 };
    let search = Search::new(Domain::unit(1), vec![0.1], effort);
    let without = search.maximise(&Tops, &[]);
    assert!(without.value < 1.1, "{without:?}");
    let with = search.maximise(&Tops, &[0.1, 0.50005]);
    assert!((with.at[0] - 0.5).abs() < 1e-6 && with.value > 2.0, "{with:?}");
}

struct Constant(f64);

impl Objective for Constant {
    fn value(&self, _: &[f64]) -> f64 {
        self.0
    }

    fn value_and_gradient(&self, _: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        self.0
    }
}

#[test]
fn among_equals_the_first_candidate_wins() {
    let search = Search::new(Domain::unit(2), vec![1.0; 2], Effort { candidates: 40, starts: 4 });
    let found = search.maximise(&Constant(3.0), &[0.9, 0.9]);
    assert_eq!(found, Maximum { at: search.candidates.point(0).to_vec(), value: 3.0 });
}

#[test]
fn what_is_not_a_number_is_an_answer_only_where_nothing_else_is() {
    struct Partial;
    impl Objective for Partial {
        fn value(&self, x: &[f64]) -> f64 {
            if x[0] < 0.7 { f64::NAN } else { -x[0] }
        }
        fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
            gradient[0] = -1.0;
            self.value(x)
        }
    }
    let search = Search::new(Domain::unit(1), vec![1.0], Effort { candidates: 40, starts: 4 });
    let found = search.maximise(&Partial, &[]);
    assert!((found.value + 0.7).abs() < 1e-3, "{found:?}");
    assert!(search.maximise(&Constant(f64::NAN), &[]).value.is_nan());
}

#[test]
fn the_answer_has_the_same_bits_on_every_instruction_set_and_every_time() {
    let mut s = stream(9);
    let cosines = fourier(K, 2, 0.15, &mut s);
    let (belief, best) = belief(&cosines, 9, 0.01, &mut s);
    let run = |cpu| {
        let effort = Effort::for_cosines(&cosines, &Domain::unit(2));
        let search = Search::for_cosines(cpu, &cosines, Domain::unit(2), effort);
        let objective = Acquisition::new(cpu, &cosines, &belief, Rule::Pi { target: best + 0.3 });
        let Maximum { mut at, value } = search.maximise(&objective, &[0.5, 0.5]);
        at.push(value);
        at.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(run(Cpu::detect()), run(Cpu::plain()));
    assert_eq!(run(Cpu::detect()), run(Cpu::detect()));
}
