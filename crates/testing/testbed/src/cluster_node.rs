//! A node of a real cluster: bed, control plane and the daemon between them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bed::tail;
use crate::registry::free_port;
use crate::{BedError, Bosun, BosunOptions, Cluster, ClusterOptions, Options, Subject, TestBed, wait_until};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// How the daemon proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// A kubeconfig with a certificate of the node.
    Certificate,
    /// A bootstrap token: it asks for a certificate of its own, and for one to serve with.
    Bootstrap,
}

/// How a cluster node is made.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The bed.
    pub bed: Options,
    /// The control plane.
    pub cluster: ClusterOptions,
    /// The daemon. What the cluster needs of its configuration and flags is added.
    pub bosun: BosunOptions,
    /// Who the daemon is.
    pub identity: Identity,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            bed: Options::default(),
            cluster: ClusterOptions::default(),
            bosun: BosunOptions::default(),
            identity: Identity::Certificate,
        }
    }
}

/// A daemon that serves a cluster. Field order is drop order.
pub struct ClusterNode {
    /// The daemon.
    pub bosun: Bosun,
    /// The control plane.
    pub cluster: Cluster,
    /// What both run in.
    pub bed: TestBed,
    name: String,
}

impl ClusterNode {
    /// Starts a bed, a control plane and the daemon; does not wait for the node to be ready.
    ///
    /// # Errors
    /// When one of them does not start.
    pub fn start(options: NodeOptions) -> Result<Self, BedError> {
        let mut bed = TestBed::start(options.bed)?;
        let cluster = Cluster::start(&mut bed, options.cluster)?;
        let mut daemon = options.bosun;
        let name = daemon.hostname.clone();
        daemon.flags.extend(flags(&bed, &cluster, &name, options.identity)?);
        let mut config = configuration(&bed, &cluster, &name, options.identity)?;
        if let (Some(own), Some(extra)) = (config.as_object_mut(), daemon.config.as_object()) {
            own.extend(extra.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        daemon.config = config;
        let bosun = Bosun::start(&mut bed, daemon)?;
        Ok(ClusterNode { bosun, cluster, bed, name })
    }

    /// Name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user that the daemon is, as audit logs show it.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:node:{}", self.name)
    }

    /// Folder of the daemon's own certificates.
    #[must_use]
    pub fn cert_dir(&self) -> PathBuf {
        self.bed.dir().join("pki")
    }

    /// Starts the daemon again after it ended or was killed.
    ///
    /// # Errors
    /// As [`Bosun::start_again`].
    pub fn start_again(&mut self) -> Result<(), BedError> {
        self.bosun.start_again(&mut self.bed)
    }

    /// The Node object.
    ///
    /// # Errors
    /// When there is none, or nobody answers.
    pub fn node(&self) -> Result<Value, BedError> {
        self.cluster.admin().get(&format!("/api/v1/nodes/{}", self.name))
    }

    /// Waits until the Node object looks as `good` says.
    ///
    /// # Errors
    /// After `limit`, with the object as last seen and the end of the daemon's log.
    pub fn wait_node<T>(&self, what: &str, limit: Duration, good: impl Fn(&Value) -> Option<T>) -> Result<T, BedError> {
        wait_until(&format!("the node {what}"), limit, || {
            let node = self.node().map_err(|e| e.to_string())?;
            good(&node).ok_or_else(|| format!("{:#}", node["status"]["conditions"]))
        })
        .map_err(|e| self.with_log(e))
    }

    /// Waits until the node is ready; answers the object.
    ///
    /// # Errors
    /// As [`ClusterNode::wait_node`].
    pub fn wait_ready(&self, limit: Duration) -> Result<Value, BedError> {
        self.wait_node("to be ready", limit, |n| ready(n).then(|| n.clone()))
    }

    /// Waits until the pod `name` (namespace `default`) looks as `good` says. `good` sees null while there is none.
    ///
    /// # Errors
    /// After `limit`, with the pod as last seen, its events and the end of the daemon's log.
    pub fn wait_pod<T>(
        &self,
        name: &str,
        what: &str,
        limit: Duration,
        mut good: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T, BedError> {
        let mut view = self.view(name);
        let found = wait_until(&format!("pod {name} {what}"), limit, || {
            // A watch may be refused, or end, with an API server that comes and goes.
            if view.as_ref().map_or(true, |(_, watch)| watch.ended()) {
                view = self.view(name);
            }
            let (first, watch) = view.as_ref().map_err(ToString::to_string)?;
            let pod = match watch.seen().pop() {
                None => first.clone(),
                Some(last) if last.kind == "DELETED" => Value::Null,
                // The server will not go on: all is looked at afresh.
                Some(last) if last.kind == "ERROR" => {
                    let why = last.object["message"].to_string();
                    view = self.view(name);
                    return Err(why);
                }
                Some(last) => last.object,
            };
            good(&pod).ok_or_else(|| format!("{:#}\n{:#}", pod["metadata"]["deletionTimestamp"], pod["status"]))
        });
        found
            .map_err(|e| match e {
                BedError::Timeout { what, limit, detail } => {
                    let events = self.events(name).unwrap_or_default();
                    let lines = events.iter().map(|e| format!("{} {}: {}\n", e["type"], e["reason"], e["message"]));
                    // Should the watch have missed something, this tells.
                    let now = match self.cluster.admin().request("GET", &format!("{PODS}/{name}"), None) {
                        Ok(answer) => {
                            format!("{} at version {}", answer.code, answer.body["metadata"]["resourceVersion"])
                        }
                        Err(e) => e.to_string(),
                    };
                    let detail = format!("{detail}\nasked now: {now}\n{}", lines.collect::<String>());
                    BedError::Timeout { what, limit, detail }
                }
                e => e,
            })
            .map_err(|e| self.with_log(e))
    }

    /// The pod as it is (null when it is not), and what happens to it from then on.
    fn view(&self, name: &str) -> Result<(Value, crate::Watch), BedError> {
        let (mut pods, watch) = self.cluster.admin().follow(&format!("{PODS}?fieldSelector=metadata.name={name}"))?;
        Ok((pods.pop().unwrap_or_default(), watch))
    }

    /// Events about the object `name` in the namespace `default`, oldest first.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn events(&self, name: &str) -> Result<Vec<Value>, BedError> {
        let path = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}");
        let mut events = self.cluster.admin().list(&path)?;
        events.sort_by_key(|e| e["firstTimestamp"].as_str().or(e["eventTime"].as_str()).map(str::to_owned));
        Ok(events)
    }

