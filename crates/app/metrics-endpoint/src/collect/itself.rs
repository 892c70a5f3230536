//! The daemon as a component: what was built, its gates, its certificates, its metrics.

use std::collections::BTreeMap;

use contract::certificates::KeyPair;
use metrics::Declared;
use metrics::Kind::{Counter, Gauge};

use crate::deps::Deps;
use crate::families::{Families, Row};

const BUILD: &[&str] = &[
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
];
const CLIENT_TTL: &str = "kubelet_certificate_manager_client_ttl_seconds";
const SERVER_TTL: &str = "kubelet_certificate_manager_server_ttl_seconds";

pub(crate) const TABLE: &[Row] = &[
    (
        "kubernetes_build_info",
        Gauge,
        "1; labels tell the version that the node stands for and what it was built of.",
        BUILD,
    ),
    ("kubernetes_feature_enabled", Gauge, "1 where the feature gate is on.", &["name", "stage"]),
    ("registered_metrics_total", Counter, "Families by stability.", &["stability_level", "deprecated_version"]),
    (CLIENT_TTL, Gauge, "Seconds until the client certificate ends; negative: it has, +Inf: there is none.", &[]),
    (SERVER_TTL, Gauge, "Seconds until the serving certificate ends; negative: it has, +Inf: there is none.", &[]),
];

pub(crate) fn fill(families: &mut Families, deps: &Deps, catalogue: &[Declared]) {
    let b = &deps.build;
    let labels: [&str; 9] = [
        &b.major,
        &b.minor,
        &b.git_version,
        &b.git_commit,
        &b.git_tree_state,
        &b.build_date,
        &b.go_version,
        &b.compiler,
        &b.platform,
    ];
    families.put("kubernetes_build_info", &labels, 1.0);
    for gate in deps.feature_gates.iter() {
        families.put("kubernetes_feature_enabled", &[&gate.name, &gate.stage], f64::from(u8::from(gate.enabled)));
    }
    let mut levels: BTreeMap<&str, u32> = BTreeMap::new();
    for family in catalogue {
        *levels.entry(metrics::stability(family.name).unwrap_or_default()).or_default() += 1;
    }
    for (level, n) in levels.into_iter().filter(|(level, _)| !level.is_empty()) {
        families.put("registered_metrics_total", &[level, ""], f64::from(n));
    }
    certificates(families, deps);
    let tasks = tokio::runtime::Handle::try_current().map_or(0, |h| h.metrics().num_alive_tasks());
    let actors = deps.kernel.directory().totals().values().map(|t| t.actors).sum::<u64>();
    #[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
    families.put("go_goroutines", &[], tasks as f64 + actors as f64);
}

fn certificates(families: &mut Families, deps: &Deps) {
    let now = deps.kernel.clock().unix_nanos();
    let view = deps.certificates.get();
    let left = |pair: Option<&KeyPair>| {
        pair.map_or(f64::INFINITY, |p| {
            #[allow(clippy::cast_precision_loss, reason = "seconds with a fraction are enough")]
            let seconds = p.not_after.0.saturating_sub(now) as f64 / 1e9;
            seconds
        })
    };
    if deps.client_certificate_managed {
        families.put(CLIENT_TTL, &[], left(view.client.as_deref()));
    }
    if deps.serving_certificate_managed {
        families.put(SERVER_TTL, &[], left(view.serving.as_deref()));
    }
}
