//! Networks by CNI plugins, as containerd asks for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cni::{Attachment, Cni, CniError, NetworkList};
use cri_api::v1;
use futures::StreamExt;
use model::quantity::Quantity;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::{NetworkError, PodNetwork, PodNetworks};

/// The name of the interface in pods, everybody's.
const INTERFACE: &str = "eth0";
/// How long one call of one plugin may take: a kubelet gives up on a sandbox after four minutes.
const LIMIT: Duration = Duration::from_secs(60);
/// What plugins take as "no bound" of a burst (containerd's value).
const BURST: u32 = u32::MAX;

/// Networks of the first configuration of a folder.
#[derive(Debug)]
pub struct CniNetworks {
    folder: PathBuf,
    cni: Cni,
    now: Mutex<Result<Arc<NetworkList>, String>>,
}

impl From<CniError> for NetworkError {
    fn from(e: CniError) -> Self {
        Self(e.to_string())
    }
}

impl CniNetworks {
    /// Configurations in `folder`, programs in `programs`, results in `cache`. Follows changes of the folder.
    #[must_use]
    pub fn start(folder: &Path, programs: Vec<PathBuf>, cache: &Path) -> Arc<Self> {
        let cni = Cni { programs, cache: cache.to_owned(), limit: LIMIT };
        let first = Err("no network configuration was looked for yet".to_owned());
        let networks = Arc::new(Self { folder: folder.to_owned(), cni, now: Mutex::new(first) });
        let following = Arc::clone(&networks);
        tokio::spawn(async move { following.follow().await });
        networks
    }

    /// Looks at the folder now and after each change.
    async fn follow(&self) {
        if let Err(e) = std::fs::create_dir_all(&self.folder) {
            warn!("{}: {e}", self.folder.display());
        }
        let mut changes = match cni::changes(&self.folder) {
            Ok(changes) => changes,
            Err(e) => {
                self.look().await;
                return warn!("{}: changes are not seen: {e}", self.folder.display());
            }
        };
        self.look().await;
        while let Some(change) = changes.next().await {
            if let Err(e) = change {
                warn!("{}: {e}", self.folder.display());
            }
            self.look().await;
        }
        warn!("{}: the folder is gone", self.folder.display());
    }

    async fn look(&self) {
        let found = match cni::find(&self.folder) {
            Ok(list) => self.cni.status(&list).await.map(|()| list),
            Err(e) => Err(e),
        };
        let found = found.map(Arc::new).map_err(|e| e.to_string());
        match &found {
            Ok(list) => info!(network = list.name, "pods can have a network"),
            Err(e) => info!("pods can have no network: {e}"),
        }
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    fn list(&self) -> Result<Arc<NetworkList>, NetworkError> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(Arc::clone).map_err(|e| NetworkError(e.clone()))
    }
}

#[async_trait]
impl PodNetworks for CniNetworks {
    fn ready(&self) -> Result<(), NetworkError> {
        self.list().map(drop)
    }

    async fn add(
        &self,
        pod: &str,
        config: &v1::PodSandboxConfig,
        namespace: &Path,
    ) -> Result<PodNetwork, NetworkError> {
        let list = self.list()?;
        let result = self.cni.add(&list, &attachment(pod, config, Some(namespace))?).await?;
        let ips = result.addresses(INTERFACE);
        if ips.is_empty() {
            return Err(NetworkError(format!("network {:?} gave no address to {INTERFACE}", list.name)));
        }
        Ok(PodNetwork { ips })
    }

    async fn remove(
        &self,
        pod: &str,
        config: &v1::PodSandboxConfig,
        namespace: Option<&Path>,
    ) -> Result<(), NetworkError> {
        // What was added whole is known; what was added in part is asked back of today's plugins.
        if self.cni.del_all(pod).await? > 0 {
            return Ok(());
        }
        match self.list() {
            Ok(list) => Ok(self.cni.del(&list, &attachment(pod, config, namespace)?).await?),
            // Without a configuration nothing can have been added in part since; what was before is known, or nobody knows.
            Err(_) => Ok(()),
        }
    }
}

