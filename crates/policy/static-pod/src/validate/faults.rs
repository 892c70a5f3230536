//! What checks write into, and what they know of the whole pod.

use std::collections::BTreeMap;

use model::core::{PodSpec, Volume};
use serde_json::Value;

use super::names;
use crate::error::{Fault, FieldError};

/// Faults noted at most; a manifest with more is hopeless anyway.
const MAX_FAULTS: usize = 100;

/// What checks of one part need to know of the whole pod.
pub(super) struct Context<'p> {
    /// Volumes by name.
    pub(super) volumes: BTreeMap<&'p str, &'p Volume>,
    pub(super) host_network: bool,
    /// `spec.hostUsers` is not false.
    pub(super) host_users: bool,
    /// `spec.terminationGracePeriodSeconds`.
    pub(super) grace_seconds: i64,
    /// `spec.os.name` when given.
    pub(super) os: Option<&'p str>,
}

impl<'p> Context<'p> {
    pub(super) fn new(spec: &'p PodSpec) -> Self {
        Self {
            volumes: spec.volumes.iter().flatten().map(|v| (v.name.as_str(), v)).collect(),
            host_network: spec.host_network.unwrap_or(false),
            host_users: spec.host_users.unwrap_or(true),
            grace_seconds: spec.termination_grace_period_seconds.unwrap_or(30),
            os: spec.os.as_ref().map(|os| os.name.as_str()),
        }
    }
}

/// The list of faults found so far.
#[derive(Default)]
pub(super) struct Faults(Vec<FieldError>);

impl Faults {
    pub(super) fn into_all(self) -> Vec<FieldError> {
        self.0
    }

    pub(super) fn push(&mut self, error: FieldError) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(error);
        }
    }

    pub(super) fn required(&mut self, path: impl Into<String>, reason: &str) {
        self.push(FieldError::new(path, Fault::Required, reason));
    }

    pub(super) fn invalid(&mut self, path: impl Into<String>, value: impl Into<Value>, reason: impl Into<String>) {
        self.push(FieldError::new(path, Fault::Invalid, reason).value(value));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: impl Into<Value>, reason: &str) {
        self.push(FieldError::new(path, Fault::Duplicate, reason).value(value));
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.push(FieldError::new(path, Fault::Forbidden, reason));
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.push(FieldError::new(path, Fault::TooLong, reason));
    }

    pub(super) fn not_found(&mut self, path: impl Into<String>, value: &str, reason: impl Into<String>) {
        self.push(FieldError::new(path, Fault::NotFound, reason).value(value));
    }

    /// `value` must be one of `allowed`.
    pub(super) fn one_of(&mut self, path: impl Into<String>, value: &str, allowed: &[&str]) {
        if !allowed.contains(&value) {
            let words: Vec<String> = allowed.iter().map(|w| format!("{w:?}")).collect();
            self.push(FieldError::new(path, Fault::Unsupported, "").value(value).allowed(words.join(", ")));
        }
    }

    /// As [`Faults::one_of`], for a field that may be absent.
    pub(super) fn one_of_if_set(&mut self, path: impl Into<String>, value: Option<&str>, allowed: &[&str]) {
        if let Some(value) = value {
            self.one_of(path, value, allowed);
        }
    }

    /// `value` must lie in `low..=high`.
    pub(super) fn in_range(&mut self, path: impl Into<String>, value: i64, low: i64, high: i64) {
        if value < low || value > high {
            let allowed = if high == i64::MAX { format!("{low} or more") } else { format!("{low} to {high}") };
            self.push(FieldError::new(path, Fault::Invalid, "out of range").value(value).allowed(allowed));
        }
    }

    /// A name must follow a rule of [`names`].
    pub(super) fn name(&mut self, path: impl Into<String>, value: &str, rule: names::Rule) {
        let path = path.into();
        if value.is_empty() {
            self.required(path, "");
        } else if let Err(reason) = rule.check(value) {
            self.push(FieldError::new(path, Fault::Invalid, reason).value(value).allowed(rule.allowed()));
        }
    }

    /// Exactly one of the named members of a union must be set. Returns whether that is so.
    pub(super) fn exactly_one(&mut self, path: &str, members: &[(&str, bool)]) -> bool {
        let set: Vec<&str> = members.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
        let all = || members.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        match set.as_slice() {
            [_] => return true,
            [] => self.push(FieldError::new(path, Fault::Required, "one of these must be set").allowed(all())),
            [_, others @ ..] => {
                for other in others {
                    self.forbidden(
                        format!("{path}.{other}"),
                        format!("{} is set already; only one of these may be", set[0]),
                    );
                }
            }
        }
        false
    }
}
