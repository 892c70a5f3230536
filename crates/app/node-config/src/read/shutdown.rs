//! Fields about the machine's shutdown, with a kubelet's rules over them.

use serde_json::Value;

use crate::config::{NodeConfig, ShutdownPeriod};
use crate::error::ConfigError;
use crate::reader::{Reader, set};
use model::go_duration;

const TOTAL: &str = "shutdownGracePeriod";
const CRITICAL: &str = "shutdownGracePeriodCriticalPods";
const BY_PRIORITY: &str = "shutdownGracePeriodByPodPriority";
/// No shutdown lasts longer.
const LONGEST_S: i64 = i32::MAX as i64;

pub(super) fn shutdown(r: &mut Reader<'_>, c: &mut NodeConfig) {
    let s = &mut c.shutdown;
    set(&mut s.grace_period, r.duration(TOTAL));
    set(&mut s.critical, r.duration(CRITICAL));
    let text = |period| Value::from(go_duration::format(period));
    for (name, period) in [(TOTAL, s.grace_period), (CRITICAL, s.critical)] {
        if !period.is_zero() && period.as_secs() < 1 {
            let error = ConfigError::new(name, "is too short").value(&text(period));
            r.findings.error(error.allowed("0, or 1s and more"));
        }
        if !period.is_zero() && !c.feature_gates.enabled("GracefulNodeShutdown") {
            let reason = "needs the feature gate GracefulNodeShutdown, which is switched off";
            r.findings.error(ConfigError::new(name, reason).value(&text(period)).allowed("0s"));
        }
    }
    if s.critical > s.grace_period {
        let error = ConfigError::new(CRITICAL, format!("must not be more than {TOTAL}"));
        r.findings.error(error.value(&text(s.critical)));
    }
    s.by_priority = by_priority(r);
    if s.by_priority.is_empty() {
        return;
    }
    if !s.grace_period.is_zero() || !s.critical.is_zero() {
        r.findings.error(ConfigError::new(BY_PRIORITY, format!("cannot be set together with {TOTAL} or {CRITICAL}")));
    }
    if !c.feature_gates.enabled("GracefulNodeShutdownBasedOnPodPriority") {
        let reason = "needs the feature gate GracefulNodeShutdownBasedOnPodPriority, which is switched off";
        r.findings.error(ConfigError::new(BY_PRIORITY, reason).allowed("[]"));
    }
}

fn by_priority(r: &mut Reader<'_>) -> Vec<ShutdownPeriod> {
    let Some(value) = r.raw(BY_PRIORITY) else { return Vec::new() };
    let entries = r.findings.list(BY_PRIORITY, &value).unwrap_or_default();
    let mut periods = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let at = format!("{BY_PRIORITY}[{i}]");
        let Some(fields) = r.findings.object(&at, entry).cloned() else { continue };
        let mut inner = Reader::new(&at, fields, r.findings);
        let priority = inner.int("priority", i32::MIN.into(), i32::MAX.into()).unwrap_or(0);
        let period_s = inner.int("shutdownGracePeriodSeconds", 0, LONGEST_S).unwrap_or(0);
        inner.finish(&[]);
        if let (Ok(priority), Ok(period_s)) = (priority.try_into(), period_s.try_into()) {
            periods.push(ShutdownPeriod { priority, period_s });
        }
    }
    periods
}
