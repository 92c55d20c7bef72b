use proptest::prelude::*;

use super::*;
use crate::plan::Plan;
use crate::prior::Files;

mod messages;
mod mistakes;
mod reference;

/// The study of the documentation, every section in it.
const FULL: &str = r#"[study]
name = "lemma1"
seed = 2018
replicates = 2000
detail = "checkpoints"
alpha = 0.05

[prior]
setting = "finite"
domain = { kind = "grid", points = 80, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.1, variance = 1.0 }
mean = { kind = "zero" }
noise_variance = 0.01
tolerance = 1e-12

[grid]
N = [200, 500, 2000]
T = [1, 5, 20, 50]
delta = [0.05, 0.1, 0.5]
design = ["fixed", "adaptive"]
method = ["pem-bo", "known-prior", "random"]
acquisition = ["gp-ucb", "pi"]
policy_constants = ["printed"]
"prior.kernel.lengthscale" = [0.05, 0.1]

[policy]
pi_gap = 0.0

[claims]
test = ["lemma1.*", "theorem2.*"]

[[claim]]
id = "mine.cumulative"
holds = "cumulative_regret <= 8 * sqrt(t * rho_hi)"
budget = "delta"
quantifier = "each t"
"#;

/// The line of it that sweeps a key of the prior.
const SWEEP: &str = "\"prior.kernel.lengthscale\" = [0.05, 0.1]\n";

fn parse(text: &str) -> Result<Study, FileError> {
    Study::parse("s.toml", text)
}

#[test]
fn the_documented_study_reads() {
    let study = parse(FULL).unwrap();
    assert_eq!((study.name.as_str(), study.seed), ("lemma1", 2018));
    assert_eq!(study.replicates, Replicates::Fixed(2000));
    assert_eq!(study.grid.t, [1, 5, 20, 50]);
    assert_eq!(study.priors.len(), 2);
    let swept = [("prior.kernel.lengthscale".to_owned(), Scalar::Float(0.05))];
    assert_eq!(study.priors[0].swept, swept);
    assert_eq!(study.claims[0].quantifier, Quantifier::EachT);
    assert_eq!(study.claims[0].line, 32);
    assert!(study.tests("lemma1/step.K") && !study.tests("lemma5.simple"));
    assert!(study.paths().is_empty());
}

#[test]
fn an_expression_has_at_most_500_words_and_symbols() {
    let with = |holds: &str| {
        parse(&FULL.replace("cumulative_regret <= 8 * sqrt(t * rho_hi)", holds)).map(|_| ())
    };
    let chain = |more: usize| format!("t > 0.5{}", " AND f_range>=-1".repeat(more));
    assert_eq!(with(&chain(82)), Ok(()));
    for holds in [chain(83), chain(5000), "(".repeat(501), "NOT ".repeat(501), "-".repeat(501)] {
        let error = with(&holds).unwrap_err().to_string();
        assert!(error.starts_with("s.toml:34: claim.holds = "), "{error}");
        assert!(error.ends_with("valid are at most 500; make it several claims"), "{error}");
    }
}

