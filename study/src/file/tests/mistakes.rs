//! The study to begin with, and the mistakes that are made with it first.

use super::*;

const NAME: &str = "first-study";

#[test]
fn the_template_can_be_run() {
    let study = parse(&template(NAME)).unwrap();
    assert_eq!(study.name, NAME);
    let plan = Plan::new(study, &Files::default()).unwrap();
    // A fixed design and GP-UCB at each N, the known prior, random search.
    assert_eq!((plan.cells.len(), plan.trials()), (2 + 2 + 1 + 1, 12_000));
    assert_eq!(plan.study.claims.len(), 1);
}

/// What is commented out is valid too.
#[test]
fn the_hints_of_the_template_can_be_taken() {
    let text = template(NAME);
    for (hint, instead) in [
        ("# replicates = { batch = 500, max = 100000 }", "replicates = 2000"),
        ("# \"prior.kernel.lengthscale\" = [0.05, 0.1, 0.2]", ""),
    ] {
        assert!(text.contains(hint), "{hint}");
        let text = if instead.is_empty() { text.clone() } else { text.replacen(instead, "", 1) };
        let text = text.replacen(hint, hint.trim_start_matches("# "), 1);
        let study = parse(&text).unwrap();
        let changed = study.replicates != Replicates::Fixed(2000) || study.priors.len() == 3;
        assert!(changed, "{hint}");
        Plan::new(study, &Files::default()).unwrap();
    }
}

/// What is said about the template with one piece of text replaced.
fn mistake(old: &str, new: &str, message: &str) {
    let text = template(NAME);
    assert!(text.contains(old), "{old}");
    let planned = parse(&text.replacen(old, new, 1));
    let error = planned.and_then(|study| Plan::new(study, &Files::default())).expect_err(new);
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_misspelt_key() {
    mistake(
        "replicates = 2000",
        "replicate = 2000",
        "s.toml:15: study.replicate is not a key of study files; did you mean replicates? valid are \
         name, seed, replicates, detail, alpha, evidence, n_opt",
    );
}

#[test]
fn a_misspelt_key_of_the_prior() {
    mistake(
        "noise_variance = 0.01",
        "noise_varience = 0.01",
        "s.toml:26: prior.noise_varience is not a key of study files; did you mean noise_variance? valid \
         are setting, domain, kernel, mean, noise_variance, tolerance, features, from_data, rewards, \
         inputs, sense, protocol",
    );
}

#[test]
fn a_misspelt_method() {
    mistake(
        "\"pem-bo\", \"known-prior\"",
        "\"pembo\", \"known-prior\"",
        "s.toml:41: grid.method = \"pembo\" is not known here; did you mean pem-bo? valid are pem-bo, \
         known-prior, random, plain, tlsm-bo, box, niw",
    );
}

#[test]
fn an_unknown_kernel() {
    mistake(
        "\"squared-exponential\"",
        "\"rbf\"",
        "s.toml:24: prior.kernel.kind = \"rbf\" is not known here; valid are squared-exponential, \
         matern12, matern32, matern52, rational-quadratic, periodic, linear, white, sum, product, matrix, \
         factor, ..",
    );
}

#[test]
fn a_table_that_is_missing() {
    let message = "s.toml:1: grid is missing; give for example [grid] with N, T and delta";
    let text = template(NAME);
    let (_, rest) = text.split_once("\n[grid]\n").unwrap();
    let (grid, _) = rest.split_once("\n[claims]\n").unwrap();
    mistake(&format!("[grid]\n{grid}"), "", message);
    // Its keys without its name belong to the table before.
    mistake("[grid]\n", "", message);
}

#[test]
fn a_horizon_beyond_the_domain() {
    mistake(
        "T = [1, 5, 20]",
        "T = [1, 5, 200]",
        "s.toml:34: grid.T = 200 is more than the domain's M = 100 points, and none is evaluated twice; \
         use T <= 100",
    );
}

#[test]
fn too_few_functions_for_the_horizon() {
    mistake(
        "N = [200, 1000]",
        "N = [20, 1000]",
        "s.toml:31: grid.N = 20 is too small for T = 20; use N >= 22 or a shorter T",
    );
}

#[test]
fn a_delta_that_is_no_probability() {
    mistake(
        "delta = [0.1]",
        "delta = [1.5]",
        "s.toml:36: grid.delta = 1.5 is not a probability strictly between 0 and 1; valid are numbers \
         below 1, from 1e-20 on, such as 0.1",
    );
}

#[test]
fn a_negative_variance() {
    mistake(
        "noise_variance = 0.01",
        "noise_variance = -0.01",
        "s.toml:26: prior.noise_variance = -0.01 is negative; the least valid value is 0",
    );
}

#[test]
fn a_number_in_quotation_marks() {
    mistake(
        "lengthscale = 0.1",
        "lengthscale = \"0.1\"",
        "s.toml:24: prior.kernel.lengthscale = \"0.1\" is not a number; give one, without quotation marks",
    );
}

#[test]
fn horizons_as_text() {
    mistake(
        "T = [1, 5, 20]",
        "T = \"1, 5, 20\"",
        "s.toml:34: grid.T = \"1, 5, 20\" is not a whole number; valid are whole numbers from 1 to 65536, \
         without quotation marks",
    );
}

#[test]
fn a_value_given_twice() {
    mistake(
        "N = [200, 1000]",
        "N = [200, 200]",
        "s.toml:31: grid.N = 200 is given twice; give every value once",
    );
}

#[test]
fn no_replicates() {
    mistake(
        "replicates = 2000",
        "replicates = 0",
        "s.toml:15: study.replicates = 0 is outside its range; valid are whole numbers from 1 to \
         9007199254740992",
    );
}

#[test]
fn a_budget_that_is_no_probability() {
    mistake(
        "budget = \"delta\"",
        "budget = 1.5",
        "s.toml:57: claim.budget = 1.5 is not a probability below 1; valid are 0 to 1, 1 excluded",
    );
}

#[test]
fn a_claim_that_does_not_exist() {
    mistake(
        "\"theorem2.*\"",
        "\"theorem3.*\"",
        "s.toml:49: claims.test = \"theorem3.*\" names no claim; did you mean theorem2.pi? `regretta claims` \
         lists them",
    );
}
