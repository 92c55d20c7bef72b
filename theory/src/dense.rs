//! Small dense matrices with a fixed order of every sum: what Lemma 3's exact bias needs.

/// A rows x columns matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

/// A matrix that was to be factored is not positive definite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pivot {step} of the Cholesky factorisation is not positive")]
pub struct NotPositive {
    /// The first pivot that failed, from 0.
    pub step: usize,
}

impl Matrix {
    /// The matrix whose entry (i, j) is `entry(i, j)`.
    pub fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect();
        Self { rows, columns, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Entry (i, j).
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    /// The transpose.
    #[must_use]
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// self + scale * other.
    ///
    /// # Panics
    /// Where the shapes differ.
    #[must_use]
    pub fn plus(&self, scale: f64, other: &Self) -> Self {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "shapes of a sum agree");
        Self::from_fn(self.rows, self.columns, |i, j| self.at(i, j) + scale * other.at(i, j))
    }

    /// The product self * other.
    ///
    /// # Panics
    /// Where the inner dimensions differ.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows, "inner dimensions of a product agree");
        Self::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).fold(0.0, |sum, k| sum + self.at(i, k) * other.at(k, j))
        })
    }

    /// The product self * v.
    ///
    /// # Panics
    /// Where `v` is not as long as a row.
    pub fn apply(&self, v: &[f64]) -> Vec<f64> {
        assert_eq!(self.columns, v.len(), "a matrix acts on vectors of its width");
        (0..self.rows)
            .map(|i| dot(&self.values[i * self.columns..(i + 1) * self.columns], v))
            .collect()
    }
}

/// The inner product, summed in order.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (x, y)| sum + x * y)
}

/// L L^T = A, for solving with a symmetric positive definite A.
#[derive(Clone, Debug)]
pub struct Cholesky {
    lower: Matrix,
}

impl Cholesky {
    /// Factors `a`, of which only the lower triangle is read.
    ///
    /// # Panics
    /// Where `a` is not square.
    pub fn new(a: &Matrix) -> Result<Self, NotPositive> {
        assert_eq!(a.rows, a.columns, "only a square matrix is factored");
        let size = a.rows;
        let mut lower = Matrix::from_fn(size, size, |_, _| 0.0);
        for i in 0..size {
            for j in 0..=i {
                let sum = (0..j).fold(a.at(i, j), |s, k| s - lower.at(i, k) * lower.at(j, k));
                lower.values[i * size + j] = if i > j {
                    sum / lower.at(j, j)
                } else if sum > 0.0 {
                    sum.sqrt()
                } else {
                    return Err(NotPositive { step: i });
                };
            }
        }
        Ok(Self { lower })
    }

    /// A^-1 v.
    pub fn solve(&self, v: &[f64]) -> Vec<f64> {
        let (l, mut x) = (&self.lower, v.to_vec());
        for i in 0..x.len() {
            let sum = (0..i).fold(x[i], |s, k| s - l.at(i, k) * x[k]);
            x[i] = sum / l.at(i, i);
        }
        for i in (0..x.len()).rev() {
            let sum = (i + 1..x.len()).fold(x[i], |s, k| s - l.at(k, i) * x[k]);
            x[i] = sum / l.at(i, i);
        }
        x
    }

    /// A^-1.
    pub fn inverse(&self) -> Matrix {
        let size = self.lower.rows;
        let columns: Vec<Vec<f64>> = (0..size)
            .map(|j| {
                self.solve(&(0..size).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>())
            })
            .collect();
        Matrix::from_fn(size, size, |i, j| columns[j][i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solving_inverts() {
        let a = Matrix::from_fn(4, 4, |i, j| {
            1.0 / (1.0 + (i + j) as f64) + f64::from(u8::from(i == j))
        });
        let factor = Cholesky::new(&a).unwrap();
        let x = factor.solve(&a.apply(&[1.0, -2.0, 3.0, 0.5]));
        for (got, want) in x.iter().zip([1.0, -2.0, 3.0, 0.5]) {
            assert!((got - want).abs() < 1e-14);
        }
        let unit = a.times(&factor.inverse());
        assert!((0..4).all(|i| (unit.at(i, i) - 1.0).abs() < 1e-14));
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        let a = Matrix::from_fn(2, 2, |_, _| 1.0);
        assert_eq!(Cholesky::new(&a).unwrap_err(), NotPositive { step: 1 });
    }
}
