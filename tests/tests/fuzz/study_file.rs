//! Study files, and the tables that they name.

use study::prior::Files;
use study::{Plan, Study};

use crate::harness::{Answer, Inputs, fuzz};

const TOKENS: [&[u8]; 40] = [
    b"[study]",
    b"[prior]",
    b"[grid]",
    b"[[claim]]",
    b"[claims]",
    b"[policy]",
    b"\n",
    b"\"",
    b"'''",
    b"[",
    b"]",
    b"{ ",
    b" }",
    b" = ",
    b", ",
    b"N",
    b"T",
    b"delta",
    b"design",
    b"method",
    b"steps",
    b"summary",
    b"random",
    b"pem-bo",
    b"known-prior",
    b"gp-ucb",
    b"sum",
    b"terms = [",
    b"product",
    b"factors",
    b"matrix",
    b"periodic",
    b"rational-quadratic",
    b"uniform",
    b"sobol",
    b"\"prior.kernel.variance\" = ",
    b"\"prior.domain.points\" = ",
    b"\\u0000",
    b"batch = ",
    b"inf",
];

fn files() -> Files {
    let mut files = Files::default();
    for (path, text) in [
        ("points.csv", "0.1\n0.5\n0.75\n"),
        ("factor.csv", "1,0\n0,1\n0.5,0.5\n"),
        ("mean.csv", "1\n2\n3\n"),
        ("matrix.csv", "1,0,0\n0,1,0\n0,0,1\n"),
    ] {
        files.insert(path, text.into()).expect("a table");
    }
    files
}

fn plan(text: &str, files: &Files) -> Answer {
    let study = match Study::parse("fuzz.toml", text) {
        Ok(study) => study,
        Err(error) => {
            // An end that comes too early is behind the last line.
            let lines = 1 + text.matches('\n').count();
            assert!((1..=lines).contains(&error.line), "{error}");
            return format!("{} {}", error.key, error.reason);
        }
    };
    _ = study.paths();
    let plan = match Plan::new(study.clone(), files) {
        Ok(plan) => plan,
        Err(error) => return format!("plan {} {}", error.key, error.reason),
    };
    let label = plan.cells.first().map(|cell| plan.label(cell));
    // Both ends of the wire have to arrive at the same plan, and a plan grows from itself.
    if plan.cells.len() < 1000 {
        let again = Plan::new(study, files).expect("what is valid stays so");
        assert_eq!(plan.revision(), again.revision());
        again.grows_from(&plan).expect("nothing changed");
    }
    format!("{label:?} {:?} {:?}", plan.study.detail, plan.study.claims)
}

#[test]
fn study_files() {
    let files = files();
    let inputs = Inputs { name: "study", valid: vec![], tokens: &TOKENS };
    fuzz(inputs, |input| plan(&String::from_utf8_lossy(input), &files));
}

#[test]
fn tables() {
    let valid: Vec<Vec<u8>> = ["1,2\n3,4\n", "x y\n0.5 1e-3\n", "# c\n\n1\n2\n", "a\tb\n1\t2\r\n"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
    let tokens: [&[u8]; 9] =
        [b",", b"\n", b"\r\n", b"\t", b"nan", b"inf", b"\x93NUMPY", b"\"", b" "];
    fuzz(Inputs { name: "table", valid, tokens: &tokens }, |input| {
        let mut files = Files::default();
        let answer = files.insert("t.csv", input.to_vec());
        if let Ok(table) = files.incomplete("key", "t.csv") {
            return format!("{} x {}", table.rows().min(9), table.columns().min(9));
        }
        answer.map_or_else(|error| error.to_string(), |()| unreachable!("it was inserted"))
    });
}
