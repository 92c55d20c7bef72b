use super::*;

fn spec(kernel: &str, features: &str, points: usize, dimension: usize) -> PriorSpec {
    let text = format!(
        r#"{{"setting": "compact", "domain": {{"kind": "sobol", "points": {points}, "dimension": {dimension}}},
            "kernel": {kernel}, "mean": {{"kind": "zero"}}, "noise_variance": 0.01{features}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn cosines(functions: u32, dimension: usize) -> PriorSpec {
    let kernel = format!(r#"{{"kind": "cosine", "functions": {functions}, "lengthscale": 0.06}}"#);
    spec(&kernel, "", 200, dimension)
}

fn build(spec: &PriorSpec) -> Result<CompactPrior, Error> {
    CompactPrior::build(spec, &Files::default(), Cpu::detect())
}

#[test]
fn c_is_the_largest_variance_on_a_dense_grid() {
    for dimension in [1, 2] {
        let prior = build(&cosines(12, dimension)).unwrap();
        let side = if dimension == 1 { 20_001 } else { 301 };
        let mut largest = 0.0;
        for i in 0..usize::pow(side, dimension as u32) {
            let x: Vec<f64> = (0..dimension)
                .map(|j| (i / usize::pow(side, j as u32) % side) as f64 / (side - 1) as f64)
                .collect();
            let variance: f64 = prior.phi(Cpu::detect(), &x).iter().map(|phi| phi * phi).sum();
            if variance > largest {
                largest = variance;
            }
        }
        assert!(prior.c >= largest && prior.c < 1.01 * largest, "{} for {largest}", prior.c);
    }
}

#[test]
fn the_squared_exponential_has_its_own_variance() {
    let kernel = r#"{"kind": "squared-exponential", "lengthscale": 0.25, "variance": 2.0}"#;
    let learnt = r#", "features": {"kind": "learnt", "functions": 20}"#;
    let prior = build(&spec(kernel, learnt, 50, 2)).unwrap();
    assert!((prior.c - 2.0).abs() < 1e-5, "{}", prior.c);
    assert_eq!(prior.kernel, Some((2.0, 0.25)));
    assert!(prior.given.is_none());
}

#[test]
fn dependent_features_are_refused() {
    let kernel = r#"{"kind": "cosine", "functions": 60, "lengthscale": 3.0}"#;
    let error = build(&spec(kernel, "", 200, 1)).err().unwrap();
    assert_eq!(error, Error::Dependent { functions: 60 });
    let kernel = r#"{"kind": "squared-exponential", "lengthscale": 0.0003}"#;
    let learnt = r#", "features": {"kind": "learnt", "functions": 20}"#;
    assert!(matches!(build(&spec(kernel, learnt, 50, 1)), Err(Error::TooManyFeatures { .. })));
}

/// The bracket holds the information of sets of points found in other ways.
#[test]
fn information_is_bracketed() {
    let prior = build(&cosines(12, 1)).unwrap();
    let bracket = prior.information(Cpu::detect(), 6);
    assert_eq!(bracket.len(), 6);
    for (t, (lower, upper)) in (1..).zip(&bracket) {
        assert!(lower > &0.0 && lower <= upper, "{t}: {lower} {upper}");
        let mut weights = Weights::independent(&prior.variances);
        let mut gain = 0.0;
        for i in 0..t {
            let phi = prior.phi(Cpu::detect(), &[(f64::from(i) + 0.5) / f64::from(t)]);
            gain += 0.5 * libm::log1p(weights.at(&phi).variance / 0.01);
            weights.condition(&phi, 0.0, 0.01, 0.0);
        }
        assert!(gain <= *upper, "{t}: {gain} over {upper}");
    }
}
