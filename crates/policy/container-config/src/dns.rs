//! DNS configuration of a sandbox (node-and-resources 7.1, 7.2). The runtime writes the file; the node sends the values,
//! for pods of the host's network too.

mod resolv_conf;

use std::net::IpAddr;

use cri_api::v1::DnsConfig;
use model::core::{Pod, PodDNSConfig, PodDNSConfigOption};
use model::pod;

use resolv_conf::{MAX_SEARCH_LEN, MAX_SEARCH_LINE, MAX_SEARCHES, set_option};
pub use resolv_conf::{ResolvConf, ResolvConfError, limits_problem};

/// Most name servers that a resolver reads.
const MAX_SERVERS: usize = 3;
/// Where the host's resolver settings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsSource {
    /// The parsed `resolvConf` file.
    File(ResolvConf),
    /// `resolvConf: ""`: pods of policy Default get a loopback server, so that nothing resolves.
    Disabled {
        /// Addresses of the node; one loopback server per entry, of its family.
        node_ips: Vec<IpAddr>,
    },
}

/// Context of [`dns_config`].
#[derive(Clone, Copy, Debug)]
pub struct DnsInput<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// `clusterDomain`; empty: none.
    pub cluster_domain: &'a str,
    /// `clusterDNS`; empty: none.
    pub cluster_dns: &'a [String],
    /// Settings of the host.
    pub source: &'a DnsSource,
}

/// What a user should hear about the DNS settings of a pod; each is a Warning event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsWarning {
    /// A cluster policy without cluster DNS; the pod runs as if under Default. Told on the node and on the pod.
    MissingClusterDns,
    /// More than three servers; the line that is in force.
    Nameservers {
        /// The servers that are left, joined by spaces.
        applied: String,
    },
    /// Too many or too long search domains; the line that is in force.
    Searches {
        /// The domains that are left, joined by spaces.
        applied: String,
    },
}

impl DnsWarning {
    /// Reason of the event.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            DnsWarning::MissingClusterDns => "MissingClusterDNS",
            DnsWarning::Nameservers { .. } | DnsWarning::Searches { .. } => "DNSConfigForming",
        }
    }

    /// Message of the event on the pod.
    #[must_use]
    pub fn message(&self, pod: &Pod) -> String {
        match self {
            DnsWarning::MissingClusterDns => {
                format!("pod: {:?}. {}", pod::describe(pod), DnsWarning::NODE_MESSAGE)
            }
            DnsWarning::Nameservers { applied } => format!(
                "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {applied}"
            ),
            DnsWarning::Searches { applied } => format!(
                "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {applied}"
            ),
        }
    }

    /// Message of [`DnsWarning::MissingClusterDns`] on the node.
    pub const NODE_MESSAGE: &'static str = "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" policy.";
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Nothing,
    Cluster,
    Host,
}

/// A policy that the API does not know counts as ClusterFirst.
fn base(pod: &Pod) -> Base {
    match pod.spec.as_ref().and_then(|s| s.dns_policy.as_deref()) {
        Some("None") => Base::Nothing,
        Some("Default") => Base::Host,
        Some("ClusterFirst") | None if pod::is_host_network(pod) => Base::Host,
        _ => Base::Cluster,
    }
}

fn push_unique(list: &mut Vec<String>, items: impl IntoIterator<Item = String>) {
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

fn cluster(input: &DnsInput<'_>) -> DnsConfig {
    let mut searches = Vec::new();
    if !input.cluster_domain.is_empty() {
        let domain = input.cluster_domain;
        let own = [format!("{}.svc.{domain}", pod::namespace(input.pod)), format!("svc.{domain}"), domain.to_owned()];
        push_unique(&mut searches, own);
    }
    if let DnsSource::File(host) = input.source {
        push_unique(&mut searches, host.searches.iter().cloned());
    }
    DnsConfig { servers: input.cluster_dns.to_vec(), searches, options: vec!["ndots:5".to_owned()] }
}

fn host(source: &DnsSource) -> DnsConfig {
    match source {
        DnsSource::File(host) => DnsConfig {
            servers: host.nameservers.clone(),
            searches: host.searches.clone(),
            options: host.options.clone(),
        },
        DnsSource::Disabled { node_ips } => {
            let loopback = |ip: &IpAddr| if ip.is_ipv6() { "::1" } else { "127.0.0.1" }.to_owned();
            let mut servers: Vec<_> = node_ips.iter().map(loopback).collect();
            if servers.is_empty() {
                servers.push("127.0.0.1".to_owned());
            }
            DnsConfig { servers, searches: vec![".".to_owned()], options: Vec::new() }
        }
    }
}

fn merge(config: &mut DnsConfig, extra: &PodDNSConfig) {
    let servers = std::mem::take(&mut config.servers);
    push_unique(&mut config.servers, servers.into_iter().chain(extra.nameservers.iter().flatten().cloned()));
    let searches = std::mem::take(&mut config.searches);
    push_unique(&mut config.searches, searches.into_iter().chain(extra.searches.iter().flatten().cloned()));
    for PodDNSConfigOption { name, value } in extra.options.iter().flatten() {
        let name = name.as_deref().unwrap_or_default();
        let option = match value.as_deref() {
            Some(value) if !value.is_empty() => format!("{name}:{value}"),
            _ => name.to_owned(),
        };
        set_option(&mut config.options, option);
    }
}

fn fit_limits(config: &mut DnsConfig, warnings: &mut Vec<DnsWarning>) {
    if config.servers.len() > MAX_SERVERS {
        config.servers.truncate(MAX_SERVERS);
        warnings.push(DnsWarning::Nameservers { applied: config.servers.join(" ") });
    }
    let before = config.searches.len();
    let searches = &mut config.searches;
    searches.truncate(MAX_SEARCHES);
    searches.retain(|s| s.len() <= MAX_SEARCH_LEN);
    while searches.join(" ").len() > MAX_SEARCH_LINE {
        searches.pop();
    }
    if searches.len() < before {
        warnings.push(DnsWarning::Searches { applied: searches.join(" ") });
    }
}

/// DNS settings for a sandbox, and what to tell about them.
#[must_use]
pub fn dns_config(input: &DnsInput<'_>) -> (DnsConfig, Vec<DnsWarning>) {
    let mut warnings = Vec::new();
    let mut config = match base(input.pod) {
        Base::Nothing => DnsConfig::default(),
        Base::Host => host(input.source),
        Base::Cluster if input.cluster_dns.is_empty() => {
            warnings.push(DnsWarning::MissingClusterDns);
            host(input.source)
        }
        Base::Cluster => cluster(input),
    };
    if let Some(extra) = input.pod.spec.as_ref().and_then(|s| s.dns_config.as_ref()) {
        merge(&mut config, extra);
    }
    fit_limits(&mut config, &mut warnings);
    (config, warnings)
}

#[cfg(test)]
mod tests;
