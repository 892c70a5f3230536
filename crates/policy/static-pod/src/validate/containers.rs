//! Containers of every kind: identity, image, ports, restart rules.

use std::collections::{BTreeMap, BTreeSet};

use model::core::{Container, PodSpec};
use model::pod::is_sidecar;

use super::faults::{Context, Faults};
use super::names::Rule;
use super::{env, mounts, network, probes, resources, security};

const MAX_RESTART_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

pub(super) fn validate(spec: &PodSpec, cx: &Context<'_>, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (i, c) in spec.init_containers.iter().flatten().enumerate() {
        let path = format!("spec.initContainers[{i}]");
        container(&path, c, cx, &mut names, faults);
        if is_sidecar(c) {
            claim_host_ports(&path, c, &mut host_ports, faults);
        } else {
            // Plain init containers run one after another, so each may use any port.
            claim_host_ports(&path, c, &mut BTreeSet::new(), faults);
            no_probes_or_hooks(&path, c, faults);
        }
    }
    if spec.containers.is_empty() {
        faults.required("spec.containers", "a pod needs at least one container");
    }
    for (i, c) in spec.containers.iter().enumerate() {
        let path = format!("spec.containers[{i}]");
        container(&path, c, cx, &mut names, faults);
        claim_host_ports(&path, c, &mut host_ports, faults);
    }
}

fn container<'p>(path: &str, c: &'p Container, cx: &Context<'_>, names: &mut BTreeSet<&'p str>, faults: &mut Faults) {
    faults.name(format!("{path}.name"), &c.name, Rule::DnsLabel);
    if !c.name.is_empty() && !names.insert(&c.name) {
        faults.duplicate(format!("{path}.name"), c.name.as_str(), "another container of this pod has the same name");
    }
    image(path, c, faults);
    let pull_policy = c.image_pull_policy.as_deref();
    faults.one_of_if_set(format!("{path}.imagePullPolicy"), pull_policy, &["Always", "IfNotPresent", "Never"]);
    let message_policy = c.termination_message_policy.as_deref();
    faults.one_of_if_set(
        format!("{path}.terminationMessagePolicy"),
        message_policy,
        &["File", "FallbackToLogsOnError"],
    );
    ports(path, c, cx, faults);
    env::validate(path, c, cx, faults);
    mounts::validate(path, c, cx, faults);
    probes::validate(path, c, cx, faults);
    resources::container(path, c, faults);
    restart_rules(path, c, faults);
    security::container(path, c, cx, faults);
}

fn image(path: &str, c: &Container, faults: &mut Faults) {
    let image = c.image.as_deref().unwrap_or_default();
    if image.is_empty() {
        faults.required(format!("{path}.image"), "");
    } else if image.trim() != image {
        faults.invalid(format!("{path}.image"), image, "may not have white space at its ends");
    }
}

fn ports(path: &str, c: &Container, cx: &Context<'_>, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    for (i, port) in c.ports.iter().flatten().enumerate() {
        let path = format!("{path}.ports[{i}]");
        if let Some(name) = port.name.as_deref().filter(|n| !n.is_empty()) {
            faults.name(format!("{path}.name"), name, Rule::PortName);
            if !names.insert(name) {
                faults.duplicate(format!("{path}.name"), name, "another port of this container has the same name");
            }
        }
        if port.container_port == 0 {
            faults.required(format!("{path}.containerPort"), "");
        } else {
            faults.in_range(format!("{path}.containerPort"), port.container_port.into(), 1, 65535);
        }
        let host_port = port.host_port.unwrap_or(0);
        if host_port != 0 {
            faults.in_range(format!("{path}.hostPort"), host_port.into(), 1, 65535);
        }
        if cx.host_network && host_port != port.container_port {
            faults.invalid(format!("{path}.hostPort"), host_port, "must equal containerPort when hostNetwork is true");
        }
        faults.one_of_if_set(format!("{path}.protocol"), port.protocol.as_deref(), &["TCP", "UDP", "SCTP"]);
        if let Some(ip) = port.host_ip.as_deref().filter(|ip| !ip.is_empty()) {
            network::ip(&format!("{path}.hostIP"), ip, faults);
        }
    }
}

/// No two containers that run at the same time may ask for one port of the host.
fn claim_host_ports(path: &str, c: &Container, taken: &mut BTreeSet<(String, String, i32)>, faults: &mut Faults) {
    for (i, port) in c.ports.iter().flatten().enumerate() {
        let Some(number) = port.host_port.filter(|p| *p != 0) else { continue };
        let protocol = port.protocol.clone().unwrap_or_default();
        let ip = port.host_ip.clone().unwrap_or_default();
        let text = format!("{protocol}/{ip}/{number}");
        if !taken.insert((protocol, ip, number)) {
            faults.duplicate(
                format!("{path}.ports[{i}].hostPort"),
                text,
                "another port of this pod uses the same host port",
            );
        }
    }
}

fn no_probes_or_hooks(path: &str, c: &Container, faults: &mut Faults) {
    let set = [
        ("lifecycle", c.lifecycle.is_some()),
        ("livenessProbe", c.liveness_probe.is_some()),
        ("readinessProbe", c.readiness_probe.is_some()),
        ("startupProbe", c.startup_probe.is_some()),
    ];
    for (field, is_set) in set {
        if is_set {
            faults.forbidden(
                format!("{path}.{field}"),
                "may not be set for init containers without restartPolicy Always",
            );
        }
    }
}

fn restart_rules(path: &str, c: &Container, faults: &mut Faults) {
    faults.one_of_if_set(
        format!("{path}.restartPolicy"),
        c.restart_policy.as_deref(),
        &["Always", "OnFailure", "Never"],
    );
    let rules = c.restart_policy_rules.as_deref().unwrap_or_default();
    if rules.is_empty() {
        return;
    }
    let path = format!("{path}.restartPolicyRules");
    if c.restart_policy.is_none() {
        faults.required(path.trim_end_matches("Rules"), "must be set when restartPolicyRules are used");
    }
    if rules.len() > MAX_RESTART_RULES {
        faults.too_long(path.as_str(), format!("{} rules, more than {MAX_RESTART_RULES}", rules.len()));
    }
    for (i, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{i}]");
        faults.one_of(format!("{path}.action"), &rule.action, &["Restart", "RestartAllContainers"]);
        let Some(codes) = &rule.exit_codes else {
            faults.required(format!("{path}.exitCodes"), "a rule needs a condition");
            continue;
        };
        faults.one_of(format!("{path}.exitCodes.operator"), &codes.operator, &["In", "NotIn"]);
        let values = codes.values.as_deref().unwrap_or_default();
        if values.is_empty() {
            faults.required(format!("{path}.exitCodes.values"), "needs at least one exit code");
        }
        if values.len() > MAX_EXIT_CODES {
            faults.too_long(format!("{path}.exitCodes.values"), format!("more than {MAX_EXIT_CODES} exit codes"));
        }
        let mut seen = BTreeMap::new();
        for (j, value) in values.iter().enumerate() {
            if seen.insert(*value, j).is_some() {
                faults.duplicate(format!("{path}.exitCodes.values[{j}]"), *value, "listed twice");
            }
        }
    }
}
