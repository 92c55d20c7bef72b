//! The keys of `[prior]`.

use super::{Key, REQUIRED, Table, none, one_of, quoted, required};
use crate::file::rewards::PROTOCOLS;
use crate::file::schema::{SENSES, SETTINGS};
use crate::prior::{TOLERANCE, TOLERANCES};

pub(in crate::file) const PRIOR: Table = Table {
    name: "prior",
    keys: &[
        Key {
            name: "setting",
            takes: || one_of(&SETTINGS),
            default: || quoted(SETTINGS[0].0),
            meaning: "Where functions live.",
        },
        Key {
            name: "domain",
            takes: || "table".to_owned(),
            default: required,
            meaning: "The points.",
        },
        Key { name: "kernel", takes: || "table".to_owned(), default: required, meaning: "k." },
        Key {
            name: "mean",
            takes: || "table".to_owned(),
            default: || "`{ kind = \"zero\" }`".to_owned(),
            meaning: "mu.",
        },
        Key {
            name: "noise_variance",
            takes: || "number from 0".to_owned(),
            default: || format!("{REQUIRED}; 0 with `\"data\"`"),
            meaning: "sigma^2. Theorem 2 needs it above 0; at 0 its rows do not apply.",
        },
        Key {
            name: "tolerance",
            takes: || format!("{:e} to {:e}", TOLERANCES.0, TOLERANCES.1),
            default: || format!("{TOLERANCE:e}"),
            meaning: "The largest residual variance of the kernel's pivoted Cholesky factor, relative to c = max k(x, x).",
        },
        Key {
            name: "features",
            takes: || "table".to_owned(),
            default: || "`{ kind = \"given\" }`".to_owned(),
            meaning: "Compact setting: the basis functions that methods use.",
        },
        Key {
            name: "from_data",
            takes: || "path".to_owned(),
            default: none,
            meaning: "In place of `domain`, `kernel` and `mean`: the [Gaussian twin](#the-gaussian-twin) of a file of rewards.",
        },
        Key {
            name: "rewards",
            takes: || "path".to_owned(),
            default: || format!("{REQUIRED} with `\"data\"`"),
            meaning: "Real data: a row for each function, a column for each point.",
        },
        Key {
            name: "inputs",
            takes: || "path".to_owned(),
            default: || "columns are numbered 0, 1, ..".to_owned(),
            meaning: "With `rewards` or `from_data`: the input of each column, one per row.",
        },
        Key {
            name: "sense",
            takes: || one_of(&SENSES),
            default: || quoted(SENSES[0].0),
            meaning: "With `rewards` or `from_data`: which rewards are good. With `\"min\"` signs are turned on reading; records always hold values to be maximised.",
        },
        Key {
            name: "protocol",
            takes: || one_of(&PROTOCOLS),
            default: || quoted(PROTOCOLS[0].0),
            meaning: "With `rewards`: which rows a trial is trained on.",
        },
    ],
};
