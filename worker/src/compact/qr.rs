//! Least squares by Householder reflections with column pivoting (Golub and Van Loan, 5.4.2).
//!
//! Rows are swept in order and columns side by side, so sums have a fixed order and loops vectorise.

/// A column that is less than this fraction of the longest once the columns before it are taken off
/// is rounding error.
const RANK_FLOOR: f64 = 1e-12;

/// A matrix (rows x columns) beside its right sides, row by row, made triangular in place.
pub(super) struct LeastSquares {
    columns: usize,
    width: usize,
    /// Rows of `columns` entries and `width - columns` right sides.
    values: Vec<f64>,
    /// Which column stands where.
    order: Vec<usize>,
}

impl LeastSquares {
    /// From rows that hold `columns` entries and then the right sides, `width` in all.
    pub(super) fn new(values: Vec<f64>, columns: usize, width: usize) -> Self {
        debug_assert!(width >= columns && values.len() / width >= columns);
        Self { columns, width, values, order: (0..columns).collect() }
    }

    /// The solution of every right side, one after the other, or the numerical rank where it is less
    /// than the number of columns.
    pub(super) fn solve(mut self) -> Result<Vec<f64>, usize> {
        let mut longest = 0.0;
        for k in 0..self.columns {
            let square = self.pivot(k);
            if k == 0 {
                longest = square;
            }
            if square.is_nan() || square <= RANK_FLOOR * RANK_FLOOR * longest {
                return Err(k);
            }
            self.reflect(k, square);
        }
        Ok((self.columns..self.width).flat_map(|right| self.substitute(right)).collect())
    }

    /// Brings the longest remaining column to place k and returns its squared length below row k.
    fn pivot(&mut self, k: usize) -> f64 {
        let mut squares = vec![0.0; self.columns];
        for row in self.values.chunks_exact(self.width).skip(k) {
            for (sum, &entry) in squares[k..].iter_mut().zip(&row[k..self.columns]) {
                *sum += entry * entry;
            }
        }
        let best = (k..self.columns).fold(k, |b, j| if squares[j] > squares[b] { j } else { b });
        if best != k {
            self.values.chunks_exact_mut(self.width).for_each(|row| row.swap(k, best));
            self.order.swap(k, best);
        }
        squares[best]
    }

    /// Reflects column k onto row k: I - v v^T/(v . column), v = column + sign(head) |column| e.
    fn reflect(&mut self, k: usize, square: f64) {
        let head = self.values[k * self.width + k];
        let length = if head < 0.0 { -square.sqrt() } else { square.sqrt() };
        let scale = 1.0 / (square + head * length);
        let mut products = vec![0.0; self.width];
        self.values[k * self.width + k] += length;
        for row in self.values.chunks_exact(self.width).skip(k) {
            let v = row[k];
            for (sum, &entry) in products[k + 1..].iter_mut().zip(&row[k + 1..]) {
                *sum += v * entry;
            }
        }
        products[k + 1..].iter_mut().for_each(|sum| *sum *= scale);
        for row in self.values.chunks_exact_mut(self.width).skip(k) {
            let v = row[k];
            for (entry, &product) in row[k + 1..].iter_mut().zip(&products[k + 1..]) {
                *entry -= v * product;
            }
        }
        self.values[k * self.width + k] = -length;
    }

    fn substitute(&self, right: usize) -> Vec<f64> {
        let mut solution = vec![0.0; self.columns];
        for k in (0..self.columns).rev() {
            let row = &self.values[k * self.width..(k + 1) * self.width];
            let sum = (k + 1..self.columns)
                .fold(row[right], |sum, j| sum - row[j] * solution[self.order[j]]);
            solution[self.order[k]] = sum / row[k];
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::normals;
    use super::*;

    /// The residual of a least-squares solution is orthogonal to every column.
    #[test]
    fn residuals_are_orthogonal_to_the_columns() {
        for (rows, columns, rights) in [(1, 1, 1), (9, 4, 3), (40, 40, 2), (60, 17, 1)] {
            let width = columns + rights;
            let values = normals(rows * width, 0);
            let found = LeastSquares::new(values.clone(), columns, width).solve().unwrap();
            for right in 0..rights {
                let x = &found[right * columns..(right + 1) * columns];
                for column in 0..columns {
                    let product: f64 = values
                        .chunks(width)
                        .map(|row| {
                            let fit: f64 = row[..columns].iter().zip(x).map(|(a, b)| a * b).sum();
                            row[column] * (row[columns + right] - fit)
                        })
                        .sum();
                    assert!(product.abs() < 1e-11, "{product}");
                }
            }
        }
    }

    #[test]
    fn dependent_columns_are_found() {
        let base = normals(30, 1);
        let rows: Vec<f64> =
            base.chunks(3).flat_map(|r| [r[0], r[1], r[0] - 2.0 * r[1], r[2]]).collect();
        assert_eq!(LeastSquares::new(rows, 3, 4).solve(), Err(2));
        assert_eq!(LeastSquares::new(vec![0.0; 8], 1, 2).solve(), Err(0));
    }
}
