//! The real plugins, in network namespaces of their own: one stands for the node, one for the pod.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cni::{Attachment, Cni};
use serde_json::json;

use crate::bed::list;

const PLUGINS: &str = "/usr/lib/cni";
/// Names the bed to the process that stands for the node.
const NODE: &str = "CNI_BRIDGE_NODE";

/// Needs root, and the plugins of Debian's `containernetworking-plugins`: `cargo nextest run` leaves it out.
#[tokio::test]
async fn the_bridge_plugin_gives_an_address_and_takes_it_back() {
    assert!(Path::new(PLUGINS).join("bridge").exists(), "no {PLUGINS}/bridge: install containernetworking-plugins");
    let Some(dir) = std::env::var_os(NODE).map(PathBuf::from) else { return in_a_namespace() };
    let cni = Cni { programs: vec![PLUGINS.into()], cache: dir.join("cache"), limit: Duration::from_secs(30) };
    let pod = dir.join("pod");
    std::fs::write(&pod, "").expect("file");
    let made = Command::new("unshare").arg(format!("--net={}", pod.display())).arg("true").status();
    assert!(made.expect("unshare").success());
    let ipam = json!({"type": "host-local", "subnet": "10.99.0.0/24", "dataDir": dir.join("ipam"), "routes": [{"dst": "0.0.0.0/0"}]});
    let net = list("1.0.0", json!([{"type": "bridge", "bridge": "tst0", "isGateway": true, "ipam": ipam}]));
    let to = Attachment {
        container: "pod1".into(),
        namespace: Some(pod.clone()),
        interface: "eth0".into(),
        ..Default::default()
    };
    let result = cni.add(&net, &to).await.expect("added");
    assert_eq!(result.addresses("eth0"), ["10.99.0.2"]);
    cni.check(&net, &to).await.expect("as it was");
    let seen = Command::new("nsenter").arg(format!("--net={}", pod.display())).args(["cat", "/proc/net/dev"]).output();
    assert!(String::from_utf8_lossy(&seen.expect("nsenter").stdout).contains("eth0:"));
    for _ in 0..2 {
        cni.del(&net, &to).await.expect("taken back");
    }
    assert!(!dir.join("ipam/net/10.99.0.2").exists(), "its address is free");
    // Whoever held the namespace let go of it first: its file is there, with nothing mounted on it.
    cni.add(&net, &to).await.expect("added");
    rustix::mount::unmount(&pod, rustix::mount::UnmountFlags::DETACH).expect("unmount");
    assert!(pod.exists());
    assert_eq!(cni.del_all("pod1").await.expect("taken back"), 1);
    assert!(!dir.join("ipam/net/10.99.0.3").exists(), "its address is free");
}

/// Runs the test in network and mount namespaces of its own.
fn in_a_namespace() {
    let dir = tempfile::tempdir().expect("folder");
    let me = std::env::current_exe().expect("this program");
    let out = Command::new("unshare")
        .args(["--net", "--mount"])
        .arg(me)
        .args(["--exact", "bridge::the_bridge_plugin_gives_an_address_and_takes_it_back", "--nocapture"])
        .env(NODE, dir.path())
        .output()
        .expect("unshare");
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}
