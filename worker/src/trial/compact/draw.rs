//! What a trial of the compact setting draws before its first evaluation: its method.

use study::cell::{Estimator, Policy, Rival, Training};
use theory::dense::dot;

use super::CompactTrials;
use crate::compact::belief::Weights;
use crate::compact::dataset::Dataset;
use crate::compact::domain::Domain;
use crate::compact::learn::{Options, learn};
use crate::compact::maximise::{Effort, Search};
use crate::compact::prior::Given;
use crate::compact::weights::weights;
use crate::gp::Parameters;
use crate::method::anywhere::{Kernel, OnBox};
use crate::method::estimate::Scale;
use crate::method::linear::{self, Basis, Linear};
use crate::method::responses::Responses;
use crate::method::{Method, Unable, tlsm_bo};
use crate::random::{Purpose, Stream};

/// The method of a trial; `None` where nothing is believed.
pub(super) fn method<'a>(
    trials: &'a CompactTrials<'_>,
    replicate: u64,
) -> Option<Box<dyn Method<[f64]> + 'a>> {
    let (prior, cpu) = (trials.prior, trials.cpu);
    let mut stream = trials.open(replicate, Purpose::Estimator);
    let on_box = |kernel, training, stream: &mut Stream| -> Box<dyn Method<[f64]> + 'a> {
        Box::new(OnBox::new(&trials.kernel_search, kernel, training, stream, cpu))
    };
    let own = Basis::Given(&prior.cosines, &prior.search);
    let Some(Training { n, estimator }) = trials.cell.policy.training() else {
        return match (trials.cell.policy, prior.kernel) {
            (Policy::Random, _) => None,
            (_, Some((variance, length))) => {
                let noise = prior.noise_variance;
                let known = Kernel::Known(Parameters { variance, length, noise: floored(noise) });
                Some(on_box(known, vec![], &mut trials.open(replicate, Purpose::Policy)))
            }
            _ => {
                let weights = Weights::independent(&prior.variances);
                let noise = prior.noise_variance;
                let known = Linear::new(own, weights, Scale::PlugIn, noise, prior.c, cpu);
                Some(Box::new(known))
            }
        };
    };
    match trials.rival() {
        Some(Rival::Plain) => return Some(on_box(Kernel::Fitted, vec![], &mut stream)),
        Some(Rival::TlsmBo) => {
            let rows = simulate(trials, n.min(tlsm_bo::MOST as u64), &mut stream);
            let sample = tlsm_bo::sample(&rows, &mut stream);
            let points = &prior.points;
            let training = sample.into_iter().map(|(j, y)| (points.point(j).to_vec(), y)).collect();
            return Some(on_box(Kernel::Transferred, training, &mut stream));
        }
        Some(Rival::Box | Rival::Niw) | None => {}
    }
    let Some((basis, mean, covariance)) = estimates(trials, own, n, estimator, &mut stream) else {
        return Some(Box::new(Unable(vec![0.5; prior.points.dimension()])));
    };
    let usual = prior.c;
    let (weights, scale) = match trials.rival() {
        Some(Rival::Niw) => (linear::niw(&mean, &covariance, n), Scale::PlugIn),
        _ => (Weights::with_covariance(mean, &covariance), Scale::Unbiased { n }),
    };
    Some(Box::new(Linear::new(basis, weights, scale, 0.0, usual, cpu)))
}

/// The kernel's matrices need some noise.
fn floored(noise: f64) -> f64 {
    if noise > 1e-10 { noise } else { 1e-10 }
}

