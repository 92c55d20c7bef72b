//! What a group of trials draws before its first step: functions and estimators, each from the streams
//! of its purpose.

use study::cell::{Dependence, Estimator as Route, Policy, Rival, Training};

use super::Trials;
use crate::estimator::known_prior::KnownPrior;
use crate::estimator::sample::Samples;
use crate::estimator::wishart::Wishart;
use crate::estimator::{Estimator, dense, simulated};
use crate::method::plain::Plain;
use crate::method::responses::Responses;
use crate::method::tlsm_bo::{self, TlsmBo};
use crate::method::{Draw, Each, Unable, niw, pem_bo};
use crate::random::{Key, Purpose, Stream, interleaved_normals};
use crate::simd::Buffer;
use crate::sweep::Sweep;

/// Opens the streams of each lane for a purpose.
pub(super) fn open<const L: usize>(
    trials: &Trials<'_>,
    replicates: [u64; L],
    purpose: Purpose,
) -> [Stream; L] {
    let dependence = match purpose {
        Purpose::Estimator | Purpose::EstimatorAxes | Purpose::EstimatorSteps => {
            Dependence::Estimator
        }
        _ => Dependence::Function,
    };
    let identity = trials.cell.random_identity(dependence);
    replicates.map(|replicate| Stream::new(Key::new(trials.seed, &identity, replicate, purpose)))
}

/// f = mu + F z + sqrt(w) e.
pub(super) fn functions<const L: usize>(
    trials: &Trials<'_>,
    mut streams: [Stream; L],
    f: &mut Buffer,
) {
    let prior = trials.prior;
    let factor = &prior.factor;
    let mut weights = Buffer::zeros(factor.rank() * L);
    interleaved_normals(&mut streams, &mut weights);
    trials.cpu.run::<L, _>(Sweep::<L> { factor, weights: &weights, out: f });
    let f = &mut f[..factor.rows() * L];
    if prior.white > 0.0 {
        let mut white = Buffer::zeros(f.len());
        interleaved_normals(&mut streams, &mut white);
        let scale = prior.white.sqrt();
        f.iter_mut().zip(white.iter()).for_each(|(f, e)| *f += scale * e);
    }
    for (f, mean) in f.chunks_exact_mut(L).zip(&prior.mean) {
        f.iter_mut().for_each(|f| *f += mean);
    }
}

pub(super) fn estimator<'a, const L: usize>(
    trials: &'a Trials<'a>,
    open: &dyn Fn(Purpose) -> [Stream; L],
) -> Option<Box<dyn Estimator<L> + 'a>> {
    let (prior, cpu) = (trials.prior, trials.cpu);
    let Some(Training { n, estimator }) = trials.cell.policy.training() else {
        return match trials.cell.policy {
            Policy::Random => None,
            _ => Some(Box::new(KnownPrior::new(prior, cpu))),
        };
    };
    if let Policy::Rival { rival: rival @ (Rival::Plain | Rival::TlsmBo | Rival::Niw), .. } =
        trials.cell.policy
    {
        let draw = rival_draw(trials, rival, n, estimator);
        return Some(Box::new(Each::new(draw, open(Purpose::Estimator))));
    }
    Some(match estimator {
        Route::Wishart => Box::new(Wishart::draw(prior, n, cpu, open)),
        Route::Completed { .. } => {
            let draw: Draw<'a> =
                Box::new(move |stream| match completed(trials, n, estimator, stream) {
                    Some(whole) => Box::new(pem_bo::from_responses(&whole)),
                    None => Box::new(Unable(0)),
                });
            Box::new(Each::new(draw, open(Purpose::Estimator)))
        }
        Route::Rows | Route::Learnt { .. } => {
            unreachable!("a plan has this route in other settings only")
        }
        Route::Dense => {
            let draw = move |stream: &mut Stream| dense::draw(prior, n, stream);
            Box::new(Samples::new(Box::new(draw), open(Purpose::Estimator)))
        }
        Route::Simulated => {
            let draw = move |stream: &mut Stream| simulated::draw(prior, n, stream);
            Box::new(Samples::new(Box::new(draw), open(Purpose::Estimator)))
        }
    })
}

/// How a rival that runs one trial at a time is drawn.
fn rival_draw<'a>(trials: &'a Trials<'a>, rival: Rival, n: u64, route: Route) -> Draw<'a> {
    let (prior, cpu) = (trials.prior, trials.cpu);
    let open = || vec![false; prior.size()];
    match (rival, &trials.distances) {
        (Rival::Plain, Some(distances)) => {
            Box::new(move |stream| Box::new(Plain::new(distances, open(), stream, cpu)))
        }
        (Rival::TlsmBo, Some(distances)) => Box::new(move |stream| {
            // More functions than responses cannot be told from as many.
            let mut rows = Responses::simulate(prior, n.min(tlsm_bo::MOST as u64), stream);
            rows.lose(route.missing().unwrap_or(0.0), stream);
            let sample = tlsm_bo::sample(&rows, stream);
            Box::new(TlsmBo::new(distances, &sample, open(), stream, cpu))
        }),
        (Rival::Plain | Rival::TlsmBo, None) => unreachable!("trials have distances for a kernel"),
        (Rival::Box, _) => unreachable!("BOX has the estimators of PEM-BO"),
        (Rival::Niw, _) => Box::new(move |stream| {
            if route.missing().is_none() {
                let drawn = dense::draw(prior, n, stream);
                let (mean, covariance) = drawn.moments();
                return Box::new(niw::from_moments(mean, covariance, n));
            }
            match completed(trials, n, route, stream) {
                Some(whole) => {
                    let (mean, covariance) = whole.moments();
                    Box::new(niw::from_moments(&mean, &covariance, n))
                }
                None => Box::new(Unable(0)),
            }
        }),
    }
}

/// Training data with entries missing, filled in; `None` where that is not possible.
fn completed(trials: &Trials<'_>, n: u64, route: Route, stream: &mut Stream) -> Option<Responses> {
    let mut rows = Responses::simulate(trials.prior, n, stream);
    rows.lose(route.missing().unwrap_or(0.0), stream);
    rows.complete(stream.below(1 << 62) as u64, trials.cpu)
}
