//! Durations as Go writes them.

use std::time::Duration;

/// Why a text is no duration, in the order of checking: form, sign, size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum DurationError {
    #[error("is not a duration such as 10m or 1h30m")]
    Form,
    #[error("must be greater than or equal to 0")]
    Negative,
}

/// `10m`, `1h30m`, `1.5s`, `0`.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(DurationError::Form);
    }
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(DurationError::Form)?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let unit_ns = match unit {
            "ns" => 1.0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return Err(DurationError::Form),
        };
        let number: f64 = number.parse().map_err(|_| DurationError::Form)?;
        let part = Duration::try_from_secs_f64(number * unit_ns / 1e9).map_err(|_| DurationError::Form)?;
        total = total.checked_add(part).ok_or(DurationError::Form)?;
        rest = after;
    }
    if negative && !total.is_zero() { Err(DurationError::Negative) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::{Duration, DurationError, parse};

    #[test]
    fn durations_table() {
        let s = |secs: f64| Ok(Duration::from_secs_f64(secs));
        for (text, expected) in [
            ("0", s(0.0)),
            ("0s", s(0.0)),
            ("10m", s(600.0)),
            ("1h30m", s(5400.0)),
            ("1.5s", s(1.5)),
            ("250ms", s(0.25)),
            ("-1s", Err(DurationError::Negative)),
            ("-0", s(0.0)),
            ("", Err(DurationError::Form)),
            ("10", Err(DurationError::Form)),
            ("10d", Err(DurationError::Form)),
            ("m", Err(DurationError::Form)),
            ("1..5s", Err(DurationError::Form)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
