//! The smooth part of a kernel: all but its white part, column by column.
//!
//! The formulas stand with [`study::prior::KernelSpec`].

use super::{Points, cholesky::Covariance};
use std::f64::consts::PI;
use study::prior::Table;

/// A stationary kernel as a function of rho^2, at variance 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Profile {
    SquaredExponential,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic { alpha: f64 },
}

/// An expression without white parts.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Stationary {
        profile: Profile,
        lengthscale: Vec<f64>,
        variance: f64,
    },
    Periodic {
        lengthscale: Vec<f64>,
        period: f64,
        variance: f64,
    },
    Linear {
        variance: f64,
        offset: f64,
    },
    Matrix(&'a Table),
    Factor(&'a Table),
    /// Centred rewards, a row for each point.
    Centred(Table),
    Sum(Vec<Node<'a>>),
    Product(Vec<Node<'a>>),
}

/// An expression on the points of a domain.
#[derive(Clone, Debug)]
pub(super) struct Smooth<'a> {
    pub(super) node: Node<'a>,
    pub(super) points: &'a Points,
}

impl Covariance for Smooth<'_> {
    fn diagonal(&self) -> Vec<f64> {
        self.node.diagonal(self.points)
    }

    fn column(&self, j: usize, out: &mut [f64]) {
        self.node.column(self.points, j, out);
    }
}

impl Profile {
    fn at(self, squared: f64) -> f64 {
        if squared > 1e12 && !matches!(self, Self::RationalQuadratic { .. }) {
            // exp(-1e6) is 0; the polynomials before it could overflow.
            return 0.0;
        }
        match self {
            Self::SquaredExponential => libm::exp(-0.5 * squared),
            Self::Matern12 => libm::exp(-squared.sqrt()),
            Self::Matern32 => {
                let r = (3.0 * squared).sqrt();
                (1.0 + r) * libm::exp(-r)
            }
            Self::Matern52 => {
                let r = (5.0 * squared).sqrt();
                (1.0 + r + r * r / 3.0) * libm::exp(-r)
            }
            Self::RationalQuadratic { alpha } => {
                libm::exp(-alpha * libm::log1p(squared / (2.0 * alpha)))
            }
        }
    }
}

impl Node<'_> {
    /// Whether a matrix from a file takes part, so that nothing guarantees a covariance.
    pub(super) fn has_matrix(&self) -> bool {
        match self {
            Self::Matrix(_) => true,
            Self::Sum(parts) | Self::Product(parts) => parts.iter().any(Self::has_matrix),
            _ => false,
        }
    }

    /// k(x_i, x_i) for all i: the same bits as the columns' own diagonal entries.
    pub(super) fn diagonal(&self, points: &Points) -> Vec<f64> {
        match self {
            Self::Stationary { variance, .. } | Self::Periodic { variance, .. } => {
                vec![*variance; points.size()]
            }
            Self::Linear { variance, offset } => {
                points.iter().map(|x| offset + variance * dot(x, x)).collect()
            }
            Self::Matrix(table) => (0..points.size()).map(|i| table.row(i)[i]).collect(),
            Self::Factor(table) => {
                (0..points.size()).map(|i| dot(table.row(i), table.row(i))).collect()
            }
            Self::Centred(table) => {
                (0..points.size()).map(|i| dot(table.row(i), table.row(i))).collect()
            }
            Self::Sum(parts) => combine(parts, |part| part.diagonal(points), |a, b| a + b),
            Self::Product(parts) => combine(parts, |part| part.diagonal(points), |a, b| a * b),
        }
    }

    /// k(x_i, x_j) for all i.
    fn column(&self, points: &Points, j: usize, out: &mut [f64]) {
        let whole = |part: &Self| {
            let mut column = vec![0.0; points.size()];
            part.column(points, j, &mut column);
            column
        };
        let y = points.point(j);
        match self {
            Self::Stationary { profile, lengthscale, variance } => {
                for (out, x) in out.iter_mut().zip(points.iter()) {
                    let squared = squared_sum(x, y, lengthscale, |difference| difference);
                    *out = variance * profile.at(squared);
                }
            }
            Self::Periodic { lengthscale, period, variance } => {
                for (out, x) in out.iter_mut().zip(points.iter()) {
                    let squared = squared_sum(x, y, lengthscale, |d| libm::sin(PI * d / period));
                    *out = variance * libm::exp(-2.0 * squared);
                }
            }
            Self::Linear { variance, offset } => {
                for (out, x) in out.iter_mut().zip(points.iter()) {
                    *out = offset + variance * dot(x, y);
                }
            }
            Self::Matrix(table) => out.copy_from_slice(table.row(j)),
            Self::Factor(table) => products(table, j, out),
            Self::Centred(table) => products(table, j, out),
            Self::Sum(parts) => out.copy_from_slice(&combine(parts, whole, |a, b| a + b)),
            Self::Product(parts) => out.copy_from_slice(&combine(parts, whole, |a, b| a * b)),
        }
    }
}

/// sum_k (map(x_k - y_k)/l_k)^2.
fn squared_sum(x: &[f64], y: &[f64], lengthscale: &[f64], map: impl Fn(f64) -> f64) -> f64 {
    x.iter().zip(y).zip(lengthscale).fold(0.0, |sum, ((x, y), l)| {
        let scaled = map(x - y) / l;
        sum + scaled * scaled
    })
}

fn products(table: &Table, j: usize, out: &mut [f64]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = dot(table.row(i), table.row(j));
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y)
}

/// The parts' values, entry by entry, from the first part to the last.
fn combine<'a>(
    parts: &[Node<'a>],
    values: impl Fn(&Node<'a>) -> Vec<f64>,
    join: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let mut each = parts.iter().map(values);
    let mut out = each.next().expect("a checked sum or product has parts");
    for part in each {
        for (out, value) in out.iter_mut().zip(part) {
            *out = join(*out, value);
        }
    }
    out
}
