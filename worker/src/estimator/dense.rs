//! The estimators by Bartlett's decomposition of the whole matrix: k_hat = L B B^T L^T/(N-1) with
//! L L^T = k + sigma^2 I and B lower triangular, B_jj = sqrt(chi2_{N-1-j}), normals below
//! (Anderson 1958, chapter 7). O(M^3); an oracle.

use super::sample::Sample;
use crate::prior::Prior;
use crate::random::Stream;

/// Draws mu_hat ~ N(mu, S/N) and k_hat ~ Wishart(S/(N-1), N-1).
pub(crate) fn draw(prior: &Prior, n_train: u64, stream: &mut Stream) -> Sample {
    let size = prior.factor.rows();
    let root = covariance_root(prior);
    let columns = usize::try_from(n_train - 1).map_or(size, |n| n.min(size));
    let mut bartlett = vec![0.0; size * columns];
    for i in 0..size {
        let below = i.min(columns);
        stream.normals(&mut bartlett[i * columns..i * columns + below]);
        if i < columns {
            bartlett[i * columns + i] = stream.chi_square(n_train - 1 - i as u64).sqrt();
        }
    }
    // V = L B, one row per point; k_hat = V V^T/(N-1).
    let rows: Vec<Vec<f64>> = (0..size)
        .map(|i| {
            let mut row = vec![0.0; columns];
            for k in 0..=i {
                for (value, b) in row.iter_mut().zip(&bartlett[k * columns..(k + 1) * columns]) {
                    *value += root[i * size + k] * b;
                }
            }
            row
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut covariance = Vec::with_capacity(size * size);
    for a in &rows {
        covariance.extend(rows.iter().map(|b| dot(a, b) / (n_train - 1) as f64));
    }
    let mut z = vec![0.0; size];
    stream.normals(&mut z);
    let shrink = 1.0 / (n_train as f64).sqrt();
    let mean = (0..size)
        .map(|i| prior.mean[i] + shrink * dot(&root[i * size..=i * size + i], &z[..=i]))
        .collect();
    let usual = (0..size).map(|i| prior.observed_variance(i)).collect();
    Sample::new(mean, covariance, usual, n_train)
}

/// The lower triangular root of S = F F^T + s^2 I; a zero pivot leaves a zero column.
fn covariance_root(prior: &Prior) -> Vec<f64> {
    let size = prior.factor.rows();
    let mut root = vec![0.0; size * size];
    for j in 0..size {
        for i in j..size {
            let smooth: f64 =
                prior.factor.row(i).zip(prior.factor.row(j)).map(|(a, b)| a * b).sum();
            let white = if i == j { prior.total_noise() } else { 0.0 };
            let done: f64 = (0..j).map(|k| root[i * size + k] * root[j * size + k]).sum();
            let left = smooth + white - done;
            root[i * size + j] = if i == j {
                if left > 1e-14 * prior.observed_variance(j) { left.sqrt() } else { 0.0 }
            } else if root[j * size + j] > 0.0 {
                left / root[j * size + j]
            } else {
                0.0
            };
        }
    }
    root
}
