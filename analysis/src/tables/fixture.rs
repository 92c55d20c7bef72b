//! A small table with everything in it, for the tests of all renderings.

use super::{Align, Cell, Column, Table, Tone, Words};

/// A made-up proof audit.
pub(super) fn audit() -> Table {
    let columns = vec![
        Column::new("claim", "claim", Align::Left),
        Column::new("statement", "statement", Align::Wrap),
        Column::new("n", Words::math("N", "N"), Align::Right),
        Column::new("rate", "rate (s.e.)", Align::Right),
        Column::new("interval", "99 % interval", Align::Right),
        Column::new("verdict", "verdict", Align::Center),
    ];
    let mut table = Table::new("proof_audit", "Steps of the proofs at δ = 0.1 & N_rows.", columns);
    table.group("Lemma 1");
    table.push(vec![
        Cell::text("lemma1.mean"),
        Cell::text("(μ̂_t(x) − μ_t(x))² < a_t (k_t(x) + σ²)"),
        Cell::Integer(1000),
        Cell::Estimate { value: 0.0123, error: 0.00349 },
        Cell::Interval { low: 0.0061, high: 0.0217, digits: 2 },
        Cell::flag("confirmed", Tone::Confirmed),
    ]);
    table.push(vec![
        Cell::text("lemma1/step.K"),
        Cell::text("k̂_t(x) < b | D_t, \"sic\""),
        Cell::Integer(1000),
        Cell::Estimate { value: 0.686, error: 0.0147 },
        Cell::Interval { low: 0.656, high: 0.715, digits: 2 },
        Cell::flag("refuted", Tone::Refuted),
    ]);
    table.group("Theorem 2, *PI*");
    table.push(vec![
        Cell::text("theorem2.pi"),
        Cell::Text(Words::math("r_T ≤ η λ_T", r"r_T \le \eta\lambda_T")),
        Cell::Exact(2e10),
        Cell::Estimate { value: 0.0, error: 0.0 },
        Cell::Interval { low: 0.0, high: 1.23e-5, digits: 2 },
        Cell::flag("undecided", Tone::Undecided),
    ]);
    table.push(vec![
        Cell::text("theorem2.pi/step_x"),
        Cell::Empty,
        Cell::Empty,
        Cell::Estimate { value: f64::NAN, error: f64::NAN },
        Cell::Empty,
        Cell::flag("not-applicable", Tone::Aside),
    ]);
    table.note("Digest 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff.");
    table.note("A <made-up> table.");
    table
}
