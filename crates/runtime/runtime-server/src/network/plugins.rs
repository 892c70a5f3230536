//! Networks by CNI plugins, as containerd asks for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
/// How long plugins that said no are not asked again: a kubelet asks every five seconds, and for each pod.
const PAUSE: Duration = Duration::from_secs(2);
/// What plugins take as "no bound" of a burst (containerd's value).
const BURST: u32 = u32::MAX;

/// Networks of the first configuration of a folder.
#[derive(Debug)]
pub struct CniNetworks {
    folder: PathBuf,
    cni: Cni,
    now: Mutex<Now>,
    /// Held by whoever asks plugins for their status: one at a time.
    asking: tokio::sync::Mutex<()>,
}

/// What was found, and what plugins said of it.
#[derive(Clone, Debug)]
struct Now {
    list: Result<Arc<NetworkList>, String>,
    status: Result<(), String>,
    asked: Option<Instant>,
}

impl Now {
    /// Whether plugins are to be asked (again): they said no, and that was not just now.
    fn is_to_ask(&self, now: Instant) -> bool {
        self.list.is_ok() && self.status.is_err() && self.asked.is_none_or(|at| now.duration_since(at) >= PAUSE)
    }
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
        let first = "no network configuration was looked for yet".to_owned();
        let now = Mutex::new(Now { list: Err(first.clone()), status: Err(first), asked: None });
        let networks = Arc::new(Self { folder: folder.to_owned(), cni, now, asking: tokio::sync::Mutex::default() });
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
        let list = cni::find(&self.folder).map(Arc::new).map_err(|e| e.to_string());
        if let Err(e) = &list {
            info!("pods can have no network: {e}");
        }
        let status = Err("the network's plugins were not asked yet".to_owned());
        *lock(&self.now) = Now { list, status, asked: None };
        self.ask().await;
    }

    /// Asks plugins whether they can give a network, where that is not known.
    async fn ask(&self) {
        let _asking = self.asking.lock().await;
        let before = lock(&self.now).clone();
        let (true, Ok(list)) = (before.is_to_ask(Instant::now()), before.list) else { return };
        let status = self.cni.status(&list).await.map_err(|e| e.to_string());
        match (&status, &before.status) {
            (Ok(()), _) => info!(network = list.name, "pods can have a network"),
            (Err(e), Err(same)) if e == same => {}
            (Err(e), _) => info!(network = list.name, "pods can have no network now: {e}"),
        }
        let mut now = lock(&self.now);
        // Unless another configuration was found meanwhile.
        if now.list.as_ref().is_ok_and(|current| Arc::ptr_eq(current, &list)) {
            (now.status, now.asked) = (status, Some(Instant::now()));
        }
    }

    /// The network that pods are given now.
    async fn list(&self) -> Result<Arc<NetworkList>, NetworkError> {
        if lock(&self.now).is_to_ask(Instant::now()) {
            self.ask().await;
        }
        let Now { list, status, .. } = lock(&self.now).clone();
        let list = list.map_err(NetworkError)?;
        status.map(|()| list).map_err(NetworkError)
    }

    /// The network of an ADD that was begun and of which there is no result, else the one that is configured now, whatever its
    /// status: it is to be taken back.
    fn begun(&self, pod: &str) -> Result<Option<Arc<NetworkList>>, NetworkError> {
        match self.cni.begun(pod) {
            Ok(list) => Ok(list.map(Arc::new)),
            Err(e) => match lock(&self.now).list.clone() {
                Ok(list) => Ok(Some(list)),
                Err(none) => Err(NetworkError(format!("by what a network was given is not known: {e}; {none}"))),
            },
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl PodNetworks for CniNetworks {
    async fn ready(&self) -> Result<(), NetworkError> {
        self.list().await.map(drop)
    }

    async fn add(
        &self,
        pod: &str,
        config: &v1::PodSandboxConfig,
        namespace: &Path,
    ) -> Result<PodNetwork, NetworkError> {
        let list = self.list().await?;
        self.cni.begin(&list, pod)?;
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
        // What was added whole is known; what was added in part is asked back of the plugins that it was asked of.
        if self.cni.del_all(pod).await? == 0
            && let Some(list) = self.begun(pod)?
        {
            self.cni.del(&list, &attachment(pod, config, namespace)?).await?;
        }
        Ok(self.cni.end(pod)?)
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

    const MAIN: &str = r#"{"cniVersion": "1.1.0", "name": "net", "plugins": [{"type": "main"}]}"#;

    /// A folder with a configuration and a plugin that notes how it is called, and fails where `no-<command>` is.
    async fn scripted(dir: &Path) -> CniNetworks {
        use std::os::unix::fs::PermissionsExt;
        let script = format!(
            "#!/bin/sh\nread -r conf\nif [ -e {0}/no-$CNI_COMMAND ]; then echo '{{\"code\": 11, \"msg\": \"not now\"}}'; exit 1; fi\n\
             echo $CNI_COMMAND >> {0}/calls\n[ $CNI_COMMAND != ADD ] || echo '{{\"cniVersion\": \"1.1.0\"}}'\n",
            dir.display()
        );
        let program = dir.join("main");
        std::fs::write(&program, script).expect("plugin");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("mode");
        std::fs::create_dir(dir.join("net.d")).expect("folder");
        std::fs::write(dir.join("net.d/net.conflist"), MAIN).expect("configuration");
        let cni = Cni { programs: vec![dir.to_owned()], cache: dir.join("cache"), limit: LIMIT };
        let none = Now { list: Err("none".into()), status: Err("none".into()), asked: None };
        let networks = CniNetworks {
            folder: dir.join("net.d"),
            cni,
            now: Mutex::new(none),
            asking: tokio::sync::Mutex::default(),
        };
        networks.look().await;
        networks
    }

    #[tokio::test]
    async fn plugins_that_say_no_are_asked_again_but_not_at_once() {
        let dir = tempfile::tempdir().expect("folder");
        std::fs::write(dir.path().join("no-STATUS"), "").expect("no");
        let networks = scripted(dir.path()).await;
        assert!(networks.ready().await.expect_err("not now").to_string().contains("not now"));
        std::fs::remove_file(dir.path().join("no-STATUS")).expect("yes");
        assert!(networks.ready().await.is_err(), "it was asked just now");
        lock(&networks.now).asked = Instant::now().checked_sub(PAUSE);
        networks.ready().await.expect("asked again");
        std::fs::write(dir.path().join("no-STATUS"), "").expect("no");
        networks.ready().await.expect("not asked while it is good");
    }

    #[tokio::test]
    async fn what_was_added_in_part_is_taken_back_by_its_own_configuration() {
        let dir = tempfile::tempdir().expect("folder");
        let networks = scripted(dir.path()).await;
        let (config, namespace) = (v1::PodSandboxConfig::default(), dir.path().join("ns"));
        std::fs::write(dir.path().join("no-ADD"), "").expect("no");
        networks.add("pod", &config, &namespace).await.expect_err("half of it");
        std::fs::remove_file(dir.path().join("net.d/net.conflist")).expect("removed");
        networks.look().await;
        networks.remove("pod", &config, Some(&namespace)).await.expect("taken back");
        let calls = || std::fs::read_to_string(dir.path().join("calls")).unwrap_or_default();
        assert!(calls().ends_with("DEL\n"), "{}", calls());
        let before = calls();
        networks.remove("pod", &config, None).await.expect("nothing is left");
        networks.remove("never", &config, Some(&namespace)).await.expect("nothing was begun");
        assert_eq!(calls(), before);
        // What it was begun by cannot be read, and nothing is configured: nobody knows.
        std::fs::write(dir.path().join("cache/begun/lost"), "").expect("spoiled");
        networks.remove("lost", &config, None).await.expect_err("unknown");
    }
}
