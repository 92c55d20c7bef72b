//! Priors against kernel matrices in 40-digit arithmetic, and what `Prior::build` refuses.

mod random;

use super::*;
use nalgebra::DMatrix;
use serde_json::{Value, json};
use study::Digest;

const ROOMY: MemoryLimit = MemoryLimit { bytes: 1 << 30, state_per_point: 64 };

fn spec(domain: &Value, kernel: &Value, mean: &Value, tolerance: f64) -> PriorSpec {
    let spec = json!({
        "setting": "finite", "domain": domain, "kernel": kernel, "mean": mean,
        "noise_variance": 0.01, "tolerance": tolerance,
    });
    serde_json::from_value(spec).unwrap()
}

fn zero() -> Value {
    json!({"kind": "zero"})
}

fn line(points: usize) -> Value {
    json!({"kind": "grid", "points": points, "dimension": 1})
}

fn build(domain: &Value, kernel: &Value) -> Result<Prior, Error> {
    Prior::build(&spec(domain, kernel, &zero(), 1e-12), &Files::default(), ROOMY)
}

fn file(text: &str) -> Files {
    let mut files = Files::default();
    files.insert("file.csv", text.as_bytes().to_vec()).unwrap();
    files
}

fn with_file(points: usize, kind: &str, text: &str) -> Result<Prior, Error> {
    let kernel = json!({"kind": kind, "path": "file.csv"});
    Prior::build(&spec(&line(points), &kernel, &zero(), 1e-12), &file(text), ROOMY)
}

/// F F^T + w I by nalgebra.
fn dense(prior: &Prior) -> DMatrix<f64> {
    let f = DMatrix::from_fn(prior.size(), prior.rank(), |i, k| prior.factor.entry(i, k));
    &f * f.transpose() + DMatrix::identity(prior.size(), prior.size()) * prior.white
}

