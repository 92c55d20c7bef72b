//! Real data: what is run on them, what is refused, and that every format and route agrees.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::Bench;
use serde_json::Value;

const ROWS: usize = 40;
const COLUMNS: usize = 12;

/// Rewards of which some columns never vary and others are sums of two.
fn reward(i: usize, j: usize) -> f64 {
    let wave = |k: usize| libm::sin((7 * i + 3 * k + i * k) as f64);
    match j {
        0 => 1.5,
        1 => wave(2) + wave(3),
        _ => wave(j),
    }
}

fn csv(sign: f64) -> String {
    let mut text = String::new();
    for i in 0..ROWS {
        let row: Vec<String> = (0..COLUMNS).map(|j| (sign * reward(i, j)).to_string()).collect();
        _ = writeln!(text, "{}", row.join(","));
    }
    text
}

fn inputs() -> String {
    let row = |j: usize| [j.to_string(), (j * j % 5).to_string()].join(",") + "\n";
    (0..COLUMNS).map(row).collect()
}

fn study(prior: &str, grid: &str) -> String {
    format!(
        "[study]\nname = \"data\"\nseed = 4\nreplicates = {ROWS}\n\n[prior]\nsetting = \"data\"\n{prior}\n\n\
         [grid]\nT = [1, 3, 6]\ndelta = [0.3]\n{grid}\n"
    )
}

const ALL: &str = "method = [\"pem-bo\", \"random\", \"plain\", \"tlsm-bo\", \"box\", \"niw\"]";

fn write(bench: &Bench, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(bench.path(name), content).unwrap();
}

fn manifest(dir: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join("manifest.json")).unwrap()).unwrap()
}

fn verdicts(dir: &Path) -> Vec<Value> {
    serde_json::from_str(&std::fs::read_to_string(dir.join("verdicts.json")).unwrap()).unwrap()
}

/// Mean best values by method at one T.
fn best(dir: &Path, t: &str) -> Vec<(String, f64)> {
    let text = std::fs::read_to_string(dir.join("tables/best-values.csv")).unwrap();
    let mut lines =
        text.lines().map(|line| line.split(',').map(|f| f.trim_matches('"').to_owned()));
    let head: Vec<String> = lines.next().unwrap().collect();
    let at = |name: &str| head.iter().position(|key| key == name).unwrap();
    let rows = lines.map(Iterator::collect::<Vec<String>>).filter(|row| row.len() >= head.len());
    // Methods have commas in their names, so columns are counted from the end.
    rows.filter(|row| row[at("T")] == t)
        .map(|row| {
            let back = head.len() - at("best");
            (row[at("method")].clone(), row[row.len() - back].parse().unwrap())
        })
        .collect()
}

#[test]
fn every_method_runs_and_no_claim_is_made() {
    let bench = Bench::new();
    write(&bench, "r.csv", csv(1.0));
    write(&bench, "x.csv", inputs());
    write(&bench, "s.toml", study("rewards = \"r.csv\"\ninputs = \"x.csv\"", ALL));
    bench.run(bench.path("s.toml").to_str().unwrap(), "out", &["--quiet"]);
    let out = bench.path("out");
    let manifest = manifest(&out);
    assert_eq!((&manifest["trials"], &manifest["failures"]), (&Value::from(240), &Value::from(0)));
    let rows = verdicts(&out);
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!(row["verdict"], "not-applicable", "{row}");
        assert!(row["reason"].as_str().unwrap().contains("real data"), "{row}");
        // Nothing of the kind exists, which is not to say that there are none of it.
        for key in ["trials", "failures", "violations", "coverage", "replicates", "mean_expected"] {
            assert!(row[key].is_null(), "{key}: {row}");
        }
    }
    assert!(rows.iter().any(|row| row["claim"] == "lemma1.mean"));
    assert_eq!(best(&out, "6").len(), 6);
    // A table of what does not exist has no numbers either.
    let rates = std::fs::read_to_string(out.join("tables/rates.csv")).unwrap();
    let head: Vec<&str> = rates.lines().next().unwrap().split(',').collect();
    for name in ["rms_error", "least_variance", "bound", "lambda", "cap", "rho_lo"] {
        let back = head.len() - head.iter().position(|key| *key == name).unwrap();
        for line in rates.lines().skip(1).filter(|line| line.split(',').count() >= head.len()) {
            assert_eq!(line.rsplit(',').nth(back - 1), Some(""), "{name}: {line}");
        }
    }
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("Jarque-Bera"), "the diagnostic is in the report");
}

