//! Values as Go's encoder writes them.

use serde::Serializer;

/// RFC 3339, with as much of a fraction as there is; not set is `null`.
pub(super) mod time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Timestamp;

    pub(crate) fn serialize<S: Serializer>(t: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        let nanos = t.is_set().then_some(i128::from(t.0));
        nanos.and_then(|n| jiff::Timestamp::from_nanosecond(n).ok()).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        let nanos = |t: jiff::Timestamp| i64::try_from(t.as_nanosecond()).unwrap_or(0);
        Ok(Timestamp(Option::<jiff::Timestamp>::deserialize(d)?.map_or(0, nanos)))
    }
}

/// A whole number has no fraction: Go prints `0`, not `0.0`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn go_float<S: Serializer>(v: &f64, s: S) -> Result<S::Ok, S::Error> {
    // Below 2^53 every whole number is exact.
    #[allow(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    if v.fract() == 0.0 && v.abs() < 9e15 { s.serialize_i64(*v as i64) } else { s.serialize_f64(*v) }
}