fn reference() -> (Value, String) {
    let text = include_str!("../../tests/reference_prior.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let rows = reference["points"].as_array().unwrap().iter();
    let points: Vec<String> = rows.map(|row| format!("{},{}", row[0], row[1])).collect();
    let points = points.join("\n");
    (reference, points)
}

#[test]
fn kernels_agree_with_high_precision_arithmetic() {
    let (reference, points) = reference();
    let domain = json!({"kind": "points", "path": "file.csv"});
    for case in reference["kernels"].as_array().unwrap() {
        let spec = spec(&domain, &case["kernel"], &zero(), 1e-15);
        let prior = Prior::build(&spec, &file(&points), ROOMY).unwrap();
        let found = dense(&prior);
        let expected = DMatrix::from_fn(7, 7, |i, j| case["matrix"][i][j].as_f64().unwrap());
        let error = (&found - &expected).abs().max();
        assert!(error < 4e-15 * prior.c, "{}: {error:e}\n{found}{expected}", case["kernel"]);
        assert!((prior.c - expected.diagonal().max()).abs() < 4e-15 * prior.c);
    }
}

#[test]
fn white_parts_are_split_off_sums_and_products() {
    let cases = &reference().0["kernels"];
    for (case, white) in [(9, 0.25), (10, 0.1), (11, 0.5 * 2.0 + 0.25 + 0.125), (12, 0.0)] {
        let prior =
            build(&json!({"kind": "sobol", "points": 40, "dimension": 2}), &cases[case]["kernel"])
                .unwrap();
        assert!((prior.white - white).abs() < 1e-15, "{case}: {}", prior.white);
        assert_eq!(prior.rank() == 0, case == 9);
        assert_eq!(prior.total_noise(), prior.white + 0.01);
    }
}

#[test]
fn means_agree_with_their_formulas() {
    let (reference, points) = reference();
    let domain = json!({"kind": "points", "path": "file.csv"});
    let mean = |mean: &Value| {
        let spec = spec(&domain, &json!({"kind": "white"}), mean, 1e-12);
        Prior::build(&spec, &file(&points), ROOMY).unwrap().mean
    };
    let expected = reference["sine"]["values"].as_array().unwrap();
    for (found, expected) in mean(&reference["sine"]["mean"]).iter().zip(expected) {
        assert!((found - expected.as_f64().unwrap()).abs() < 1e-14);
    }
    let linear = mean(&json!({"kind": "linear", "weights": [2, -4], "intercept": 1}));
    assert_eq!(linear, [1.0, -0.75, -1.5, 1.75, -0.25, -0.5, -1.125]);
    assert_eq!(mean(&json!({"kind": "constant", "value": 3})), [3.0; 7]);
    assert_eq!(mean(&zero()), [0.0; 7]);
    let from_file = spec(
        &line(2),
        &json!({"kind": "white"}),
        &json!({"kind": "file", "path": "file.csv"}),
        1e-12,
    );
    assert_eq!(Prior::build(&from_file, &file("5\n6\n"), ROOMY).unwrap().mean, [5.0, 6.0]);
}

#[test]
fn smooth_kernels_have_low_rank_and_a_small_residual() {
    let kernel = json!({"kind": "squared-exponential", "lengthscale": 0.05});
    let prior = build(&line(1000), &kernel).unwrap();
    assert!((40..80).contains(&prior.rank()), "{}", prior.rank());
    assert!(prior.residual <= 1e-12 && (prior.c - 1.0).abs() < 1e-12);
    let rough = build(&line(100), &json!({"kind": "matern12", "lengthscale": 0.05})).unwrap();
    assert_eq!((rough.rank(), rough.residual), (100, 0.0));
}

#[test]
fn a_large_white_prior_is_cheap() {
    let white = json!({"kind": "white", "variance": 2});
    let prior = build(&line(1_000_000), &white).unwrap();
    assert_eq!((prior.size(), prior.rank(), prior.c, prior.residual), (1_000_000, 0, 2.0, 0.0));
}

#[test]
fn files_give_the_matrix_or_the_factor_itself() {
    let matrix = with_file(2, "matrix", "2 1\n1 2\n").unwrap();
    let expected = DMatrix::from_row_slice(2, 2, &[2., 1., 1., 2.]);
    assert!((dense(&matrix) - expected).abs().max() < 1e-15);
    let factor = with_file(3, "factor", "1 2\n3 4\n0 0\n").unwrap();
    assert_eq!(factor.factor.row(1).collect::<Vec<_>>(), [3.0, 4.0]);
    assert_eq!((factor.rank(), factor.c, factor.residual), (2, 25.0, 0.0));
}

#[test]
fn matrices_that_are_no_covariance_are_refused() {
    let refused = |text: &str, points| with_file(points, "matrix", text).unwrap_err().to_string();
    assert!(refused("0.0 1\n1 0", 2).starts_with(
        "prior.kernel is not positive semidefinite: after 0 pivots, the residual covariance of \
         points 0 and 1 is 1e0"
    ));
    for text in ["1 2\n2 1", "-1 0\n0 -1", "1 0 0\n0 0 1\n0 1 0"] {
        let points = text.lines().count();
        let error = with_file(points, "matrix", text).unwrap_err();
        assert!(matches!(error, Error::NotPositiveSemidefinite(_)), "{error}");
    }
    assert_eq!(
        refused("1 0.5\n0.4 1", 2),
        "prior.kernel.path = \"file.csv\": row 2, column 1 is 0.4, but row 1, column 2 is 0.5 (rows \
         and columns counted from 1); a kernel matrix is symmetric"
    );
    assert_eq!(with_file(2, "matrix", "0 0\n0 0").unwrap_err(), Error::NoVariance);
}

#[test]
fn rounded_matrices_need_a_larger_tolerance() {
    let exact = build(&line(60), &json!({"kind": "squared-exponential", "lengthscale": 0.3}));
    let text: String = dense(&exact.unwrap())
        .row_iter()
        .map(|row| row.iter().map(|v| format!("{v:.5}")).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    let error = with_file(60, "matrix", &text).unwrap_err();
    assert!(error.to_string().contains("raise prior.tolerance"), "{error}");
    let kernel = json!({"kind": "matrix", "path": "file.csv"});
    let spec = spec(&line(60), &kernel, &zero(), 1e-3);
    assert!(Prior::build(&spec, &file(&text), ROOMY).is_ok());
}

#[test]
fn white_times_a_varying_variance_is_refused() {
    let product = |other: Value| {
        let white = json!({"kind": "white", "variance": 0.5});
        build(&line(3), &json!({"kind": "product", "factors": [white, other]}))
    };
    let error = product(json!({"kind": "linear", "offset": 1})).unwrap_err();
    let expected = KernelError::VaryingVariance {
        key: "prior.kernel".to_owned(),
        first: 1.0,
        point: 1,
        value: 1.25,
    };
    assert_eq!(error, Error::Kernel(expected));
    let constant = product(json!({"kind": "linear", "variance": 0, "offset": 4})).unwrap();
    assert_eq!((constant.white, constant.rank()), (2.0, 0));
}

#[test]
fn noise_below_the_floor_is_refused_and_no_noise_is_not() {
    let smooth = json!({"kind": "squared-exponential", "lengthscale": 0.2, "variance": 4});
    let noisy = |noise_variance| {
        let mut spec = spec(&line(20), &smooth, &zero(), 1e-12);
        spec.noise_variance = noise_variance;
        Prior::build(&spec, &Files::default(), ROOMY)
    };
    let error = noisy(1e-9).unwrap_err();
    let Error::NoiseTooSmall { least, .. } = error else { panic!("{error}") };
    assert!((least - 4.0 * ACCURACY_FLOOR).abs() < 1e-20);
    assert!(error.to_string().starts_with("prior.noise_variance = 1e-9 is too small"));
    assert!(noisy(least).is_ok());
    assert_eq!(noisy(0.0).unwrap().total_noise(), 0.0);
}

#[test]
fn priors_beyond_the_memory_limit_are_refused_while_the_rank_grows() {
    let limit = MemoryLimit { bytes: 100_000, state_per_point: 100 };
    let rough = json!({"kind": "matern12", "lengthscale": 0.1});
    let spec = spec(&line(100), &rough, &zero(), 1e-12);
    let error = Prior::build(&spec, &Files::default(), limit).unwrap_err();
    // 100 (16 + 100 + 16 r) <= 100000: r <= 55.
    let Error::OutOfMemory(error) = error else { panic!("{error}") };
    assert_eq!((error.points, error.rank, error.rank_that_fits), (100, 56, 55));
}

#[test]
fn overflowing_kernels_are_refused() {
    let linear = json!({"kind": "linear", "variance": 1e308, "offset": 1e308});
    let error = build(&line(2), &linear).unwrap_err();
    let expected = Error::NotFinite { key: "prior.kernel", point: 1, value: f64::INFINITY };
    assert_eq!(error, expected);
    let steep = json!({"kind": "linear", "weights": [1e308], "intercept": 1e308});
    let spec = spec(&line(2), &json!({"kind": "white"}), &steep, 1e-12);
    let error = Prior::build(&spec, &Files::default(), ROOMY).unwrap_err();
    assert_eq!(
        error.to_string(),
        "prior.mean gives inf at point 1; use smaller numbers, so that it is finite"
    );
}

#[test]
fn what_is_out_of_proportion_is_refused() {
    let refusal = |kernel: Value, mean: Value, noise: f64| {
        let mut spec = spec(&line(5), &kernel, &mean, 1e-12);
        spec.noise_variance = noise;
        Prior::build(&spec, &Files::default(), ROOMY).unwrap_err().to_string()
    };
    let white = |variance: f64| json!({"kind": "white", "variance": variance});
    let huge = json!({"kind": "sum", "terms": [white(1e308), white(1e308)]});
    assert!(refusal(huge, zero(), 0.1).contains("prior.kernel gives inf"));
    assert!(refusal(white(1e-200), zero(), 0.0).contains("between 1e-100 and 1e100"));
    let mixed = json!({"kind": "sum", "terms": [
        {"kind": "matern32", "lengthscale": 0.5, "variance": 1e308}, white(1e308)]});
    assert!(refusal(mixed, zero(), 0.1).contains("prior.kernel gives inf"));
    let noise = refusal(white(1.0), zero(), 1e-310);
    assert!(
        noise.contains("prior.noise_variance gives 1e-310") && noise.contains("use 0"),
        "{noise}"
    );
    let far = json!({"kind": "constant", "value": 1e16});
    assert!(refusal(white(1.0), far, 0.1).contains("prior.mean gives 1e16"));
}

/// The value that the refusal of too little noise advises is taken.
#[test]
fn the_advised_noise_is_enough() {
    for variance in [1.0, 3.7, 1e-9, 123.456] {
        let kernel = json!({"kind": "matern12", "lengthscale": 0.3, "variance": variance});
        let mut spec = spec(&line(7), &kernel, &zero(), 1e-12);
        spec.noise_variance = 1e-12 * variance;
        let error = Prior::build(&spec, &Files::default(), ROOMY).unwrap_err();
        let Error::NoiseTooSmall { least, .. } = error else { panic!("{error}") };
        spec.noise_variance = least;
        assert!(Prior::build(&spec, &Files::default(), ROOMY).is_ok());
    }
}

#[test]
fn the_least_tolerance_is_still_within_rounding() {
    for lengthscale in [0.02, 0.1, 0.5, 2.0, 10.0] {
        let kernel = json!({"kind": "squared-exponential", "lengthscale": lengthscale});
        let spec = spec(&line(400), &kernel, &zero(), 1e-15);
        let prior = Prior::build(&spec, &Files::default(), ROOMY).unwrap();
        let exact = DMatrix::from_fn(400, 400, |i, j| {
            let scaled = (prior.points.point(i)[0] - prior.points.point(j)[0]) / lengthscale;
            libm::exp(-0.5 * scaled * scaled)
        });
        let error = (dense(&prior) - exact).abs().max();
        assert!(error < 1e-14 && prior.rank() < 250, "{lengthscale}: {error:e} {}", prior.rank());
    }
}

#[test]
fn the_bits_of_a_factor_are_pinned() {
    let case = &reference().0["kernels"][11]["kernel"];
    let prior = build(&json!({"kind": "uniform", "points": 50, "dimension": 2}), case).unwrap();
    let mut digest = Digest::new();
    prior.factor.row(0).chain(prior.factor.row(49)).for_each(|value| _ = digest.f64(value));
    assert_eq!(digest.finish()[..8], [191, 18, 96, 207, 145, 194, 39, 55]);
}
