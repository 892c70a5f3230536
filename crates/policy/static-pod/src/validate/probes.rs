//! Probes and lifecycle hooks.

use model::core::{Container, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction};
use model::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::faults::{Context, Faults};
use super::names::Rule;

pub(super) fn validate(path: &str, c: &Container, cx: &Context<'_>, faults: &mut Faults) {
    let probes = [
        ("livenessProbe", &c.liveness_probe),
        ("readinessProbe", &c.readiness_probe),
        ("startupProbe", &c.startup_probe),
    ];
    for (field, probe) in probes {
        if let Some(p) = probe {
            validate_probe(&format!("{path}.{field}"), field == "readinessProbe", p, faults);
        }
    }
    let Some(lifecycle) = &c.lifecycle else { return };
    for (field, hook) in [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)] {
        if let Some(h) = hook {
            handler(&format!("{path}.lifecycle.{field}"), h, cx, faults);
        }
    }
    if lifecycle.stop_signal.is_some() && cx.os.is_none() {
        faults.forbidden(format!("{path}.lifecycle.stopSignal"), "may not be set when spec.os.name is not given");
    }
}

fn validate_probe(path: &str, readiness: bool, p: &Probe, faults: &mut Faults) {
    let members = [
        ("exec", p.exec.is_some()),
        ("httpGet", p.http_get.is_some()),
        ("tcpSocket", p.tcp_socket.is_some()),
        ("grpc", p.grpc.is_some()),
    ];
    faults.exactly_one(path, &members);
    if let Some(e) = &p.exec {
        command(&format!("{path}.exec"), e.command.as_deref(), faults);
    }
    if let Some(h) = &p.http_get {
        http_get(&format!("{path}.httpGet"), h, faults);
    }
    if let Some(t) = &p.tcp_socket {
        tcp_socket(&format!("{path}.tcpSocket"), t, faults);
    }
    if let Some(g) = &p.grpc {
        faults.in_range(format!("{path}.grpc.port"), g.port.into(), 1, 65535);
    }
    let numbers = [
        ("initialDelaySeconds", p.initial_delay_seconds),
        ("timeoutSeconds", p.timeout_seconds),
        ("periodSeconds", p.period_seconds),
        ("successThreshold", p.success_threshold),
        ("failureThreshold", p.failure_threshold),
    ];
    for (field, number) in numbers {
        faults.in_range(format!("{path}.{field}"), number.unwrap_or(0).into(), 0, i32::MAX.into());
    }
    if !readiness && p.success_threshold.is_some_and(|n| n != 1) {
        let at = format!("{path}.successThreshold");
        faults.invalid(at, p.success_threshold.unwrap_or(0), "must be 1 for liveness and startup probes");
    }
    let Some(grace) = p.termination_grace_period_seconds else { return };
    let at = format!("{path}.terminationGracePeriodSeconds");
    if readiness {
        faults.invalid(at, grace, "may not be set for readiness probes");
    } else {
        faults.in_range(at, grace, 1, i64::MAX);
    }
}

fn handler(path: &str, h: &LifecycleHandler, cx: &Context<'_>, faults: &mut Faults) {
    let members = [
        ("exec", h.exec.is_some()),
        ("httpGet", h.http_get.is_some()),
        ("tcpSocket", h.tcp_socket.is_some()),
        ("sleep", h.sleep.is_some()),
    ];
    faults.exactly_one(path, &members);
    if let Some(e) = &h.exec {
        command(&format!("{path}.exec"), e.command.as_deref(), faults);
    }
    if let Some(g) = &h.http_get {
        http_get(&format!("{path}.httpGet"), g, faults);
    }
    if let Some(t) = &h.tcp_socket {
        tcp_socket(&format!("{path}.tcpSocket"), t, faults);
    }
    if let Some(s) = &h.sleep {
        // Not longer than the grace period of the pod: it would always be cut short.
        let longest = if cx.grace_seconds < 0 { i64::MAX } else { cx.grace_seconds };
        faults.in_range(format!("{path}.sleep.seconds"), s.seconds, 0, longest);
    }
}

fn command(path: &str, command: Option<&[String]>, faults: &mut Faults) {
    if command.unwrap_or_default().is_empty() {
        faults.required(format!("{path}.command"), "");
    }
}

fn http_get(path: &str, h: &HTTPGetAction, faults: &mut Faults) {
    if h.path.as_deref().unwrap_or_default().is_empty() {
        faults.required(format!("{path}.path"), "");
    }
    port(&format!("{path}.port"), &h.port, faults);
    faults.one_of_if_set(format!("{path}.scheme"), h.scheme.as_deref(), &["HTTP", "HTTPS"]);
    for (i, header) in h.http_headers.iter().flatten().enumerate() {
        faults.name(format!("{path}.httpHeaders[{i}].name"), &header.name, Rule::HttpHeader);
    }
}

fn tcp_socket(path: &str, t: &TCPSocketAction, faults: &mut Faults) {
    port(&format!("{path}.port"), &t.port, faults);
}

/// A number, or the name of a port of the container.
fn port(path: &str, port: &IntOrString, faults: &mut Faults) {
    match port {
        IntOrString::Int(number) => faults.in_range(path, (*number).into(), 1, 65535),
        IntOrString::String(name) => faults.name(path, name, Rule::PortName),
    }
}
