//! Counting: records in, a tally out.
//!
//! A counter belongs to a cell. Its constants are computed once, on demand, and shared by the threads
//! that count; counting a record takes no lock and allocates nothing.

use std::collections::HashMap;
use std::sync::Arc;

use theory::claims::{Claim, Constants, Context, Outcome};

use super::Tally;
use crate::cell::Cell;
use crate::record::Record;
use crate::rows::Row;

/// Evaluates the rows of a cell on its records.
#[derive(Debug)]
pub struct Counter {
    rows: usize,
    /// By t, ascending.
    at: Vec<(u32, Vec<Watch>)>,
}

/// A row at its t.
#[derive(Debug)]
struct Watch {
    /// The row's place in the tally.
    row: usize,
    claim: &'static Claim,
    /// With rho's upper end.
    refuting: Context,
    /// With rho's lower end, where the claim depends on rho.
    confirming: Option<Context>,
}

/// The contexts of a row.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// With rho's upper end.
    pub refuting: Context,
    /// With rho's lower end, where the claim depends on rho.
    pub confirming: Option<Context>,
}

/// The contexts of the rows of a cell whose prior has this c and this bracket of rho_t, lower end first
/// (`None` without noise). Constants are shared by the rows that have the same.
pub fn contexts(
    rows: &[Row],
    cell: &Cell,
    c: f64,
    rho: impl Fn(u32) -> Option<(f64, f64)>,
) -> Vec<Contexts> {
    let horizon = rows.iter().map(|row| row.t).max().unwrap_or_default();
    let mut shared = HashMap::new();
    let of = |row: &Row| {
        let bracket = rho(row.t);
        let mut context = |rho| {
            let conditions = row.conditions(cell, c, rho);
            let (n, delta, form) = (conditions.n, conditions.delta, conditions.form);
            let constants = shared
                .entry((delta.get().to_bits(), form))
                .or_insert_with(|| Arc::new(Constants::new(n, delta, form, horizon)));
            Context::sharing(conditions, constants)
        };
        let refuting = context(bracket.map(|(_, upper)| upper));
        let confirming = row.uses_rho(cell).then(|| context(bracket.map(|(lower, _)| lower)));
        Contexts { refuting, confirming }
    };
    rows.iter().map(of).collect()
}

impl Counter {
    /// For the rows of a cell whose prior has this c and this bracket of rho_t, lower end first (`None`
    /// without noise).
    pub fn new(rows: &[Row], cell: &Cell, c: f64, rho: impl Fn(u32) -> Option<(f64, f64)>) -> Self {
        let mut watched: HashMap<u32, Vec<Watch>> = HashMap::new();
        let contexts = contexts(rows, cell, c, rho);
        for (row, (place, contexts)) in rows.iter().zip(contexts.into_iter().enumerate()) {
            let Contexts { refuting, confirming } = contexts;
            let watch = Watch { row: place, claim: row.claim, refuting, confirming };
            watched.entry(row.t).or_default().push(watch);
        }
        let mut at: Vec<_> = watched.into_iter().collect();
        at.sort_unstable_by_key(|entry| entry.0);
        Self { rows: rows.len(), at }
    }

    /// A tally of nothing, with a place for every row.
    pub fn start(&self) -> Tally {
        Tally::zero(self.rows)
    }

    /// Adds a record of the counter's cell to every row of its t. A trial that has no such quantity
    /// adds nothing; one that failed adds a failure.
    ///
    /// # Panics
    /// Where the tally is another counter's.
    pub fn observe(&self, record: &Record, tally: &mut Tally) {
        assert_eq!(tally.0.len(), self.rows, "a tally goes with its counter");
        let Ok(place) = self.at.binary_search_by_key(&record.t, |entry| entry.0) else {
            return;
        };
        for watch in &self.at[place].1 {
            let counts = &mut tally.0[watch.row];
            let Ok(measurement) = &record.outcome else {
                counts.failures += 1;
                continue;
            };
            let evaluate = |context| watch.claim.evaluate(context, measurement);
            let refuting = evaluate(&watch.refuting);
            let confirming = watch.confirming.as_ref().map_or(refuting, evaluate);
            if refuting == Outcome::NotApplicable || confirming == Outcome::NotApplicable {
                continue;
            }
            counts.trials += 1;
            counts.refuting += u64::from(refuting == Outcome::Violated);
            counts.confirming += u64::from(confirming == Outcome::Violated);
        }
    }
}
