//! Where an axis has ticks, and what is written at them.
//!
//! Linear axes step by 1, 2 or 5 times a power of ten. Log axes mark decades, with minor ticks
//! between them; where fewer than two decades are in sight, they mark 1, 2 and 5 of each.

/// A mark on an axis; one without a label is a minor tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: Option<String>,
}

impl Tick {
    fn minor(value: f64) -> Self {
        Self { value, label: None }
    }
}

/// Ticks of a linear axis, `at_most` of them; `low < high`.
pub(super) fn linear(low: f64, high: f64, at_most: usize) -> Vec<Tick> {
    let at_most = at_most.max(2) as f64;
    let smallest = libm::floor(libm::log10((high - low) / at_most)) as i32;
    let steps = (smallest..).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| (factor, power)));
    for (factor, power) in steps {
        let step = scaled(factor, power);
        // A tick that rounding moved past an end still belongs to it.
        let first = libm::ceil(low / step - 1e-9);
        let last = libm::floor(high / step + 1e-9);
        if last - first < at_most {
            let count = (last - first) as i64 + 1;
            let values: Vec<f64> =
                (0..count).map(|i| scaled((first + i as f64) * factor, power)).collect();
            return with_decimals(&values, power);
        }
    }
    unreachable!("a step grows until few enough fit")
}

/// Ticks of a log axis, `at_most` of them labelled; `0 < low < high`.
pub(super) fn logarithmic(low: f64, high: f64, at_most: usize) -> Vec<Tick> {
    let inside = |value: f64| value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9);
    let powers = libm::floor(libm::log10(low)) as i32..=libm::ceil(libm::log10(high)) as i32;
    let decades: Vec<i32> = powers.clone().filter(|&power| inside(scaled(1.0, power))).collect();
    let multiples = |factors: &'static [f64]| {
        powers
            .clone()
            .flat_map(|power| factors.iter().map(move |&factor| scaled(factor, power)))
            .filter(|&value| inside(value))
    };
    if decades.len() >= 2 {
        // Powers that are multiples of the stride, so that 1 is among them where it is in sight.
        let labelled =
            |stride: &i32| decades.iter().filter(|&p| p.rem_euclid(*stride) == 0).count();
        let stride = (1..1000).find(|stride| labelled(stride) <= at_most.max(2)).unwrap_or(1);
        let mut ticks = with_powers(&decades, stride);
        if stride == 1 {
            ticks.extend(multiples(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).map(Tick::minor));
        }
        return ticks;
    }
    let labelled: Vec<f64> = multiples(&[1.0, 2.0, 5.0]).collect();
    if (2..=at_most).contains(&labelled.len()) {
        let mut ticks = exact(&labelled);
        ticks.extend(multiples(&[3.0, 4.0, 6.0, 7.0, 8.0, 9.0]).map(Tick::minor));
        return ticks;
    }
    linear(low, high, at_most).into_iter().filter(|tick| inside(tick.value)).collect()
}

/// Ticks at exactly these values.
pub(super) fn exact(values: &[f64]) -> Vec<Tick> {
    values.iter().map(|&value| Tick { value, label: Some(plain(value)) }).collect()
}

fn with_decimals(values: &[f64], power: i32) -> Vec<Tick> {
    let largest = values.iter().map(|value| value.abs()).fold(0.0, super::larger);
    let label = |value: f64| {
        if value == 0.0 {
            return "0".to_owned();
        }
        if power >= -4 && largest < 1e6 {
            return minus(&format!("{value:.*}", (-power).max(0) as usize));
        }
        let exponent = libm::floor(libm::log10(largest)) as i32;
        let digits = (exponent - power).max(0) as usize;
        format!(
            "{}×10^{{{}}}",
            minus(&format!("{:.digits$}", scaled(value, -exponent))),
            signed(exponent)
        )
    };
    values.iter().map(|&value| Tick { value, label: Some(label(value)) }).collect()
}

fn with_powers(decades: &[i32], stride: i32) -> Vec<Tick> {
    let short = decades.iter().all(|power| (-3..=4).contains(power));
    let label = |power: i32| {
        if short { plain(scaled(1.0, power)) } else { format!("10^{{{}}}", signed(power)) }
    };
    let tick = |&power: &i32| Tick {
        value: scaled(1.0, power),
        label: (power.rem_euclid(stride) == 0).then(|| label(power)),
    };
    decades.iter().map(tick).collect()
}

