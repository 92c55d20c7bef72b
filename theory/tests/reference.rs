//! Compares the crate with `reference.json`, which `reference.py` computed with mpmath at 40 digits.
//!
//! Each group has one named tolerance. `REFERENCE_ERRORS=1 cargo test -p theory --test reference
//! -- --nocapture` prints the worst error of each group.

use serde_json::Value;
use theory::{
    Delta, Form,
    dense::Matrix,
    evidence::{BetaPrior, Counts, Mixture, clopper_pearson, confidence_sequence},
    laws::ErrorLaw,
    lemma1,
    lemma3::CompactPrior,
    measurement::CompactNoise,
    special::{self, Split},
    theorem2::{self, Concentration, Prior},
    theorem4,
};

/// Closed formulas: a handful of roundings.
const FORMULA: f64 = 2e-15;
/// Special functions, quantiles, laws and log tails, relative.
const FUNCTION: f64 = 2e-14;
/// Tails of the gamma law through exp(log tail): |log tail| rounding units are lost.
const TAIL: f64 = 5e-14;
/// Upper tails of the error law down to 1e-7: nodes that are cut weigh more there.
const DEEP_TAIL: f64 = 5e-13;

/// One row of a group: its inputs and expected values, as text.
struct Row(Vec<String>);

impl Row {
    fn number(&self, i: usize) -> f64 {
        self.0[i].parse().expect("a number")
    }

    fn count(&self, i: usize) -> u64 {
        self.0[i].parse().expect("a count")
    }

    fn t(&self, i: usize) -> u32 {
        self.0[i].parse().expect("a count")
    }

    fn delta(&self, i: usize) -> Delta {
        Delta::new(self.number(i)).expect("a level")
    }

    fn form(&self, i: usize) -> Form {
        Form::ALL.into_iter().find(|form| form.name() == self.0[i]).expect("a form")
    }

    fn list(&self, i: usize) -> Vec<f64> {
        self.0[i].split(' ').map(|word| word.parse().expect("a number")).collect()
    }

    fn expected(&self, i: usize) -> Option<f64> {
        (self.0[i] != "none").then(|| self.number(i))
    }
}

fn rows(group: &str) -> Vec<Row> {
    let all: Value = serde_json::from_str(include_str!("reference.json")).expect("valid JSON");
    let rows = all[group].as_array().unwrap_or_else(|| panic!("no group {group}"));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    rows.iter().map(|row| Row(row.as_array().expect("a row").iter().map(text).collect())).collect()
}

/// How an error is measured.
#[derive(Clone, Copy)]
enum Error {
    Relative,
    /// Relative for values above 1, absolute below.
    Mixed,
}

/// Checks `compute` against the columns from `inputs` on, and prints the worst error on request.
fn check(
    group: &str,
    inputs: usize,
    tolerance: f64,
    error: Error,
    compute: impl Fn(&Row) -> Vec<Option<f64>>,
) {
    let mut worst = 0.0;
    for row in rows(group) {
        let values = compute(&row);
        assert_eq!(values.len(), row.0.len() - inputs, "{group}: columns");
        for (i, value) in values.into_iter().enumerate() {
            let place = format!("{group}({}) column {i}", row.0[..inputs].join(", "));
            let expected = row.expected(inputs + i);
            let (Some(value), Some(expected)) = (value, expected) else {
                assert_eq!(value, expected, "{place}");
                continue;
            };
            let scale = match error {
                Error::Relative => expected.abs(),
                Error::Mixed => {
                    if expected.abs() > 1.0 {
                        expected.abs()
                    } else {
                        1.0
                    }
                }
            };
            let miss = if value == expected { 0.0 } else { (value - expected).abs() / scale };
            assert!(miss <= tolerance, "{place}: {value:e} is not {expected:e}, error {miss:.1e}");
            if miss > worst {
                worst = miss;
            }
        }
    }
    if std::env::var_os("REFERENCE_ERRORS").is_some() {
        println!("{group:20} {worst:.1e}");
    }
}

