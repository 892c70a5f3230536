//! A Go kubelet in the place of bosun in the same guest (`KUBELET=PATH`, feature `kubelet`).

use serde_json::Value;

use crate::node::Node;
#[cfg(feature = "kubelet")]
use crate::served::KUBECONFIG;
use crate::served::{get, serve, serve_api};

/// Who serves the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Agent {
    Bosun,
    #[cfg_attr(not(feature = "kubelet"), expect(dead_code, reason = "only the tests with a Go kubelet have one"))]
    Kubelet,
}

impl Agent {
    /// Starts API server, containerd and agent, which is configured like this.
    pub(crate) fn serve(self, node: &Node, config: &Value) {
        match self {
            Agent::Bosun => serve(node, config),
            Agent::Kubelet => serve_kubelet(node, config),
        }
        node.wait("the node to be ready", || {
            let told = get(node, "nodes/guest")?["status"]["conditions"].clone();
            let is_ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
            if told.as_array().is_some_and(|all| all.iter().any(is_ready)) { Ok(()) } else { Err(told.to_string()) }
        });
    }
}

#[cfg(not(feature = "kubelet"))]
fn serve_kubelet(node: &Node, config: &Value) {
    serve_api(node, config);
    panic!("built without a kubelet (feature `kubelet`)");
}

#[cfg(feature = "kubelet")]
fn serve_kubelet(node: &Node, config: &Value) {
    let mut config = config.clone();
    // The API server in memory speaks JSON alone, and has no streams of lists.
    config["contentType"] = "application/json".into();
    serve_api(node, &config);
    let program = std::env::var("KUBELET").expect("KUBELET=PATH of a Go kubelet");
    std::fs::copy(&program, node.guest.share_dir().join("kubelet")).unwrap_or_else(|e| panic!("{program}: {e}"));
    // It wants to know how fast the processor is, which this kernel does not tell.
    node.sh(
        "set -e; { cat /proc/cpuinfo; echo 'cpu MHz : 2000.000'; } | grep -v '^$' > /run/cpuinfo; mount --bind /run/cpuinfo /proc/cpuinfo",
    );
    // It ends where no runtime answers.
    node.sh("svc containerd; until ctr version > /dev/null 2>&1; do sleep 1; done");
    node.sh(&format!("KUBE_FEATURE_WatchListClient=false svc kubelet --kubeconfig={KUBECONFIG}"));
}
