use super::*;
use crate::cell::Policy;

const BASE: &str = r#"[study]
name = "grown"
seed = 7
replicates = 100
[prior]
domain = { kind = "grid", points = 80, dimension = 1 }
kernel = { kind = "matern52", lengthscale = 0.1 }
noise_variance = 0.01
[grid]
N = [200, 500]
T = [5, 20]
delta = [0.1, 0.5]
design = ["fixed", "adaptive"]
method = ["pem-bo", "known-prior", "random"]
acquisition = ["gp-ucb", "pi"]
"#;

fn plan_of(text: &str) -> Plan {
    Plan::new(Study::parse("s.toml", text).expect(text), &Files::default()).expect(text)
}

fn changed(old: &str, new: &str) -> Plan {
    assert!(BASE.contains(old), "{old}");
    plan_of(&BASE.replacen(old, new, 1))
}

#[test]
fn axes_that_are_not_used_do_not_multiply() {
    let plan = plan_of(BASE);
    let count = |of: fn(&Policy) -> bool| plan.cells.iter().filter(|c| of(&c.cell.policy)).count();
    assert_eq!(count(|policy| matches!(policy, Policy::Fixed(_))), 2);
    assert_eq!(count(|policy| matches!(policy, Policy::PemUcb { .. })), 4);
    assert_eq!(count(|policy| matches!(policy, Policy::PemPi { .. })), 2);
    assert_eq!(count(|policy| matches!(policy, Policy::KnownUcb { .. })), 2);
    assert_eq!(count(|policy| matches!(policy, Policy::KnownPi { .. })), 1);
    assert_eq!(count(|policy| matches!(policy, Policy::Random)), 1);
    assert_eq!(plan.cells.len(), 12);
    assert!(plan.cells.is_sorted_by(|a, b| a.id < b.id));
    for cell in &plan.cells {
        assert_eq!(plan.cell(cell.id), Some(cell));
        assert_eq!(cell.checkpoints[..], [5, 20]);
        assert_eq!(cell.id, cell.cell.id());
    }
    assert_eq!(plan.cell(CellId(0)), None);
    let both = changed(
        "acquisition = [\"gp-ucb\", \"pi\"]",
        "policy_constants = [\"printed\", \"corrected\"]",
    );
    assert_eq!(both.cells.len(), 2 + 8 + 2 + 1);
    let steps = changed("seed = 7", "seed = 7\ndetail = \"steps\"");
    assert_eq!(steps.cells[0].checkpoints[..], (1..=20).collect::<Vec<_>>()[..]);
}

#[test]
fn cells_in_words() {
    let plan = plan_of(&format!("{BASE}\"prior.noise_variance\" = [0.01, 0.5]\n"));
    let mut labels: Vec<String> = plan.cells.iter().map(|cell| plan.label(cell)).collect();
    labels.sort_unstable();
    assert_eq!(labels[0], "fixed design, N = 200, prior.noise_variance = 0.01");
    let ucb = "pem-bo gp-ucb, N = 500, delta = 0.5, policy_constants = printed, \
               prior.noise_variance = 0.5";
    assert!(labels.iter().any(|label| label == ucb), "{labels:?}");
    labels.dedup();
    assert_eq!(labels.len(), plan.cells.len());
}

#[test]
fn cells_that_are_the_same_by_content_are_one() {
    let text = BASE.replace(
        "{ kind = \"grid\", points = 80, dimension = 1 }",
        "{ kind = \"points\", path = \"a\" }",
    ) + "\"prior.domain.path\" = [\"a\", \"b\", \"c\"]\n";
    let study = Study::parse("s.toml", &text).unwrap();
    let mut files = Files::default();
    let points =
        |from: u32| (from..from + 40).map(|i| i.to_string()).collect::<Vec<_>>().join("\n");
    for (path, from) in [("a", 0), ("b", 0), ("c", 1)] {
        files.insert(path, points(from).into_bytes()).unwrap();
    }
    let plan = Plan::new(study, &files).unwrap();
    assert_eq!((plan.priors.len(), plan.cells.len()), (3, 24));
    assert!(plan.cells.iter().all(|cell| cell.prior != 1));
}

