//! A node short of memory on cgroup v2, at its own pace: who goes, and who does not.

use serde_json::{Value, json};
use testbed::BUSYBOX_IMAGES;

use crate::node::Node;

const FOLDER: &str = "/run/api";
const KUBECONFIG: &str = "/etc/kubernetes/api.conf";
/// Below this pods go, in MiB.
const THRESHOLD: u64 = 200;

/// A guest whose daemon has an API server in memory.
fn node() -> Node {
    let node = Node::without_services();
    for (name, program) in [("fake-api", env!("CARGO_BIN_EXE_fake-api")), ("hog", env!("CARGO_BIN_EXE_hog"))] {
        std::fs::copy(program, node.guest.share_dir().join(name)).expect("copied");
    }
    node.configure(&json!({
        "evictionHard": {"memory.available": format!("{THRESHOLD}Mi")}, "evictionPressureTransitionPeriod": "1s",
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}}, "authorization": {"mode": "AlwaysAllow"},
    }));
    node.sh(&format!("mkdir -p {FOLDER}; setsid /share/fake-api {FOLDER} > /var/log/fake-api.log 2>&1 < /dev/null &"));
    let url = node.wait("the API server", || match node.sh(&format!("cat {FOLDER}/url 2> /dev/null || true")) {
        url if url.is_empty() => Err("no address".to_owned()),
        url => Ok(url),
    });
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}], "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    node.guest.put(KUBECONFIG, &config.to_string()).expect("written");
    node.sh(&format!("svc containerd; svc bosun --kubeconfig={KUBECONFIG}"));
    node.wait("bosun to answer", || node.ask("actors").map(drop));
    node
}

fn create(node: &Node, name: &str, container: Value) {
    let mut container = container;
    container["name"] = json!("main");
    container["image"] = json!(BUSYBOX_IMAGES[0]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "spec": {
            "nodeName": "guest", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "automountServiceAccountToken": false,
            "enableServiceLinks": false, "dnsPolicy": "Default",
            "containers": [container],
            "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        },
    });
    node.guest.put(&format!("{FOLDER}/{name}.new"), &pod.to_string()).expect("written");
    // Whole, when it is found.
    node.sh(&format!("mv {FOLDER}/{name}.new {FOLDER}/{name}.json"));
}

fn pod(node: &Node, name: &str) -> Result<Value, String> {
    let text = node.sh(&format!("curl -sS --max-time 20 $(cat {FOLDER}/url)/api/v1/namespaces/default/pods/{name}"));
    serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))
}

fn wait_running(node: &Node, name: &str) -> Value {
    node.wait(&format!("pod {name} to run"), || {
        let pod = pod(node, name)?;
        let runs = pod["status"]["containerStatuses"][0]["state"]["running"].is_object();
        if runs { Ok(pod) } else { Err(pod["status"].to_string()) }
    })
}

/// Processes that the kernel killed for lack of memory.
fn oom_kills(node: &Node) -> u64 {
    node.sh("awk '/^oom_kill / { print $2 }' /proc/vmstat").trim().parse().expect("a number")
}

/// Bytes that the message says were left.
fn left(message: &str) -> Option<u64> {
    let amount = message.split_once(", available: ")?.1.split_once('.')?.0;
    let (number, unit) = amount.strip_suffix("Ki").map_or((amount, 1), |n| (n, 1024));
    let (number, unit) = number.strip_suffix("Mi").map_or((number, unit), |n| (n, 1 << 20));
    Some(number.parse::<u64>().ok()? * unit)
}

/// One that takes memory at such a pace goes, and nobody else, before the kernel kills anybody.
fn burst(node: &Node, mib_per_second: u32) {
    let (name, before) = (format!("hog-{mib_per_second}"), oom_kills(node));
    let innocents = ["calm", "dear"].map(|name| wait_running(node, name));
    let command = json!(["chroot", "/host", "/share/hog", mib_per_second.to_string()]);
    let requests = json!({"requests": {"memory": "1Mi"}});
    create(
        node,
        &name,
        json!({"command": command, "resources": requests, "volumeMounts": [{"name": "host", "mountPath": "/host"}]}),
    );
    let evicted = node.wait(&format!("{name} to be evicted"), || {
        let pod = pod(node, &name)?;
        if pod["status"]["reason"] == "Evicted" { Ok(pod) } else { Err(pod["status"].to_string()) }
    });
    let message = evicted["status"]["message"].as_str().unwrap_or_default().to_owned();
    let left = left(&message).unwrap_or_else(|| panic!("{message}"));
    println!(
        "{mib_per_second} MiB/s: evicted with {} MiB left of a threshold of {THRESHOLD} MiB: {message}",
        left >> 20
    );
    assert_eq!(oom_kills(node), before, "the kernel killed nobody");
    for innocent in innocents {
        let name = innocent["metadata"]["name"].as_str().expect("a name");
        assert_eq!(testbed::identity(&wait_running(node, name)), testbed::identity(&innocent), "{name} runs on");
    }
    node.wait("the pressure to go", || {
        let condition = node.ask("node")?;
        if condition.to_string().contains("MemoryPressure\",\"True") { Err(condition.to_string()) } else { Ok(()) }
    });
}

#[test]
fn who_takes_all_memory_goes_before_the_kernel_kills_anybody_however_fast_it_is() {
    let node = node();
    let sleeps = json!(["sleep", "100000"]);
    create(&node, "calm", json!({"command": sleeps, "resources": {"requests": {"memory": "32Mi"}}}));
    create(
        &node,
        "dear",
        json!({"command": sleeps, "resources": {"requests": {"memory": "32Mi"}, "limits": {"memory": "32Mi"}}}),
    );
    for name in ["calm", "dear"] {
        wait_running(&node, name);
    }
    for pace in [50, 200, 1000] {
        burst(&node, pace);
    }
}
