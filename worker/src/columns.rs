//! Products with a few columns at a time, lane by lane.
//!
//! A single sum waits for its own last addition; [`BLOCK`] sums side by side do not. The order of
//! additions within each sum is that of the plain loop.

use pulp::Simd;

use crate::simd::Vector;

/// Columns that are taken together.
pub(crate) const BLOCK: usize = 4;

/// column_b . row for each column, in lane group g of `count`.
#[inline(always)]
pub(crate) fn products<S: Simd, const B: usize>(
    simd: S,
    columns: [&[S::f64s]; B],
    row: &[S::f64s],
    stride: (usize, usize),
) -> [Vector<S>; B] {
    add_products(simd, [Vector::splat(simd, 0.0); B], columns, row, stride)
}

/// sum_b + column_b . row for each column, in lane group g of `count`.
#[inline(always)]
pub(crate) fn add_products<S: Simd, const B: usize>(
    simd: S,
    mut sums: [Vector<S>; B],
    columns: [&[S::f64s]; B],
    row: &[S::f64s],
    (count, g): (usize, usize),
) -> [Vector<S>; B] {
    let columns = columns.map(|column| &column[..row.len()]);
    for i in (g..row.len()).step_by(count) {
        let row = Vector::new(simd, row[i]);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = *sum + row * Vector::new(simd, column[i]);
        }
    }
    sums
}

/// column_b . row_p for each column and each row, in lane group g of `count`.
#[inline(always)]
pub(crate) fn all_products<S: Simd, const B: usize, const P: usize>(
    simd: S,
    columns: [&[S::f64s]; B],
    rows: [&[S::f64s]; P],
    (count, g): (usize, usize),
) -> [[Vector<S>; B]; P] {
    let size = rows[0].len();
    let columns = columns.map(|column| &column[..size]);
    let rows = rows.map(|row| &row[..size]);
    let mut sums = [[Vector::splat(simd, 0.0); B]; P];
    for i in (g..size).step_by(count) {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let row = Vector::new(simd, row[i]);
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = *sum + row * Vector::new(simd, column[i]);
            }
        }
    }
    sums
}

/// total <- total + sum_b column_b weight_b, in order of b, in lane group g of `count`.
#[inline(always)]
pub(crate) fn add<S: Simd, const B: usize>(
    simd: S,
    total: &mut [S::f64s],
    columns: [&[S::f64s]; B],
    weights: [Vector<S>; B],
    (count, g): (usize, usize),
) {
    let columns = columns.map(|column| &column[..total.len()]);
    for i in (g..total.len()).step_by(count) {
        let mut sum = Vector::new(simd, total[i]);
        for (column, weight) in columns.into_iter().zip(weights) {
            sum = sum + weight * Vector::new(simd, column[i]);
        }
        total[i] = sum.lanes();
    }
}