/// Files of rewards along an axis: what holds for one has to hold for all.
#[test]
fn every_file_of_rewards_has_the_rows_that_a_plan_takes() {
    let study = |protocol: &str, grid: &str, replicates: u32| {
        let text = format!(
            "[study]\nname = \"rows\"\nseed = 1\nreplicates = {replicates}\n[prior]\nsetting = \"data\"\n\
             rewards = \"a\"\nprotocol = \"{protocol}\"\n[grid]\nT = [1, 2]\ndelta = 0.9\n\
             acquisition = \"pi\"\n\"prior.kernel.path\" = [\"a\", \"b\"]\n{grid}\n"
        );
        let mut files = Files::default();
        for (name, rows) in [("a", 40), ("b", 30)] {
            files.insert(name, "0.5 0.1 0.2\n".repeat(rows).into_bytes()).unwrap();
        }
        Plan::new(Study::parse("s.toml", &text).expect(&text), &files)
    };
    let error = |protocol: &str, grid: &str, replicates: u32| {
        study(protocol, grid, replicates).unwrap_err().to_string()
    };
    let many = error("random", "N = 10", 31);
    assert!(
        many.starts_with("s.toml:4: study.replicates = 31 is more than the 30 rows of \"b\"")
            && many.ends_with("use at most 30")
    );
    let n = error("first", "N = [10, 30]", 30);
    assert!(n.contains("from the 30 rows of \"b\"") && n.ends_with("2 to 29 rows"), "{n}");
    for (protocol, grid) in [("leave-one-out", ""), ("random", "portion = 0.5"), ("random", "")] {
        let differ = error(protocol, grid, 30);
        assert!(differ.contains("\"b\" has 30 rows, and \"a\" 40"), "{differ}");
    }
    assert!(
        error("leave-one-out", "N = 29", 30).contains("is not all of the 39 other rows of \"a\"")
    );
    assert_eq!(study("random", "N = [10, 29]", 30).unwrap().cells.len(), 4);
    assert_eq!(study("leave-one-out", "method = \"random\"", 30).unwrap().cells.len(), 2);
}

#[test]
fn the_threshold_follows_the_family() {
    let plan = plan_of(BASE);
    assert_eq!(plan.evidence, 2.0 * plan.rows as f64 / 0.05);
    assert_eq!(changed("seed = 7", "seed = 7\nevidence = 50").evidence, 50.0);
    let none = plan_of(&format!("{BASE}[claims]\ntest = [\"invariant.*\"]\n"));
    assert_eq!((none.rows, none.evidence), (0, 40.0));
}

#[test]
fn the_revision_is_all_that_was_said() {
    let base = plan_of(BASE);
    assert_eq!(base.revision(), plan_of(&BASE.replace("[200, 500]", "[500, 200]")).revision());
    let mut seen = vec![base.revision()];
    for (old, new) in [
        ("grown", "other"),
        ("seed = 7", "seed = 8"),
        ("seed = 7", "seed = 7\nalpha = 0.01"),
        ("seed = 7", "seed = 7\nn_opt = 1000"),
        ("seed = 7", "seed = 7\nevidence = 100"),
        ("seed = 7", "seed = 7\ndetail = \"summary\""),
        ("replicates = 100", "replicates = 101"),
        ("replicates = 100", "replicates = { batch = 100, max = 100 }"),
        ("[200, 500]", "[200, 501]"),
        ("[5, 20]", "[5, 21]"),
        ("0.5]", "0.6]"),
        ("0.1 }", "0.2 }"),
        ("noise_variance = 0.01", "noise_variance = 0.02"),
        ("[study]", "[claims]\ntest = \"lemma1.*\"\n[study]"),
        ("[study]", "[[claim]]\nid = \"a\"\nholds = \"t > 0\"\nbudget = 0\n[study]"),
        ("[study]", "[policy]\npi_gap = 1\n[study]"),
    ] {
        let revision = changed(old, new).revision();
        assert!(!seen.contains(&revision), "{old} -> {new}");
        seen.push(revision);
    }
}