#[test]
fn special_functions() {
    let one = |value: f64| vec![Some(value)];
    let two = |(a, b): (f64, f64)| vec![Some(a), Some(b)];
    let relative = Error::Relative;
    check("stirling_error", 1, FUNCTION, relative, |r| one(special::stirling_error(r.number(0))));
    check("ln_1p_minus", 1, FUNCTION, relative, |r| one(special::ln_1p_minus(r.number(0))));
    check("ln_beta", 2, FUNCTION, relative, |r| one(special::ln_beta(r.number(0), r.number(1))));
    check("normal_quantile", 1, FUNCTION, relative, |r| one(special::normal_quantile(r.number(0))));
    check("gamma_tails", 2, TAIL, relative, |r| two(special::inc_gamma(r.number(0), r.number(1))));
    check("ln_beta_tails", 3, FUNCTION, relative, |r| {
        two(special::ln_tails(r.number(0), r.number(1), Split::at(r.number(2))))
    });
    check("chi2_quantile", 2, FUNCTION, relative, |r| {
        one(special::chi2_quantile(r.number(0), r.number(1)))
    });
    check("chi2_upper_quantile", 2, FUNCTION, relative, |r| {
        one(special::chi2_upper_quantile(r.number(0), r.number(1)))
    });
    check("beta_quantile", 3, FUNCTION, relative, |r| {
        one(special::beta_quantile(r.number(0), r.number(1), r.number(2)))
    });
}

#[test]
fn constants() {
    let relative = Error::Relative;
    let pair = |ends: Option<(f64, f64)>| vec![ends.map(|e| e.0), ends.map(|e| e.1)];
    check("a", 4, FUNCTION, relative, |r| {
        vec![lemma1::a(r.count(0), r.t(1), r.delta(2), r.form(3))]
    });
    check("variance_interval", 4, FUNCTION, relative, |r| {
        pair(lemma1::variance_interval(r.count(0), r.t(1), r.delta(2), r.form(3)))
    });
    check("theorem2_interval", 4, FUNCTION, relative, |r| {
        pair(theorem2::variance_interval(r.count(0), r.t(1), r.delta(2), r.form(3)))
    });
    check("iota", 4, FUNCTION, relative, |r| {
        vec![theorem2::iota(r.count(0), r.t(1), r.delta(2), r.form(3))]
    });
    check("zeta", 4, FORMULA, relative, |r| {
        vec![theorem2::zeta(r.count(0), r.t(1), r.delta(2), r.form(3))]
    });
}

fn prior(row: &Row) -> Prior {
    Prior { c: row.number(4), noise_variance: row.number(5), rho: row.number(6) }
}

/// (eta_UCB at the horizon, eta_PI at tau).
fn etas(row: &Row) -> (f64, f64) {
    let at = |t| {
        Concentration::new(row.count(0), t, row.delta(2), row.form(3))
            .expect("within the hypotheses")
    };
    let ucb = at(row.t(1)).eta_ucb(row.delta(2)).expect("low > 0");
    (
        ucb,
        at(row.t(7)).eta_pi(theorem2::zeta_prime_pi(row.delta(2)), row.number(8)).expect("low > 0"),
    )
}

#[test]
fn regret_bounds() {
    check("bounds", 9, FUNCTION, Error::Relative, |r| {
        let (ucb, pi) = etas(r);
        let (horizon, delta) = (r.t(1), r.delta(2));
        let bounds = (
            theorem2::ucb_bound(ucb, horizon, delta, prior(r)),
            theorem2::pi_bound(pi, horizon, delta, prior(r)),
        );
        vec![Some(ucb), Some(bounds.0), Some(pi), Some(bounds.1)]
    });
    check("theorem4", 11, FORMULA, Error::Relative, |r| {
        let (ucb, pi) = etas(r);
        let noise = CompactNoise { star: r.number(9), tau: r.number(10) };
        let (horizon, delta) = (r.t(1), r.delta(2));
        vec![
            Some(theorem4::ucb_bound(ucb, horizon, delta, prior(r), noise)),
            Some(theorem4::pi_bound(pi, horizon, delta, prior(r), noise)),
        ]
    });
}

