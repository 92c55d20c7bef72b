use super::*;
use serde_json::{Value, json};

fn spec(kernel: &Value, domain: &Value, mean: &Value) -> PriorSpec {
    let spec = json!({
        "setting": "finite", "domain": domain, "kernel": kernel, "mean": mean,
        "noise_variance": 0.01,
    });
    serde_json::from_value(spec).unwrap()
}

fn line() -> Value {
    json!({"kind": "grid", "points": 80, "dimension": 1})
}

fn smooth() -> Value {
    json!({"kind": "squared-exponential", "lengthscale": 0.1})
}

fn zero() -> Value {
    json!({"kind": "zero"})
}

fn refusal(spec: &PriorSpec) -> String {
    spec.validate(&Files::default()).unwrap_err().to_string()
}

fn kernel_refusal(kernel: &Value) -> String {
    refusal(&spec(kernel, &line(), &zero()))
}

fn domain_refusal(domain: &Value) -> String {
    refusal(&spec(&smooth(), domain, &zero()))
}

fn identity(spec: &PriorSpec, files: &Files) -> [u8; 32] {
    let mut digest = Digest::new();
    spec.feed(files, &mut digest);
    digest.finish()
}

#[test]
fn defaults_and_every_kind_read_and_write() {
    let plain = spec(&smooth(), &line(), &zero());
    assert_eq!(plain.tolerance, 1e-12);
    assert!(
        matches!(plain.kernel, KernelSpec::SquaredExponential { variance, .. } if variance == 1.0)
    );
    let leaves = [
        json!({"kind": "matern12", "lengthscale": [0.1], "variance": 2}),
        json!({"kind": "matern32", "lengthscale": 1}),
        json!({"kind": "matern52", "lengthscale": 0.3}),
        json!({"kind": "rational-quadratic", "lengthscale": 0.3, "alpha": 0.7}),
        json!({"kind": "periodic", "lengthscale": 0.3, "period": 0.5}),
        json!({"kind": "linear", "offset": 0.5}),
        json!({"kind": "white", "variance": 0.1}),
        json!({"kind": "matrix", "path": "k.csv"}),
        json!({"kind": "factor", "path": "f.csv"}),
    ];
    let product = json!({"kind": "product", "factors": leaves});
    let kernel = json!({"kind": "sum", "terms": [smooth(), product]});
    let domains = [
        line(),
        json!({"kind": "uniform", "points": 5, "dimension": 2, "seed": 7}),
        json!({"kind": "sobol", "points": 5, "dimension": 2}),
        json!({"kind": "points", "path": "x.csv"}),
    ];
    let means = [
        zero(),
        json!({"kind": "constant", "value": -1}),
        json!({"kind": "linear", "weights": [1, 2], "intercept": 0.5}),
        json!({"kind": "sine", "amplitude": 1, "frequency": 2}),
        json!({"kind": "file", "path": "m.csv"}),
    ];
    for domain in &domains {
        for mean in &means {
            let spec = spec(&kernel, domain, mean);
            let text = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<PriorSpec>(&text).unwrap(), spec);
        }
    }
    let all = spec(&kernel, &domains[3], &means[4]);
    assert_eq!(all.paths(), ["x.csv", "k.csv", "f.csv", "m.csv"]);
}

#[test]
fn unknown_keys_are_errors() {
    for (kernel, domain, mean) in [
        (json!({"kind": "white", "lengthscale": 1}), line(), zero()),
        (smooth(), json!({"kind": "grid", "points": 9, "dimension": 2, "seed": 1}), zero()),
        (smooth(), line(), json!({"kind": "zero", "value": 1})),
        (json!({"kind": "sqaured-exponential", "lengthscale": 1}), line(), zero()),
    ] {
        let spec = json!({
            "setting": "finite", "domain": domain, "kernel": kernel, "mean": mean,
            "noise_variance": 0.01,
        });
        assert!(serde_json::from_value::<PriorSpec>(spec.clone()).is_err(), "{spec}");
    }
}

#[test]
fn kernels_out_of_range_are_refused_with_key_value_and_remedy() {
    let refused = |kernel| kernel_refusal(&kernel);
    assert_eq!(
        refused(json!({"kind": "white", "variance": -0.5})),
        "prior.kernel.variance = -0.5 is negative; the least valid value is 0"
    );
    assert_eq!(
        refused(json!({"kind": "sum", "terms": [{"kind": "matern12", "lengthscale": 0}]})),
        "prior.kernel.terms[0].lengthscale = 0 is not positive; any value above 0 is valid"
    );
    assert_eq!(
        refused(json!({"kind": "matern52", "lengthscale": [1, 2]})),
        "prior.kernel.lengthscale has 2 entries, but the domain has dimension 1; give 1"
    );
    assert_eq!(
        refused(json!({"kind": "product", "factors": []})),
        "prior.kernel.factors = [] is empty; give at least one kernel"
    );
    for kernel in [
        json!({"kind": "rational-quadratic", "lengthscale": 1, "alpha": 0}),
        json!({"kind": "periodic", "lengthscale": 1, "period": -1}),
        json!({"kind": "linear", "offset": -1}),
        json!({"kind": "linear", "variance": -1}),
        json!({"kind": "matern32", "lengthscale": [-1]}),
    ] {
        assert!(refused(kernel).starts_with("prior.kernel."));
    }
    let mut spec = spec(&smooth(), &line(), &zero());
    spec.kernel = KernelSpec::White { variance: f64::NAN };
    assert_eq!(refusal(&spec), "prior.kernel.variance = NaN is not a finite number; give one");
}