#[test]
fn a_study_grows() {
    let old = plan_of(BASE);
    for (was, is) in [
        ("seed = 7", "seed = 7"),
        ("replicates = 100", "replicates = 101"),
        ("[200, 500]", "[200, 300, 500]"),
        ("[5, 20]", "[5, 6, 20, 21]"),
        ("0.5]", "0.5, 0.9]"),
        ("seed = 7", "seed = 7\ndetail = \"steps\""),
        ("seed = 7", "seed = 7\nalpha = 0.01"),
        ("[\"gp-ucb\", \"pi\"]", "[\"gp-ucb\", \"pi\"]\n\"prior.noise_variance\" = [0.01, 0.1]"),
    ] {
        let new = changed(was, is);
        new.grows_from(&old).expect(is);
        assert_eq!(new.id, old.id);
    }
    let steps = changed("seed = 7", "seed = 7\ndetail = \"steps\"");
    assert!(old.grows_from(&steps).unwrap_err().to_string().contains("grid.T was [1, 2"));
}

#[test]
fn another_study_is_refused_with_what_differs() {
    let old = plan_of(BASE);
    let message = |was: &str, is: &str| changed(was, is).grows_from(&old).unwrap_err().to_string();
    assert_eq!(
        message("seed = 7", "seed = 8"),
        "this is not the study of the folder grown: study.seed was 7 and is 8, but every trial \
         depends on the seed; restore it, or use another --out folder"
    );
    for (was, is, start) in [
        ("grown", "other", "study.name was \"grown\" and is \"other\","),
        (
            "seed = 7",
            "seed = 7\ndetail = \"summary\"",
            "study.detail was \"checkpoints\" and is \"summary\",",
        ),
        ("replicates = 100", "replicates = 99", "study.replicates was 100 and is 99,"),
        (
            "replicates = 100",
            "replicates = { batch = 10, max = 1000 }",
            "study.replicates was 100 and is { batch = 10, max = 1000 },",
        ),
        ("[5, 20]", "[5, 21]", "grid.T was [5, 20] and is [5, 21],"),
        ("[200, 500]", "[200]", "grid.N was [200, 500] and is [200],"),
        ("0.5]", "0.6]", "grid.delta was [0.1, 0.5] and is [0.1, 0.6],"),
        ("[\"gp-ucb\", \"pi\"]", "\"pi\"", "grid.acquisition was [GpUcb, Pi] and is [Pi],"),
        ("[study]", "[policy]\npi_gap = 1\n[study]", "policy.pi_gap was 0.0 and is 1.0,"),
        (
            "noise_variance = 0.01",
            "noise_variance = 0.02",
            "prior.noise_variance was 0.01 and is 0.02,",
        ),
        ("lengthscale = 0.1", "lengthscale = 0.3", "prior.kernel was {\"kind\":\"matern52\","),
    ] {
        let message = message(was, is);
        let message = message.strip_prefix("this is not the study of the folder grown: ").unwrap();
        assert!(message.starts_with(start), "{message}");
        assert!(message.ends_with("; restore it, or use another --out folder"), "{message}");
    }
    let batched = |batch: u64| {
        changed("replicates = 100", &format!("replicates = {{ batch = {batch}, max = 1000 }}"))
    };
    let error = batched(20).grows_from(&batched(10)).unwrap_err();
    assert_eq!(error.key, "study.replicates");
}

/// Trials cost a plan nothing: there is no object for any of them.
#[test]
fn a_plan_is_as_large_as_its_cells() {
    let plan = changed("replicates = 100", "replicates = 1_000_000_000");
    assert_eq!(plan.trials(), 12_000_000_000);
    assert_eq!(plan.cells.len(), 12);
    assert!(size_of::<PlannedCell>() <= 128, "{}", size_of::<PlannedCell>());
    let shared = &plan.cells[0].checkpoints;
    assert!(plan.cells.iter().all(|cell| Arc::ptr_eq(&cell.checkpoints, shared)));
}

