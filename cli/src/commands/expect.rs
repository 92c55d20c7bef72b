//! `--expect`: what a script relies on.

use std::str::FromStr;

use analysis::Analysis;
use analysis::verdicts::VerdictRow;

use crate::exit::Unexpected;

/// Something that the verdicts should show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// Nothing is refuted.
    NoRefuted,
    /// The claim is refuted somewhere.
    Refuted(Named),
    /// The claim was tested, and is confirmed everywhere.
    Confirmed(Named),
}

/// A claim, by a glob, and a form where it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    glob: String,
    form: Option<String>,
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |text: &str| {
            let (glob, form) = match text.split_once('@') {
                Some((glob, form)) => (glob, Some(form.to_owned())),
                None => (text, None),
            };
            Named { glob: glob.to_owned(), form }
        };
        match text.split_once(':') {
            None if text == "no-refuted" => Ok(Self::NoRefuted),
            Some(("refuted", claim)) if !claim.is_empty() => Ok(Self::Refuted(named(claim))),
            Some(("confirmed", claim)) if !claim.is_empty() => Ok(Self::Confirmed(named(claim))),
            _ => Err("expected no-refuted, refuted:CLAIM or confirmed:CLAIM".to_owned()),
        }
    }
}

impl Named {
    fn rows<'a>(&'a self, analysis: &'a Analysis) -> impl Iterator<Item = &'a VerdictRow> {
        analysis.verdicts.iter().filter(|row| {
            let form =
                self.form.as_deref().is_none_or(|form| row.constants.as_deref() == Some(form));
            row.is_tested() && form && theory::claims::names(&self.glob, &row.claim)
        })
    }
}

/// Fails with the first expectation that is not met.
pub(crate) fn check(analysis: &Analysis, expected: &[Expectation]) -> anyhow::Result<()> {
    for expectation in expected {
        if let Some(reason) = unmet(analysis, expectation) {
            return Err(Unexpected(reason).into());
        }
    }
    Ok(())
}

fn unmet(analysis: &Analysis, expectation: &Expectation) -> Option<String> {
    let describe = |row: &VerdictRow| row.sentence.clone();
    match expectation {
        Expectation::NoRefuted => {
            let mut tested = analysis.verdicts.iter().filter(|row| row.is_tested());
            let refuted = tested.find(|row| row.verdict == "refuted")?;
            Some(format!("expected no-refuted, but: {}", describe(refuted)))
        }
        Expectation::Refuted(named) => {
            let found = named.rows(analysis).any(|row| row.verdict == "refuted");
            (!found).then(|| format!("expected refuted:{}, but no verdict of it is", named.glob))
        }
        Expectation::Confirmed(named) => {
            let mut rows = named.rows(analysis).peekable();
            if rows.peek().is_none() {
                return Some(format!("expected confirmed:{}, but it was not tested", named.glob));
            }
            let other = rows.find(|row| row.verdict != "confirmed")?;
            Some(format!("expected confirmed:{}, but: {}", named.glob, describe(other)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read() {
        let read = |text: &str| text.parse::<Expectation>();
        assert_eq!(read("no-refuted"), Ok(Expectation::NoRefuted));
        let named = Named { glob: "lemma1.*".into(), form: Some("corrected".into()) };
        assert_eq!(read("confirmed:lemma1.*@corrected"), Ok(Expectation::Confirmed(named)));
        for wrong in ["", "refuted", "refuted:", "no-refuted:x", "perhaps:lemma1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