#[test]
fn domains_out_of_range_are_refused_with_key_value_and_remedy() {
    let refused = |domain| domain_refusal(&domain);
    assert_eq!(
        refused(json!({"kind": "grid", "points": 80, "dimension": 2})),
        "prior.domain.points = 80 is not a grid in dimension 2; the nearest valid numbers are 64 \
         and 81 (a whole number to the power 2)"
    );
    assert_eq!(
        refused(json!({"kind": "uniform", "points": 0, "dimension": 2})),
        "prior.domain.points = 0 is outside its range; valid are 1 to 4294967295"
    );
    assert_eq!(
        refused(json!({"kind": "sobol", "points": 4, "dimension": 22})),
        "prior.domain.dimension = 22 is outside its range; valid are 1 to 21"
    );
    assert!(refused(json!({"kind": "grid", "points": 4, "dimension": 0})).contains("dimension"));
    for (points, dimension, side) in [(80, 1, 80), (81, 2, 9), (1 << 30, 3, 1024), (1, 9, 1)] {
        assert_eq!(Shape { points, dimension }.side(), Some(side));
    }
}

#[test]
fn means_noise_and_tolerance_out_of_range_are_refused() {
    let with = |mean: Value| refusal(&spec(&smooth(), &line(), &mean));
    assert!(with(json!({"kind": "linear", "weights": []})).contains("weights has 0 entries"));
    let mut changed = spec(&smooth(), &line(), &zero());
    changed.mean = MeanSpec::Constant { value: f64::INFINITY };
    assert!(refusal(&changed).starts_with("prior.mean.value = inf"));
    let mut changed = spec(&smooth(), &line(), &zero());
    changed.noise_variance = -1e-3;
    assert!(refusal(&changed).starts_with("prior.noise_variance = -0.001 is negative"));
    for tolerance in [0.0, 1e-16, 0.02, f64::NAN] {
        changed = spec(&smooth(), &line(), &zero());
        changed.tolerance = tolerance;
        assert!(refusal(&changed).contains("valid are 1e-15 to 1e-2"), "{tolerance}");
    }
}

#[test]
fn files_are_checked_for_presence_and_shape() {
    let points = json!({"kind": "points", "path": "x.csv"});
    let spec = spec(&json!({"kind": "matrix", "path": "k.csv"}), &points, &zero());
    assert!(refusal(&spec).starts_with("prior.domain.path = \"x.csv\" has not been loaded"));
    let mut files = Files::default();
    files.insert("x.csv", b"0 0\n0 1\n1 0".to_vec()).unwrap();
    files.insert("k.csv", b"1 0\n0 1".to_vec()).unwrap();
    assert_eq!(
        spec.validate(&files).unwrap_err().to_string(),
        "prior.kernel.path = \"k.csv\" has 2 rows and 2 columns; needed are 3 rows of 3 columns \
         (one per point)"
    );
    files.insert("k.csv", b"1 0 0\n0 1 0\n0 0 1".to_vec()).unwrap();
    assert_eq!(spec.validate(&files).unwrap(), Shape { points: 3, dimension: 2 });
}

#[test]
fn identity_is_content_and_every_value_counts() {
    let files = |name: &str, text: &str| {
        let mut files = Files::default();
        files.insert(name, text.as_bytes().to_vec()).unwrap();
        files
    };
    let named = |name: &str| spec(&json!({"kind": "factor", "path": name}), &line(), &zero());
    let first = identity(&named("a.csv"), &files("a.csv", "1\n2"));
    assert_eq!(first, identity(&named("b.csv"), &files("b.csv", "1\n2")));
    assert_ne!(first, identity(&named("a.csv"), &files("a.csv", "1\n3")));

    let base = spec(&smooth(), &line(), &zero());
    let mut variants = vec![base.clone()];
    let mut push = |change: &dyn Fn(&mut PriorSpec)| {
        let mut changed = base.clone();
        change(&mut changed);
        variants.push(changed);
    };
    push(&|s| s.setting = Setting::Compact);
    push(&|s| s.noise_variance = 0.02);
    push(&|s| s.tolerance = 1e-10);
    push(&|s| s.domain = DomainSpec::Grid { points: 81, dimension: 1 });
    push(&|s| s.domain = DomainSpec::Sobol { points: 80, dimension: 1 });
    push(&|s| s.domain = DomainSpec::Uniform { points: 80, dimension: 1, seed: 0 });
    push(&|s| s.domain = DomainSpec::Uniform { points: 80, dimension: 1, seed: 1 });
    push(&|s| s.mean = MeanSpec::Constant { value: 0.0 });
    push(&|s| s.mean = MeanSpec::Sine { amplitude: 1.0, frequency: 1.0, phase: 0.0 });
    push(&|s| s.mean = MeanSpec::Linear { weights: vec![0.0], intercept: 1.0 });
    push(&|s| s.kernel = KernelSpec::White { variance: 1.0 });
    push(&|s| s.kernel = KernelSpec::Sum { terms: vec![s.kernel.clone()] });
    push(&|s| s.kernel = KernelSpec::Product { factors: vec![s.kernel.clone()] });
    push(&|s| {
        let lengthscale = Lengthscale::Each(vec![0.1]);
        s.kernel = KernelSpec::SquaredExponential { lengthscale, variance: 1.0 };
    });
    let all: Vec<_> = variants.iter().map(|spec| identity(spec, &Files::default())).collect();
    for (i, a) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|b| a != b), "{i}: {:?}", variants[i]);
    }
}
