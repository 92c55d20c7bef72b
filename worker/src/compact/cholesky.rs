//! U^T U = G for a symmetric positive definite G, and solving for many right sides at once.

use theory::PANEL;

use super::panels::Panels;

/// The upper triangle U, row by row.
pub(super) struct Cholesky {
    size: usize,
    upper: Vec<f64>,
}

impl Cholesky {
    /// Factors G + ridge I, of which only what stands on and above the diagonal is read; `None` where
    /// a pivot is not positive.
    pub(super) fn new(gram: &Panels, ridge: f64) -> Option<Self> {
        let size = gram.rows();
        let mut upper = gram.to_rows();
        for k in 0..size {
            upper[k * size + k] += ridge;
        }
        for k in 0..size {
            let (done, rest) = upper.split_at_mut((k + 1) * size);
            let row = &mut done[k * size..];
            let pivot = row[k];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let scale = 1.0 / pivot.sqrt();
            row[k..].iter_mut().for_each(|entry| *entry *= scale);
            for (i, below) in (k + 1..size).zip(rest.chunks_exact_mut(size)) {
                let factor = row[i];
                for (entry, &u) in below[i..].iter_mut().zip(&row[i..]) {
                    *entry -= factor * u;
                }
            }
        }
        Some(Self { size, upper })
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.upper[i * self.size..(i + 1) * self.size]
    }

    /// Replaces every column c of `right` by the solution x of G x = c.
    pub(super) fn solve(&self, right: &mut Panels) {
        for p in 0..right.count() {
            let x = right.panel_mut(p);
            self.forward(x);
            self.backward(x);
        }
    }

    /// U^T x = c, eight columns at a time.
    fn forward(&self, x: &mut [[f64; PANEL]]) {
        for k in 0..self.size {
            let row = self.row(k);
            let (done, rest) = x.split_at_mut(k + 1);
            let solved = &mut done[k];
            solved.iter_mut().for_each(|entry| *entry /= row[k]);
            for (below, &u) in rest.iter_mut().zip(&row[k + 1..]) {
                subtract(below, u, solved);
            }
        }
    }

    /// U x = c, eight columns at a time.
    fn backward(&self, x: &mut [[f64; PANEL]]) {
        for k in (0..self.size).rev() {
            let row = self.row(k);
            let (head, done) = x.split_at_mut(k + 1);
            let mut sum = head[k];
            for (solved, &u) in done.iter().zip(&row[k + 1..]) {
                subtract(&mut sum, u, solved);
            }
            head[k] = sum.map(|entry| entry / row[k]);
        }
    }
}

#[inline(always)]
fn subtract(from: &mut [f64; PANEL], factor: f64, of: &[f64; PANEL]) {
    for (a, &b) in from.iter_mut().zip(of) {
        *a -= factor * b;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::normals;
    use super::*;
    use crate::simd::Cpu;

    #[test]
    fn solutions_solve() {
        for (size, columns) in [(1, 1), (5, 3), (19, 11)] {
            let a = Panels::from_rows(&normals((size + 3) * size, 0), size);
            let mut gram = Panels::zeros(size, size);
            gram.add_gram(Cpu::plain(), &a);
            let x = Panels::from_rows(&normals(size * columns, 1), columns);
            let full =
                |i: usize, j: usize| gram.at(i.min(j), i.max(j)) + if i == j { 0.5 } else { 0.0 };
            let right: Vec<f64> = (0..size * columns)
                .map(|at| (0..size).map(|k| full(at / columns, k) * x.at(k, at % columns)).sum())
                .collect();
            let mut found = Panels::from_rows(&right, columns);
            Cholesky::new(&gram, 0.5).unwrap().solve(&mut found);
            for (a, b) in found.to_rows().iter().zip(x.to_rows()) {
                assert!((a - b).abs() < 1e-10, "{a} against {b}");
            }
        }
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        let gram = Panels::from_rows(&[1.0, 2.0, 2.0, 1.0], 2);
        assert!(Cholesky::new(&gram, 0.0).is_none());
        assert!(Cholesky::new(&gram, 2.0).is_some());
    }
}
