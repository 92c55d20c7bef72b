//! The address of a trial, and its place in a plan.

use std::fmt::{self, Write};
use std::str::FromStr;

use study::CellId;
use study::nearest;
use study::plan::PlannedCell;

use crate::exit::BadInput;
use crate::load::Loaded;

/// `<study digest, 12 hex>/<cell id, 16 hex>/<replicate>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    study: String,
    cell: CellId,
    /// From 0.
    pub(super) replicate: u64,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.study, self.cell, self.replicate)
    }
}

impl FromStr for Address {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<Self, BadInput> {
        let refused = |what: &str| {
            BadInput(format!(
                "{text:?} is no address of a trial: {what}; write STUDY/CELL/REPLICATE, 12 hexadecimal \
                 digits, 16 hexadecimal digits and a number from 0, as in 2015b874b57d/0123456789abcdef/17"
            ))
        };
        let parts: Vec<&str> = text.trim().split('/').collect();
        let [study, cell, replicate] = parts[..] else {
            return Err(refused(&format!("it has {} parts and not 3", parts.len())));
        };
        let hex = |part: &str, digits: usize| {
            part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if !hex(study, 12) {
            return Err(refused(&format!("{study:?} is no study")));
        }
        let id = u64::from_str_radix(cell, 16).ok().filter(|_| hex(cell, 16));
        let id = id.ok_or_else(|| refused(&format!("{cell:?} is no cell")))?;
        let number = replicate.parse().ok().filter(|_| !replicate.starts_with('+'));
        let replicate = number.ok_or_else(|| refused(&format!("{replicate:?} is no replicate")))?;
        Ok(Self { study: study.to_ascii_lowercase(), cell: CellId(id), replicate })
    }
}

/// Cells that a message lists.
const LISTED: usize = 12;

impl Address {
    /// The address's cell in the plan of the study file, if the trial is one of that plan.
    pub(super) fn find<'a>(&self, loaded: &'a Loaded) -> Result<&'a PlannedCell, BadInput> {
        let (plan, file) = (&loaded.plan, &loaded.definition.file_name);
        if plan.id.to_string() != self.study {
            return Err(BadInput(format!(
                "the address is of study {}, and {file} makes study {} (\"{}\", seed {}); give the study \
                 file that was run, or an address of this study",
                self.study, plan.id, plan.study.name, plan.study.seed
            )));
        }
        let cell = plan.cell(self.cell).ok_or_else(|| self.no_cell(loaded))?;
        let most = plan.replicates.max();
        if self.replicate >= most {
            return Err(BadInput(format!(
                "{file} has {most} replicates of every cell; use a replicate from 0 to {}, not {}",
                most - 1,
                self.replicate
            )));
        }
        Ok(cell)
    }

    fn no_cell(&self, loaded: &Loaded) -> BadInput {
        let plan = &loaded.plan;
        let ids: Vec<String> = plan.cells.iter().map(|cell| cell.id.to_string()).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let meant = nearest(&self.cell.to_string(), &names);
        let meant = meant.map_or_else(String::new, |name| format!(" (did you mean {name}?)"));
        let mut message = format!(
            "{} has no cell {}{meant}; its cells are",
            loaded.definition.file_name, self.cell
        );
        for cell in plan.cells.iter().take(LISTED) {
            _ = write!(message, "\n  {}  {}", cell.id, plan.label(cell));
        }
        if plan.cells.len() > LISTED {
            let more = plan.cells.len() - LISTED;
            _ = write!(message, "\n  and {more} more: regretta plan --json lists them all");
        }
        BadInput(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_text() {
        let text = "2015b874b57d/0123456789abcdef/17";
        let address: Address = text.parse().unwrap();
        assert_eq!((address.to_string().as_str(), address.replicate), (text, 17));
        assert_eq!("2015B874B57D/0123456789ABCDEF/17".parse::<Address>().unwrap(), address);
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for (wrong, why) in [
            ("", "1 parts"),
            ("2015b874b57d/17", "2 parts"),
            ("2015b874b57/0123456789abcdef/17", "is no study"),
            ("2015b874b57d/0123456789abcdeg/17", "is no cell"),
            ("2015b874b57d/+123456789abcdef/17", "is no cell"),
            ("2015b874b57d/0123456789abcdef/-1", "is no replicate"),
            ("2015b874b57d/0123456789abcdef/+1", "is no replicate"),
        ] {
            let message = wrong.parse::<Address>().unwrap_err().to_string();
            assert!(message.contains(why) && message.contains("as in 2015b8"), "{message}");
        }
    }
}