#[test]
fn the_example_of_the_documentation_can_be_run() {
    let page = include_str!("../../../../docs/study-file.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let plan = Plan::new(parse(example).unwrap(), &Files::default()).unwrap();
    // Two priors; 3 fixed, 9 GP-UCB, 3 PI, 3 + 1 with the known prior, 1 random.
    assert_eq!(plan.cells.len(), 2 * (3 + 9 + 3 + 4 + 1));
}

#[test]
fn scalars_defaults_and_bare_dotted_keys() {
    let study = parse(
        r#"
[study]
name = "small"
seed = 0
replicates = { batch = 500, max = 100_000 }
[prior]
domain = { kind = "points", path = "x.csv" }
kernel = { kind = "sum", terms = [{ kind = "white" }, { kind = "factor", path = "f.csv" }] }
noise_variance = 0
[grid]
N = 50
T = [20, 3]
delta = 0.1
prior.kernel.terms = 1
"#,
    );
    assert_eq!(
        study.unwrap_err().to_string(),
        "s.toml:14: prior.kernel.terms = 1 is not a list; write [{ kind = .. }, ..]"
    );
    let text = r#"
study = { name = "small", seed = 0, replicates = { batch = 500, max = 1_100 } }
[prior]
domain = { kind = "points", path = "x.csv" }
kernel = { kind = "sum", terms = [{ kind = "white" }, { kind = "factor", path = "f.csv" }] }
noise_variance = 0
[grid]
N = 50
T = [20, 3]
delta = 0.1
prior.noise_variance = [1, 0.5]
"prior.kernel.terms[0].variance" = 2
"prior.domain.path" = ["x.csv", "y.csv"]
"#;
    let study = parse(text).unwrap();
    let replicates = study.replicates;
    assert_eq!((replicates.batch_size(), replicates.max(), replicates.batches()), (500, 1100, 3));
    assert_eq!((study.detail, study.alpha, study.n_opt), (Detail::Checkpoints, 0.05, 2000.0));
    assert_eq!((study.grid.t.as_slice(), study.pi_gap), ([3, 20].as_slice(), 0.0));
    assert_eq!(study.paths(), ["f.csv", "x.csv", "y.csv"]);
    assert_eq!(study.priors.len(), 4);
    let of = |prior: usize| study.priors[prior].swept.iter().map(|(_, value)| value.to_string());
    assert_eq!(of(0).collect::<Vec<_>>(), ["\"x.csv\"", "2.0", "1.0"]);
    assert_eq!(of(3).collect::<Vec<_>>(), ["\"y.csv\"", "2.0", "0.5"]);
    assert_eq!(study.priors[1].spec.noise_variance, 0.5);
}

/// Every kind with all of its keys, and with those alone that it needs, is what the types of the prior
/// read; any other key they refuse.
#[test]
fn the_schema_is_that_of_the_types() {
    use schema::{Absent, DOMAINS, FEATURES, KERNELS, Kind, MEANS, Takes};
    let value = |takes: Takes| match takes {
        Takes::Number => "0.5",
        Takes::Numbers => "[0.5]",
        Takes::Count => "1",
        Takes::Path => "\"a.csv\"",
        Takes::Sense => "\"min\"",
        Takes::Kernels => "[{ kind = \"white\" }]",
    };
    let sections =
        [("domain", DOMAINS), ("kernel", KERNELS), ("mean", MEANS), ("features", FEATURES)];
    for (section, kinds) in sections {
        for Kind { name: kind, fields, .. } in kinds {
            let table = |all: bool, extra: &str| {
                let fields = fields.iter().filter(|field| all || field.absent == Absent::Required);
                let fields: Vec<String> = fields
                    .map(|field| format!(", {} = {}", field.name, value(field.takes)))
                    .collect();
                let fields = fields.concat();
                let mut lines = vec![
                    "domain = { kind = \"grid\", points = 9, dimension = 1 }".to_owned(),
                    "kernel = { kind = \"white\" }".to_owned(),
                    "mean = { kind = \"zero\" }".to_owned(),
                    "setting = \"finite\"\nnoise_variance = 0.1".to_owned(),
                ];
                lines.retain(|line| !line.starts_with(section));
                lines.push(format!("{section} = {{ kind = \"{kind}\"{fields}{extra} }}"));
                lines.join("\n")
            };
            for all in [false, true] {
                let text = table(all, "");
                toml::from_str::<crate::prior::PriorSpec>(&text).expect(&text);
                let study = FULL.replace("[grid]", "[other]");
                let start = study.find("setting").unwrap();
                let end = study.find("[other]").unwrap();
                let study = format!("{}{text}\n{}", &study[..start], &study[end..]);
                let study = study.replace("[other]", "[grid]");
                let study = study.replace(SWEEP, "");
                parse(&study).expect(&study);
            }
            let text = table(true, ", other = 1");
            assert!(toml::from_str::<crate::prior::PriorSpec>(&text).is_err(), "{text}");
        }
    }
}

#[test]
fn depth_and_size_do_no_harm() {
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep).is_err());
    let deep = format!("a = {}1{}", "{ a = ".repeat(100_000), "}".repeat(100_000));
    assert!(parse(&deep).is_err());
    assert!(parse(&format!("{}a = 1", "a.".repeat(100_000))).is_err());
    let nested = |depth: usize| {
        let (open, close) = ("{ kind = \"sum\", terms = [", "] }");
        let kernel = format!("{}{{ kind = \"white\" }}{}", open.repeat(depth), close.repeat(depth));
        let start = FULL.find("kernel = ").unwrap();
        let end = FULL.find("mean = ").unwrap();
        let text = format!("{}kernel = {kernel}\n{}", &FULL[..start], &FULL[end..]);
        parse(&text.replace(SWEEP, ""))
    };
    assert!(nested(20).is_ok());
    assert!(nested(5000).is_err());
    let many: Vec<String> = (0..2000).map(|i| format!("1.{i:04}1")).collect();
    let many = many.join(", ");
    let text =
        FULL.replace("[0.05, 0.1]\n", &format!("[{many}]\n\"prior.tolerance\" = [{many}]\n"));
    assert_eq!(
        parse(&text).unwrap_err().to_string(),
        "s.toml:25: prior.tolerance = [..] makes 4000000 priors with the other swept keys; valid \
         are at most 100000"
    );
    let stars = "*".repeat(5000);
    let text = FULL.replace("lemma1.*", &format!("{stars}x{stars}y"));
    assert!(parse(&text).unwrap_err().to_string().contains("names no claim"));
}