fn attachment(pod: &str, config: &v1::PodSandboxConfig, namespace: Option<&Path>) -> Result<Attachment, NetworkError> {
    let metadata = config.metadata.clone().unwrap_or_default();
    let args = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", &metadata.namespace),
        ("K8S_POD_NAME", &metadata.name),
        ("K8S_POD_INFRA_CONTAINER_ID", pod),
        ("K8S_POD_UID", &metadata.uid),
    ];
    Ok(Attachment {
        container: pod.to_owned(),
        namespace: namespace.map(Path::to_owned),
        interface: INTERFACE.to_owned(),
        args: args.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec(),
        capabilities: capabilities(config)?,
    })
}

/// What plugins may want to know of a pod.
fn capabilities(config: &v1::PodSandboxConfig) -> Result<BTreeMap<String, Value>, NetworkError> {
    let mut all = BTreeMap::new();
    let mapped = config.port_mappings.iter().filter(|m| m.host_port > 0);
    let mappings: Vec<Value> = mapped.map(mapping).collect();
    if !mappings.is_empty() {
        all.insert("portMappings".into(), mappings.into());
    }
    if let Some(bandwidth) = bandwidth(&config.annotations)? {
        all.insert("bandwidth".into(), bandwidth);
    }
    if let Some(dns) = &config.dns_config {
        all.insert("dns".into(), json!({"servers": dns.servers, "searches": dns.searches, "options": dns.options}));
    }
    all.insert("io.kubernetes.cri.pod-annotations".into(), json!(config.annotations));
    Ok(all)
}

fn mapping(m: &v1::PortMapping) -> Value {
    let protocol = match m.protocol() {
        v1::Protocol::Tcp => "tcp",
        v1::Protocol::Udp => "udp",
        v1::Protocol::Sctp => "sctp",
    };
    json!({"hostPort": m.host_port, "containerPort": m.container_port, "protocol": protocol, "hostIP": m.host_ip})
}

/// `kubernetes.io/ingress-bandwidth` and `-egress-`: bits in a second.
fn bandwidth(annotations: &BTreeMap<String, String>) -> Result<Option<Value>, NetworkError> {
    let mut all = serde_json::Map::new();
    for way in ["ingress", "egress"] {
        let Some(text) = annotations.get(&format!("kubernetes.io/{way}-bandwidth")) else { continue };
        let rate = text.parse::<Quantity>().map_err(|e| NetworkError(format!("{way} bandwidth {text:?}: {e}")))?;
        if rate.value() <= 0 {
            return Err(NetworkError(format!("{way} bandwidth {text:?} is not above zero")));
        }
        all.insert(format!("{way}Rate"), rate.value().into());
        all.insert(format!("{way}Burst"), BURST.into());
    }
    Ok(Some(all).filter(|a| !a.is_empty()).map(Value::Object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_told_what_the_pod_asks_for() {
        let port = |host_port, protocol: v1::Protocol| v1::PortMapping {
            host_port,
            container_port: 80,
            protocol: protocol.into(),
            host_ip: "127.0.0.1".into(),
        };
        let config = v1::PodSandboxConfig {
            port_mappings: vec![port(8080, v1::Protocol::Tcp), port(0, v1::Protocol::Tcp), port(53, v1::Protocol::Udp)],
            annotations: [("kubernetes.io/ingress-bandwidth".to_owned(), "10M".to_owned())].into(),
            dns_config: Some(v1::DnsConfig { servers: vec!["10.0.0.10".into()], ..v1::DnsConfig::default() }),
            ..v1::PodSandboxConfig::default()
        };
        let all = capabilities(&config).expect("good");
        let ports: Vec<_> = all["portMappings"].as_array().expect("list").iter().map(|m| &m["hostPort"]).collect();
        assert_eq!(ports, [&json!(8080), &json!(53)]);
        assert_eq!(all["portMappings"][1]["protocol"], "udp");
        assert_eq!(all["bandwidth"], json!({"ingressRate": 10_000_000, "ingressBurst": u32::MAX}));
        assert_eq!(all["dns"]["servers"], json!(["10.0.0.10"]));
        for wrong in ["0", "-1", "fast"] {
            let mut config = config.clone();
            config.annotations = [("kubernetes.io/egress-bandwidth".to_owned(), wrong.to_owned())].into();
            assert!(capabilities(&config).is_err(), "{wrong}");
        }
    }
}
