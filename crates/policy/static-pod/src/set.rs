//! Rules over all pods of one source.

use std::collections::{BTreeMap, BTreeSet};

use model::core::Pod;
use model::pod::full_name;

/// A pod that another one of the same source hides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadowed<K> {
    /// Where the hidden pod came from.
    pub from: K,
    /// Where the pod came from that counts.
    pub by: K,
    /// `<name>_<namespace>` of both.
    pub full_name: String,
}

/// Two manifests of one folder that define the same namespace and name collapse to one pod: the later wins
/// (pod-lifecycle 1.5). `pods` come in the order of the folder, each with its origin (the file name).
pub fn collapse<K: Clone, P: AsRef<Pod>>(pods: impl IntoIterator<Item = (K, P)>) -> (Vec<(K, P)>, Vec<Shadowed<K>>) {
    let mut kept: BTreeMap<String, (K, P)> = BTreeMap::new();
    let mut shadowed = Vec::new();
    for (from, pod) in pods {
        let full_name = full_name(pod.as_ref());
        if let Some((hidden, _)) = kept.insert(full_name.clone(), (from.clone(), pod)) {
            shadowed.push(Shadowed { from: hidden, by: from, full_name });
        }
    }
    (kept.into_values().collect(), shadowed)
}

/// A set that a source hands over must not repeat a full name: the first stays, the others are dropped and returned as
/// the second list (pod-lifecycle 1.4, event `FailedValidation`).
pub fn first_of_each<P: AsRef<Pod>>(pods: impl IntoIterator<Item = P>) -> (Vec<P>, Vec<P>) {
    let mut seen = BTreeSet::new();
    pods.into_iter().partition(|pod| seen.insert(full_name(pod.as_ref())))
}
