//! What an API server would have set on a v1 Pod before storing it. No API server ran for a static pod, and the rest of the
//! node relies on these fields (pod-lifecycle 1.8). A number 0 or an empty word means "not set" where the API type is no
//! pointer.

mod fields;
mod volumes;

use std::collections::BTreeMap;

use model::core::{
    Container, ContainerPort, EphemeralContainer, HTTPGetAction, LifecycleHandler, Pod, PodSpec, Probe,
    ResourceRequirements,
};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::resources;

use fields::{canonical, field_selector, number, pull_policy, resource_field_selector, word};

/// Sets every default of the v1 API on `pod`.
pub(crate) fn api_defaults(pod: &mut Pod) {
    let spec = pod.spec.get_or_insert_default();
    pod_spec(spec);
    for c in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        container(c);
        requests_from_limits(&mut c.resources);
    }
    for c in spec.ephemeral_containers.iter_mut().flatten() {
        ephemeral_container(c);
    }
    for v in spec.volumes.iter_mut().flatten() {
        volumes::volume(v);
    }
    if let Some(overhead) = &mut spec.overhead {
        round_up_to_milli(overhead);
    }
    if let Some(pod_level) = &mut spec.resources {
        round_requirements(pod_level);
    }
    if spec.host_network == Some(true) {
        host_ports_on_host_network(spec);
    }
    pod_level_resources(pod);
}

fn pod_spec(spec: &mut PodSpec) {
    word(&mut spec.dns_policy, "ClusterFirst");
    word(&mut spec.restart_policy, "Always");
    word(&mut spec.scheduler_name, "default-scheduler");
    spec.security_context.get_or_insert_default();
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.enable_service_links.get_or_insert(true);
    // `serviceAccount` is the old name of the same field.
    if spec.service_account_name.as_deref().unwrap_or_default().is_empty() {
        spec.service_account_name = spec.service_account.clone().filter(|n| !n.is_empty());
    }
}

fn container(c: &mut Container) {
    let policy = pull_policy(c.image.as_deref().unwrap_or_default());
    word(&mut c.image_pull_policy, policy);
    word(&mut c.termination_message_path, "/dev/termination-log");
    word(&mut c.termination_message_policy, "File");
    round_requirements(c.resources.get_or_insert_default());
    ports(&mut c.ports);
    for env in c.env.iter_mut().flatten() {
        let Some(from) = &mut env.value_from else { continue };
        from.field_ref.iter_mut().for_each(field_selector);
        from.resource_field_ref.iter_mut().for_each(resource_field_selector);
        if let Some(file) = &mut from.file_key_ref {
            file.optional.get_or_insert(false);
        }
    }
    for p in [&mut c.liveness_probe, &mut c.readiness_probe, &mut c.startup_probe].into_iter().flatten() {
        probe(p);
    }
    if let Some(lifecycle) = &mut c.lifecycle {
        lifecycle.post_start.iter_mut().for_each(handler);
        lifecycle.pre_stop.iter_mut().for_each(handler);
    }
}

/// Ephemeral containers are refused in a manifest; the words that validation reads are set all the same.
fn ephemeral_container(c: &mut EphemeralContainer) {
    let policy = pull_policy(c.image.as_deref().unwrap_or_default());
    word(&mut c.image_pull_policy, policy);
    word(&mut c.termination_message_path, "/dev/termination-log");
    word(&mut c.termination_message_policy, "File");
    ports(&mut c.ports);
}

fn ports(ports: &mut Option<Vec<ContainerPort>>) {
    for port in ports.iter_mut().flatten() {
        word(&mut port.protocol, "TCP");
    }
}

fn probe(p: &mut Probe) {
    number(&mut p.timeout_seconds, 1);
    number(&mut p.period_seconds, 10);
    number(&mut p.success_threshold, 1);
    number(&mut p.failure_threshold, 3);
    p.http_get.iter_mut().for_each(http_get);
    if let Some(grpc) = &mut p.grpc {
        grpc.service.get_or_insert_default();
    }
}

fn handler(h: &mut LifecycleHandler) {
    h.http_get.iter_mut().for_each(http_get);
}

fn http_get(h: &mut HTTPGetAction) {
    word(&mut h.path, "/");
    word(&mut h.scheme, "HTTP");
}

/// With host networking a container port is the host's port.
fn host_ports_on_host_network(spec: &mut PodSpec) {
    for c in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        for port in c.ports.iter_mut().flatten() {
            if port.host_port.unwrap_or(0) == 0 {
                port.host_port = Some(port.container_port);
            }
        }
    }
}

/// A limit without a request is requested too.
fn requests_from_limits(requirements: &mut Option<ResourceRequirements>) {
    let Some(r) = requirements else { return };
    let Some(limits) = &r.limits else { return };
    let requests = r.requests.get_or_insert_default();
    for (name, limit) in limits {
        requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
}

/// Pod-level resources that are partly given (KEP-2837): huge page limits and requests come from the containers, other
/// requests from the containers or else from the pod's limits.
fn pod_level_resources(pod: &mut Pod) {
    if resources::pod_level(pod).is_none() {
        return;
    }
    let mut bare = pod.clone();
    if let Some(spec) = &mut bare.spec {
        spec.resources = None;
        spec.overhead = None;
    }
    let container_requests = resources::pod_requests(&bare);
    let container_limits = resources::pod_limits(&bare);
    let Some(pod_level) = pod.spec.as_mut().and_then(|s| s.resources.as_mut()) else { return };
    for (name, amount) in container_limits.iter().filter(|(name, _)| name.starts_with(resources::HUGEPAGES_PREFIX)) {
        let limits = pod_level.limits.get_or_insert_default();
        limits.entry(name.clone()).or_insert_with(|| amount.to_api());
    }
    let limits = pod_level.limits.clone().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let requests = pod_level.requests.get_or_insert_default();
    for (name, amount) in container_requests {
        if name == resources::CPU || name == resources::MEMORY {
            requests.entry(name).or_insert_with(|| amount.to_api());
        }
    }
    for (name, limit) in limits {
        if resources::is_pod_level_resource(&name) {
            requests.entry(name).or_insert(limit);
        }
    }
}

fn round_requirements(r: &mut ResourceRequirements) {
    for list in [&mut r.requests, &mut r.limits].into_iter().flatten() {
        round_up_to_milli(list);
    }
}

fn round_up_to_milli(list: &mut BTreeMap<String, ApiQuantity>) {
    for amount in list.values_mut() {
        canonical(amount, true);
    }
}
