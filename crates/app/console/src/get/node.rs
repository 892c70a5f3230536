//! `bosun get node`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use model::Timestamp;
use model::core::Node;
use server::local::NodeInfo;

use crate::client::get;
use crate::columns::{age, ago, moment, now};
use crate::show::{Output, print, structured, table};

pub(super) async fn show(socket: &Path, output: Option<Output>) -> Result<()> {
    let info: NodeInfo = get(socket, "/v1/node").await?;
    if structured(output, &info)? {
        return Ok(());
    }
    for (key, value) in rows(&info, now()) {
        print(&format!("{:<16}{value}", format!("{key}:")));
    }
    if let Some(node) = &info.object {
        print("\nConditions:");
        table(&["  TYPE", "STATUS", "REASON"], conditions(node));
        print("\nResources:");
        table(&["  NAME", "CAPACITY", "ALLOCATABLE"], resources(node));
    }
    Ok(())
}

fn yes(b: bool) -> String {
    if b { "yes" } else { "no" }.to_owned()
}

fn expiry(ns: i64, now: Timestamp) -> String {
    let (day, left) = (moment(ns), Timestamp(ns).nanos_since(now));
    if left > 0 { format!("until {day} (in {})", age(left)) } else { format!("EXPIRED {day} ({})", ago(ns, now)) }
}

fn rows(n: &NodeInfo, now: Timestamp) -> Vec<(&'static str, String)> {
    let info = n.object.as_ref().and_then(|o| o.status.as_ref()).and_then(|s| s.node_info.as_ref());
    let ready = match n.ready {
        None => "not known yet".to_owned(),
        Some(ready) if n.ready_message.is_empty() => yes(ready),
        Some(ready) => format!("{}: {}", yes(ready), n.ready_message),
    };
    let mut rows = vec![("Name", n.name.clone()), ("Ready", ready)];
    rows.extend(info.map(|i| ("Version", format!("{} on {} ({})", i.kubelet_version, i.os_image, i.kernel_version))));
    rows.extend(n.object.as_ref().map(addresses).filter(|a| !a.is_empty()).map(|a| ("Addresses", a)));
    rows.push(("Runtime", n.runtime.clone()));
    rows.push(("Runtime ready", yes(n.runtime_ready)));
    rows.push(("Network", if n.network.is_empty() { "ready".to_owned() } else { n.network.clone() }));
    rows.push(("Events from", n.events.clone()));
    rows.push(("Divergences", n.divergences.to_string()));
    rows.push(("Sources ready", yes(n.sources_ready)));
    cluster_rows(n, now, &mut rows);
    let certificates = &n.certificates;
    rows.extend(certificates.client_expires_ns.map(|ns| ("Client cert", expiry(ns, now))));
    rows.extend(certificates.serving_expires_ns.map(|ns| ("Serving cert", expiry(ns, now))));
    rows.extend(certificates.error.clone().map(|e| ("Cert problem", e)));
    if !n.pressure.is_empty() {
        rows.push(("Pressure", n.pressure.join(", ")));
    }
    if n.shutting_down {
        rows.push(("Shutdown", "the machine is going down".to_owned()));
    }
    rows.push(("Problem", n.error.clone().unwrap_or_else(|| "none".to_owned())));
    rows
}

fn cluster_rows(n: &NodeInfo, now: Timestamp, rows: &mut Vec<(&'static str, String)>) {
    let (Some(registration), Some(api)) = (&n.registration, &n.api) else {
        rows.push(("API server", "none (standalone)".to_owned()));
        return;
    };
    let pods = match (api.synced, api.from_store) {
        (true, _) => format!("heard, {} pods", api.pods),
        (false, true) => "not heard yet; pods come from the store".to_owned(),
        (false, false) => "not heard yet".to_owned(),
    };
    rows.push(("API server", pods));
    rows.push(("Registered", yes(registration.registered)));
    let lease = registration.lease_renewed_ns.map_or_else(|| "never renewed".to_owned(), |ns| ago(ns, now));
    rows.push(("Lease", lease));
    let problems = [&api.error, &registration.error];
    rows.extend(problems.into_iter().flatten().map(|e| ("API problem", e.clone())));
}

fn addresses(node: &Node) -> String {
    let all = node.status.iter().flat_map(|s| s.addresses.iter().flatten());
    all.map(|a| format!("{} ({})", a.address, a.type_)).collect::<Vec<_>>().join(", ")
}

fn conditions(node: &Node) -> Vec<Vec<String>> {
    let all = node.status.iter().flat_map(|s| s.conditions.iter().flatten());
    let why = |c: &model::core::NodeCondition| {
        [c.reason.as_deref(), c.message.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    all.map(|c| vec![format!("  {}", c.type_), c.status.clone(), why(c)]).collect()
}

fn resources(node: &Node) -> Vec<Vec<String>> {
    let Some(status) = &node.status else { return Vec::new() };
    let (empty, free) = (BTreeMap::new(), status.allocatable.as_ref());
    let free = |name: &String| free.and_then(|f| f.get(name)).map(|q| q.0.clone()).unwrap_or_default();
    let capacity = status.capacity.as_ref().unwrap_or(&empty);
    capacity.iter().map(|(name, q)| vec![format!("  {name}"), q.0.clone(), free(name)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use server::local::{ApiLine, CertificateLine, Registration};

    fn shown(info: &NodeInfo) -> Vec<String> {
        rows(info, Timestamp::from_secs(1_000_000)).into_iter().map(|(k, v)| format!("{k}: {v}")).collect()
    }

    #[test]
    fn a_node_in_a_cluster_tells_of_lease_and_certificates() {
        let secs = |s: i64| Some(s * 1_000_000_000);
        let info = NodeInfo {
            ready: Some(false),
            ready_message: "no network".into(),
            registration: Some(Registration {
                registered: true,
                lease_renewed_ns: secs(999_993),
                ..Registration::default()
            }),
            api: Some(ApiLine { synced: true, pods: 3, error: Some("refused".into()), ..ApiLine::default() }),
            certificates: CertificateLine {
                client_expires_ns: secs(1_000_600),
                serving_expires_ns: secs(999_900),
                error: None,
            },
            ..NodeInfo::default()
        };
        let shown = shown(&info);
        let expected = [
            "Ready: no: no network",
            "API server: heard, 3 pods",
            "Lease: 7s ago",
            "API problem: refused",
            "Client cert: until 1970-01-12T13:56:40Z (in 10m)",
            "Serving cert: EXPIRED 1970-01-12T13:45:00Z (100s ago)",
        ];
        for line in expected {
            assert!(shown.iter().any(|l| l == line), "{line} is not in {shown:#?}");
        }
    }

    #[test]
    fn a_node_alone_says_so() {
        let shown = shown(&NodeInfo::default());
        assert!(shown.contains(&"API server: none (standalone)".to_owned()), "{shown:?}");
        assert!(shown.contains(&"Ready: not known yet".to_owned()), "{shown:?}");
        assert!(!shown.iter().any(|l| l.contains("cert")), "{shown:?}");
    }
}