#[test]
fn too_many_cells_are_refused() {
    let list = |n: u32| (0..n).map(|i| (200 + i).to_string()).collect::<Vec<_>>().join(", ");
    let deltas = (1..2000).map(|i| format!("{}", f64::from(i) / 4000.0)).collect::<Vec<_>>();
    let text = BASE
        .replace("[200, 500]", &format!("[{}]", list(3000)))
        .replace("[0.1, 0.5]", &format!("[{}]", deltas.join(", ")));
    let study = Study::parse("s.toml", &text).unwrap();
    let error = Plan::new(study, &Files::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "s.toml:9: grid has too many cells; valid are grids of at most 4194304 cells; shorten an axis"
    );
}

/// The size of a study file, and the cells and rows that its plan has.
fn sized(text: &str) -> (Size, u64, u64) {
    let plan = plan_of(text);
    let rows = plan.cells.iter().map(|cell| rows::rows(&plan.study, &cell.cell).len() as u64);
    let size = Size::read("s.toml", text).expect(text);
    assert_eq!(size.priors, plan.priors.len() as u64, "{text}");
    assert_eq!(size.checkpoints, plan.cells[0].checkpoints.len() as u64, "{text}");
    (size, plan.cells.len() as u64, rows.sum())
}

#[test]
fn a_size_is_that_of_the_plan() {
    for (old, new) in [
        ("seed = 7", "seed = 7"),
        ("[200, 500]", "[60, 70, 200, 500]"),
        ("[0.1, 0.5]", "[0.01, 0.1, 0.5, 0.9]"),
        ("method = [\"pem-bo\", \"known-prior\", \"random\"]", "method = \"pem-bo\""),
        ("method = [\"pem-bo\"", "method = [\"plain\", \"tlsm-bo\", \"box\", \"niw\", \"pem-bo\""),
        ("[grid]", "[grid]\npolicy_constants = [\"printed\", \"corrected\"]"),
        ("[grid]", "[grid]\nmissing = [0, 0.1, 0.5]"),
        ("[grid]", "[grid]\n\"prior.noise_variance\" = [0.1, 0, 0.2]"),
        (
            "[grid]",
            "[grid]\n\"prior.kernel.lengthscale\" = [0.1, 0.2]\n\"prior.noise_variance\" = [0, 0.2]",
        ),
        ("[grid]", "[claims]\ntest = [\"lemma1.*\", \"lemma5.*\"]\n[grid]"),
        ("seed = 7", "seed = 7\ndetail = \"steps\""),
        ("seed = 7", "seed = 7\ndetail = \"summary\""),
    ] {
        let (size, cells, rows) = sized(&BASE.replacen(old, new, 1));
        assert_eq!(size.cells, cells, "{new}");
        assert!(size.rows >= rows && size.rows <= rows + rows / 2, "{new}: {} {rows}", size.rows);
    }
    let batched = sized(&BASE.replace("= 100", "= { batch = 100, max = 250 }")).0;
    assert!(batched.stops && !sized(BASE).0.stops);
    assert_eq!(batched.study, plan_of(BASE).id);
}

/// Expanded, either grid would take minutes and gigabytes.
#[test]
fn the_size_of_a_grid_is_known_without_it() {
    let list = |count: u32| {
        let numbers: Vec<String> = (0..count).map(|i| format!("{}", 1000 + i)).collect();
        numbers.join(",")
    };
    let levels: Vec<String> = (1..1000).map(|i| format!("{}", f64::from(i) * 1e-3)).collect();
    let large = BASE
        .replace("[200, 500]", &format!("[{}]", list(400)))
        .replace("[0.1, 0.5]", &format!("[{}]", levels.join(",")))
        .replace("[grid]", "[grid]\npolicy_constants = [\"printed\", \"corrected\"]");
    let size = Size::read("s.toml", &large).unwrap();
    assert_eq!(size.cells, 400 + 999 * (2 * 400 + 1) + 400 + 1 + 1);
    assert!(size.rows > 100 * size.cells, "{size:?}");
    let slip =
        large.replace("design", &format!("\"prior.kernel.lengthscale\" = [{}]\ndesign", list(90)));
    let error = Size::read("s.toml", &slip).unwrap_err();
    assert!(error.to_string().contains("too many cells"), "{error}");
}