    /// What the container `container` of `pod` wrote so far, over all its starts, without the log's own columns.
    #[must_use]
    pub fn output(&self, pod: &Value, container: &str) -> String {
        let word = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
        let folder = format!("logs/{}_{}_{}/{container}", word("namespace"), word("name"), word("uid"));
        let entries = std::fs::read_dir(self.bed.dir().join(folder)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        files.sort();
        let text: String = files.iter().map(|f| std::fs::read_to_string(f).unwrap_or_default()).collect();
        text.lines().map(|l| l.splitn(4, ' ').nth(3).unwrap_or_default().to_owned() + "\n").collect()
    }

    fn with_log(&self, error: BedError) -> BedError {
        match error {
            BedError::Timeout { what, limit, detail } => {
                let log = tail(&self.bosun.log_path(), 40);
                BedError::Timeout { what, limit, detail: format!("{detail}\n{log}") }
            }
            e => e,
        }
    }
}

/// Whether a Node object says Ready.
fn ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn flags(bed: &TestBed, cluster: &Cluster, name: &str, identity: Identity) -> Result<Vec<String>, BedError> {
    let cert_dir = bed.dir().join("pki");
    let mut flags = vec![format!("--cert-dir={}", cert_dir.display())];
    match identity {
        Identity::Certificate => {
            flags.push(format!("--kubeconfig={}", cluster.node_kubeconfig(name)?.display()));
        }
        Identity::Bootstrap => {
            flags.push(format!("--kubeconfig={}", bed.dir().join("kubelet.conf").display()));
            flags.push(format!("--bootstrap-kubeconfig={}", cluster.bootstrap_kubeconfig()?.display()));
        }
    }
    Ok(flags)
}

/// What an installer writes for a node, with ports and addresses that let several nodes run on one machine.
fn configuration(bed: &TestBed, cluster: &Cluster, name: &str, identity: Identity) -> Result<Value, BedError> {
    let mut config = json!({
        "address": bed.node_ip(),
        "healthzPort": free_port()?,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true},
            "x509": {"clientCAFile": cluster.authority().certificate_path()},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": ["127.0.0.1"],
        "clusterDomain": "cluster.local",
        "rotateCertificates": true,
        "serverTLSBootstrap": identity == Identity::Bootstrap,
        "registerNode": true,
    });
    if identity == Identity::Certificate {
        // As an installer does that gives nodes their certificates.
        let hosts = vec![name.to_owned(), bed.node_ip(), "127.0.0.1".to_owned()];
        let files =
            cluster.authority().issue(&Subject { hosts, ..Subject::client(&format!("{name}-serving"), None) })?;
        config["tlsCertFile"] = json!(files.certificate);
        config["tlsPrivateKeyFile"] = json!(files.key);
    }
    Ok(config)
}
