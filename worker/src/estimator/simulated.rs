//! The estimators as the paper computes them: N functions are drawn and observed at every point, and
//! mu_hat, k_hat are their sample mean and covariance (section 4.1). O(N M^2); an oracle.

use super::sample::Sample;
use crate::prior::Prior;
use crate::random::Stream;

/// Draws N rows of data and takes their mean and covariance.
pub(crate) fn draw(prior: &Prior, n_train: u64, stream: &mut Stream) -> Sample {
    let size = prior.factor.rows();
    let s = prior.total_noise().sqrt();
    let mut rows = Vec::new();
    let mut z = vec![0.0; prior.factor.rank()];
    for _ in 0..n_train {
        stream.normals(&mut z);
        let mut row = vec![0.0; size];
        stream.normals(&mut row);
        for (i, value) in row.iter_mut().enumerate() {
            let smooth: f64 = prior.factor.row(i).zip(&z).map(|(f, z)| f * z).sum();
            *value = prior.mean[i] + smooth + s * *value;
        }
        rows.push(row);
    }
    let mean: Vec<f64> =
        (0..size).map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / n_train as f64).collect();
    let mut covariance = vec![0.0; size * size];
    for row in &rows {
        let centred: Vec<f64> = row.iter().zip(&mean).map(|(y, m)| y - m).collect();
        for (entries, a) in covariance.chunks_exact_mut(size).zip(&centred) {
            for (entry, b) in entries.iter_mut().zip(&centred) {
                *entry += a * b;
            }
        }
    }
    covariance.iter_mut().for_each(|entry| *entry /= (n_train - 1) as f64);
    let usual = (0..size).map(|i| prior.observed_variance(i)).collect();
    Sample::new(mean, covariance, usual, n_train)
}
