//! The pod specification apart from its containers and volumes.

use model::core::{Pod, PodSpec};

use super::faults::{Context, Faults};
use super::names::Rule;
use super::{containers, metadata, network, resources, scheduling, security, volumes};

const MAX_ACTIVE_DEADLINE: i64 = i32::MAX as i64;
const MAX_HOSTNAME_OVERRIDE: usize = 64;

pub(super) fn validate(pod: &Pod, spec: &PodSpec, faults: &mut Faults) {
    let cx = Context::new(spec);
    volumes::validate(spec, faults);
    containers::validate(spec, &cx, faults);
    words(spec, faults);
    lifetime(spec, faults);
    names(spec, faults);
    host_namespaces(spec, faults);
    network::validate(spec, faults);
    security::pod(spec, faults);
    scheduling::validate(spec, faults);
    resources::pod_level(pod, spec, faults);
    if spec.ephemeral_containers.as_ref().is_some_and(|c| !c.is_empty()) {
        faults.forbidden("spec.ephemeralContainers", "cannot be set on create; they are added to a running pod");
    }
}

fn words(spec: &PodSpec, faults: &mut Faults) {
    let restart_policy = spec.restart_policy.as_deref();
    faults.one_of_if_set("spec.restartPolicy", restart_policy, &["Always", "OnFailure", "Never"]);
    let dns_policy = spec.dns_policy.as_deref();
    faults.one_of_if_set("spec.dnsPolicy", dns_policy, &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]);
    faults.one_of_if_set(
        "spec.preemptionPolicy",
        spec.preemption_policy.as_deref(),
        &["PreemptLowerPriority", "Never"],
    );
    if let Some(os) = &spec.os {
        if os.name.is_empty() {
            faults.required("spec.os.name", "");
        } else {
            faults.one_of("spec.os.name", &os.name, &["linux", "windows"]);
        }
    }
}

fn lifetime(spec: &PodSpec, faults: &mut Faults) {
    if let Some(grace) = spec.termination_grace_period_seconds {
        faults.in_range("spec.terminationGracePeriodSeconds", grace, 0, i64::MAX);
    }
    if let Some(deadline) = spec.active_deadline_seconds {
        faults.in_range("spec.activeDeadlineSeconds", deadline, 1, MAX_ACTIVE_DEADLINE);
    }
    if spec.scheduling_gates.as_ref().is_some_and(|g| !g.is_empty()) {
        faults.forbidden("spec.schedulingGates", "a static pod is bound to its node from the start");
    }
}

fn names(spec: &PodSpec, faults: &mut Faults) {
    let optional = [
        ("spec.hostname", &spec.hostname, Rule::DnsLabel),
        ("spec.subdomain", &spec.subdomain, Rule::DnsLabel),
        ("spec.schedulerName", &spec.scheduler_name, Rule::DnsSubdomain),
        ("spec.priorityClassName", &spec.priority_class_name, Rule::DnsSubdomain),
        ("spec.runtimeClassName", &spec.runtime_class_name, Rule::DnsSubdomain),
        ("spec.serviceAccountName", &spec.service_account_name, Rule::DnsSubdomain),
    ];
    for (path, value, rule) in optional {
        if let Some(value) = value.as_deref().filter(|v| !v.is_empty()) {
            faults.name(path, value, rule);
        }
    }
    metadata::labels("spec.nodeSelector", spec.node_selector.as_ref(), faults);
    for (i, gate) in spec.readiness_gates.iter().flatten().enumerate() {
        faults.name(format!("spec.readinessGates[{i}].conditionType"), &gate.condition_type, Rule::Qualified);
    }
    if let Some(name) = &spec.hostname_override {
        hostname_override(spec, name, faults);
    }
}

fn hostname_override(spec: &PodSpec, name: &str, faults: &mut Faults) {
    const PATH: &str = "spec.hostnameOverride";
    faults.name(PATH, name, Rule::DnsSubdomain);
    if name.len() > MAX_HOSTNAME_OVERRIDE {
        faults.too_long(PATH, format!("{} characters, more than {MAX_HOSTNAME_OVERRIDE}", name.len()));
    }
    if spec.host_network == Some(true) {
        faults.forbidden(PATH, "cannot be set together with hostNetwork");
    }
    if spec.set_hostname_as_fqdn == Some(true) {
        faults.forbidden(PATH, "cannot be set together with setHostnameAsFQDN");
    }
}

fn host_namespaces(spec: &PodSpec, faults: &mut Faults) {
    let on = |flag: Option<bool>| flag == Some(true);
    if on(spec.share_process_namespace) && on(spec.host_pid) {
        faults.invalid("spec.shareProcessNamespace", true, "cannot be set together with hostPID");
    }
    if spec.host_users == Some(false) {
        for (name, flag) in [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)]
        {
            if on(flag) {
                faults.forbidden(format!("spec.{name}"), "cannot be set when hostUsers is false");
            }
        }
        let devices = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        if devices.flat_map(|c| c.volume_devices.iter().flatten()).next().is_some() {
            faults.forbidden("spec.hostUsers", "cannot be false when containers use volumeDevices");
        }
    }
}
