//! Priors, estimators, posteriors, policies and the trial.
