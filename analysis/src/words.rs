//! Priors, policies and numbers in words, for sentences and captions.

use serde_json::Value;
use study::Cell;
use study::cell::{Policy, Rival, RivalRule};

use crate::description::{PriorSummary, Scalar};

/// A prior, as in "squared-exponential kernel (lengthscale = 0.1), 80 points in 1 dimension, σ² = 0.01".
pub(crate) fn prior(prior: &PriorSummary) -> String {
    if prior.spec["setting"] == "data" {
        let path = prior.spec["kernel"]["path"].as_str().unwrap_or("a file");
        let noise = match prior.noise_variance {
            0.0 => "no noise added".to_owned(),
            variance => format!("noise of variance {variance} added"),
        };
        return format!("rewards of {path}, {} points in {}, {noise}", prior.size, axes(prior));
    }
    let dimension = axes(prior);
    let kernel = kernel(&prior.spec["kernel"]);
    let mean = match prior.spec["mean"]["kind"].as_str() {
        None | Some("zero") => String::new(),
        Some(kind) => format!(", mean {kind}"),
    };
    if prior.spec["setting"] == "compact" {
        let features = match prior.spec["features"]["functions"].as_u64() {
            Some(functions) => format!("{functions} learnt features"),
            None => "given features".to_owned(),
        };
        return format!(
            "{kernel} on a box of {dimension}, {features}, {} training points, σ² = {}",
            prior.size, prior.noise_variance
        );
    }
    format!("{kernel}{mean}, {} points in {dimension}, σ² = {}", prior.size, prior.noise_variance)
}

fn axes(prior: &PriorSummary) -> String {
    match prior.d {
        1 => "1 dimension".to_owned(),
        d => format!("{d} dimensions"),
    }
}

fn kernel(spec: &Value) -> String {
    let kind = spec["kind"].as_str().unwrap_or("unknown");
    let parts: Vec<&Value> =
        ["terms", "factors"].iter().filter_map(|key| spec[*key].as_array()).flatten().collect();
    if !parts.is_empty() {
        let joint = if kind == "product" { " × " } else { " + " };
        return parts.into_iter().map(kernel).collect::<Vec<_>>().join(joint);
    }
    let empty = serde_json::Map::new();
    let keys = spec.as_object().unwrap_or(&empty).iter().filter(|(key, value)| {
        let plain = value.is_number() || value.is_array() || value.is_string();
        let unit = key.as_str() == "variance" && value.as_f64() == Some(1.0);
        *key != "kind" && plain && !unit
    });
    let keys: Vec<String> = keys.map(|(key, value)| format!("{key} = {value}")).collect();
    let keys = if keys.is_empty() { String::new() } else { format!(" ({})", keys.join(", ")) };
    format!("{kind} kernel{keys}")
}

/// What runs in a cell, as in "GP-UCB with the estimated prior".
pub(crate) fn policy(cell: &Cell) -> &'static str {
    match cell.policy {
        Policy::Fixed(_) => {
            "a fixed design, its points drawn uniformly without replacement and independently of the estimators"
        }
        Policy::PemUcb { .. } => "GP-UCB with the estimated prior (PEM-BO)",
        Policy::PemPi { .. } => "PI with the estimated prior (PEM-BO)",
        Policy::KnownUcb { .. } => "GP-UCB with the known prior",
        Policy::KnownPi { .. } => "PI with the known prior",
        Policy::Random => "random search",
        Policy::Rival { rival: Rival::Plain, rule: RivalRule::Pi { .. }, .. } => {
            "PI with a squared-exponential kernel fitted to the run (Plain)"
        }
        Policy::Rival { rival: Rival::Plain, .. } => {
            "GP-UCB with a squared-exponential kernel fitted to the run (Plain)"
        }
        Policy::Rival { rival: Rival::TlsmBo, rule: RivalRule::Pi { .. }, .. } => {
            "PI with a squared-exponential kernel on all standardised responses (TLSM-BO)"
        }
        Policy::Rival { rival: Rival::TlsmBo, .. } => {
            "GP-UCB with a squared-exponential kernel on all standardised responses (TLSM-BO)"
        }
        Policy::Rival { rival: Rival::Box, .. } => {
            "GP-UCB with the estimated prior plugged in and a constant weight (BOX)"
        }
        Policy::Rival { rival: Rival::Niw, rule: RivalRule::Pi { .. }, .. } => {
            "PI with the posterior mean of a normal-inverse-Wishart prior (NIW)"
        }
        Policy::Rival { rival: Rival::Niw, .. } => {
            "GP-UCB with the posterior mean of a normal-inverse-Wishart prior (NIW)"
        }
    }
}

