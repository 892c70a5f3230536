//! Fields about eviction and images on disk.

use serde_json::{Map, Value};

use crate::config::{Eviction, NodeConfig, PullVerification, SoftThreshold, Threshold};
use crate::error::ConfigError;
use crate::findings::Findings;
use crate::reader::{Reader, set};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::eviction::{LINUX, SIGNALS, parse_reclaim};

/// The hard thresholds of a file that names none, and those that `mergeDefaultEvictionSettings` adds: only a `--config`
/// file gets them (interfaces 1.1 step 4).
pub(crate) fn default_thresholds(fields: &mut Map<String, Value>) {
    let defaults = || LINUX.iter().map(|(k, v)| ((*k).to_owned(), Value::from(*v)));
    let merge = fields.get("mergeDefaultEvictionSettings") == Some(&Value::Bool(true));
    match fields.get_mut("evictionHard") {
        None | Some(Value::Null) => {
            fields.insert("evictionHard".to_owned(), Value::Object(defaults().collect()));
        }
        Some(Value::Object(given)) if merge => {
            for (signal, value) in defaults() {
                given.entry(signal).or_insert(value);
            }
        }
        Some(_) => {}
    }
}

pub(super) fn eviction(r: &mut Reader<'_>, c: &mut NodeConfig) {
    let e = &mut c.eviction;
    e.hard = thresholds(r, "evictionHard", Threshold::parse);
    e.minimum_reclaim = thresholds(r, "evictionMinimumReclaim", parse_reclaim);
    r.bool("mergeDefaultEvictionSettings");
    set(&mut e.memcg_notification, r.bool("kernelMemcgNotification"));
    soft(r, e);
    set(&mut e.pressure_transition_period, r.some_duration("evictionPressureTransitionPeriod"));
    let grace = r.count("evictionMaxPodGracePeriod", 0);
    set(&mut e.max_pod_grace_period, grace.map(|n| Duration::from_secs(n.into())));
}

/// What the text of a threshold stands for; `None`: nothing.
type Parse = fn(&str) -> Result<Option<Threshold>, &'static str>;

fn thresholds(r: &mut Reader<'_>, name: &'static str, parse: Parse) -> BTreeMap<String, Threshold> {
    let fields = r.object(name).unwrap_or_default();
    let of = |(signal, v): (&String, &Value)| Some((signal.clone(), threshold(r.findings, (name, signal), v, parse)?));
    fields.iter().filter_map(of).collect()
}

fn threshold(findings: &mut Findings, (name, signal): (&str, &str), value: &Value, parse: Parse) -> Option<Threshold> {
    let at = format!("{name}.{signal}");
    if !SIGNALS.contains(&signal) {
        let error = ConfigError::new(at, "is no eviction signal").value(value);
        findings.error(error.allowed(SIGNALS.join(", ")));
        return None;
    }
    let text = findings.text(&at, value)?;
    match parse(&text) {
        Ok(found) => found,
        Err(reason) => {
            let error = ConfigError::new(at, reason).value(value);
            findings.error(error.allowed("an amount such as 500Mi, or a share such as 10%"));
            None
        }
    }
}

fn soft(r: &mut Reader<'_>, e: &mut Eviction) {
    let thresholds = thresholds(r, "evictionSoft", Threshold::parse);
    let mut graces = BTreeMap::new();
    for (signal, value) in &r.object("evictionSoftGracePeriod").unwrap_or_default() {
        let at = format!("evictionSoftGracePeriod.{signal}");
        if !SIGNALS.contains(&signal.as_str()) {
            let error = ConfigError::new(at, "is no eviction signal").value(value);
            r.findings.error(error.allowed(SIGNALS.join(", ")));
        } else if let Some(grace) = r.findings.duration(&at, value) {
            graces.insert(signal.clone(), grace);
        }
    }
    // A threshold without a period is reported by the rules over raw fields.
    let both = |(signal, threshold): (String, Threshold)| {
        let grace = *graces.get(&signal)?;
        Some((signal, SoftThreshold { threshold, grace }))
    };
    e.soft = thresholds.into_iter().filter_map(both).collect();
}

pub(super) fn images(r: &mut Reader<'_>, c: &mut NodeConfig) {
    set(&mut c.images.minimum_gc_age, r.some_duration("imageMinimumGCAge"));
    c.images.maximum_gc_age = r.some_duration("imageMaximumGCAge");
    let percent = |r: &mut Reader<'_>, name| r.int(name, 0, 100).and_then(|n| u8::try_from(n).ok());
    set(&mut c.images.gc_high_threshold_percent, percent(r, "imageGCHighThresholdPercent"));
    set(&mut c.images.gc_low_threshold_percent, percent(r, "imageGCLowThresholdPercent"));
    verification(r, c);
}

fn verification(r: &mut Reader<'_>, c: &mut NodeConfig) {
    const WORDS: &[&str] =
        &["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"];
    const POLICY: &str = "imagePullCredentialsVerificationPolicy";
    const LIST: &str = "preloadedImagesVerificationAllowlist";
    let on = c.feature_gates.enabled("KubeletEnsureSecretPulledImages");
    let given = r.word(POLICY, WORDS);
    if let Some(word) = given.as_deref().filter(|_| !on) {
        let error =
            ConfigError::new(POLICY, "needs the feature gate KubeletEnsureSecretPulledImages, which is switched off");
        r.findings.error(error.value(&Value::from(word)));
    }
    c.images.pull_verification = match given.as_deref() {
        Some("NeverVerify") => PullVerification::NeverVerify,
        Some("NeverVerifyAllowlistedImages") => PullVerification::NeverVerifyAllowlistedImages,
        Some("AlwaysVerify") => PullVerification::AlwaysVerify,
        None if !on => PullVerification::NeverVerify,
        _ => PullVerification::NeverVerifyPreloadedImages,
    };
    c.images.pull_verification_allowlist = r.text_list(LIST).unwrap_or_default();
    if c.images.pull_verification_allowlist.is_empty() {
        return;
    }
    if c.images.pull_verification != PullVerification::NeverVerifyAllowlistedImages {
        let reason = format!("has a meaning only with {POLICY}: NeverVerifyAllowlistedImages");
        r.findings.error(ConfigError::new(LIST, reason));
    }
    for (i, image) in c.images.pull_verification_allowlist.iter().enumerate() {
        let name = image.strip_suffix("/*").unwrap_or(image);
        let last = name.rsplit('/').next().unwrap_or(name);
        if name.is_empty() || name.contains(['*', '@']) || (name.contains('/') && last.contains(':')) {
            let error = ConfigError::new(format!("{LIST}[{i}]"), "is no image name without tag and digest");
            let error = error.value(&Value::from(image.as_str()));
            r.findings.error(error.allowed("registry/path/name, or registry/path/* for all below"));
        }
    }
}
