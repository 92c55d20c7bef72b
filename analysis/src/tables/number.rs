//! The one rule by which numbers are rounded for people.
//!
//! A standard error has one significant digit, two where its leading digit is 1, and its estimate
//! ends at the same decimal: 0.686 (0.005), 0.686 (0.014). Below 10⁻⁴ and from 10⁶ on both share a
//! power of ten: 1.20 (0.14) × 10⁻⁵. Intervals are rounded outwards.

use super::cell::DASH;
use super::decimal::{Decimal, Rounding};

/// Digits of an estimate that has no error to round it by.
const UNMEASURED: i32 = 6;
/// An f64 has no more digits worth printing.
const DIGITS: i32 = 16;

/// A number as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    /// ASCII but for a dash.
    body: String,
    /// The power of ten that it is multiplied by; 0 is not shown.
    power: i32,
}

impl Printed {
    pub(super) fn integer(value: i64) -> Self {
        Self { body: value.to_string(), power: 0 }
    }

    /// With a minus sign, and a power in superscript.
    pub(super) fn unicode(&self) -> String {
        let body = self.body.replace('-', "−");
        if self.power == 0 { body } else { format!("{body} × 10{}", superscript(self.power)) }
    }

    /// In maths mode.
    pub(super) fn latex(&self) -> String {
        let body = self.body.replace(" (", r"\ (").replace(DASH, r"\text{--}");
        let power = self.power;
        if power == 0 { format!("${body}$") } else { format!(r"${body} \times 10^{{{power}}}$") }
    }
}

fn superscript(power: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    power.to_string().chars().map(digit).collect()
}

/// The power of ten to take out of a number that leads at `lead`.
fn power(lead: i32) -> i32 {
    if (-4..=5).contains(&lead) { 0 } else { lead }
}

/// A number with all its digits.
pub(super) fn exact(value: f64) -> Option<Printed> {
    let value = Decimal::of(value)?;
    // Parameters such as 2^20 are better known in full.
    let power = if (-4..=8).contains(&value.lead()) { 0 } else { value.lead() };
    Some(Printed { body: value.scaled(power).fixed(value.last() - power), power })
}

/// A number to so many significant digits, zeros at its end included.
pub(super) fn significant(value: f64, digits: u8) -> Option<Printed> {
    let value = Decimal::of(value)?;
    if value.is_zero() {
        return Some(Printed { body: "0".to_owned(), power: 0 });
    }
    let place = value.lead() + 1 - i32::from(digits.max(1));
    let rounded = value.round(place, Rounding::Nearest);
    // 9.96 became 10.0: a digit too many.
    let place = place + (rounded.lead() - value.lead());
    let power = power(rounded.lead());
    Some(Printed { body: rounded.scaled(power).fixed(place - power), power })
}

/// An estimate with its standard error in parentheses.
pub(super) fn estimate(value: f64, error: f64) -> Option<Printed> {
    let number = Decimal::of(value)?;
    let unmeasured = number.lead() + 1 - UNMEASURED;
    let Some(error) = Decimal::of(error) else { return Some(bare(number, unmeasured, DASH)) };
    if error.is_zero() {
        return Some(bare(number, unmeasured, "0"));
    }
    let place = error.lead() - i32::from(error.leading_digit() == 1);
    let (number, exact) = (number.round(place, Rounding::Nearest), number);
    let error = error.round(place, Rounding::Nearest);
    let lead = lead(number, error);
    if lead - place > DIGITS {
        let error = format!("{}e{}", error.leading_digit(), error.lead());
        return Some(bare(exact, exact.last(), &error));
    }
    let power = power(lead);
    let shown = |number: Decimal| number.scaled(power).fixed(place - power);
    Some(Printed { body: format!("{} ({})", shown(number), shown(error)), power })
}

/// An estimate whose error is not of its size: without zeros at its end.
fn bare(number: Decimal, place: i32, error: &str) -> Printed {
    let rounded = number.round(place, Rounding::Nearest);
    let power = power(rounded.lead());
    let number = rounded.scaled(power).fixed(rounded.last() - power);
    Printed { body: format!("{number} ({error})"), power }
}

