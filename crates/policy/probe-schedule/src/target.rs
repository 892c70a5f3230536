//! What a probe is aimed at (pod-lifecycle 8.3).

use std::collections::BTreeMap;

use model::core::{Container, HTTPGetAction, Probe};
use model::expansion::expand;
use model::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::probe::NetTarget;

/// Where a probe goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Run a command in the container.
    Exec {
        /// Command with literal environment expanded.
        command: Vec<String>,
    },
    /// Ask it over the network.
    Net(NetTarget),
}

/// Aims a probe at a container of a pod with this address. `user_agent` is `kube-probe/<major>.<minor>`.
///
/// # Errors
/// The text of the error that the event carries: no handler, or a port that is none.
pub fn aim(probe: &Probe, container: &Container, pod_ip: &str, user_agent: &str) -> Result<Target, String> {
    if let Some(exec) = &probe.exec {
        let environment = environment(container);
        let command = exec.command.iter().flatten().map(|word| expanded(word, &environment)).collect();
        return Ok(Target::Exec { command });
    }
    if let Some(get) = &probe.http_get {
        return http(get, container, pod_ip, user_agent).map(Target::Net);
    }
    if let Some(tcp) = &probe.tcp_socket {
        let port = port(&tcp.port, container)?;
        return Ok(Target::Net(NetTarget::Tcp { host: host(tcp.host.as_deref(), pod_ip), port }));
    }
    if let Some(grpc) = &probe.grpc {
        let port = checked(i64::from(grpc.port))?;
        let service = grpc.service.clone().unwrap_or_default();
        let user_agent = user_agent.to_owned();
        return Ok(Target::Net(NetTarget::Grpc { host: pod_ip.to_owned(), port, service, user_agent }));
    }
    Err(format!("missing probe handler for {}", container.name))
}

fn host(given: Option<&str>, pod_ip: &str) -> String {
    given.filter(|h| !h.is_empty()).unwrap_or(pod_ip).to_owned()
}

fn http(get: &HTTPGetAction, container: &Container, pod_ip: &str, user_agent: &str) -> Result<NetTarget, String> {
    let path = get.path.as_deref().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut host_header = None;
    for h in get.http_headers.iter().flatten() {
        if h.name.eq_ignore_ascii_case("host") {
            host_header = Some(h.value.clone());
        } else {
            headers.push((h.name.clone(), h.value.clone()));
        }
    }
    let has = |name: &str, headers: &[(String, String)]| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if !has("user-agent", &headers) {
        headers.push(("User-Agent".to_owned(), user_agent.to_owned()));
    }
    if !has("accept", &headers) {
        headers.push(("Accept".to_owned(), "*/*".to_owned()));
    }
    // An empty Accept asks for none at all.
    headers.retain(|(n, v)| !(n.eq_ignore_ascii_case("accept") && v.is_empty()));
    Ok(NetTarget::Http {
        tls: get.scheme.as_deref().is_some_and(|s| s.eq_ignore_ascii_case("https")),
        host: host(get.host.as_deref(), pod_ip),
        port: port(&get.port, container)?,
        path,
        headers,
        host_header,
    })
}

/// Resolves a port: a number, the name of one of the container's ports, or a number written as text.
///
/// # Errors
/// The text of the error that the event carries.
pub fn port(value: &IntOrString, container: &Container) -> Result<u16, String> {
    match value {
        IntOrString::Int(n) => checked(i64::from(*n)),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|p| p.name.as_deref() == Some(name.as_str()));
            match named {
                Some(p) => checked(i64::from(p.container_port)),
                None => match name.parse::<i64>() {
                    Ok(n) => checked(n),
                    Err(_) => Err(format!("couldn't find port: {name:?} for container {}", container.name)),
                },
            }
        }
    }
}

fn checked(n: i64) -> Result<u16, String> {
    u16::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| format!("invalid port number: {n}"))
}

fn environment(container: &Container) -> BTreeMap<&str, &str> {
    container.env.iter().flatten().map(|e| (e.name.as_str(), e.value.as_deref().unwrap_or_default())).collect()
}

fn expanded(text: &str, environment: &BTreeMap<&str, &str>) -> String {
    let known = |name: &str| environment.get(name).map(|value| value.as_bytes().to_vec());
    String::from_utf8_lossy(&expand(text, known)).into_owned()
}