/// The same in few words, for axes and legends.
pub(crate) fn short_policy(cell: &Cell) -> &'static str {
    match cell.policy {
        Policy::Fixed(_) => "fixed design",
        Policy::PemUcb { .. } => "PEM-BO, GP-UCB",
        Policy::PemPi { .. } => "PEM-BO, PI",
        Policy::KnownUcb { .. } => "known prior, GP-UCB",
        Policy::KnownPi { .. } => "known prior, PI",
        Policy::Random => "random search",
        Policy::Rival { rival, rule, .. } => match (rival, rule) {
            (Rival::Plain, RivalRule::Pi { .. }) => "Plain, PI",
            (Rival::Plain, _) => "Plain, GP-UCB",
            (Rival::TlsmBo, RivalRule::Pi { .. }) => "TLSM-BO, PI",
            (Rival::TlsmBo, _) => "TLSM-BO, GP-UCB",
            (Rival::Box, _) => "BOX",
            (Rival::Niw, RivalRule::Pi { .. }) => "NIW, PI",
            (Rival::Niw, _) => "NIW, GP-UCB",
        },
    }
}

/// Swept keys, as in "prior.noise_variance = 0.1"; empty without.
pub(crate) fn swept(swept: &[(String, Scalar)]) -> String {
    let parts: Vec<String> = swept.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    parts.join(", ")
}

/// A probability in per cent, with as many digits as say something near 0 and 1.
pub(crate) fn percent(share: f64) -> String {
    let near = if share > 0.5 { 1.0 - share } else { share };
    let text = if near == 0.0 || near >= 0.01 {
        format!("{:.1}", 100.0 * share)
    } else if near >= 0.001 {
        format!("{:.2}", 100.0 * share)
    } else {
        format!("{:.3}", 100.0 * share)
    };
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// A count with thin groups, as in "24,000".
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of so many significant digits, without needless zeros.
pub(crate) fn number(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = libm::floor(libm::log10(value.abs())) as i64;
    if !(-4..7).contains(&magnitude) {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    let decimals = (digits.cast_signed() as i64 - 1 - magnitude).clamp(0, 15) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let cases = [
            (0.85345, "85.3 %"),
            (1.0, "100 %"),
            (0.9996, "99.96 %"),
            (0.0, "0 %"),
            (0.0004, "0.04 %"),
        ];
        for (share, text) in cases {
            assert_eq!(percent(share), text);
        }
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(number(0.0123456, 3), "0.0123");
        assert_eq!(number(1234.5, 3), "1234");
        assert_eq!(number(2.0, 3), "2");
        assert_eq!(number(1.5e-9, 3), "1.50e-9");
    }

    #[test]
    fn a_prior_in_words() {
        let spec = serde_json::json!({
            "domain": { "kind": "grid", "points": 80, "dimension": 1 },
            "kernel": { "kind": "squared-exponential", "lengthscale": 0.1, "variance": 1.0 },
            "mean": { "kind": "zero" },
        });
        let summary = PriorSummary { spec, size: 80, ..crate::fixture::prior(0, 80, 1) };
        assert_eq!(
            prior(&summary),
            "squared-exponential kernel (lengthscale = 0.1), 80 points in 1 dimension, σ² = 0.01"
        );
    }
}
