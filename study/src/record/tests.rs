use theory::measurement::{AtTau, CompactNoise, Expected};

use super::*;

/// A measurement that has everything, and one that has nothing that may be lacking.
fn extremes() -> [Measurement; 2] {
    let deviation = Some(theory::measurement::Deviation { signed: 0.5, error: 0.25, ratio: 1.0 });
    let estimated = theory::measurement::EstimatedAtTau {
        mean_star: 1.0,
        variance_star: 1.0,
        mean_tau: 1.0,
        variance_tau: 1.0,
    };
    let at_tau = AtTau {
        tau: 1,
        mean_star: 1.0,
        variance_star: 1.0,
        mean_tau: 1.0,
        variance_tau: 1.0,
        f_tau: 1.0,
        zeta: Some(1.0),
        estimated: Some(estimated),
        compact: Some(CompactNoise { star: 1.0, tau: 1.0 }),
        star_seen: false,
    };
    let full = Measurement {
        t: 1,
        x: Some(1),
        y: 1.0,
        f: 1.0,
        f_star: 1.0,
        x_star: Some(1),
        prior_known: true,
        f_range: 1.0,
        zeta: Some(1.0),
        target: Some(1.0),
        best_sample_regret: 1.0,
        simple_regret: 1.0,
        cumulative_regret: 1.0,
        probe: deviation,
        expected: Some(Expected { signed: 1.0, ratio: 1.0 }),
        star: deviation,
        next: deviation,
        observed: deviation,
        k_xy: 1.0,
        star_seen: false,
        at_tau,
        y_max: 1.0,
        f_at_y_max: 1.0,
        f_max: 1.0,
        y_at_f_max: 1.0,
        information: Some(1.0),
        information_determinant: Some(1.0),
    };
    let bare = Measurement {
        x: None,
        x_star: None,
        prior_known: false,
        zeta: None,
        target: None,
        probe: None,
        expected: None,
        star: None,
        next: None,
        observed: None,
        at_tau: AtTau { zeta: None, estimated: None, compact: None, ..at_tau },
        information: None,
        information_determinant: None,
        ..full
    };
    [full, bare]
}

#[test]
fn a_column_says_where_it_is_null_if_it_can_be() {
    let [full, bare] = extremes();
    for column in COLUMNS {
        assert_ne!((column.value)(&full), Value::Null, "{}", column.name);
        let can_be = (column.value)(&bare) == Value::Null;
        assert_eq!(can_be, !column.null.is_empty(), "{}", column.name);
    }
}

#[test]
fn failures_are_listed_in_the_order_of_their_codes() {
    assert_eq!(Failure::all(1).map(Failure::name), Failure::NAMES);
}
