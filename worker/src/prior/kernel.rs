//! A kernel as smooth part + w I.
//!
//! The white part is split off symbolically, because it costs nothing where it is known to be
//! diagonal and a full-rank factor where it is not. Sums add. A product of A + a I and B + b I,
//! entry by entry, is A o B + (a diag B + b diag A + a b I), which is of the same form only where
//! the diagonals that a and b multiply are constant.

use super::{
    Points,
    smooth::{Node, Profile, Smooth},
};
use study::prior::{Files, Invalid, KernelSpec, Lengthscale, Table};

/// A kernel on the points of a domain.
pub(super) struct Kernel<'a> {
    /// `None` where the kernel is white.
    pub(super) smooth: Option<Smooth<'a>>,
    /// w.
    pub(super) white: f64,
}

/// A kernel that cannot be written as smooth part + w I.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// A file is missing or has another shape.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A white part times a kernel whose variance differs between points.
    #[error(
        "{key}: a white kernel is multiplied by one whose variance is {first} at point 0 but \
         {value} at point {point}, which gives noise that differs between points; multiply white \
         kernels by kernels of constant variance only, or move the white kernel out of the product"
    )]
    VaryingVariance {
        /// The product.
        key: String,
        /// Variance at point 0.
        first: f64,
        /// The first point where it differs.
        point: usize,
        /// Variance there.
        value: f64,
    },
    /// A matrix file that differs from its transpose.
    #[error(
        "{key} = \"{path}\": row {row}, column {column} is {value}, but row {column}, column {row} \
         is {mirror} (rows and columns counted from 1); a kernel matrix is symmetric"
    )]
    Asymmetric {
        /// The key that names the file.
        key: String,
        /// The file.
        path: String,
        /// Counted from 1.
        row: usize,
        /// Counted from 1.
        column: usize,
        /// The entry.
        value: f64,
        /// The entry across the diagonal.
        mirror: f64,
    },
}

/// What every node of the expression is read with.
struct Reader<'a> {
    points: &'a Points,
    files: &'a Files,
    tolerance: f64,
}

type Split<'a> = (Option<Node<'a>>, f64);

impl<'a> Kernel<'a> {
    /// Splits a checked kernel. Matrix files are symmetric up to `tolerance` times their largest
    /// diagonal entry, or refused.
    pub(super) fn new(
        spec: &KernelSpec,
        points: &'a Points,
        files: &'a Files,
        tolerance: f64,
    ) -> Result<Self, KernelError> {
        let (node, white) = Reader { points, files, tolerance }.split("prior.kernel", spec)?;
        Ok(Self { smooth: node.map(|node| Smooth { node, points }), white })
    }
}