#[test]
fn exact_laws() {
    check("coverages", 4, FUNCTION, Error::Relative, |r| {
        let (n, t, delta, form) = (r.count(0), r.t(1), r.delta(2), r.form(3));
        vec![
            lemma1::coverage_mean(n, t, delta, form),
            lemma1::coverage_variance(n, t, delta, form),
            lemma1::coverage_joint(n, t, delta, form),
        ]
    });
    check("error_tails", 3, DEEP_TAIL, Error::Relative, |r| {
        let law = ErrorLaw::new(r.count(0), r.t(1)).expect("t < N");
        vec![Some(law.cdf(r.number(2))), Some(law.sf(r.number(2)))]
    });
    check("given_tails", 4, FUNCTION, Error::Relative, |r| {
        let law = ErrorLaw::given(r.count(0), r.t(1), r.number(2)).expect("t < N");
        vec![Some(law.cdf(r.number(3))), Some(law.sf(r.number(3)))]
    });
}

#[test]
fn evidence() {
    check("tuned", 3, FORMULA, Error::Relative, |r| {
        let prior = BetaPrior::tuned(r.number(0), r.number(1), r.number(2));
        vec![Some(prior.a), Some(prior.b)]
    });
    check("ln_e_jeffreys", 3, FUNCTION, Error::Mixed, |r| {
        let (s, n, q) = (r.number(0), r.number(1), r.number(2));
        let prior = BetaPrior::JEFFREYS;
        vec![Some(prior.ln_e_refute(s, n - s, q)), Some(prior.ln_e_confirm(s, n - s, q))]
    });
    check("mixture", 6, FUNCTION, Error::Mixed, |r| {
        let counts = Counts { trials: r.count(1), violations: r.count(0), failures: r.count(2) };
        let mixture = Mixture::new(r.number(3), r.number(4), r.number(5));
        vec![Some(mixture.ln_e_refute(counts)), Some(mixture.ln_e_confirm(counts))]
    });
    let counts = |r: &Row| Counts { trials: r.count(1), violations: r.count(0), failures: 0 };
    check("clopper_pearson", 3, FUNCTION, Error::Relative, |r| {
        let interval = clopper_pearson(counts(r), r.number(2));
        vec![Some(interval.low), Some(interval.high)]
    });
    check("sequence", 5, FUNCTION, Error::Relative, |r| {
        let mixture = Mixture::new(r.number(2), r.number(4), r.number(3));
        let interval = confidence_sequence(counts(r), &mixture, r.number(4));
        vec![Some(interval.low), Some(interval.high)]
    });
}

fn features(x: f64) -> Vec<f64> {
    vec![1.0, x, x * x - 0.3]
}

fn design(points: &[f64]) -> Matrix {
    let columns: Vec<Vec<f64>> = points.iter().map(|&x| features(x)).collect();
    Matrix::from_fn(3, points.len(), |i, j| columns[j][i])
}

#[test]
fn lemma_3_is_biased() {
    check("lemma3", 5, FUNCTION, Error::Mixed, |r| {
        let training = design(&r.list(1));
        let prior = CompactPrior {
            mean: vec![0.2, -0.5, 1.0],
            covariance: Matrix::from_fn(3, 3, |i, j| if i == j { 1.0 + i as f64 } else { 0.3 }),
            gram: training.times(&training.transpose()),
            noise_variance: r.number(4),
        };
        let bias = prior.bias(&design(&r.list(0)), &r.list(2), &features(r.number(3)));
        let bias = bias.expect("a design of full rank");
        vec![
            Some(bias.mean_expected),
            Some(bias.mean_claimed),
            Some(bias.variance_expected),
            Some(bias.variance_claimed),
        ]
    });
}
