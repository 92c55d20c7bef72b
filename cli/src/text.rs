//! Numbers and states in words that people read at a glance.

use proto::v1::StudyState;

/// A count with thin groups: `1 234 567`.
pub(crate) fn count(value: u128) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digits.len() > 4 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A study's state.
pub(crate) fn state(state: StudyState) -> &'static str {
    match state {
        StudyState::Unspecified => "unknown",
        StudyState::Running => "running",
        StudyState::Sealing => "sealing",
        StudyState::Done => "done",
        StudyState::Cancelled => "cancelled",
        StudyState::Failed => "failed",
    }
}

/// A duration: `85 ms`, `4.2 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 59.95 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// An amount of memory or disk: `812 B`, `3.4 MB`, `1.2 TB`.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    if unit == 0 || value >= 99.95 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_at_a_glance() {
        assert_eq!(count(1234), "1234");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(duration(0.085), "85 ms");
        assert_eq!(duration(4.21), "4.2 s");
        assert_eq!(duration(59.97), "1 min 00 s");
        assert_eq!(duration(185.0), "3 min 05 s");
        assert_eq!(duration(7800.0), "2 h 10 min");
        assert_eq!(duration(273_600.0), "3 d 4 h");
        assert_eq!(bytes(812.0), "812 B");
        assert_eq!(bytes(3.42e6), "3.4 MB");
        assert_eq!(bytes(999_600.0), "1.0 MB");
    }
}
