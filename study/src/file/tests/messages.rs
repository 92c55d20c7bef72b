//! What people read when a study is wrong.

use super::*;

/// The message about the full study with one piece of text replaced.
fn refusal(old: &str, new: &str) -> String {
    assert!(FULL.contains(old), "{old}");
    let text = FULL.replacen(old, new, 1);
    let planned = parse(&text).and_then(|study| Plan::new(study, &Files::default()));
    planned.expect_err(new).to_string()
}

fn refused(cases: &[(&str, &str, &str)]) {
    for (old, new, message) in cases {
        assert_eq!(refusal(old, new), *message, "{old} -> {new}");
    }
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    refused(&[
        (
            "seed = 2018",
            "sed = 2018",
            "s.toml:3: study.sed is not a key of study files; did you mean seed? valid are name, \
             seed, replicates, detail, alpha, evidence, n_opt",
        ),
        (
            "[policy]",
            "[polici]",
            "s.toml:26: polici is not a key of study files; did you mean policy? valid are study, \
             prior, grid, policy, claims, claim",
        ),
        (
            "lengthscale = 0.1",
            "lenghtscale = 0.1",
            "s.toml:11: prior.kernel.lenghtscale is not a key of study files; did you mean \
             lengthscale? valid are lengthscale, variance, kind",
        ),
        (
            "delta = [",
            "Delta = [",
            "s.toml:19: grid.Delta is not a key of study files; did you mean delta? valid are N, T, \
             delta, design, method, acquisition, policy_constants, missing, portion and dotted keys such as \
             \"prior.noise_variance\"",
        ),
        (
            "\"prior.kernel.lengthscale\"",
            "\"prior.kernel.lenghtscale\"",
            "s.toml:24: prior.kernel.lenghtscale is not a key of study files; did you mean \
             lengthscale? valid are lengthscale, variance, kind",
        ),
        (
            "\"prior.kernel.lengthscale\"",
            "\"prior.kernl.lengthscale\"",
            "s.toml:24: prior.kernl.lengthscale sweeps a key of [prior], in which there is no \
             kernl; did you mean kernel? valid are domain, kernel, mean, noise_variance, setting, \
             tolerance",
        ),
        (
            "\"prior.kernel.lengthscale\"",
            "\"prior.kernel.lengthscale[1\"",
            "s.toml:24: prior.kernel.lengthscale[1 is not the dotted key of a scalar of [prior]; \
             write for example \"prior.kernel.lengthscale\" or \"prior.kernel.terms[0].variance\"",
        ),
    ]);
}

#[test]
fn names_are_refused_with_a_suggestion() {
    refused(&[
        (
            "\"known-prior\"",
            "\"known_prior\"",
            "s.toml:21: grid.method = \"known_prior\" is not known here; did you mean known-prior? \
             valid are pem-bo, known-prior, random, plain, tlsm-bo, box, niw",
        ),
        (
            "squared-exponential",
            "squared-exponetial",
            "s.toml:11: prior.kernel.kind = \"squared-exponetial\" is not known here; did you mean \
             squared-exponential? valid are squared-exponential, matern12, matern32, matern52, \
             rational-quadratic, periodic, linear, white, sum, product, matrix, factor, ..",
        ),
        (
            "\"checkpoints\"",
            "\"all\"",
            "s.toml:5: study.detail = \"all\" is not known here; valid are checkpoints, steps, \
             summary",
        ),
        (
            "\"lemma1.*\"",
            "\"lema1.*\"",
            "s.toml:30: claims.test = \"lema1.*\" names no claim; did you mean lemma1? `regretta \
             claims` lists them",
        ),
        (
            "\"each t\"",
            "\"each T\"",
            "s.toml:36: claim.quantifier = \"each T\" is not known here; did you mean each t? valid \
             are each t, all t",
        ),
        (
            "setting = \"finite\"",
            "setting = \"infinite\"",
            "s.toml:9: prior.setting = \"infinite\" is not known here; did you mean finite? valid are \
             finite, compact, data",
        ),
    ]);
}

