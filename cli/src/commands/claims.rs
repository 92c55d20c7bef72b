//! `regretta claims`: the registry of everything that is put to the test.

use clap::Args;
use serde::Serialize;
use theory::claims::{self, Claim, Scope, Test};

use crate::exit::BadInput;

/// List every claim that is put to the test
///
/// Each with its place in the paper, its hypotheses and the failure probability that it allows.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta claims
  regretta claims 'lemma1.*'
  regretta claims theorem2.ucb --json")]
pub(crate) struct Arguments {
    /// Only claims whose id matches; `*` stands for any text
    #[arg(default_value = "*")]
    pattern: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    id: &'static str,
    place: &'static str,
    origin: &'static str,
    statement: &'static str,
    latex: &'static str,
    hypotheses: &'static str,
    budget: String,
    kind: &'static str,
    constants: Vec<&'static str>,
    at: Vec<String>,
    quantifier: &'static str,
}

impl Entry {
    fn new(claim: &Claim) -> Self {
        let (kind, budget) = match claim.test {
            Test::Probability { budget, .. } => ("probability", budget.to_string()),
            Test::Mean { .. } => ("mean", "none, its mean is tested".to_owned()),
            Test::Invariant { .. } => ("invariant", "0".to_owned()),
        };
        Self {
            id: claim.id,
            place: claim.place,
            origin: claim.origin.name(),
            statement: claim.statement,
            latex: claim.latex,
            hypotheses: claim.hypotheses,
            budget,
            kind,
            constants: claim.forms.iter().map(|form| form.name()).collect(),
            at: claim.at.iter().map(ToString::to_string).collect(),
            quantifier: match claim.scope {
                Scope::EachT => "each t",
                Scope::Horizon => "horizon T",
            },
        }
    }

    fn text(&self) -> String {
        let Self { id, place, origin, statement, hypotheses, budget, .. } = self;
        format!(
            "{id}\n    {statement}\n    {place} ({origin}); allowed failure probability: {budget}\n    \
             assumes: {hypotheses}\n"
        )
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let entries: Vec<Entry> = claims::matching(&arguments.pattern).map(Entry::new).collect();
    if entries.is_empty() {
        let pattern = &arguments.pattern;
        let why = format!(
            "no claim matches {pattern:?}; try \"{pattern}*\", or `regretta claims` for all of them"
        );
        return Err(BadInput(why).into());
    }
    if arguments.json {
        return super::print_json(&entries);
    }
    let text: Vec<String> = entries.iter().map(Entry::text).collect();
    let plural = if entries.len() == 1 { "claim" } else { "claims" };
    super::print(&text.join("\n"))?;
    eprintln!("{} {plural}", entries.len());
    Ok(())
}
