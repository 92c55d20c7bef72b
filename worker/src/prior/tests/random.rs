//! Random kernel expressions.

use super::*;
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = Value> {
    let stationary = prop_oneof![
        Just("squared-exponential"),
        Just("matern12"),
        Just("matern32"),
        Just("matern52"),
    ];
    prop_oneof![
        (stationary, 0.05_f64..2.0, 0.1_f64..3.0)
            .prop_map(|(kind, l, v)| json!({"kind": kind, "lengthscale": l, "variance": v})),
        (0.05_f64..2.0, 0.1_f64..5.0).prop_map(
            |(l, alpha)| json!({"kind": "rational-quadratic", "lengthscale": l, "alpha": alpha})
        ),
        (0.3_f64..2.0, 0.1_f64..2.0).prop_map(
            |(l, period)| json!({"kind": "periodic", "lengthscale": l, "period": period})
        ),
        (0.0_f64..2.0, 0.0_f64..2.0)
            .prop_map(|(v, offset)| json!({"kind": "linear", "variance": v, "offset": offset})),
    ]
}

fn expression() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|terms| json!({"kind": "sum", "terms": terms})),
            prop::collection::vec(inner, 1..4)
                .prop_map(|factors| json!({"kind": "product", "factors": factors})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_looser_tolerance_leaves_no_more_than_it_says(kernel in expression(), w in 0.0_f64..1.0) {
        let kernel = json!({"kind": "sum", "terms": [kernel, {"kind": "white", "variance": w}]});
        let domain = json!({"kind": "uniform", "points": 30, "dimension": 2});
        let built = |tolerance| {
            Prior::build(&spec(&domain, &kernel, &zero(), tolerance), &Files::default(), ROOMY)
        };
        let (Ok(tight), Ok(loose)) = (built(1e-15), built(1e-4)) else {
            return Err(TestCaseError::fail("a valid kernel was refused"));
        };
        prop_assert!(loose.rank() <= tight.rank() && tight.white == w && loose.white == w);
        prop_assert!(loose.residual <= 1e-4 * tight.c * (1.0 + 1e-9));
        let error = (dense(&tight) - dense(&loose)).abs().max();
        prop_assert!(error <= loose.residual + 1e-13 * tight.c, "{error} {}", loose.residual);
    }
}