/// Features with u_hat and Sigma_hat; `None` where they could not be learnt.
fn estimates<'a>(
    trials: &'a CompactTrials<'_>,
    own: Basis<'a>,
    n: u64,
    route: Estimator,
    stream: &mut Stream,
) -> Option<(Basis<'a>, Vec<f64>, Vec<f64>)> {
    let (prior, cpu) = (trials.prior, trials.cpu);
    if let (Estimator::Wishart, Some(given)) = (route, &prior.given) {
        let (mean, covariance) = exact(given, n, stream);
        return Some((own, mean, covariance));
    }
    let rows = simulate(trials, n, stream);
    let inputs: Vec<f64> = prior.points.iter().flatten().copied().collect();
    let data = Dataset::new(&inputs, prior.points.dimension(), &rows.values).ok()?;
    let (basis, found) = match route.functions() {
        None => (own, weights(cpu, &prior.cosines, &data, 0.0).ok()?),
        Some(functions) => {
            let options = Options::new(functions as usize);
            let learnt = learn(cpu, &data, &options, stream).ok()?.cosines;
            let found = weights(cpu, &learnt, &data, options.ridge).ok()?;
            let domain = Domain::unit(prior.points.dimension());
            let effort = Effort::for_cosines(&learnt, &domain);
            let search = Search::for_cosines(cpu, &learnt, domain, effort);
            (Basis::Learnt(Box::new((learnt, search))), found)
        }
    };
    let columns = found.len() / rows.rows();
    let (mean, covariance) = Responses { columns, values: found }.moments();
    Some((basis, mean, covariance))
}

/// u_hat ~ N(u, B/N) and Sigma_hat ~ Wishart(B/(N-1), N-1) (paper, section 4.2), the latter by
/// Bartlett's decomposition: L B_N B_N^T L^T/(N-1), L L^T = B.
fn exact(given: &Given, n: u64, stream: &mut Stream) -> (Vec<f64>, Vec<f64>) {
    let size = given.estimate.mean.len();
    let root = &given.estimate.factor;
    let columns = usize::try_from(n - 1).map_or(size, |n| n.min(size));
    let mut bartlett = vec![0.0; size * columns];
    for i in 0..size {
        let below = i.min(columns);
        stream.normals(&mut bartlett[i * columns..i * columns + below]);
        if i < columns {
            bartlett[i * columns + i] = stream.chi_square(n - 1 - i as u64).sqrt();
        }
    }
    let mut rows = vec![0.0; size * columns];
    for (i, row) in rows.chunks_exact_mut(columns).enumerate() {
        for k in 0..=i {
            let below = &bartlett[k * columns..(k + 1) * columns];
            row.iter_mut().zip(below).for_each(|(v, b)| *v += root[i * size + k] * b);
        }
    }
    let mut covariance = Vec::with_capacity(size * size);
    for a in rows.chunks_exact(columns) {
        covariance.extend(rows.chunks_exact(columns).map(|b| dot(a, b) / (n - 1) as f64));
    }
    let mut z = vec![0.0; size];
    stream.normals(&mut z);
    let shrink = 1.0 / (n as f64).sqrt();
    let at =
        |i: usize| given.estimate.mean[i] + shrink * dot(&root[i * size..=i * size + i], &z[..=i]);
    ((0..size).map(at).collect(), covariance)
}

/// N functions at the training points, observed with noise.
fn simulate(trials: &CompactTrials<'_>, n: u64, stream: &mut Stream) -> Responses {
    let prior = trials.prior;
    let rows: Vec<Vec<f64>> = prior.points.iter().map(|x| prior.phi(trials.cpu, x)).collect();
    let deviation = prior.noise_variance.sqrt();
    let mut values = Vec::new();
    let mut w = vec![0.0; prior.variances.len()];
    for _ in 0..n {
        stream.normals(&mut w);
        w.iter_mut().zip(&prior.variances).for_each(|(w, variance)| *w *= variance.sqrt());
        values.extend(rows.iter().map(|phi| dot(phi, &w)));
    }
    let mut noise = vec![0.0; values.len()];
    stream.normals(&mut noise);
    values.iter_mut().zip(&noise).for_each(|(value, e)| *value += deviation * e);
    Responses { columns: rows.len(), values }
}
