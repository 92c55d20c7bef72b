//! Time limits.

use std::str::FromStr;

/// A time limit as Slurm writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    text: String,
    seconds: u64,
}

impl Limit {
    pub(super) fn seconds(&self) -> u64 {
        self.seconds
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("\"{text}\" is no time limit; use HH:MM:SS, D-HH:MM:SS or minutes");
        let number = |part: &str| part.parse::<u64>().map_err(|_| refused());
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (number(days)?, rest),
            None => (0, text),
        };
        let fields = rest.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
        let seconds = match (fields.as_slice(), text.contains('-')) {
            ([minutes], false) => minutes * 60,
            ([minutes, seconds], false) => minutes * 60 + seconds,
            ([hours, minutes, seconds], _) => hours * 3600 + minutes * 60 + seconds,
            ([hours], true) => hours * 3600,
            ([hours, minutes], true) => hours * 3600 + minutes * 60,
            _ => return Err(refused()),
        };
        let seconds = days * 86_400 + seconds;
        if seconds < 120 {
            return Err(format!("{text} is too short; use 2 minutes at least"));
        }
        Ok(Self { text: text.to_owned(), seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_as_slurm_reads_them() {
        let seconds = |text: &str| text.parse::<Limit>().map(|limit| limit.seconds());
        assert_eq!(seconds("02:00:00"), Ok(7200));
        assert_eq!(seconds("90"), Ok(5400));
        assert_eq!(seconds("10:30"), Ok(630));
        assert_eq!(seconds("1-12"), Ok(129_600));
        assert_eq!(seconds("1-00:30"), Ok(88_200));
        assert_eq!(seconds("2-01:00:00"), Ok(176_400));
        for wrong in ["", "1:2:3:4", "soon", "1", "00:01:00"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
