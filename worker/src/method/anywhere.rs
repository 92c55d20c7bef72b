//! Methods with a squared-exponential kernel on a box: Plain, TLSM-BO and the known prior, whose
//! finite forms are in [`super::plain`] and [`super::tlsm_bo`].

use std::cell::RefCell;

use super::plain::search;
use super::{Method, Prediction, Stuck};
use crate::compact::maximise::{Objective, Search};
use crate::estimator::Rule;
use crate::gp::{Anywhere, Gp, Noise, Parameters, Scale, Space};
use crate::random::Stream;
use crate::simd::Cpu;

/// What is known of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kernel {
    /// Nothing: it is fitted at every step.
    Fitted,
    /// It is fitted to training responses, and again at powers of two.
    Transferred,
    /// All of it; responses are not standardised.
    Known(Parameters),
}

/// A run of such a method.
pub(crate) struct OnBox<'p> {
    gp: Gp<Space>,
    kernel: Kernel,
    box_search: &'p Search,
    /// Standardised responses of other functions.
    training: Vec<f64>,
    responses: Vec<f64>,
    fitted: Option<Parameters>,
    /// The first point is drawn where nothing speaks for any.
    first: Vec<f64>,
    stuck: bool,
}

impl<'p> OnBox<'p> {
    /// With responses of other functions at their inputs, none for other kernels.
    pub(crate) fn new(
        box_search: &'p Search,
        kernel: Kernel,
        training: Vec<(Vec<f64>, f64)>,
        stream: &mut Stream,
        cpu: Cpu,
    ) -> Self {
        let dimension = box_search.domain().dimension();
        let mut gp = Gp::new(Space, cpu);
        let (mut values, mut stuck) = (Vec::with_capacity(training.len()), false);
        for (x, value) in training {
            stuck |= gp.observe(x).is_err();
            values.push(value);
        }
        let first = (0..dimension).map(|_| stream.uniform()).collect();
        let fitted = match kernel {
            Kernel::Known(parameters) => Some(parameters),
            Kernel::Fitted | Kernel::Transferred => None,
        };
        let (training, responses) = (values, Vec::new());
        let mut this = Self { gp, kernel, box_search, training, responses, fitted, first, stuck };
        this.stuck |= !this.training.is_empty() && this.fit().is_err();
        this
    }

    fn scale(&self) -> Scale {
        match self.kernel {
            Kernel::Known(_) => Scale { mean: 0.0, deviation: 1.0 },
            Kernel::Fitted | Kernel::Transferred => Scale::of(&self.responses),
        }
    }

    fn standardised(&self) -> Vec<f64> {
        let scale = self.scale();
        let current = self.responses.iter().map(|&y| scale.standardise(y));
        self.training.iter().copied().chain(current).collect()
    }

    /// Fits the kernel, where it is time to.
    fn fit(&mut self) -> Result<(), Stuck> {
        let again = match self.kernel {
            Kernel::Fitted => true,
            Kernel::Transferred => {
                self.responses.is_empty() || self.responses.len().is_power_of_two()
            }
            Kernel::Known(_) => false,
        };
        if again {
            let responses = self.standardised();
            // Inputs in the unit box: neighbours may be close, and its diagonal is the farthest.
            let dimension = self.box_search.domain().dimension();
            let extent = (0.02, (dimension as f64).sqrt());
            let mut search = search(Some(extent));
            if self.fitted.is_some() && self.kernel == Kernel::Transferred {
                // A few responses more move the optimum of a thousand by little.
                search.starts = 1;
            }
            let fitted = self.gp.fit(&responses, &search, Noise::Fitted);
            self.fitted = Some(fitted.map_err(|_| Stuck::NoFit)?.parameters());
        }
        Ok(())
    }
}

/// The posterior seen through a rule.
struct Seen<'a> {
    posterior: RefCell<Anywhere<'a, Space>>,
    scale: Scale,
    rule: Rule<1>,
    noise: f64,
}

impl Objective for Seen<'_> {
    fn value(&self, x: &[f64]) -> f64 {
        let (mean, variance) = self.posterior.borrow_mut().at(&x.to_vec());
        self.rule.value(0, self.scale.mean(mean), self.scale.variance(variance + self.noise))
    }

    fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let mut by_variance = vec![0.0; x.len()];
        let mut posterior = self.posterior.borrow_mut();
        let (mean, variance) = posterior.with_gradients(&x.to_vec(), gradient, &mut by_variance);
        let mean = self.scale.mean(mean);
        let variance = self.scale.variance(variance + self.noise);
        let floored = if variance > TINY { variance } else { TINY };
        let deviation = floored.sqrt();
        let unit = self.scale.deviation;
        for (slope, by_variance) in gradient.iter_mut().zip(&by_variance) {
            let by_deviation = unit * unit * by_variance / (2.0 * deviation);
            *slope = match &self.rule {
                Rule::Ucb { zeta } => unit * *slope + zeta * by_deviation,
                Rule::Pi { target } => {
                    unit * *slope / deviation - (mean - target[0]) * by_deviation / floored
                }
            };
        }
        self.rule.value(0, mean, variance)
    }
}

