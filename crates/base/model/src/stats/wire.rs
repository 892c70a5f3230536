//! Values as Go's encoder writes them.

use serde::Serializer;

/// Times in whole seconds; not set is `null`.
pub(super) mod time {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Timestamp;

    pub(crate) fn serialize<S: Serializer>(t: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        t.to_api().serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        Ok(Option::<Time>::deserialize(d)?.map_or(Timestamp::ZERO, |t| Timestamp::from_api(&t)))
    }
}

/// A whole number has no fraction: Go prints `0`, not `0.0`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn go_float<S: Serializer>(v: &f64, s: S) -> Result<S::Ok, S::Error> {
    // Below 2^53 every whole number is exact.
    #[allow(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    if v.fract() == 0.0 && v.abs() < 9e15 { s.serialize_i64(*v as i64) } else { s.serialize_f64(*v) }
}