/// An interval, rounded outwards where its width has so many significant digits.
pub(super) fn interval(low: f64, high: f64, digits: u8) -> Option<Printed> {
    let width = Decimal::of(high - low)?;
    let (low, high) = (Decimal::of(low)?, Decimal::of(high)?);
    let place =
        if width.is_zero() { low.last() } else { width.lead() + 1 - i32::from(digits.max(1)) };
    let finest = lead(low, high) + 1 - DIGITS;
    let place = place.max(finest);
    let (low, high) = (low.round(place, Rounding::Down), high.round(place, Rounding::Up));
    let power = power(lead(low, high));
    // An end at zero is exact.
    let shown = |end: Decimal| {
        if end.is_zero() { "0".to_owned() } else { end.scaled(power).fixed(place - power) }
    };
    Some(Printed { body: format!("[{}, {}]", shown(low), shown(high)), power })
}

/// Where the larger of two magnitudes leads.
fn lead(a: Decimal, b: Decimal) -> i32 {
    match (a.is_zero(), b.is_zero()) {
        (true, _) => b.lead(),
        (_, true) => a.lead(),
        _ => a.lead().max(b.lead()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(printed: Option<Printed>) -> String {
        printed.unwrap().unicode()
    }

    /// The numbers that were printed.
    fn read(text: &str) -> Vec<f64> {
        let (body, power) = text.split_once(" × 10").unwrap_or((text, "⁰"));
        let digit = |c: char| match c {
            '⁻' => '-',
            _ => char::from(b'0' + "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|d| d == c).unwrap() as u8),
        };
        let power: String = power.chars().map(digit).collect();
        let numbers = body.split([' ', '(', ')', '[', ']', ',']).filter(|part| !part.is_empty());
        let scaled = |part: &str| format!("{}e{power}", part.replace('−', "-"));
        numbers.map(|part| scaled(part).parse().unwrap()).collect()
    }

    /// One unit of the last digit of the error.
    fn unit(text: &str) -> f64 {
        let (body, power) = text.split_once(" × 10").unwrap_or((text, ""));
        let error = body.split(['(', ')']).nth(1).unwrap();
        let decimals = error.split_once('.').map_or(0.0, |(_, decimals)| decimals.len() as f64);
        // Zeros at the end of a whole number are not digits.
        let digits = error.trim_end_matches('0');
        let zeros = if decimals == 0.0 { (error.len() - digits.len()) as f64 } else { 0.0 };
        let power = read(&format!("1 × 10{}", if power.is_empty() { "⁰" } else { power }))[0];
        libm::pow(10.0, zeros - decimals) * power
    }

    #[test]
    fn an_estimate_ends_where_its_error_does() {
        for (value, error, expected) in [
            (0.6862, 0.0052, "0.686 (0.005)"),
            (0.6862, 0.0142, "0.686 (0.014)"),
            (0.68621, 0.0096, "0.686 (0.010)"),
            (0.68621, 0.00096, "0.6862 (0.0010)"),
            (0.68621, 0.00195, "0.6862 (0.0020)"),
            (0.68621, 0.00104, "0.6862 (0.0010)"),
            (-1.2345, 0.3, "−1.2 (0.3)"),
            (12.345, 3.0, "12 (3)"),
            (12.345, 1.0, "12.3 (1.0)"),
            (56789.0, 1234.0, "56800 (1200)"),
            (123456.0, 20000.0, "120000 (20000)"),
            (0.3, 5.0, "0 (5)"),
            (0.0, 0.02, "0.00 (0.02)"),
            (1.204e-5, 1.4e-6, "1.20 (0.14) × 10⁻⁵"),
            (1.204e-5, 3e-7, "1.20 (0.03) × 10⁻⁵"),
            (0.0, 1.04e-5, "0.0 (1.0) × 10⁻⁵"),
            (2.0e-7, 3.0e-5, "0 (3) × 10⁻⁵"),
            (999999.97, 0.6, "1.0000000 (0.0000006) × 10⁶"),
            (3.21e12, 4.0e10, "3.21 (0.04) × 10¹²"),
            (0.00012, 0.00003, "0.00012 (0.00003)"),
            (1e-310, 2e-311, "1.0 (0.2) × 10⁻³¹⁰"),
            (0.25, 0.0, "0.25 (0)"),
            (1.0, 0.0, "1 (0)"),
            (0.0, 0.0, "0 (0)"),
            (1.0 / 3.0, 0.0, "0.333333 (0)"),
            (1.0 / 3.0, f64::NAN, "0.333333 (–)"),
            (0.1, 4e-30, "0.1 (4e−30)"),
        ] {
            assert_eq!(shown(estimate(value, error)), expected, "{value} ({error})");
        }
    }

    #[test]
    fn an_estimate_reads_back_within_half_a_unit() {
        let mut tried = 0;
        for power in -12..12 {
            for mantissa in (100..1000).step_by(7) {
                let error = f64::from(mantissa) * libm::pow(10.0, f64::from(power));
                for ratio in [-3e6, -97.31, -0.5, -0.049, 0.0, 0.31, 0.95, 1.0, 9.995, 1234.5, 9e7]
                {
                    let value = ratio * error;
                    let text = shown(estimate(value, error));
                    let (read, unit) = (read(&text), unit(&text));
                    let tolerance = 0.5 * unit * (1.0 + 1e-6) + libm::fabs(value) * 1e-15;
                    assert!(libm::fabs(read[0] - value) <= tolerance, "{value} {error}: {text}");
                    assert!(libm::fabs(read[1] - error) <= tolerance, "{value} {error}: {text}");
                    assert!(read[1] > 0.8 * error && read[1] < 1.25 * error, "{error}: {text}");
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 24 * 129 * 11);
    }

    #[test]
    fn significant_digits_are_counted_after_rounding() {
        for (value, digits, expected) in [
            (9.96, 2, "10"),
            (9.94, 2, "9.9"),
            (0.5, 2, "0.50"),
            (0.000123, 2, "0.00012"),
            (0.0000999, 2, "0.00010"),
            (0.0000123, 2, "1.2 × 10⁻⁵"),
            (123456.0, 3, "123000"),
            (999999.9, 3, "1.00 × 10⁶"),
            (-2.5e-9, 1, "−3 × 10⁻⁹"),
            (0.0, 3, "0"),
            (7.0, 0, "7"),
        ] {
            assert_eq!(shown(significant(value, digits)), expected, "{value}");
        }
    }

    #[test]
    fn given_numbers_keep_their_digits() {
        for (value, expected) in [
            (0.1, "0.1"),
            (1e-7, "1 × 10⁻⁷"),
            (1048576.0, "1048576"),
            (2.5e10, "2.5 × 10¹⁰"),
            (-0.05, "−0.05"),
            (100.0, "100"),
        ] {
            assert_eq!(shown(exact(value)), expected);
        }
    }

    #[test]
    fn an_interval_is_rounded_outwards() {
        for (low, high, expected) in [
            (0.68123, 0.69111, "[0.6812, 0.6912]"),
            (0.1, 0.2, "[0.10, 0.20]"),
            (0.0, 1.23e-5, "[0, 1.3] × 10⁻⁵"),
            (-3.1459, 2.7428, "[−3.2, 2.8]"),
            (-1e-6, 0.0, "[−1.0, 0] × 10⁻⁶"),
            (0.25, 0.25, "[0.25, 0.25]"),
            (0.0, 0.0, "[0, 0]"),
            (999999.5, 999999.9, "[999999.50, 999999.90]"),
        ] {
            assert_eq!(shown(interval(low, high, 2)), expected);
        }
    }

    #[test]
    fn an_interval_still_covers() {
        for i in 0..4000_u32 {
            let low = libm::sin(f64::from(i)) * libm::pow(10.0, f64::from(i % 19) - 9.0);
            let high = low + libm::fabs(libm::cos(f64::from(i) * 1.7)) * libm::fabs(low);
            let text = shown(interval(low, high, 1 + (i % 3) as u8));
            let read = read(&text);
            let slack = libm::fabs(high) * 1e-15;
            assert!(read[0] <= low + slack && high <= read[1] + slack, "[{low}, {high}]: {text}");
            assert!(read[1] - read[0] <= 3.0 * (high - low) + slack, "[{low}, {high}]: {text}");
        }
    }

    #[test]
    fn latex_is_in_maths_mode() {
        let latex = |printed: Option<Printed>| printed.unwrap().latex();
        assert_eq!(latex(estimate(-0.6862, 0.0052)), r"$-0.686\ (0.005)$");
        assert_eq!(latex(estimate(1.2e-5, 1.4e-6)), r"$1.20\ (0.14) \times 10^{-5}$");
        assert_eq!(latex(estimate(0.5, f64::NAN)), r"$0.5\ (\text{--})$");
        assert_eq!(latex(interval(0.0, 1.0, 1)), "$[0, 1]$");
        assert_eq!(Printed::integer(-3).unicode(), "−3");
    }
}
