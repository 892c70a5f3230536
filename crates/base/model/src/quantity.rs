//! Exact quantities as the API writes them.
//!
//! A [`Quantity`] is a whole number of nano units in 128 bits plus the notation that it came in, so parsing, adding,
//! comparing and printing are exact. Rules are those of `resource.Quantity` of the API: finer than nano rounds away from
//! zero, magnitudes are capped at 2^63 - 1, and the printed form is canonical (`0.5` prints as `500m`, `1536Mi` stays).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

#[cfg(test)]
mod tests;

/// Nano units in one unit.
const NANOS: i128 = 1_000_000_000;
/// The largest magnitude that the API keeps: 2^63 - 1 units.
const MAX_NANOS: i128 = (i64::MAX as i128) * NANOS;

/// Notation of a quantity; decides only how it prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// `n u m k M G T P E`, powers of 1000.
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`, powers of 1024.
    BinarySi,
    /// `e3`, `E-3`.
    DecimalExponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantityError {
    /// Nothing to parse.
    #[error("quantity is empty")]
    Empty,
    /// No digits where digits must be.
    #[error("quantity has no digits")]
    NoDigits,
    /// Not one of the known suffixes or exponents.
    #[error("quantity has an unknown suffix")]
    Suffix,
}

/// An exact amount of a resource. Equality and order compare amounts, never notation.
#[derive(Clone, Copy, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity { nanos: 0, format: Format::DecimalSi };

    /// A whole number of units (cores, pods), printed in powers of 1000.
    #[must_use]
    pub const fn from_units(units: i64) -> Self {
        Self { nanos: units as i128 * NANOS, format: Format::DecimalSi }
    }

    /// Thousandths of a unit, e.g. millicores.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self { nanos: millis as i128 * (NANOS / 1000), format: Format::DecimalSi }
    }

    /// Bytes, printed in powers of 1024.
    #[must_use]
    pub const fn from_bytes(bytes: i64) -> Self {
        Self { nanos: bytes as i128 * NANOS, format: Format::BinarySi }
    }

    /// The notation that it prints in.
    #[must_use]
    pub const fn format(self) -> Format {
        self.format
    }

    /// Exact amount in nano units.
    #[must_use]
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// Whether the amount is 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount is below 0.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whole units, rounded away from zero (`500m` is 1).
    #[must_use]
    pub fn value(self) -> i64 {
        narrow(div_away_from_zero(self.nanos, NANOS))
    }

    /// Thousandths, rounded away from zero (`1u` is 1).
    #[must_use]
    pub fn milli_value(self) -> i64 {
        narrow(div_away_from_zero(self.nanos, NANOS / 1000))
    }

    /// Sum. Keeps this notation unless this amount is 0.
    #[must_use]
    pub fn plus(self, other: Quantity) -> Quantity {
        let format = if self.is_zero() { other.format } else { self.format };
        Quantity { nanos: cap(self.nanos.saturating_add(other.nanos)), format }
    }

    /// Difference, may be negative. Keeps this notation unless this amount is 0.
    #[must_use]
    pub fn minus(self, other: Quantity) -> Quantity {
        self.plus(Quantity { nanos: -other.nanos, format: other.format })
    }

    /// This amount, or 0 when it is negative.
    #[must_use]
    pub fn or_zero(self) -> Quantity {
        Quantity { nanos: self.nanos.max(0), format: self.format }
    }

    /// As the API object carries it, in canonical form.
    #[must_use]
    pub fn to_api(self) -> ApiQuantity {
        ApiQuantity(self.to_string())
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl std::hash::Hash for Quantity {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self})")
    }
}

impl TryFrom<&ApiQuantity> for Quantity {
    type Error = QuantityError;

    fn try_from(q: &ApiQuantity) -> Result<Self, QuantityError> {
        q.0.parse()
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(s: &str) -> Result<Self, QuantityError> {
        if s.is_empty() {
            return Err(QuantityError::Empty);
        }
        let (negative, rest) = match s.as_bytes()[0] {
            b'-' => (true, &s[1..]),
            b'+' => (false, &s[1..]),
            _ => (false, s),
        };
        let (whole, rest) = split_digits(rest);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(r) => split_digits(r),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::NoDigits);
        }
        let scale = suffix(rest).ok_or(QuantityError::Suffix)?;
        let magnitude = magnitude(whole, fraction, scale);
        Ok(Quantity { nanos: if negative { -magnitude } else { magnitude }, format: scale.format() })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let below_1024 = self.nanos.abs() < 1024 * NANOS;
        if self.format == Format::BinarySi && !below_1024 && self.nanos % NANOS == 0 {
            return fmt_binary(self.nanos / NANOS, f);
        }
        let (mantissa, exponent) = decimal_parts(self.nanos);
        if self.format == Format::DecimalExponent {
            return if exponent == 0 { write!(f, "{mantissa}") } else { write!(f, "{mantissa}e{exponent}") };
        }
        let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(s, _)| *s);
        write!(f, "{mantissa}{suffix}")
    }
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

/// Multiplier that a suffix stands for.
#[derive(Clone, Copy)]
enum Scale {
    /// 10^n, written as a letter.
    Ten(i32),
    /// 10^n, written as an exponent.
    Exponent(i32),
    /// 1024^n.
    Kibi(u32),
}

impl Scale {
    const fn format(self) -> Format {
        match self {
            Scale::Ten(_) => Format::DecimalSi,
            Scale::Exponent(_) => Format::DecimalExponent,
            Scale::Kibi(_) => Format::BinarySi,
        }
    }
}

fn suffix(s: &str) -> Option<Scale> {
    if let Some((_, e)) = DECIMAL.iter().find(|(name, _)| *name == s) {
        return Some(Scale::Ten(*e));
    }
    if let Some((_, e)) = BINARY.iter().find(|(name, _)| *name == s) {
        return Some(Scale::Kibi(*e));
    }
    let digits = s.strip_prefix(['e', 'E'])?;
    let plain = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Beyond a thousand the outcome is the same (0, the least amount, or the cap), so the parse may saturate.
    let n = plain.parse::<i32>().unwrap_or(i32::MAX).min(100_000);
    Some(Scale::Exponent(if digits.starts_with('-') { -n } else { n }))
}

fn split_digits(s: &str) -> (&str, &str) {
    s.split_at(s.bytes().take_while(u8::is_ascii_digit).count())
}

/// Nano units of `whole.fraction * scale`, rounded up and capped.
fn magnitude(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let (power_of_ten, kibi) = match scale {
        Scale::Ten(e) | Scale::Exponent(e) => (e, 0),
        Scale::Kibi(n) => (0, n),
    };
    let multiplier = 1024_i128.pow(kibi);
    // Almost all that people write; the rest is for fractions, and for numbers that are very large or small.
    if let (true, Ok(units), Ok(shift @ 0..=18)) =
        (fraction.is_empty(), whole.parse::<u64>(), u32::try_from(power_of_ten + 9))
    {
        return cap((i128::from(units) * 10_i128.pow(shift)).saturating_mul(multiplier));
    }
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    // Place value of a digit in nano units is 10^(shift + digits to its right), times `multiplier`.
    let shift = i64::from(power_of_ten) + 9 - fraction.len() as i64;
    let first = digits.iter().position(|d| *d != 0);
    let Some(first) = first else { return 0 };
    let significant = &digits[first..];
    // Above 10^28 nanos the cap (about 9.2 * 10^27) is passed whatever follows.
    if significant.len() as i64 - 1 + shift > 28 {
        return MAX_NANOS;
    }
    let mut total: i128 = 0;
    let mut inexact = false;
    let mut remainder_factor: i128 = 0;
    for (i, d) in significant.iter().enumerate() {
        let place = shift + (significant.len() - 1 - i) as i64;
        if place >= 0 {
            total += i128::from(*d) * 10_i128.pow(place as u32);
        } else if -place <= 18 {
            // Fractions of a nano: they matter when a binary multiplier lifts them above one nano.
            remainder_factor += i128::from(*d) * 10_i128.pow((18 + place) as u32);
        } else if *d != 0 {
            inexact = true;
        }
    }
    let lifted = remainder_factor.saturating_mul(multiplier);
    let unit = 10_i128.pow(18);
    let whole_part = total.saturating_mul(multiplier).saturating_add(lifted / unit);
    let round = i128::from(lifted % unit != 0 || inexact);
    cap(whole_part.saturating_add(round))
}

const fn cap(nanos: i128) -> i128 {
    if nanos > MAX_NANOS {
        MAX_NANOS
    } else if nanos < -MAX_NANOS {
        -MAX_NANOS
    } else {
        nanos
    }
}

fn div_away_from_zero(n: i128, d: i128) -> i128 {
    n / d + (n % d).signum()
}

fn narrow(n: i128) -> i64 {
    i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}

fn fmt_binary(mut units: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut power = 0;
    while power < 6 && units % 1024 == 0 {
        units /= 1024;
        power += 1;
    }
    let suffix = BINARY.iter().find(|(_, p)| *p == power).map_or("", |(s, _)| *s);
    write!(f, "{units}{suffix}")
}

/// Mantissa and exponent, the exponent being the largest multiple of 3 that loses nothing.
fn decimal_parts(nanos: i128) -> (i128, i32) {
    let (mut mantissa, mut exponent) = (nanos, -9);
    while mantissa % 1000 == 0 && exponent < 18 {
        mantissa /= 1000;
        exponent += 3;
    }
    (mantissa, exponent)
}