/// Small rewards are good: the same study on the negated file, bit for bit.
#[test]
fn sense_turns_the_sign_and_npy_is_the_same_data() {
    let bench = Bench::new();
    let grid = "method = [\"pem-bo\", \"random\"]\nacquisition = [\"gp-ucb\", \"pi\"]";
    write(&bench, "r.csv", csv(1.0));
    write(&bench, "negative.csv", csv(-1.0));
    let values: Vec<f64> =
        (0..ROWS * COLUMNS).map(|at| reward(at / COLUMNS, at % COLUMNS)).collect();
    write(&bench, "r.npy", study::prior::to_npy(ROWS, COLUMNS, &values));
    let mut curves = Vec::new();
    for (name, prior) in [
        ("max", "rewards = \"r.csv\""),
        ("min", "rewards = \"negative.csv\"\nsense = \"min\""),
        ("npy", "rewards = \"r.npy\""),
    ] {
        write(&bench, "s.toml", study(prior, grid));
        bench.run(bench.path("s.toml").to_str().unwrap(), name, &["--quiet"]);
        // Random search draws by the data's digest, the rest follows from the values.
        let found = best(&bench.path(name), "3");
        curves.push(found.into_iter().filter(|(m, _)| m.starts_with("PEM")).collect::<Vec<_>>());
    }
    assert_eq!(curves[0], curves[1]);
    assert_eq!(curves[0], curves[2]);
}