#[test]
fn values_are_refused_with_what_would_be_valid() {
    refused(&[
        (
            "\"lemma1\"",
            "\"../x\"",
            "s.toml:2: study.name = \"../x\" cannot be the name of a folder; valid are up to 100 \
             letters, digits, - _ and ., no . or - first, no . last",
        ),
        (
            "seed = 2018",
            "seed = -1",
            "s.toml:3: study.seed = -1 is outside its range; valid are whole numbers from 0 to \
             9223372036854775807",
        ),
        (
            "replicates = 2000",
            "replicates = 0",
            "s.toml:4: study.replicates = 0 is outside its range; valid are whole numbers from 1 to \
             9007199254740992",
        ),
        (
            "replicates = 2000",
            "replicates = { batch = 10, max = 9 }",
            "s.toml:4: study.replicates.max = 9 is outside its range; valid are whole numbers from \
             10 to 9007199254740992",
        ),
        (
            "replicates = 2000",
            "replicates = 99999999999999999999999999999999999999999",
            "s.toml:4: study.replicates = 99999999999999999999999999999999999999999 is outside its \
             range; valid are whole numbers from 1 to 9007199254740992",
        ),
        (
            "alpha = 0.05",
            "alpha = 0.5",
            "s.toml:6: study.alpha = 0.5 is not a level between 0 and 1/2; valid are numbers below \
             0.5, from 1e-20 on",
        ),
        (
            "alpha = 0.05",
            "evidence = nan",
            "s.toml:6: study.evidence = NaN is not a finite number; give one",
        ),
        (
            "alpha = 0.05",
            "evidence = 1",
            "s.toml:6: study.evidence = 1 is no evidence; any value above 1 is valid, and without \
             the key it is 2 * rows/alpha",
        ),
        (
            "noise_variance = 0.01",
            "noise_variance = \"0.01\"",
            "s.toml:13: prior.noise_variance = \"0.01\" is not a number; give one, without quotation \
             marks",
        ),
        ("seed = 2018\n", "", "s.toml:1: study.seed is missing; give for example seed = 2018"),
        (
            "seed = 2018",
            "seed = ",
            "s.toml:3: not TOML: string values must be quoted, expected literal string; \
             docs/study-file.md shows a study file",
        ),
    ]);
}

#[test]
fn axes_and_claims_are_refused_with_what_would_be_valid() {
    refused(&[
        ("N = [200,", "N = [500,", "s.toml:17: grid.N = 500 is given twice; give every value once"),
        (
            "N = [200, 500, 2000]",
            "N = []",
            "s.toml:17: grid.N = [] is empty; give at least one value, or leave the key out",
        ),
        (
            "N = [200, 500, 2000]\n",
            "",
            "s.toml:16: grid.N is missing; give for example N = [200, 500] (method \"pem-bo\" \
             uses them)",
        ),
        (
            "delta = [0.05,",
            "delta = [1,",
            "s.toml:19: grid.delta = 1 is not a probability strictly between 0 and 1; valid are \
             numbers below 1, from 1e-20 on, such as 0.1",
        ),
        (
            "[0.05, 0.1]\n",
            "[1,\n1.0]\n",
            "s.toml:25: prior.kernel.lengthscale = 1.0 is given twice; give every value once",
        ),
        (
            "pi_gap = 0.0",
            "pi_gap = -0.5",
            "s.toml:27: policy.pi_gap = -0.5 is negative; PI's target is an upper bound of f, so pi_gap \
             >= 0",
        ),
        (
            "id = \"mine.cumulative\"",
            "id = \"lemma1.mean\"",
            "s.toml:33: claim.id = \"lemma1.mean\" is a claim of the registry; choose another, such \
             as \"mine.lemma1.mean\"",
        ),
        (
            "\"checkpoints\"",
            "\"summary\"",
            "s.toml:32: claim needs every record, which detail = \"summary\" does not keep; use \
             detail = \"checkpoints\" or leave the claim out",
        ),
    ]);
}

#[test]
fn what_a_kind_needs_is_asked_for() {
    let text = FULL.replacen("lengthscale = 0.1, ", "", 1);
    assert!(parse(&text).is_ok(), "the sweep has it");
    assert_eq!(
        parse(&text.replace(SWEEP, "")).unwrap_err().to_string(),
        "s.toml:11: prior.kernel.lengthscale is missing; give for example lengthscale = 0.1"
    );
}

#[test]
fn planning_refuses_with_the_line_of_the_key() {
    refused(&[
        (
            "50]",
            "90]",
            "s.toml:18: grid.T = 90 is more than the domain's M = 80 points, and none is evaluated \
             twice; use T <= 80",
        ),
        (
            "N = [200",
            "N = [51",
            "s.toml:17: grid.N = 51 is too small for T = 50; use N >= 52 or a shorter T",
        ),
        (
            "N = [200",
            "N = [65",
            "s.toml:17: grid.N = 65 is too small for GP-UCB at T = 50 and delta = 0.05, where its \
             weight zeta_t does not exist; use N >= 72 or a shorter T",
        ),
        (
            "[\"pem-bo\", \"known-prior\", \"random\"]",
            "[\"known-prior\"]",
            "s.toml:20: grid.design = \"fixed\" measures the estimators of method \"pem-bo\", which \
             grid.method does not have; add \"pem-bo\" to grid.method or leave \"fixed\" out",
        ),
        (
            "[0.05, 0.1]\n",
            "[0.05, -1]\n",
            "s.toml:24: prior.kernel.lengthscale = -1 is not positive; any value above 0 is valid",
        ),
        (
            "points = 80, dimension = 1",
            "points = 80, dimension = 2",
            "s.toml:10: prior.domain.points = 80 is not a grid in dimension 2; the nearest valid \
             numbers are 64 and 81 (a whole number to the power 2)",
        ),
        (
            "tolerance = 1e-12",
            "tolerance = 1.0",
            "s.toml:14: prior.tolerance = 1e0 is outside its range; valid are 1e-15 to 1e-2",
        ),
        (
            "{ kind = \"zero\" }",
            "{ kind = \"file\", path = \"m.csv\" }",
            "s.toml:12: prior.mean.path = \"m.csv\" has not been loaded; load the files that the \
             prior names first",
        ),
    ]);
}
