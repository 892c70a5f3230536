//! The time of log lines.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970, as the CRI counts. Before 1970: 0.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// RFC 3339 in UTC with nine digits, the form of CRI logs.
pub(crate) fn stamp(nanos: i64) -> String {
    let (seconds, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// Days since 1970 to a date: years that begin in March, in cycles of 400 (Hinnant, "chrono-compatible low-level date
/// algorithms").
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn stamps_are_those_of_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000007Z"),
            (951_827_696, "2000-02-29T12:34:56.000000007Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000007Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000000007Z"),
            (4_102_444_799, "2099-12-31T23:59:59.000000007Z"),
        ] {
            assert_eq!(stamp(seconds * 1_000_000_000 + 7), text);
        }
    }
}
