//! Pull policies and the kinds of failure.

use crate::text;

/// `imagePullPolicy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PullPolicy {
    /// Ask the registry each time.
    Always,
    /// Pull what is not there.
    IfNotPresent,
    /// Use what is there.
    Never,
}

impl PullPolicy {
    /// Parses the API's word; anything unknown is `IfNotPresent`, as the kubelet takes it.
    #[must_use]
    pub fn parse(s: &str) -> Self {
        match s {
            "Always" => PullPolicy::Always,
            "Never" => PullPolicy::Never,
            _ => PullPolicy::IfNotPresent,
        }
    }

    /// First question: whether the runtime is asked what it has; else the image is pulled at once. What follows from the
    /// answer says [`Verdict::of`].
    #[must_use]
    pub const fn inspects(self) -> bool {
        !matches!(self, PullPolicy::Always)
    }
}

/// Second question: what follows from what the runtime has?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Use it.
    Present,
    /// Pull it.
    Pull,
    /// It must not be pulled: `ErrImageNeverPull`.
    Refused,
}

impl Verdict {
    /// By policy and presence.
    #[must_use]
    pub const fn of(policy: PullPolicy, present: bool) -> Self {
        match (policy, present) {
            (PullPolicy::Always, _) | (PullPolicy::IfNotPresent, false) => Verdict::Pull,
            (_, true) => Verdict::Present,
            (PullPolicy::Never, false) => Verdict::Refused,
        }
    }
}

/// A failed pull as the container's waiting state shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PullFailure {
    /// `ErrImagePull`, `RegistryUnavailable`, `SignatureValidationFailed`.
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
}

/// Kind of a failure by the prefix of its text, which runtimes and kubelets agree on.
#[must_use]
pub fn classify(image: &str, error: &str) -> PullFailure {
    for (reason, why) in [
        (text::REGISTRY_UNAVAILABLE, "the registry is unavailable"),
        (text::SIGNATURE_FAILED, "the signature validation failed"),
    ] {
        if let Some(rest) = error.strip_prefix(reason) {
            return PullFailure { reason, message: format!("image pull failed for {image} because {why}{rest}") };
        }
    }
    PullFailure { reason: text::ERR_IMAGE_PULL, message: error.to_owned() }
}
