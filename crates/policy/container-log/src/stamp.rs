//! RFC 3339 times as log lines carry them.

use model::Timestamp;

/// A time with the zone offset that it was written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    nanos: u32,
    offset_minutes: i16,
}

impl Stamp {
    /// Go's zero time: what a JSON line without a time has.
    pub const ZERO: Stamp =
        Stamp { year: 1, month: 1, day: 1, hour: 0, minute: 0, second: 0, nanos: 0, offset_minutes: 0 };

    /// Parses `2006-01-02T15:04:05[.fraction](Z|+hh:mm|-hh:mm)`. Any number of fraction digits; those after the ninth are cut.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (date, rest) = text.split_at_checked(19)?;
        if [date[4], date[7], date[10], date[13], date[16]] != *b"--T::" {
            return None;
        }
        let year = number(&date[..4])?;
        let [month, day, hour, minute, second] = [
            number(&date[5..7])?,
            number(&date[8..10])?,
            number(&date[11..13])?,
            number(&date[14..16])?,
            number(&date[17..])?,
        ];
        let fits = (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let (nanos, zone) = fraction(rest)?;
        let offset_minutes = offset(zone)?;
        let small = |n: u32| u8::try_from(n).ok();
        fits.then_some(Self {
            year: u16::try_from(year).ok()?,
            month: small(month)?,
            day: small(day)?,
            hour: small(hour)?,
            minute: small(minute)?,
            second: small(second)?,
            nanos,
            offset_minutes,
        })
    }

    /// Appends it with exactly nine fraction digits, in the offset that it was written with.
    pub fn render(&self, out: &mut Vec<u8>) {
        digits(out, u32::from(self.year), 4);
        for (mark, part) in
            [(b'-', self.month), (b'-', self.day), (b'T', self.hour), (b':', self.minute), (b':', self.second)]
        {
            out.push(mark);
            digits(out, u32::from(part), 2);
        }
        out.push(b'.');
        digits(out, self.nanos, 9);
        if self.offset_minutes == 0 {
            out.push(b'Z');
            return;
        }
        out.push(if self.offset_minutes < 0 { b'-' } else { b'+' });
        let minutes = u32::from(self.offset_minutes.unsigned_abs());
        digits(out, minutes / 60, 2);
        out.push(b':');
        digits(out, minutes % 60, 2);
    }

    /// The instant. Times that do not fit are the farthest that do.
    #[must_use]
    pub fn instant(&self) -> Timestamp {
        let days = days_since_epoch(i64::from(self.year), i64::from(self.month), i64::from(self.day));
        let minutes = i64::from(self.hour) * 60 + i64::from(self.minute) - i64::from(self.offset_minutes);
        let seconds = days * 86_400 + minutes * 60 + i64::from(self.second);
        Timestamp(seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(self.nanos)))
    }
}

fn number(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0_u32, |n, b| b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0')))
}

fn digits(out: &mut Vec<u8>, mut n: u32, width: usize) {
    let mut text = [b'0'; 9];
    for place in text[..width].iter_mut().rev() {
        // One digit fits a byte.
        *place = b'0' + (n % 10) as u8;
        n /= 10;
    }
    out.extend_from_slice(&text[..width]);
}

/// Nanoseconds, and what follows the fraction.
fn fraction(rest: &[u8]) -> Option<(u32, &[u8])> {
    let Some((b'.' | b',', after)) = rest.split_first() else { return Some((0, rest)) };
    let len = after.iter().take_while(|b| b.is_ascii_digit()).count();
    if len == 0 {
        return None;
    }
    let kept = number(&after[..len.min(9)])?;
    let missing = u32::try_from(9_usize.saturating_sub(len)).unwrap_or(0);
    Some((kept * 10_u32.pow(missing), &after[len..]))
}

fn offset(zone: &[u8]) -> Option<i16> {
    match zone {
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            if hours > 24 || minutes > 59 {
                return None;
            }
            let all = i16::try_from(hours * 60 + minutes).ok()?;
            Some(if *sign == b'-' { -all } else { all })
        }
        _ => None,
    }
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the Gregorian calendar since 1970-01-01. Years are counted from March, so that the leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
