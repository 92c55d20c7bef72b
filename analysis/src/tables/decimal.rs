//! Decimals by integer arithmetic.
//!
//! A number is what its shortest digits say: 0.1 is one tenth, and rounding it upwards leaves it.

/// How the digits that are cut off are accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest, a half away from zero.
    Nearest,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

/// ± digits · 10^exponent; zero has no sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads back as `value`; `None` unless it is finite.
    pub(super) fn of(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let text = format!("{:e}", if value < 0.0 { -value } else { value });
        let (mantissa, power) = text.split_once('e').expect("scientific form has an exponent");
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = mantissa.replace(['.', '-'], "");
        let power: i32 = power.parse().expect("an exponent is an integer");
        Some(Self {
            negative: value < 0.0,
            digits: digits.parse().expect("at most 17 digits"),
            exponent: power - i32::try_from(fraction).expect("at most 17 digits"),
        })
    }

    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Place of the leading digit: 0 for units, −1 for tenths. Zero is taken to lead at the units.
    pub(super) fn lead(self) -> i32 {
        let below = self.digits.checked_ilog10().unwrap_or(0);
        if self.is_zero() { 0 } else { self.exponent + below.cast_signed() }
    }

    /// The first digit that is not zero.
    pub(super) fn leading_digit(self) -> u64 {
        self.digits / 10_u64.pow(self.digits.checked_ilog10().unwrap_or(0))
    }

    /// Place of the last digit that is not zero.
    pub(super) fn last(self) -> i32 {
        let mut trimmed = self;
        while trimmed.digits != 0 && trimmed.digits.is_multiple_of(10) {
            trimmed.digits /= 10;
            trimmed.exponent += 1;
        }
        if self.is_zero() { 0 } else { trimmed.exponent }
    }

    /// A multiple of 10^place.
    pub(super) fn round(self, place: i32, rounding: Rounding) -> Self {
        if self.exponent >= place {
            return self;
        }
        // Digits are below 10^17: cutting off 19 of them leaves nothing, as cutting off more does.
        let unit = 10_u64.pow((place - self.exponent).unsigned_abs().min(19));
        let (kept, cut) = (self.digits / unit, self.digits % unit);
        let away = match rounding {
            Rounding::Nearest => cut >= unit - cut,
            Rounding::Down => self.negative && cut > 0,
            Rounding::Up => !self.negative && cut > 0,
        };
        let digits = kept + u64::from(away);
        Self { negative: self.negative && digits > 0, digits, exponent: place }
    }

    /// Divided by 10^power.
    pub(super) fn scaled(self, power: i32) -> Self {
        if self.is_zero() { self } else { Self { exponent: self.exponent - power, ..self } }
    }

    /// To the nearest multiple of 10^place, without an exponent, with the decimals that it asks for.
    pub(super) fn fixed(self, place: i32) -> String {
        let number = self.round(place, Rounding::Nearest);
        let decimals = place.min(0).unsigned_abs() as usize;
        let point = if number.is_zero() { 0 } else { number.exponent };
        let fraction = point.min(0).unsigned_abs() as usize;
        let zeros = "0".repeat(point.max(0).unsigned_abs() as usize);
        let mut text = format!("{:0>1$}{zeros}", number.digits, fraction + 1);
        if decimals > 0 {
            text.insert(text.len() - fraction, '.');
            text += &"0".repeat(decimals - fraction);
        }
        if number.negative { format!("-{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: f64) -> Decimal {
        Decimal::of(value).unwrap()
    }

    #[test]
    fn places() {
        for (value, lead, digit, last) in [
            (1.0, 0, 1, 0),
            (0.0096, -3, 9, -4),
            (1200.0, 3, 1, 2),
            (-52.75, 1, 5, -2),
            (5e-324, -324, 5, -324),
            (f64::MAX, 308, 1, 292),
            (0.0, 0, 0, 0),
            (-0.0, 0, 0, 0),
        ] {
            let found = decimal(value);
            assert_eq!((found.lead(), found.leading_digit(), found.last()), (lead, digit, last));
        }
        assert_eq!(Decimal::of(f64::NAN), None);
    }

    #[test]
    fn rounding_goes_where_it_is_told() {
        for (value, place, nearest, down, up) in [
            (2.675, -2, "2.68", "2.67", "2.68"),
            (-2.675, -2, "-2.68", "-2.68", "-2.67"),
            (0.1, -2, "0.10", "0.10", "0.10"),
            (0.0, -3, "0.000", "0.000", "0.000"),
            (0.0, 3, "0", "0", "0"),
            (1e-30, -2, "0.00", "0.00", "0.01"),
            (-1e-30, -2, "0.00", "-0.01", "0.00"),
            (1234.0, 2, "1200", "1200", "1300"),
            (96.0, 2, "100", "0", "100"),
            (9.5, 0, "10", "9", "10"),
        ] {
            let shown = |rounding| decimal(value).round(place, rounding).fixed(place);
            assert_eq!(shown(Rounding::Nearest), nearest, "{value}");
            assert_eq!(shown(Rounding::Down), down, "{value}");
            assert_eq!(shown(Rounding::Up), up, "{value}");
        }
    }

    #[test]
    fn the_shortest_digits_read_back() {
        for value in [0.1, 1.0 / 3.0, 123456.789, 1e15, 2.5e-7, -0.00071] {
            let found = decimal(value);
            let place = found.last();
            assert_eq!(found.fixed(place).parse::<f64>().unwrap(), value);
        }
    }
}