impl<'a> Reader<'a> {
    fn split(&self, key: &str, spec: &KernelSpec) -> Result<Split<'a>, KernelError> {
        let node = match spec {
            KernelSpec::White { variance } => return Ok((None, *variance)),
            KernelSpec::Sum { terms } => return self.sum(key, terms),
            KernelSpec::Product { factors } => return self.product(key, factors),
            KernelSpec::SquaredExponential { lengthscale, variance } => {
                self.stationary(Profile::SquaredExponential, lengthscale, *variance)
            }
            KernelSpec::Matern12 { lengthscale, variance } => {
                self.stationary(Profile::Matern12, lengthscale, *variance)
            }
            KernelSpec::Matern32 { lengthscale, variance } => {
                self.stationary(Profile::Matern32, lengthscale, *variance)
            }
            KernelSpec::Matern52 { lengthscale, variance } => {
                self.stationary(Profile::Matern52, lengthscale, *variance)
            }
            KernelSpec::RationalQuadratic { lengthscale, alpha, variance } => {
                let profile = Profile::RationalQuadratic { alpha: *alpha };
                self.stationary(profile, lengthscale, *variance)
            }
            KernelSpec::Periodic { lengthscale, period, variance } => Node::Periodic {
                lengthscale: self.each(lengthscale),
                period: *period,
                variance: *variance,
            },
            KernelSpec::Linear { variance, offset } => {
                Node::Linear { variance: *variance, offset: *offset }
            }
            KernelSpec::Matrix { path } => Node::Matrix(self.matrix(key, path)?),
            KernelSpec::Factor { path } => {
                Node::Factor(self.files.table(&format!("{key}.path"), path)?)
            }
            KernelSpec::Data { path } => {
                Node::Centred(centred(self.files.table(&format!("{key}.path"), path)?))
            }
            KernelSpec::Cosine { .. } => {
                let reason = "is of the compact setting; use setting = \"compact\"";
                return Err(Invalid::Setting { key: key.to_owned(), reason }.into());
            }
        };
        Ok((Some(node), 0.0))
    }

    fn stationary(&self, profile: Profile, l: &Lengthscale, variance: f64) -> Node<'a> {
        Node::Stationary { profile, lengthscale: self.each(l), variance }
    }

    fn each(&self, lengthscale: &Lengthscale) -> Vec<f64> {
        (0..self.points.dimension()).map(|j| lengthscale.along(j)).collect()
    }

    fn sum(&self, key: &str, terms: &[KernelSpec]) -> Result<Split<'a>, KernelError> {
        let (mut smooth, mut white) = (Vec::new(), 0.0);
        for (i, term) in terms.iter().enumerate() {
            let (node, w) = self.split(&format!("{key}.terms[{i}]"), term)?;
            smooth.extend(node);
            white += w;
        }
        let node = if smooth.len() > 1 { Some(Node::Sum(smooth)) } else { smooth.pop() };
        Ok((node, white))
    }

    fn product(&self, key: &str, factors: &[KernelSpec]) -> Result<Split<'a>, KernelError> {
        let mut product: Option<Split<'a>> = None;
        for (i, factor) in factors.iter().enumerate() {
            let next = self.split(&format!("{key}.factors[{i}]"), factor)?;
            product = Some(match product {
                None => next,
                Some(before) => self.multiply(key, before, next)?,
            });
        }
        Ok(product.expect("a checked product has factors"))
    }

    /// (A + a I) o (B + b I).
    fn multiply(
        &self,
        key: &str,
        (a_smooth, a): Split<'a>,
        (b_smooth, b): Split<'a>,
    ) -> Result<Split<'a>, KernelError> {
        let white = a * self.variance(key, b_smooth.as_ref(), a)?
            + b * self.variance(key, a_smooth.as_ref(), b)?
            + a * b;
        let node = a_smooth.zip(b_smooth).map(|(a, b)| Node::Product(vec![a, b]));
        Ok((node, white))
    }

    /// The constant diagonal of the smooth part that the white part `times` multiplies.
    fn variance(&self, key: &str, node: Option<&Node>, times: f64) -> Result<f64, KernelError> {
        let Some(node) = node.filter(|_| times > 0.0) else {
            return Ok(0.0);
        };
        let diagonal = node.diagonal(self.points);
        let first = diagonal[0];
        match diagonal.iter().position(|&value| value != first) {
            None => Ok(first),
            Some(point) => Err(KernelError::VaryingVariance {
                key: key.to_owned(),
                first,
                point,
                value: diagonal[point],
            }),
        }
    }

    fn matrix(&self, key: &str, path: &str) -> Result<&'a Table, KernelError> {
        let key = format!("{key}.path");
        let table = self.files.table(&key, path)?;
        let larger = |a: f64, b: f64| if b > a { b } else { a };
        let scale = (0..table.rows()).map(|i| table.row(i)[i].abs()).fold(0.0, larger);
        for row in 0..table.rows() {
            for column in 0..row {
                let (value, mirror) = (table.row(row)[column], table.row(column)[row]);
                if (value - mirror).abs() > self.tolerance * scale {
                    let (row, column, path) = (row + 1, column + 1, path.to_owned());
                    return Err(KernelError::Asymmetric { key, path, row, column, value, mirror });
                }
            }
        }
        Ok(table)
    }
}
/// M rows of N columns: the centred columns of the rewards over sqrt(N - 1), so that products of rows are
/// their sample covariances.
fn centred(rewards: &Table) -> Table {
    let scale = 1.0 / ((rewards.rows() - 1) as f64).sqrt();
    let means = super::mean::of_columns(rewards);
    let column = |j: usize| (0..rewards.rows()).map(move |i| rewards.row(i)[j]);
    let entries = (0..rewards.columns())
        .flat_map(|j| column(j).map(|value| (value - means[j]) * scale).collect::<Vec<_>>());
    Table::from_values(rewards.rows(), entries.collect())
}
