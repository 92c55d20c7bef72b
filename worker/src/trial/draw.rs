//! What a group of trials draws before its first step: functions and estimators, each from the streams
//! of its purpose.

use study::cell::{Dependence, Estimator as Route, Policy, Training};

use super::Trials;
use crate::estimator::known_prior::KnownPrior;
use crate::estimator::sample::Samples;
use crate::estimator::wishart::Wishart;
use crate::estimator::{Estimator, dense, simulated};
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
    Some(match estimator {
        Route::Wishart => Box::new(Wishart::draw(prior, n, cpu, open)),
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
