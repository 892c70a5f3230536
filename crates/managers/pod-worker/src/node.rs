//! What a worker reads of the node.

use std::net::IpAddr;

use container_config::NodeSettings;
use contract::node::NodeView;
use contract::runtime::RuntimeInfo;
use model::core::Node;
use model::runtime::PodObservation;

use crate::job::Job;

/// Addresses of a node for its pods: internal ones before external ones; the first, and the first of the other family.
pub(crate) fn host_ips(node: &Node) -> Vec<IpAddr> {
    let listed = || node.status.iter().flat_map(|s| s.addresses.iter().flatten());
    let of = |kind: &'static str| listed().filter(move |a| a.type_ == kind).filter_map(|a| a.address.parse().ok());
    let all: Vec<IpAddr> = of("InternalIP").chain(of("ExternalIP")).collect();
    let Some(first) = all.first().copied() else { return Vec::new() };
    let other = all.into_iter().find(|ip| ip.is_ipv4() != first.is_ipv4());
    std::iter::once(first).chain(other).collect()
}

impl Job {
    /// Addresses of the node, primary first.
    pub(crate) fn host_ips(&self) -> Vec<IpAddr> {
        let view = self.crew.value::<NodeView>().get();
        let known = view.node.as_deref().map(host_ips).filter(|ips| !ips.is_empty());
        known.unwrap_or_else(|| self.deps.config.node.host_ips.clone())
    }

    /// Settings of the node with what its Node object says now.
    pub(crate) fn node(&self) -> NodeSettings {
        let mut settings = self.deps.config.node.clone();
        settings.host_ips = self.host_ips();
        let view = self.crew.value::<NodeView>().get();
        let allocatable = view.node.as_ref().and_then(|n| n.status.as_ref()?.allocatable.as_ref());
        for (name, amount) in allocatable.into_iter().flatten() {
            settings.allocatable.insert(name.clone(), amount.clone());
        }
        settings
    }

    /// Whether the handler that runs this pod can mount read-only with everything below.
    pub(crate) fn recursive_read_only(&self, observed: &PodObservation) -> bool {
        let handler = observed.sandbox().map(|s| s.runtime_handler.as_str()).unwrap_or_default();
        let info = self.crew.value::<RuntimeInfo>().get();
        info.handlers.iter().any(|h| h.name == handler && h.recursive_read_only_mounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(addresses: &[(&str, &str)]) -> Node {
        let list: Vec<_> = addresses.iter().map(|(t, a)| serde_json::json!({ "type": t, "address": a })).collect();
        serde_json::from_value(serde_json::json!({ "status": { "addresses": list } })).unwrap()
    }

    #[test]
    fn pods_see_one_address_per_family_the_internal_one_first() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
        let table: &[Row<'_>] = &[
            ("none", &[("Hostname", "n1")], &[]),
            ("one", &[("InternalIP", "10.0.0.1"), ("Hostname", "n1")], &["10.0.0.1"]),
            ("internal before external", &[("ExternalIP", "1.2.3.4"), ("InternalIP", "10.0.0.1")], &["10.0.0.1"]),
            ("external alone", &[("ExternalIP", "1.2.3.4")], &["1.2.3.4"]),
            ("two of one family", &[("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")], &["10.0.0.1"]),
            ("dual stack", &[("InternalIP", "fd00::1"), ("InternalIP", "10.0.0.1")], &["fd00::1", "10.0.0.1"]),
        ];
        for (what, addresses, expected) in table {
            let found: Vec<String> = host_ips(&node(addresses)).iter().map(ToString::to_string).collect();
            assert_eq!(found, *expected, "{what}");
        }
    }
}
