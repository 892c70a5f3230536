//! Object metadata.

use std::collections::BTreeMap;

use model::core::Pod;

use super::faults::Faults;
use super::names::Rule;

/// Keys and values of all annotations together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

pub(super) fn validate(pod: &Pod, faults: &mut Faults) {
    let meta = &pod.metadata;
    faults.name("metadata.name", meta.name.as_deref().unwrap_or_default(), Rule::DnsSubdomain);
    faults.name("metadata.namespace", meta.namespace.as_deref().unwrap_or_default(), Rule::DnsLabel);
    faults.name("metadata.uid", meta.uid.as_deref().unwrap_or_default(), Rule::Uid);
    labels("metadata.labels", meta.labels.as_ref(), faults);
    let mut bytes = 0;
    for (key, value) in meta.annotations.iter().flatten() {
        bytes += key.len() + value.len();
        // Annotation keys are compared without regard to case, so any case is fine.
        faults.name(format!("metadata.annotations[{key}]"), &key.to_lowercase(), Rule::Qualified);
    }
    if bytes > MAX_ANNOTATION_BYTES {
        faults.too_long("metadata.annotations", format!("{bytes} bytes in all, more than {MAX_ANNOTATION_BYTES}"));
    }
}

/// A set of labels, or a node selector.
pub(super) fn labels(path: &str, labels: Option<&BTreeMap<String, String>>, faults: &mut Faults) {
    for (key, value) in labels.into_iter().flatten() {
        faults.name(format!("{path}[{key}]"), key, Rule::Qualified);
        if !value.is_empty() {
            faults.name(format!("{path}[{key}]"), value, Rule::LabelValue);
        }
    }
}