/// `factor · 10^power`, rounded once as long as the power is exact in binary.
fn scaled(factor: f64, power: i32) -> f64 {
    let ten = |power: i32| (0..power).fold(1.0, |product, _| product * 10.0);
    if power >= 0 { factor * ten(power) } else { factor / ten(-power) }
}

/// A number with up to four significant digits, or all digits of a whole number.
pub(super) fn plain(value: f64) -> String {
    if value == libm::trunc(value) { shown(value) } else { significant(value, 4) }
}

/// A number with up to so many significant digits.
pub(super) fn significant(value: f64, digits: usize) -> String {
    shown(format!("{value:.*e}", digits.saturating_sub(1)).parse().expect("a printed number"))
}

/// All digits of a number, as a multiple of a power of ten where that is shorter.
fn shown(value: f64) -> String {
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        return minus(&(value + 0.0).to_string());
    }
    let printed = format!("{value:e}");
    let (digits, power) = printed.split_once('e').expect("scientific notation");
    let power: i32 = power.parse().expect("a printed exponent");
    format!("{}×10^{{{}}}", minus(digits), signed(power))
}

/// With the sign for minus instead of a hyphen.
pub(super) fn minus(digits: &str) -> String {
    digits.replace('-', "−")
}

fn signed(power: i32) -> String {
    minus(&power.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn linear_ticks_are_few_inside_and_evenly_spaced() {
        let ranges = [(0.0, 1.0), (0.91, 1.003), (-3.2, 17.0), (1e-7, 3e-7), (1e8, 4e9)];
        for (low, high) in ranges {
            for at_most in 2..10 {
                let ticks = linear(low, high, at_most);
                assert!(ticks.len() <= at_most, "{low} {high} {at_most}");
                let slack = (high - low) * 1e-9;
                assert!(ticks.iter().all(|t| t.value >= low - slack && t.value <= high + slack));
                let gaps: Vec<f64> = ticks.windows(2).map(|t| t[1].value - t[0].value).collect();
                assert!(gaps.windows(2).all(|g| (g[0] - g[1]).abs() <= g[0] * 1e-6));
                let mut shown = labels(&ticks);
                shown.dedup();
                assert_eq!(shown.len(), ticks.len(), "labels differ");
            }
            assert!(linear(low, high, 6).len() >= 3);
        }
    }

    #[test]
    fn linear_labels_have_the_digits_they_need() {
        assert_eq!(labels(&linear(0.0, 1.0, 6)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear(-10.0, 10.0, 5)), ["−10", "−5", "0", "5", "10"]);
        assert_eq!(labels(&linear(0.0, 4e6, 3)), ["0", "2×10^{6}", "4×10^{6}"]);
    }

    #[test]
    fn log_ticks_are_decades_or_steps_between() {
        assert_eq!(labels(&logarithmic(0.5, 2000.0, 8)), ["1", "10", "100", "1000"]);
        assert_eq!(labels(&logarithmic(1e-9, 1.0, 4)), ["10^{−9}", "10^{−6}", "10^{−3}", "10^{0}"]);
        assert_eq!(labels(&logarithmic(90.0, 600.0, 8)), ["100", "200", "500"]);
        assert_eq!(labels(&logarithmic(30.0, 38.0, 5)), ["30", "32", "34", "36", "38"]);
        for (low, high) in [(1e-12, 1e12), (0.3, 0.9), (1.0, 10.0), (0.999, 1.001)] {
            for at_most in 2..9 {
                let ticks = logarithmic(low, high, at_most);
                assert!(labels(&ticks).len() <= at_most && !labels(&ticks).is_empty());
                assert!(ticks.iter().all(|t| t.value > 0.99 * low && t.value < 1.01 * high));
            }
        }
    }

    #[test]
    fn plain_numbers_are_short() {
        let pairs = [(1.0, "1"), (2000.0, "2000"), (0.05, "0.05"), (-1.5, "−1.5"), (0.0, "0")];
        for (value, shown) in pairs {
            assert_eq!(plain(value), shown);
        }
        assert_eq!(plain(1.0 / 3.0), "0.3333");
        assert_eq!(plain(2.5e-7), "2.5×10^{−7}");
    }
}