/// The least variance whose root has a slope worth following.
const TINY: f64 = 1e-24;

impl Method<[f64]> for OnBox<'_> {
    fn observe(&mut self, at: &[f64], y: f64) -> Result<(), Stuck> {
        if self.stuck {
            return Err(Stuck::NoFit);
        }
        self.responses.push(y);
        self.gp.observe(at.to_vec()).map_err(|_| Stuck::NoFit)?;
        self.fit()
    }

    /// No claim is made about what these methods believe.
    fn predict(&self, _: &[f64]) -> Prediction {
        Prediction { mean: 0.0, variance: 0.0 }
    }

    fn choose(&mut self, rule: &Rule<1>) -> Vec<f64> {
        let (responses, scale) = (self.standardised(), self.scale());
        let known = matches!(self.kernel, Kernel::Known(_));
        let Some(parameters) = self.fitted.filter(|_| !responses.is_empty()) else {
            return self.first.clone();
        };
        let noise = if known { parameters.noise } else { 0.0 };
        let Ok(posterior) = self.gp.posterior(&responses, parameters) else {
            self.stuck = true;
            return self.first.clone();
        };
        let posterior = RefCell::new(posterior.anywhere());
        let seen = Seen { posterior, scale, rule: *rule, noise };
        self.box_search.maximise(&seen, &[]).at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::domain::Domain;
    use crate::compact::maximise::Effort;
    use crate::random::{Key, Purpose};

    fn stream() -> Stream {
        Stream::new(Key::new(9, &[1; 32], 0, Purpose::Policy))
    }

    fn box_search(dimension: usize) -> Search {
        let effort = Effort { candidates: 256, starts: 8 };
        Search::new(Domain::unit(dimension), vec![0.2; dimension], effort)
    }

    /// The gradient of the objective against finite differences, for both rules.
    #[test]
    fn gradients_agree_with_differences() {
        for rule in [Rule::Ucb { zeta: 1.7 }, Rule::Pi { target: [4.0] }] {
            let mut gp = Gp::new(Space, Cpu::detect());
            let y = [0.3, -1.0, 0.8, 0.1];
            for i in 0..4 {
                let i = f64::from(i);
                gp.observe(vec![0.2 * i, 0.9 - 0.25 * i]).unwrap();
            }
            let parameters = Parameters { variance: 1.3, length: 0.3, noise: 0.01 };
            let posterior = gp.posterior(&y, parameters).unwrap().anywhere();
            let scale = Scale { mean: 2.0, deviation: 1.5 };
            let seen = Seen { posterior: RefCell::new(posterior), scale, rule, noise: 0.0 };
            for at in [[0.33, 0.41], [0.8, 0.15]] {
                let mut gradient = [0.0; 2];
                let value = seen.value_and_gradient(&at, &mut gradient);
                assert_eq!(value, seen.value(&at));
                for j in 0..2 {
                    let step = 1e-6;
                    let (mut low, mut high) = (at, at);
                    low[j] -= step;
                    high[j] += step;
                    let slope = (seen.value(&high) - seen.value(&low)) / (2.0 * step);
                    assert!((slope - gradient[j]).abs() < 1e-6 * (1.0 + slope.abs()), "{rule:?}");
                }
            }
        }
    }

    /// On a smooth function of one variable a dozen evaluations find the maximum.
    #[test]
    fn a_fitted_kernel_finds_a_smooth_maximum() {
        let search = box_search(1);
        let f = |x: f64| libm::sin(5.0 * x) - 0.5 * x;
        let mut run = OnBox::new(&search, Kernel::Fitted, vec![], &mut stream(), Cpu::detect());
        let mut best = f64::NEG_INFINITY;
        for _ in 0..12 {
            let x = run.choose(&Rule::Ucb { zeta: 2.0 });
            let y = f(x[0]);
            best = if y > best { y } else { best };
            run.observe(&x, y).unwrap();
        }
        let maximum = (0..=1000)
            .map(|i| f(f64::from(i) / 1000.0))
            .fold(-9.0, |a, b| if b > a { b } else { a });
        assert!(maximum - best < 1e-3, "{best} of {maximum}");
    }
}
