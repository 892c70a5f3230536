//! Fields about the API server and the Node object.

use std::net::IpAddr;
use std::time::Duration;

use model::core::Taint;
use serde_json::{Map, Value};

use crate::config::{ApiAccess, ChangeDetection, NodeObject};
use crate::error::ConfigError;
use crate::labels;
use crate::reader::{Reader, set};

/// Client-side limits, and how referenced objects are followed.
pub(super) fn api(r: &mut Reader<'_>, c: &mut ApiAccess) {
    // The client library of a kubelet takes 0 for its own default.
    set(&mut c.kube_api_qps, r.count("kubeAPIQPS", 0).map(|n| if n == 0 { 5 } else { n }));
    set(&mut c.kube_api_burst, r.count("kubeAPIBurst", 0).filter(|n| *n > 0));
    set(&mut c.content_type, r.some_text("contentType"));
    if !c.content_type.starts_with("application/") {
        let error = ConfigError::new("contentType", "is no media type that an API server speaks");
        let error = error.value(&Value::from(c.content_type.as_str()));
        r.findings.error(error.allowed("application/json or application/vnd.kubernetes.protobuf"));
    }
    set(&mut c.event_record_qps, r.count("eventRecordQPS", 0));
    set(&mut c.event_burst, r.count("eventBurst", 0).filter(|n| *n > 0));
    match r.word("configMapAndSecretChangeDetectionStrategy", &["Get", "Cache", "Watch"]).as_deref() {
        Some("Get") => c.change_detection = ChangeDetection::Get,
        Some("Cache") => c.change_detection = ChangeDetection::Cache,
        _ => {}
    }
}

/// What the node says of itself.
pub(super) fn node(r: &mut Reader<'_>, c: &mut NodeObject) {
    set(&mut c.register, r.bool("registerNode"));
    if let Some(list) = r.raw("registerWithTaints") {
        c.register_with_taints = taints(r, &list);
    }
    c.provider_id = r.some_text("providerID");
    let update = r.some_duration("nodeStatusUpdateFrequency");
    set(&mut c.status_update_frequency, update);
    let report = r.some_duration("nodeStatusReportFrequency").or(update);
    set(&mut c.status_report_frequency, report);
    let lease = r.count("nodeLeaseDurationSeconds", 0).filter(|n| *n > 0);
    set(&mut c.lease_duration, lease.map(|n| Duration::from_secs(n.into())));
    if let Some(most) = r.int("nodeStatusMaxImages", -1, i32::MAX.into()) {
        c.status_max_images = u32::try_from(most).ok();
    }
    c.pod_cidr = r.some_text("podCIDR");
    if let Some(cidrs) = &c.pod_cidr
        && !cidrs.split(',').all(is_cidr)
    {
        let error = ConfigError::new("podCIDR", "is no network").value(&Value::from(cidrs.as_str()));
        r.findings.error(error.allowed("address/length, as in 10.244.1.0/24, or one of each family with a comma"));
    }
    set(&mut c.enable_controller_attach_detach, r.bool("enableControllerAttachDetach"));
    set(&mut c.local_storage_capacity_isolation, r.bool("localStorageCapacityIsolation"));
}

fn is_cidr(text: &str) -> bool {
    let Some((ip, length)) = text.split_once('/') else { return false };
    let most = match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|n| n <= most)
}

fn taints(r: &mut Reader<'_>, value: &Value) -> Vec<Taint> {
    const NAME: &str = "registerWithTaints";
    let mut out: Vec<Taint> = Vec::new();
    for (i, entry) in r.findings.list(NAME, value).unwrap_or_default().iter().enumerate() {
        let at = format!("{NAME}[{i}]");
        let Some(fields) = r.findings.object(&at, entry).cloned() else { continue };
        let Some(taint) = taint(r, &at, fields) else { continue };
        if out.iter().any(|t| t.key == taint.key && t.effect == taint.effect) {
            r.findings.error(ConfigError::new(at, "repeats the key and effect of another taint").value(entry));
            continue;
        }
        out.push(taint);
    }
    out
}

fn taint(r: &mut Reader<'_>, at: &str, fields: Map<String, Value>) -> Option<Taint> {
    const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let before = r.findings.errors.len();
    let mut inner = Reader::new(at, fields, r.findings);
    let (key, value) = (inner.text("key").unwrap_or_default(), inner.some_text("value"));
    let effect = inner.raw("effect").unwrap_or_default();
    if let Some(time) = inner.raw("timeAdded") {
        inner.findings.error(ConfigError::new(format!("{at}.timeAdded"), "must not be set").value(&time));
    }
    if let Err(reason) = labels::check_key(&key) {
        inner.findings.error(ConfigError::new(format!("{at}.key"), reason).value(&Value::from(key.as_str())));
    }
    if let Err(reason) = labels::check_value(value.as_deref().unwrap_or_default()) {
        inner.findings.error(ConfigError::new(format!("{at}.value"), reason).value(&Value::from(value.clone())));
    }
    let effect = inner.findings.word(&format!("{at}.effect"), &effect, EFFECTS);
    inner.finish(&[]);
    let fine = r.findings.errors.len() == before;
    fine.then(|| Taint { key, value, effect: effect.unwrap_or_default(), time_added: None })
}
