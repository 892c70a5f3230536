//! Lists, statistics, the runtime's own status.

use std::sync::Arc;

use cri_api::v1;

use crate::blocking::Class;
use crate::error::Done;
use crate::handlers::Handler;
use crate::records::{ContainerRecord, SandboxRecord};
use crate::runtime::Runtime;
use crate::{stats, status, users};

pub(super) fn sandboxes(rt: &Runtime, filter: &v1::PodSandboxFilter) -> Vec<v1::PodSandbox> {
    let wanted = |r: &SandboxRecord| {
        status::is_listed(r)
            && (filter.id.is_empty() || r.id == filter.id)
            && filter.state.as_ref().is_none_or(|s| s.state() == status::sandbox_state(r))
            && status::selected(&r.config.labels, &filter.label_selector)
    };
    rt.pods().iter().map(|p| p.record()).filter(wanted).map(|r| status::sandbox_item(&r)).collect()
}

pub(super) fn containers(rt: &Runtime, filter: &v1::ContainerFilter) -> Vec<v1::Container> {
    let wanted = |r: &ContainerRecord| {
        (filter.id.is_empty() || r.id == filter.id)
            && (filter.pod_sandbox_id.is_empty() || r.pod == filter.pod_sandbox_id)
            && filter.state.as_ref().is_none_or(|s| s.state() == r.state())
            && status::selected(&r.config.labels, &filter.label_selector)
    };
    rt.containers().iter().map(|c| c.record()).filter(wanted).map(|r| status::container_item(&r)).collect()
}

pub(super) async fn container_stats(rt: &Arc<Runtime>, id: &str) -> Done<v1::ContainerStats> {
    let record = rt.container(id)?.record();
    let sandbox = rt.pod(&record.pod)?.record();
    let shared = Arc::clone(rt);
    rt.blocking.run(Class::Stats, move || Ok(stats::container(&shared, &sandbox, &record))).await
}

pub(super) async fn all_container_stats(
    rt: &Arc<Runtime>,
    filter: v1::ContainerStatsFilter,
) -> Done<Vec<v1::ContainerStats>> {
    let wanted = move |r: &ContainerRecord| {
        (filter.id.is_empty() || r.id == filter.id)
            && (filter.pod_sandbox_id.is_empty() || r.pod == filter.pod_sandbox_id)
            && status::selected(&r.config.labels, &filter.label_selector)
    };
    let shared = Arc::clone(rt);
    let read = move || {
        let records = shared.containers().into_iter().map(|c| c.record()).filter(wanted);
        let with_pod = records.filter_map(|r| Some((shared.find_pod(&r.pod)?.record(), r)));
        Ok(with_pod.map(|(sandbox, r)| stats::container(&shared, &sandbox, &r)).collect())
    };
    rt.blocking.run(Class::Stats, read).await
}

pub(super) async fn all_pod_stats(
    rt: &Arc<Runtime>,
    filter: v1::PodSandboxStatsFilter,
) -> Done<Vec<v1::PodSandboxStats>> {
    let wanted = move |r: &SandboxRecord| {
        (filter.id.is_empty() || r.id == filter.id) && status::selected(&r.config.labels, &filter.label_selector)
    };
    let shared = Arc::clone(rt);
    let read = move || {
        let pods = shared.pods().into_iter().map(|p| p.record()).filter(|r| stats::counts(r) && wanted(r));
        Ok(pods.map(|r| stats::pod(&shared, &r)).collect())
    };
    rt.blocking.run(Class::Stats, read).await
}

/// What this runtime can do, and whether it can do it now.
pub(super) async fn status(rt: &Runtime) -> v1::StatusResponse {
    let network = rt.networks.ready().await;
    let conditions = vec![
        v1::RuntimeCondition { r#type: "RuntimeReady".into(), status: true, ..v1::RuntimeCondition::default() },
        v1::RuntimeCondition {
            r#type: "NetworkReady".into(),
            status: network.is_ok(),
            reason: if network.is_ok() { String::new() } else { "NetworkPluginNotReady".into() },
            message: network.err().map(|e| e.to_string()).unwrap_or_default(),
        },
    ];
    let handler = |(name, handler): (&str, &Handler)| v1::RuntimeHandler {
        name: name.to_owned(),
        features: Some(v1::RuntimeHandlerFeatures {
            recursive_read_only_mounts: handler.node.recursive_read_only,
            user_namespaces: users::check(&handler.node, &rt.options.run).is_ok(),
        }),
    };
    v1::StatusResponse {
        status: Some(v1::RuntimeStatus { conditions }),
        runtime_handlers: rt.handlers.all().map(handler).collect(),
        features: Some(v1::RuntimeFeatures { supplemental_groups_policy: true, ..v1::RuntimeFeatures::default() }),
        ..v1::StatusResponse::default()
    }
}
