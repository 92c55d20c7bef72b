use proptest::prelude::*;
use theory::dense::dot;

use super::super::domain::Domain;
use super::super::fixture::{belief, fourier, normals, points, posterior, stream};
use super::super::maximise::{Effort, Search};
use super::*;

const RULES: [Rule; 3] = [Rule::Mean, Rule::Ucb { zeta: 3.3 }, Rule::Pi { target: 2.5 }];

#[test]
fn moments_are_those_of_the_weights() {
    let mut s = stream(0);
    for (k, observations) in [(1, 0), (9, 3), (50, 12)] {
        let cosines = fourier(k, 2, 0.3, &mut s);
        let (mean, root, _) = posterior(&cosines, observations, 0.01, &mut s);
        let factor: Vec<f64> = (0..k * k).map(|at| root.at(at / k, at % k)).collect();
        let belief = Belief::new(&mean, &factor);
        let acquisition = Acquisition::new(Cpu::detect(), &cosines, &belief, Rule::Mean);
        let covariance = root.times(&root.transpose());
        for x in points(20, 2, &mut s).chunks(2) {
            let mut phi = vec![0.0; k];
            cosines.phi(Cpu::detect(), x, &mut phi);
            let (found, variance) = acquisition.moments(x);
            assert!((found - dot(&mean, &phi)).abs() < 1e-12);
            assert!((variance - dot(&phi, &covariance.apply(&phi))).abs() < 1e-12);
            assert_eq!(acquisition.value(x), found);
        }
    }
}

#[test]
fn a_factor_may_have_fewer_columns_than_weights() {
    let cosines = fourier(10, 1, 0.3, &mut stream(1));
    let (mean, factor) = (normals(10, 2), normals(30, 3));
    let belief = Belief::new(&mean, &factor);
    let acquisition = Acquisition::new(Cpu::detect(), &cosines, &belief, Rule::Ucb { zeta: 2.0 });
    let mut phi = vec![0.0; 10];
    cosines.phi(Cpu::detect(), &[0.4], &mut phi);
    let variance: f64 = (0..3)
        .map(|j| (0..10).map(|k| phi[k] * factor[k * 3 + j]).sum::<f64>())
        .map(|v| v * v)
        .sum();
    let expected = dot(&phi, &mean) + 2.0 * variance.sqrt();
    assert!((acquisition.value(&[0.4]) - expected).abs() < 1e-13);
}

/// Central differences of step h err by h^2 |f'''|/6 and by rounding over h. Where the deviation is nearly
/// zero its root bends within a step: halving the step tells by how much.
fn check_gradient(cosines: &Cosines, belief: &Belief, rule: Rule, x: &[f64]) {
    let acquisition = Acquisition::new(Cpu::detect(), cosines, belief, rule);
    let mut gradient = vec![0.0; x.len()];
    let value = acquisition.value_and_gradient(x, &mut gradient);
    assert_eq!(value.to_bits(), acquisition.value(x).to_bits());
    for j in 0..x.len() {
        let moved = |by: f64| {
            let mut x = x.to_vec();
            x[j] += by;
            acquisition.value(&x)
        };
        let difference = |step: f64| (moved(step) - moved(-step)) / (2.0 * step);
        let (wide, narrow) = (difference(1e-5), difference(5e-6));
        let tolerance = 1e-6 * (1.0 + value.abs() + narrow.abs()) + 2.0 * (wide - narrow).abs();
        assert!(
            (gradient[j] - narrow).abs() < tolerance,
            "{rule:?}: {gradient:?} {narrow} {tolerance}"
        );
    }
}

proptest! {
    #[test]
    fn gradients_agree_with_finite_differences(
        seed in 0_u64..1000, k in 1_usize..40, d in 1_usize..4, observations in 0_usize..8,
    ) {
        let mut s = stream(seed);
        let cosines = fourier(k, d, 0.4, &mut s);
        let (belief, _) = belief(&cosines, observations, 0.01, &mut s);
        let x = points(1, d, &mut s);
        for rule in RULES {
            check_gradient(&cosines, &belief, rule, &x);
        }
    }
}

#[test]
fn without_variance_values_and_gradients_stay_finite() {
    let cosines = fourier(12, 2, 0.3, &mut stream(4));
    let belief = Belief::certain(&normals(12, 5));
    for rule in RULES {
        let acquisition = Acquisition::new(Cpu::detect(), &cosines, &belief, rule);
        let mut gradient = [0.0; 2];
        let value = acquisition.value_and_gradient(&[0.2, 0.7], &mut gradient);
        assert!(
            value.is_finite() && gradient.iter().all(|g| g.is_finite()),
            "{value} {gradient:?}"
        );
    }
}

#[test]
fn candidates_all_at_once_are_as_one_by_one() {
    let mut s = stream(6);
    let cosines = fourier(50, 2, 0.2, &mut s);
    let (belief, _) = belief(&cosines, 7, 0.01, &mut s);
    let effort = Effort { candidates: 100, starts: 1 };
    let search = Search::for_cosines(Cpu::detect(), &cosines, Domain::unit(2), effort);
    for rule in RULES {
        let acquisition = Acquisition::new(Cpu::detect(), &cosines, &belief, rule);
        let mut values = vec![0.0; search.candidates().count()];
        acquisition.values(search.candidates(), &mut values);
        search.candidates().each(|i, x| {
            let one = acquisition.value(x);
            assert!((values[i] - one).abs() < 1e-12 * (1.0 + one.abs()), "{} {one}", values[i]);
        });
    }
}

#[test]
fn plain_and_vector_code_give_the_same_bits() {
    let mut s = stream(8);
    for (k, d) in [(1, 1), (13, 2), (50, 3)] {
        let cosines = fourier(k, d, 0.2, &mut s);
        let (belief, _) = belief(&cosines, 5, 0.01, &mut s);
        let x = points(1, d, &mut s);
        for rule in RULES {
            let run = |cpu| {
                let effort = Effort { candidates: 64, starts: 1 };
                let search = Search::for_cosines(cpu, &cosines, Domain::unit(d), effort);
                let acquisition = Acquisition::new(cpu, &cosines, &belief, rule);
                let mut out = vec![0.0; 64];
                acquisition.values(search.candidates(), &mut out);
                let mut gradient = vec![0.0; d];
                out.push(acquisition.value_and_gradient(&x, &mut gradient));
                out.extend(gradient);
                out.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(run(Cpu::detect()), run(Cpu::plain()));
        }
    }
}
