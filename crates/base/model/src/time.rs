//! Wall-clock instants as the CRI reports them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// Nanoseconds since the Unix epoch. 0 means "not set", as in the CRI.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Not set.
    pub const ZERO: Timestamp = Timestamp(0);

    /// From whole seconds since the epoch.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Whether the runtime has set it.
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.0 > 0
    }

    /// Nanoseconds from `earlier` to `self`; negative when `self` is before it.
    #[must_use]
    pub const fn nanos_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This instant plus a duration (saturating).
    #[must_use]
    pub fn plus(self, d: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// As an API time, cut to whole seconds as the API server stores it. `None` when not set.
    #[must_use]
    pub fn to_api(self) -> Option<Time> {
        if !self.is_set() {
            return None;
        }
        jiff::Timestamp::from_second(self.0.div_euclid(1_000_000_000)).ok().map(Time)
    }

    /// From an API time.
    #[must_use]
    pub fn from_api(t: &Time) -> Self {
        Self(i64::try_from(t.0.as_nanosecond()).unwrap_or(0))
    }

    /// Reads RFC 3339; `None` when it is none.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        i64::try_from(time.as_nanosecond()).ok().map(Self)
    }

    /// RFC 3339 in UTC with nine fraction digits, as the kubelet stamps `kubernetes.io/config.seen`.
    #[must_use]
    pub fn rfc3339_nano(self) -> String {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(t) => format!("{t:.9}"),
            Err(_) => String::new(),
        }
    }
}
