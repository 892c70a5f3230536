//! What a source of manifests publishes of them.

use std::collections::BTreeMap;
use std::ops::Deref;

use contract::board::ValuePoster;
use contract::config_sources::{ManifestState, Manifests};
use serde::Serialize;

/// A row of the board of a source of manifests.
pub(crate) trait Row: Deref<Target = Manifests> + Serialize + Send + Sync + 'static {}
impl<V: Deref<Target = Manifests> + Serialize + Send + Sync + 'static> Row for V {}

/// Publishes what the manifests are good for, when that changed. `row` makes the board's row of it.
pub(crate) fn publish<V: Row>(
    view: &ValuePoster<V>,
    row: impl Fn(Manifests) -> V,
    manifests: BTreeMap<String, ManifestState>,
    error: Option<String>,
) {
    let old = view.get();
    let new = Manifests { manifests, error, delivered: old.delivered };
    if **old != new {
        view.publish(row(new));
    }
}

/// Publishes that PodManager has a set.
pub(crate) fn delivered<V: Row>(view: &ValuePoster<V>, row: impl Fn(Manifests) -> V) {
    let old = view.get();
    if !old.delivered {
        view.publish(row(Manifests { delivered: true, ..(**old).clone() }));
    }
}