/// Snippets that make the edited study mean something else.
const SNIPPETS: &[&str] = &[
    "nan",
    "-inf",
    "-1",
    "0",
    "1e400",
    "99999999999999999999",
    "1.5",
    "[]",
    "[[1]]",
    "{}",
    "\"\"",
    "\"steps\"",
    "\"summary\"",
    "true",
    "2018-01-01",
    "[study]",
    "[grid]",
    "\"prior.kernel.kind\" = \
     \"white\"",
    "prior.domain.points = [9, 16]",
    "{ batch = 2, max = 3 }",
    "\n",
    "=",
    ".",
    "\u{0}",
    "\"\\u0000\"",
    "'''",
    "T = 3",
    "N = 1",
    "delta = 1e-20",
    "\"matern12\"",
    "[0.5, 0.5]",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn edited_studies_are_planned_or_refused(
        edits in proptest::collection::vec(
            (0..2000_usize, 0..12_usize, 0..SNIPPETS.len()), 1..4,
        ),
    ) {
        let mut text = FULL.to_owned();
        for (at, length, snippet) in edits {
            let at = at % (text.len() + 1);
            let end = (at + length).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, SNIPPETS[snippet]);
            }
        }
        match parse(&text).and_then(|study| Plan::new(study, &Files::default())) {
            Ok(plan) => prop_assert!(!plan.cells.is_empty() && plan.evidence > 1.0),
            Err(error) => prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_values_are_planned_or_refused(
        values in proptest::collection::vec(0..SNIPPETS.len(), 8),
        lines in proptest::collection::vec(0..40_usize, 8),
    ) {
        let mut text: Vec<String> = FULL.lines().map(str::to_owned).collect();
        for (value, line) in values.into_iter().zip(lines) {
            if let Some((key, _)) = text.get(line).and_then(|line| line.split_once(" = ")) {
                text[line] = format!("{key} = {}", SNIPPETS[value]);
            }
        }
        let _ = parse(&text.join("\n")).and_then(|study| Plan::new(study, &Files::default()));
    }
}
