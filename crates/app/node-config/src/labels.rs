//! Rules of label keys and values, and which labels a node may give itself (interfaces 9.4).

/// Keys of `*.kubernetes.io` and `*.k8s.io` that a node may set.
const OWN: &[&str] = &[
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];
/// Namespaces of those two whose keys are free.
const FREE: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];

fn part(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_alphanumeric();
    let b = text.as_bytes();
    b.len() <= 63
        && b.first().is_some_and(edge)
        && b.last().is_some_and(edge)
        && b.iter().all(|b| edge(b) || matches!(b, b'-' | b'_' | b'.'))
}

pub(crate) fn is_domain(text: &str) -> bool {
    let label = |l: &str| {
        let b = l.as_bytes();
        let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        b.first().is_some_and(edge) && b.last().is_some_and(edge) && b.iter().all(|b| edge(b) || *b == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// A key: a name, or `domain/name`.
pub(crate) fn check_key(key: &str) -> Result<(), &'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if key.is_empty() {
        return Err("must be given");
    }
    if prefix.is_some_and(|p| !is_domain(p)) {
        return Err("its part before the slash is no DNS domain in lower case");
    }
    if !part(name) {
        return Err("is no label name: at most 63 letters, digits, '-', '_', '.', with a letter or digit at both ends");
    }
    Ok(())
}

/// A value; the empty one is fine.
pub(crate) fn check_value(value: &str) -> Result<(), &'static str> {
    if value.is_empty() || part(value) {
        return Ok(());
    }
    Err("is no label value: at most 63 letters, digits, '-', '_', '.', with a letter or digit at both ends")
}

/// Whether a node may give itself a label; the API server refuses the rest (NodeRestriction).
pub(crate) fn is_own(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return true };
    let within = |domain: &str| prefix == domain || prefix.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    let theirs = within("kubernetes.io") || within("k8s.io");
    !theirs || OWN.contains(&key) || FREE.iter().any(|d| within(d))
}
