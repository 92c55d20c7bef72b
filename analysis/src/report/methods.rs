//! The methods paragraph: aims, data-generating mechanism, estimands, methods, performance measures
//! (Morris, White and Crowther 2019).

use crate::Analysis;
use crate::words;

/// Headings with their paragraphs.
pub(super) fn paragraphs(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let dataset = &analysis.dataset;
    vec![
        ("Aims", aims()),
        ("Data-generating mechanism", mechanism(analysis)),
        ("Estimands", estimands()),
        ("Methods", methods(analysis)),
        ("Performance measures", measures()),
        (
            "Computation",
            format!(
                "Trials are a pure function of (seed {}, cell, replicate) and are bit-identical on any number of workers and any \
                 x86-64 CPU. {} trials ran, {} failed and are counted as violations when a claim is to be confirmed and as successes \
                 when it is to be refuted. Every record was checked against the invariants of the registry; none was violated.",
                dataset.study.seed,
                words::count(dataset.manifest.trials),
                words::count(dataset.manifest.failures)
            ),
        ),
    ]
}

fn aims() -> String {
    "To test the probabilistic statements of \"Regret bounds for meta Bayesian optimization with an unknown Gaussian process \
     prior\" (NeurIPS 2018) and each step of their proofs on data that satisfy their hypotheses, and to compare the rates that \
     they promise with those that occur."
        .to_owned()
}

fn mechanism(analysis: &Analysis) -> String {
    let dataset = &analysis.dataset;
    let priors: Vec<String> = dataset.priors.iter().take(4).map(words::prior).collect();
    let more = dataset.priors.len().saturating_sub(4);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let ranks: Vec<String> = dataset
        .priors
        .iter()
        .take(4)
        .map(|prior| format!("rank {}, residual {:.1e}", prior.rank, prior.residual))
        .collect();
    format!(
        "In every trial f is drawn from the GP prior ({}{more}), and y = f(x) + N(0, σ²). The kernel is F Fᵀ + w I with F from a pivoted \
         Cholesky factorisation ({}); nothing is approximated after that. The estimators μ̂ ~ N(μ, S/N) and k̂ ~ Wishart(S/(N−1), N−1) \
         are drawn from their exact law. Evaluated points are not selected again, so that claims are about unobserved points. Cells share \
         the functions and the noise of each replicate, so that comparisons are paired.",
        priors.join("; "),
        ranks.join("; ")
    )
}

fn estimands() -> String {
    "For each claim, cell, t and δ: the probability that the statement holds in a trial. For rates: means and quantiles of best-sample, \
     simple and cumulative regret, of the excess over the run with the known prior, of the squared standardised error of μ̂_t, and of the \
     least posterior variance among the selected points."
        .to_owned()
}

fn methods(analysis: &Analysis) -> String {
    let family = analysis.dataset.manifest.family;
    let interval = if analysis.dataset.is_stopped() {
        "Cells stop when every row has enough evidence; intervals are confidence sequences, valid at every number of trials"
    } else {
        "The number of trials is fixed in advance; intervals are Clopper and Pearson's"
    };
    format!(
        "Evidence against and for each statement is measured by e-values: betting mixtures over Jeffreys' prior and one tuned to the budget \
         at {} trials, maximised over completed batches, which is valid under any stopping. {interval}. Verdicts control the probability of \
         any error among all {} rows at {} by Holm's procedure, half of it for refuting and half for confirming. Claims that depend on the \
         maximum information gain ρ_T, which is NP-hard, are confirmed with the lower end of a bracket and refuted with its upper end. \
         Exponents are fitted as A + B n^(−c) with weights 1/MCSE² on at least five sizes; their intervals come from 2,000 resamples of \
         replicates, drawn jointly for all cells.",
        family.n_opt,
        words::count(family.rows),
        family.alpha
    )
}

fn measures() -> String {
    "Coverage with its interval; tightness, the bound over the quantile that it bounds; vacuity, whether even the worst point of the domain \
     satisfies the bound at the claimed level; the share of random search's trials within the bound; and the smallest factor by which the \
     bound could shrink and still be confirmed. Numbers in tables are rounded to their Monte-Carlo standard error, which stands in \
     parentheses."
        .to_owned()
}
