//! Durations as Go writes them: `20s`, `1m30s`, `1.5h`, `100ms`, `0`.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DurationError {
    /// Not of the form.
    #[error("is not a duration")]
    Syntax,
    /// A number without unit.
    #[error("has no unit")]
    NoUnit,
    /// Below 0.
    #[error("is negative")]
    Negative,
    /// More than Go can hold (292 years).
    #[error("is too long")]
    TooLong,
}

/// Parses a duration of 0 or more.
///
/// # Errors
/// See [`DurationError`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Syntax);
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let (part, after) = component(rest)?;
        nanos = nanos.saturating_add(part);
        rest = after;
    }
    let nanos = i64::try_from(nanos).map_err(|_| DurationError::TooLong)?;
    match u64::try_from(nanos) {
        Ok(nanos) if !negative || nanos == 0 => Ok(Duration::from_nanos(nanos)),
        _ => Err(DurationError::Negative),
    }
}

/// One `<number><unit>`; nanoseconds and what follows.
fn component(text: &str) -> Result<(u128, &str), DurationError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(DurationError::Syntax);
    }
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(DurationError::NoUnit),
        _ => return Err(DurationError::Syntax),
    };
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| DurationError::TooLong)? };
    // Digits beyond the 20th cannot change a nanosecond.
    let (mut part, mut scale) = (0, unit);
    for digit in fraction.bytes().take(20) {
        scale *= 10;
        part = part * 10 + u128::from(digit - b'0') * unit;
    }
    Ok((whole.saturating_mul(unit).saturating_add(part / (scale / unit)), rest))
}

/// Writes a duration as Go does: `1m30s`, `2h0m0s`, `100ms`, `0s`.
#[must_use]
pub fn format(d: Duration) -> String {
    let nanos = d.as_nanos();
    let fraction = |value: u128, unit: u128, digits: usize| {
        let (whole, rest) = (value / unit, value % unit);
        if rest == 0 {
            return whole.to_string();
        }
        format!("{whole}.{}", format!("{rest:0digits$}").trim_end_matches('0'))
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", fraction(nanos, 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(nanos, 1_000_000, 6)),
        _ => {
            let seconds = fraction(nanos % 60_000_000_000, 1_000_000_000, 9);
            match (d.as_secs() / 3600, d.as_secs() / 60 % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, m) => format!("{m}m{seconds}s"),
                (h, m) => format!("{h}h{m}m{seconds}s"),
            }
        }
    }
}

/// As [`format`], at millisecond resolution.
#[must_use]
pub fn format_millis(d: Duration) -> String {
    format(d.saturating_sub(Duration::from_nanos((d.subsec_nanos() % 1_000_000).into())))
}
