//! Every table of a study file with its keys: what each takes, its default, and what it means.
//!
//! The parser allows the keys that stand here and no others, and `docs/study-file.md` is generated from
//! here, so that neither has a key that the other lacks. The kinds of domain, kernel, mean and features
//! are in [`super::schema`].

mod prior;

use super::claim::QUANTIFIERS;
use super::grid::{
    ACQUISITIONS, CONSTANTS, DEFAULT_ACQUISITION, DEFAULT_CONSTANTS, DEFAULT_DESIGN,
    DEFAULT_METHOD, DESIGNS, LONGEST, METHODS, MOST_MISSING,
};
use super::settings::{ALPHA, ALPHAS, DETAILS, N_OPT};
use super::{BOX_WEIGHT, PI_GAP};

pub(super) use prior::PRIOR;

/// A key of a table.
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) takes: fn() -> String,
    /// What holds where it is not given.
    pub(crate) default: fn() -> String,
    /// What it is for.
    pub(crate) meaning: &'static str,
}

/// The default of a key that has to be given.
pub(crate) const REQUIRED: &str = "required";

/// A table of the study file.
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its keys, in the order in which messages list them.
    pub(crate) keys: &'static [Key],
}

impl Table {
    /// The names of its keys.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}

/// All tables, in the order in which messages list them.
pub(crate) const TABLES: [&Table; 6] = [&STUDY, &PRIOR, &GRID, &POLICY, &CLAIMS, &CLAIM];

fn required() -> String {
    REQUIRED.to_owned()
}

/// No default: without the key there is nothing.
fn none() -> String {
    String::new()
}

/// Names as they are written in a study file.
fn one_of<T>(choices: &[(&str, T)]) -> String {
    let names: Vec<String> = choices.iter().map(|choice| quoted(choice.0)).collect();
    names.join(", ")
}

fn quoted(name: &str) -> String {
    format!("`\"{name}\"`")
}

/// The keys of `study.replicates` where it is a table.
pub(super) const REPLICATES: [&str; 2] = ["batch", "max"];

pub(super) const STUDY: Table = Table {
    name: "study",
    keys: &[
        Key {
            name: "name",
            takes: || "string".to_owned(),
            default: required,
            meaning: "Letters, digits, `-`, `_` and `.`, at most 100, no `.` or `-` first and no `.` last. It names the results' folder.",
        },
        Key {
            name: "seed",
            takes: || "whole number from 0".to_owned(),
            default: required,
            meaning: "All randomness follows from it. Name and seed are the study's identity.",
        },
        Key {
            name: "replicates",
            takes: || format!("whole number from 1, or `{{ {} }}`", REPLICATES.join(", ")),
            default: required,
            meaning: "Trials per cell. With `{ batch = 500, max = 100000 }` a cell stops after a batch at which every row has enough evidence, and at `max` trials at the latest; the last batch may be shorter.",
        },
        Key {
            name: "detail",
            takes: || one_of(&DETAILS),
            default: || quoted(DETAILS[0].0),
            meaning: "What is recorded of a trial: a record for every T of the grid; a record for every t up to the longest T (verdicts stay at the T of the grid); or counts for all trials, with records of violations and of a random 1 % only.",
        },
        Key {
            name: "alpha",
            takes: || format!("number from {:?}, below {}", ALPHAS.start, ALPHAS.end),
            default: || ALPHA.to_string(),
            meaning: "The family-wise level of the verdicts: half for refuting, half for confirming.",
        },
        Key {
            name: "evidence",
            takes: || "number above 1".to_owned(),
            default: || "2 * rows/`alpha`".to_owned(),
            meaning: "The e-value at which a row counts as decided, for early stopping. Rows are counted over all cells.",
        },
        Key {
            name: "n_opt",
            takes: || "whole number from 1".to_owned(),
            default: || N_OPT.to_string(),
            meaning: "The number of trials for which the e-values are tuned. Never adapted to data.",
        },
    ],
};

pub(super) const GRID: Table = Table {
    name: "grid",
    keys: &[
        Key {
            name: "N",
            takes: || "whole numbers from 1".to_owned(),
            default: || {
                format!(
                    "{REQUIRED} with a method other than `\"known-prior\"` and `\"random\"`, but on real data"
                )
            },
            meaning: "Training functions. At least T + 2 for the longest T, so that k_hat_T exists; GP-UCB also needs its weight zeta_t to exist, which N >= 4 log(6/delta) + T + 2 ensures. That holds for all methods with PEM-BO's zeta_t, `\"plain\"` included.",
        },
        Key {
            name: "T",
            takes: || format!("whole numbers, 1 to {LONGEST}"),
            default: required,
            meaning: "Horizons. A trial runs to the longest and serves all. At most M on finite domains and real data, below K in the compact setting.",
        },
        Key {
            name: "delta",
            takes: || "numbers below 1, from 1e-20".to_owned(),
            default: required,
            meaning: "Levels: the failure probability that the paper's statements are made for.",
        },
        Key {
            name: "design",
            takes: || one_of(DESIGNS),
            default: || name_of(DESIGNS, DEFAULT_DESIGN),
            meaning: "Points drawn independently of the estimators (Lemma 1's hypothesis), or chosen by the method. `\"fixed\"` needs the method `\"pem-bo\"`.",
        },
        Key {
            name: "method",
            takes: || one_of(METHODS),
            default: || name_of(METHODS, DEFAULT_METHOD),
            meaning: "What is known of the prior; [methods.md](methods.md) has them one by one.",
        },
        Key {
            name: "acquisition",
            takes: || one_of(ACQUISITIONS),
            default: || name_of(ACQUISITIONS, DEFAULT_ACQUISITION),
            meaning: "The acquisition function.",
        },
        Key {
            name: "policy_constants",
            takes: || one_of(CONSTANTS),
            default: || name_of(CONSTANTS, DEFAULT_CONSTANTS),
            meaning: "The constants of GP-UCB's zeta_t.",
        },
        Key {
            name: "missing",
            takes: || format!("numbers from 0 to {MOST_MISSING}, at most six decimals"),
            default: || "0".to_owned(),
            meaning: "The probability with which each training entry is lost, independently. What is lost is filled in by nuclear-norm completion before PEM-BO, BOX and NIW; TLSM-BO does without it. Finite and real data. Claims on estimates and regret are `not-applicable` above 0.",
        },
        Key {
            name: "portion",
            takes: || "numbers above 0, up to 1".to_owned(),
            default: none,
            meaning: "Real data: N as a share of the other rows, rounded. In place of `N`; with `protocol` `\"first\"` or `\"random\"`, since leave-one-out trains on all.",
        },
    ],
};

/// The name of a default.
fn name_of<T: Copy + PartialEq>(choices: &[(&str, T)], default: T) -> String {
    let found = choices.iter().find(|choice| choice.1 == default);
    found.map_or_else(String::new, |choice| quoted(choice.0))
}

pub(super) const POLICY: Table = Table {
    name: "policy",
    keys: &[
        Key {
            name: "pi_gap",
            takes: || "number from 0".to_owned(),
            default: || PI_GAP.to_string(),
            meaning: "PI's target is max f + `pi_gap`; on real data the largest training response + `pi_gap`.",
        },
        Key {
            name: "box_weight",
            takes: || "number from 0".to_owned(),
            default: || BOX_WEIGHT.to_string(),
            meaning: "The constant exploration weight of `\"box\"`.",
        },
    ],
};

pub(super) const CLAIMS: Table = Table {
    name: "claims",
    keys: &[Key {
        name: "test",
        takes: || "globs".to_owned(),
        default: || "all that apply".to_owned(),
        meaning: "The claims of the registry, and one's own, that are tested. `*` stands for any text; a glob that ends in `.*` also takes the steps of the proof, so `lemma1.*` has `lemma1/step.K` in it. A glob that names no claim is refused. `regretta claims` lists the registry, and so does [claims.md](claims.md).",
    }],
};

pub(super) const CLAIM: Table = Table {
    name: "claim",
    keys: &[
        Key {
            name: "id",
            takes: || "string".to_owned(),
            default: required,
            meaning: "Letters, digits and `-_./+`; not an id of the registry, and not twice.",
        },
        Key {
            name: "holds",
            takes: || "string".to_owned(),
            default: required,
            meaning: "A SQL expression, true where the claim holds, over the columns of records ([records.md](records.md) has them; a swept key in double quotes) and the scalars `N`, `t`, `delta`, `M`, `d`, `c`, `sigma`, `noise_variance`, `rank`, `rho_lo`, `rho_hi`. Where it is null, a trial has no say. A `cast` that can fail is refused; `try_cast` is null where a value does not fit. Types to cast to are `tinyint`, `smallint`, `integer`, `bigint`, `real`, `double` and `boolean`. No aggregates and no queries: a claim is about one trial. No functions on text, which is compared as a whole. At most 500 words and symbols.",
        },
        Key {
            name: "budget",
            takes: || "string or number".to_owned(),
            default: required,
            meaning: "The failure probability that is allowed: an expression such as `\"delta/2\"`, or a number from 0 to 1, 1 excluded.",
        },
        Key {
            name: "quantifier",
            takes: || one_of(QUANTIFIERS),
            default: || quoted(QUANTIFIERS[0].0),
            meaning: "Whether the claim is made at each t by itself, or at all t of a trial at once.",
        },
    ],
};
