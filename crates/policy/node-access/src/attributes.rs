//! From method and path to what the authorizer is asked.

#[cfg(test)]
mod tests;

/// Which table holds (feature gate `KubeletFineGrainedAuthz`; locked on in 1.36).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// The gate is on: sub-resources of their own first, `proxy` after them.
    #[default]
    FineGrained,
    /// The gate is off: one sub-resource for each path.
    Legacy,
}

/// What a request wants, as the authorizer is asked. Resource `nodes`, group "", version `v1`, no namespace, always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `create`, `update`, `patch`, `delete`; empty for other methods.
    pub verb: &'static str,
    /// Sub-resources of `nodes`, in the order in which they are tried; one that is allowed suffices. Never empty.
    pub subresources: &'static [&'static str],
}

impl Attributes {
    /// Attributes of a request; `first` is the first segment of the path ([`crate::Canonical::first`]).
    #[must_use]
    pub fn of(method: &str, first: &str, rules: Rules) -> Self {
        Self { verb: verb(method), subresources: subresources(first, rules) }
    }
}

/// Verb of a method. HEAD and OPTIONS have none, and so are normally denied.
#[must_use]
pub fn verb(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// Sub-resources of everything below a first segment.
#[must_use]
pub fn subresources(first: &str, rules: Rules) -> &'static [&'static str] {
    match (first, rules) {
        ("stats", _) => &["stats"],
        ("metrics", _) => &["metrics"],
        ("logs", _) => &["log"],
        ("checkpoint", _) => &["checkpoint"],
        ("statusz", Rules::FineGrained) => &["statusz"],
        ("flagz", Rules::FineGrained) => &["configz"],
        ("healthz", Rules::FineGrained) => &["healthz", "proxy"],
        ("pods" | "runningpods", Rules::FineGrained) => &["pods", "proxy"],
        ("configz", Rules::FineGrained) => &["configz", "proxy"],
        _ => &["proxy"],
    }
}
