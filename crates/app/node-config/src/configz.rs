//! The whole configuration as a kubelet shows it on `/configz`: v1beta1, with every default written out.
//!
//! Two deliberate differences: values of `staticPodURLHeader` are masked, as they may hold credentials, and an unknown field
//! is not shown, as a kubelet drops it while decoding.

use model::node::CgroupDriver;
use serde_json::{Map, Value, json};

use crate::config::NodeConfig;
use model::go_duration;

/// What a field looks like when nobody sets it, and how it is written.
#[derive(Clone, Copy)]
enum Form {
    /// Shown when given, and not empty, 0 or false (`omitempty` over a plain value).
    Plain,
    /// Shown when given, whatever the value (a pointer).
    Pointer,
    /// As `Pointer`, with a default as JSON.
    Or(&'static str),
    /// A plain value whose zero is replaced by the default.
    OrZero(&'static str),
    /// Always shown; 0 becomes the default.
    Duration(&'static str),
    /// Shown when given.
    PointerDuration,
    /// As `PointerDuration`, with a default.
    DurationOr(&'static str),
    /// Always there, with fields of its own.
    Object(&'static [(&'static str, Form)]),
    /// Header names, without the values.
    Masked,
    /// `logging.flushFrequency`.
    Flush,
}

use Form::{Duration, DurationOr, Flush, Masked, Object, Or, OrZero, Plain, Pointer, PointerDuration};

const ON: Form = Or("true");
const OFF: Form = Or("false");

/// In the order of the API type.
const FIELDS: &[(&str, Form)] = &[
    ("enableServer", ON),
    ("staticPodPath", Plain),
    ("podLogsDir", OrZero("\"/var/log/pods\"")),
    ("syncFrequency", Duration("1m")),
    ("fileCheckFrequency", Duration("20s")),
    ("httpCheckFrequency", Duration("20s")),
    ("staticPodURL", Plain),
    ("staticPodURLHeader", Masked),
    ("address", OrZero("\"0.0.0.0\"")),
    ("port", OrZero("10250")),
    ("readOnlyPort", Plain),
    ("tlsCertFile", Plain),
    ("tlsPrivateKeyFile", Plain),
    ("tlsCipherSuites", Plain),
    ("tlsMinVersion", Plain),
    ("tlsCurvePreferences", Plain),
    ("rotateCertificates", Plain),
    ("serverTLSBootstrap", Plain),
    ("authentication", Object(AUTHENTICATION)),
    ("authorization", Object(AUTHORIZATION)),
    ("registryPullQPS", Or("5")),
    ("registryBurst", OrZero("10")),
    ("imagePullCredentialsVerificationPolicy", Plain),
    ("preloadedImagesVerificationAllowlist", Plain),
    ("eventRecordQPS", Or("50")),
    ("eventBurst", OrZero("100")),
    ("enableDebuggingHandlers", ON),
    ("enableContentionProfiling", Plain),
    ("healthzPort", Or("10248")),
    ("healthzBindAddress", OrZero("\"127.0.0.1\"")),
    ("oomScoreAdj", Or("-999")),
    ("clusterDomain", Plain),
    ("clusterDNS", Plain),
    ("streamingConnectionIdleTimeout", Duration("4h")),
    ("nodeStatusUpdateFrequency", Duration("10s")),
    ("nodeStatusReportFrequency", Duration("5m")),
    ("nodeLeaseDurationSeconds", OrZero("40")),
    ("imageMinimumGCAge", Duration("2m")),
    ("imageMaximumGCAge", Duration("0s")),
    ("imageGCHighThresholdPercent", Or("85")),
    ("imageGCLowThresholdPercent", Or("80")),
    ("volumeStatsAggPeriod", Duration("1m")),
    ("kubeletCgroups", Plain),
    ("systemCgroups", Plain),
    ("cgroupRoot", Plain),
    ("cgroupsPerQOS", ON),
    ("cgroupDriver", OrZero("\"cgroupfs\"")),
    ("cpuManagerPolicy", OrZero("\"none\"")),
    ("singleProcessOOMKill", Pointer),
    ("cpuManagerPolicyOptions", Plain),
    ("cpuManagerReconcilePeriod", Duration("10s")),
    ("memoryManagerPolicy", OrZero("\"None\"")),
    ("topologyManagerPolicy", OrZero("\"none\"")),
    ("topologyManagerScope", OrZero("\"container\"")),
    ("topologyManagerPolicyOptions", Plain),
    ("qosReserved", Plain),
    ("runtimeRequestTimeout", Duration("2m")),
    ("hairpinMode", OrZero("\"promiscuous-bridge\"")),
    ("maxPods", OrZero("110")),
    ("podCIDR", Plain),
    ("podPidsLimit", Or("-1")),
    ("resolvConf", Or("\"/etc/resolv.conf\"")),
    ("runOnce", Plain),
    ("cpuCFSQuota", ON),
    ("cpuCFSQuotaPeriod", DurationOr("100ms")),
    ("nodeStatusMaxImages", Or("50")),
    ("maxOpenFiles", OrZero("1000000")),
    ("contentType", OrZero("\"application/vnd.kubernetes.protobuf\"")),
    ("kubeAPIQPS", Or("50")),
    ("kubeAPIBurst", OrZero("100")),
    ("serializeImagePulls", ON),
    ("maxParallelImagePulls", Pointer),
    ("evictionHard", Plain),
    ("evictionSoft", Plain),
    ("evictionSoftGracePeriod", Plain),
    ("evictionPressureTransitionPeriod", Duration("5m")),
    ("evictionMaxPodGracePeriod", Plain),
    ("evictionMinimumReclaim", Plain),
    ("mergeDefaultEvictionSettings", OFF),
    ("podsPerCore", Plain),
    ("enableControllerAttachDetach", ON),
    ("protectKernelDefaults", Plain),
    ("makeIPTablesUtilChains", ON),
    ("iptablesMasqueradeBit", Or("14")),
    ("iptablesDropBit", Or("15")),
    ("featureGates", Plain),
    ("failSwapOn", ON),
    ("memorySwap", Object(&[("swapBehavior", Plain)])),
    ("containerLogMaxSize", OrZero("\"10Mi\"")),
    ("containerLogMaxFiles", Or("5")),
    ("containerLogMaxWorkers", Or("1")),
    ("containerLogMonitorInterval", DurationOr("10s")),
    ("configMapAndSecretChangeDetectionStrategy", OrZero("\"Watch\"")),
    ("systemReserved", Plain),
    ("kubeReserved", Plain),
    ("reservedSystemCPUs", Plain),
    ("showHiddenMetricsForVersion", Plain),
    ("systemReservedCgroup", Plain),
    ("kubeReservedCgroup", Plain),
    ("enforceNodeAllocatable", Or("[\"pods\"]")),
    ("allowedUnsafeSysctls", Plain),
    ("volumePluginDir", OrZero("\"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/\"")),
    ("providerID", Plain),
    ("kernelMemcgNotification", Plain),
    ("logging", Object(LOGGING)),
    ("enableSystemLogHandler", ON),
    ("enableSystemLogQuery", OFF),
    ("shutdownGracePeriod", Duration("0s")),
    ("shutdownGracePeriodCriticalPods", Duration("0s")),
    ("shutdownGracePeriodByPodPriority", Plain),
    ("crashLoopBackOff", Object(&[("maxContainerRestartPeriod", PointerDuration)])),
    ("reservedMemory", Plain),
    ("enableProfilingHandler", ON),
    ("enableDebugFlagsHandler", ON),
    ("seccompDefault", OFF),
    ("memoryThrottlingFactor", Or("0.9")),
    ("memoryReservationPolicy", OrZero("\"None\"")),
    ("registerWithTaints", Plain),
    ("registerNode", ON),
    ("tracing", Pointer),
    ("localStorageCapacityIsolation", ON),
    ("containerRuntimeEndpoint", OrZero("\"unix:///run/containerd/containerd.sock\"")),
    ("imageServiceEndpoint", Plain),
    ("failCgroupV1", ON),
    ("userNamespaces", Pointer),
];

const AUTHENTICATION: &[(&str, Form)] = &[
    ("x509", Object(&[("clientCAFile", Plain)])),
    ("webhook", Object(&[("enabled", ON), ("cacheTTL", Duration("2m"))])),
    ("anonymous", Object(&[("enabled", OFF)])),
];

const AUTHORIZATION: &[(&str, Form)] = &[
    ("mode", OrZero("\"Webhook\"")),
    ("webhook", Object(&[("cacheAuthorizedTTL", Duration("5m")), ("cacheUnauthorizedTTL", Duration("30s"))])),
];

const STREAM: &[(&str, Form)] = &[("splitStream", Plain), ("infoBufferSize", OrZero("\"0\""))];

const LOGGING: &[(&str, Form)] = &[
    ("format", OrZero("\"text\"")),
    ("flushFrequency", Flush),
    ("verbosity", Or("0")),
    ("vmodule", Plain),
    ("options", Object(&[("text", Object(STREAM)), ("json", Object(STREAM))])),
];

/// The document of `/configz`: `{"kubeletconfig": {...}}`.
///
/// `fields` is [`crate::Configured::document`] and `config` what was read from it; `driver` is the cgroup driver in force
/// when the runtime named one (interfaces 1.1 steps 8 and 9).
#[must_use]
pub fn configz(fields: &Map<String, Value>, config: &NodeConfig, driver: Option<CgroupDriver>) -> Value {
    let mut fields = fields.clone();
    adjust(&mut fields, config);
    if let Some(driver) = driver {
        let word = match driver {
            CgroupDriver::Cgroupfs => "cgroupfs",
            CgroupDriver::Systemd => "systemd",
        };
        fields.insert("cgroupDriver".to_owned(), word.into());
    }
    let mut shown = object(&fields, FIELDS);
    shown.insert("kind".to_owned(), "KubeletConfiguration".into());
    shown.insert("apiVersion".to_owned(), "kubelet.config.k8s.io/v1beta1".into());
    json!({ "kubeletconfig": shown })
}

/// Defaults that depend on other fields or on gates, and what `reservedSystemCPUs` replaces.
fn adjust(fields: &mut Map<String, Value>, config: &NodeConfig) {
    let absent = |fields: &Map<String, Value>, name: &str| fields.get(name).is_none_or(Value::is_null);
    let gates = &config.feature_gates;
    const POLICY: &str = "imagePullCredentialsVerificationPolicy";
    if gates.enabled("KubeletEnsureSecretPulledImages") && fields.get(POLICY).is_none_or(is_zero) {
        fields.insert(POLICY.to_owned(), "NeverVerifyPreloadedImages".into());
    }
    if gates.enabled("KubeletCrashLoopBackOffMax") {
        let period = go_duration::format(config.pods.max_container_restart_period);
        fields.insert("crashLoopBackOff".to_owned(), json!({ "maxContainerRestartPeriod": period }));
    }
    if absent(fields, "serializeImagePulls") {
        fields.insert("serializeImagePulls".to_owned(), config.images.serialize_pulls.into());
    }
    if fields.get("reservedSystemCPUs").is_some_and(|v| !is_zero(v)) {
        if let Some(Value::Object(kube)) = fields.get_mut("kubeReserved") {
            kube.remove("cpu");
        }
        let system = fields.entry("systemReserved").or_insert_with(|| json!({}));
        if let (Some(system), Some(count)) = (system.as_object_mut(), config.allocatable.system_reserved.get("cpu")) {
            system.insert("cpu".to_owned(), count.to_string().into());
        }
    }
}

fn object(fields: &Map<String, Value>, forms: &[(&'static str, Form)]) -> Map<String, Value> {
    forms
        .iter()
        .filter_map(|(name, form)| {
            Some(((*name).to_owned(), shown(fields.get(*name).filter(|v| !v.is_null()), *form)?))
        })
        .collect()
}

fn shown(given: Option<&Value>, form: Form) -> Option<Value> {
    let parsed = |text: &str| serde_json::from_str(text).ok();
    match form {
        Plain => given.filter(|v| !is_zero(v)).cloned(),
        Pointer => given.cloned(),
        Or(default) => given.cloned().or_else(|| parsed(default)),
        OrZero(default) => given.filter(|v| !is_zero(v)).cloned().or_else(|| parsed(default)),
        Duration(default) => {
            let given = given.and_then(Value::as_str).map(period).filter(|d| d != "0s");
            Some(Value::from(given.unwrap_or_else(|| period(default))))
        }
        DurationOr(default) => Some(Value::from(period(given.and_then(Value::as_str).unwrap_or(default)))),
        PointerDuration => given.and_then(Value::as_str).map(|text| Value::from(period(text))),
        Object(forms) => {
            let empty = Map::new();
            Some(Value::Object(object(given.and_then(Value::as_object).unwrap_or(&empty), forms)))
        }
        Masked => {
            let names = given.and_then(Value::as_object).filter(|m| !m.is_empty())?;
            Some(Value::Object(names.keys().map(|name| (name.clone(), json!(["<masked>"]))).collect()))
        }
        // Nanoseconds stay a number, text stays text.
        Flush => match given {
            Some(Value::Number(n)) if n.as_i64() != Some(0) => given.cloned(),
            Some(Value::String(text)) if !text.is_empty() => Some(Value::from(period(text))),
            _ => Some(Value::from("5s")),
        },
    }
}

/// A duration in Go's own words; text that is none stays as it is.
fn period(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    match go_duration::parse(rest) {
        Ok(d) if d.is_zero() => "0s".to_owned(),
        Ok(d) => format!("{sign}{}", go_duration::format(d)),
        Err(_) => text.to_owned(),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}
