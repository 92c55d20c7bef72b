//! What a trial measures at a checkpoint t: the numbers that claims are predicates of.
//!
//! Points are indices into the domain. "Given t observations" means after conditioning on
//! (x_1, y_1) .. (x_t, y_t). A value that does not exist is `None`, never NaN.

/// Lemma 1's two statistics at one point x, given t observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// (mu_hat_t(x) - mu_t(x)) / sqrt(k_t(x) + sigma^2).
    pub signed: f64,
    /// (mu_hat_t(x) - mu_t(x))^2 / (k_t(x) + sigma^2).
    pub error: f64,
    /// k_hat_t(x) / (k_t(x) + sigma^2).
    pub ratio: f64,
}

impl Deviation {
    /// From mu_hat_t - mu_t, k_hat_t and k_t + sigma^2, the last positive.
    pub fn new(shift: f64, estimated: f64, predictive: f64) -> Self {
        Self {
            signed: shift / predictive.sqrt(),
            error: shift * shift / predictive,
            ratio: estimated / predictive,
        }
    }
}

/// What the estimators of the compact setting expect at the probe given D_t, in the units of
/// [`Deviation`]; Lemma 3 claims 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// (E[mu_hat_t(x) | D_t] - mu_t(x)) / sqrt(k_t(x) + sigma_bar^2(x)).
    pub signed: f64,
    /// E[k_hat_t(x)] / (k_t(x) + sigma_bar^2(x)).
    pub ratio: f64,
}

/// The estimated posterior at x* and x_tau, given tau - 1 observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatedAtTau {
    /// mu_hat_{tau-1}(x*).
    pub mean_star: f64,
    /// k_hat_{tau-1}(x*).
    pub variance_star: f64,
    /// mu_hat_{tau-1}(x_tau).
    pub mean_tau: f64,
    /// k_hat_{tau-1}(x_tau).
    pub variance_tau: f64,
}

/// sigma_bar^2 of the compact setting (paper, section 4.2) at the two points of the proof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactNoise {
    /// sigma_bar^2(x*).
    pub star: f64,
    /// sigma_bar^2(x_tau).
    pub tau: f64,
}

/// The quantities of Theorem 2's proof at tau = argmin_{s <= t} k_{s-1}(x_s), smallest s on ties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtTau {
    /// tau itself, in 1..=t.
    pub tau: u32,
    /// mu_{tau-1}(x*).
    pub mean_star: f64,
    /// k_{tau-1}(x*).
    pub variance_star: f64,
    /// mu_{tau-1}(x_tau).
    pub mean_tau: f64,
    /// k_{tau-1}(x_tau); it is also the minimum over s <= t of k_{s-1}(x_s).
    pub variance_tau: f64,
    /// f(x_tau).
    pub f_tau: f64,
    /// zeta_tau, the exploration weight with which x_tau was chosen (GP-UCB only).
    pub zeta: Option<f64>,
    /// The estimated posterior; `None` for methods that estimate nothing.
    pub estimated: Option<EstimatedAtTau>,
    /// `None` in the finite setting, where sigma^2 stands in its place.
    pub compact: Option<CompactNoise>,
    /// Whether x* was among x_1 .. x_{tau-1}.
    pub star_seen: bool,
}

/// One trial at one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Number of observations, at least 1.
    pub t: u32,
    /// Index of x_t; `None` in the compact setting, where points have none.
    pub x: Option<u32>,
    /// y_t = f(x_t) + noise.
    pub y: f64,
    /// f(x_t).
    pub f: f64,
    /// max f over the domain.
    pub f_star: f64,
    /// Index of x*, the first maximiser of f; `None` in the compact setting.
    pub x_star: Option<u32>,
    /// Whether the prior is known, so that `k_xy` and `at_tau` mean something: not on real data.
    pub prior_known: bool,
    /// max f - min f: the worst regret that any point could have.
    pub f_range: f64,
    /// zeta_t (GP-UCB only).
    pub zeta: Option<f64>,
    /// PI's target value, max f + gap (PI only).
    pub target: Option<f64>,
    /// r_t = max f - max_{s <= t} f(x_s).
    pub best_sample_regret: f64,
    /// R_t = max f - f(x_s), s = argmax_{s <= t} y_s.
    pub simple_regret: f64,
    /// sum_{s <= t} (max f - f(x_s)).
    pub cumulative_regret: f64,
    /// At a random unobserved point, drawn independently of the estimators.
    pub probe: Option<Deviation>,
    /// What the exact law expects at the probe, in the compact setting with given features.
    pub expected: Option<Expected>,
    /// At x*; `None` once x* has been observed.
    pub star: Option<Deviation>,
    /// At x_{t+1}; `None` where no next point exists.
    pub next: Option<Deviation>,
    /// At x_t itself, an observed point.
    pub observed: Option<Deviation>,
    /// K = (y_t - mu)^T (k(x_t) + sigma^2 I)^-1 (y_t - mu).
    pub k_xy: f64,
    /// Whether x* is among x_1 .. x_t.
    pub star_seen: bool,
    /// The proof's quantities at tau.
    pub at_tau: AtTau,
    /// max_{s <= t} y_s.
    pub y_max: f64,
    /// f at argmax_s y_s (first on ties).
    pub f_at_y_max: f64,
    /// max_{s <= t} f(x_s).
    pub f_max: f64,
    /// y at argmax_s f(x_s) (first on ties).
    pub y_at_f_max: f64,
    /// Realised information I_t = 1/2 sum_{s <= t} log(1 + k_{s-1}(x_s) / sigma^2);
    /// `None` where sigma = 0.
    pub information: Option<f64>,
    /// The same by Lemma 5.3 of Srinivas et al., 1/2 log det(I + k(x_t, x_t) / sigma^2), from a
    /// factorisation of that matrix; in a share of the replicates, `None` elsewhere and where sigma = 0.
    pub information_determinant: Option<f64>,
}