/// What is said of a study that is not planned.
fn refused(bench: &Bench) -> String {
    let output = bench.output(&["plan", "s.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", common::stderr(&output));
    common::stderr(&output)
}

#[test]
fn what_cannot_run_is_refused_with_what_would_be_valid() {
    let bench = Bench::new();
    write(&bench, "r.csv", csv(1.0));
    let cases = [
        ("rewards = \"r.csv\"", ALL, "prior.inputs does not give"),
        ("rewards = \"r.csv\"", "method = [\"known-prior\"]", "of real data none is known"),
        ("rewards = \"r.csv\"", "design = [\"fixed\"]", "of real data none is known"),
        ("rewards = \"r.csv\"", "N = [10]", "leave-one-out trains on"),
        ("rewards = \"r.csv\"\nprotocol = \"first\"", "N = [40]", "valid are 2 to 39 rows"),
        (
            "rewards = \"r.csv\"\nprotocol = \"random\"",
            "portion = [0.3]",
            "where its weight zeta_t does not exist",
        ),
        ("rewards = \"r.csv\"\nkernel = { kind = \"white\" }", "", "does not go with rewards"),
        ("rewards = \"none.csv\"", "", "cannot read"),
    ];
    for (prior, grid, reason) in cases {
        write(&bench, "s.toml", study(prior, grid));
        let refused = refused(&bench);
        assert!(refused.contains(reason), "{prior} {grid}: {refused}");
    }
    let rows = csv(1.0);
    let (_, fewer) = rows.split_once('\n').unwrap();
    write(&bench, "fewer.csv", fewer);
    let swept = "N = [10]\n\"prior.kernel.path\" = [\"r.csv\", \"fewer.csv\"]";
    write(&bench, "s.toml", study("rewards = \"r.csv\"\nprotocol = \"random\"", swept));
    assert!(refused(&bench).contains("more than the 39 rows of \"fewer.csv\""));
    let more = study("rewards = \"r.csv\"", "").replace("replicates = 40", "replicates = 41");
    write(&bench, "s.toml", more);
    let refused = refused(&bench);
    assert!(refused.contains("more than the 40 rows"), "{refused}");
}

/// Rewards as pandas writes them, with numbers for names.
#[test]
fn column_numbers_are_no_function() {
    let bench = Bench::new();
    let numbers: Vec<String> = (0..COLUMNS).map(|j| j.to_string()).collect();
    // Debug writes 1.0 where Display writes 1.
    let row = |i: usize| (0..COLUMNS).map(move |j| format!("{:?}", reward(i, j)));
    let rows = |index: bool| -> String {
        let index = |i: usize| if index { format!("{i},") } else { String::new() };
        (0..ROWS).map(|i| index(i) + &row(i).collect::<Vec<_>>().join(",") + "\n").collect()
    };
    write(&bench, "s.toml", study("rewards = \"r.csv\"", "method = [\"random\"]"));
    write(&bench, "r.csv", format!("{}\n{}", numbers.join(","), rows(false)));
    let output = bench.output(&["plan", "s.toml"]);
    let said = common::stderr(&output);
    assert!(output.status.success() && said.contains("r.csv, line 1: \"0,1,2,"), "{said}");
    // The header is none of the rows, each of which is one replicate at most.
    let more = std::fs::read_to_string(bench.path("s.toml")).unwrap().replace("= 40", "= 41");
    write(&bench, "s.toml", more);
    assert!(refused(&bench).contains("more than the 40 rows"));
    write(&bench, "r.csv", format!(",{}\n{}", numbers.join(","), rows(true)));
    assert!(refused(&bench).contains("index=False"));
}

/// On the Gaussian twin of data claims can be tested.
#[test]
fn a_gaussian_twin_has_verdicts() {
    let bench = Bench::new();
    write(&bench, "r.csv", csv(1.0));
    let text = "[study]\nname = \"twin\"\nseed = 4\nreplicates = 300\n\n[prior]\nfrom_data = \"r.csv\"\n\
                noise_variance = 0.1\n\n[grid]\nN = [50]\nT = [1, 4]\ndelta = [0.3]\ndesign = [\"fixed\"]\n";
    write(&bench, "s.toml", text);
    bench.run(bench.path("s.toml").to_str().unwrap(), "out", &["--quiet"]);
    let rows = verdicts(&bench.path("out"));
    assert!(
        rows.iter().any(|row| row["claim"] == "lemma1.variance" && row["verdict"] == "confirmed")
    );
    let priors = std::fs::read_to_string(bench.path("out").join("priors.json")).unwrap();
    let priors: Value = serde_json::from_str(&priors).unwrap();
    // Column 0 never varies and column 1 is a sum of two others.
    assert_eq!((&priors[0]["M"], &priors[0]["rank"]), (&Value::from(12), &Value::from(10)));
}

/// The paper's grasp problem, where its data are at hand.
#[test]
fn grasps_are_found_faster_by_pem_bo_than_at_random() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !data.join("grasp_rewards.csv").exists() {
        eprintln!("skipped: no grasp data");
        return;
    }
    let bench = Bench::new();
    let text =
        std::fs::read_to_string(format!("{}/../studies/grasp.toml", env!("CARGO_MANIFEST_DIR")));
    let path = |name: &str| data.join(name).display().to_string();
    let text = text
        .unwrap()
        .replace("grasp_rewards.csv", &path("grasp_rewards.csv"))
        .replace("grasp_inputs.csv", &path("grasp_inputs.csv"));
    write(&bench, "grasp.toml", text);
    bench.run(bench.path("grasp.toml").to_str().unwrap(), "out", &["--quiet"]);
    let out = bench.path("out");
    assert_eq!(manifest(&out)["failures"], 0);
    let at = best(&out, "5");
    let of = |name: &str| at.iter().find(|(method, _)| method.starts_with(name)).unwrap().1;
    // The difference is 0.65 with a standard error of 0.12.
    assert!(of("PEM-BO") > of("random") + 0.4, "{at:?}");
}
