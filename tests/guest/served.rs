//! A guest whose daemon has an API server in memory, and pods that come from there: those that can be evicted.

use serde_json::{Value, json};
use testbed::BUSYBOX_IMAGES;

use crate::node::Node;

/// Where the API server finds pods and tells its address.
pub(crate) const FOLDER: &str = "/run/api";
pub(crate) const KUBECONFIG: &str = "/etc/kubernetes/api.conf";

/// Starts API server, runtime and daemon in a guest without services, the daemon with these fields of its configuration.
pub(crate) fn serve(node: &Node, config: &Value) {
    serve_api(node, config);
    start(node);
}

/// The API server alone; the daemon is configured.
pub(crate) fn serve_api(node: &Node, config: &Value) {
    node.bring(env!("CARGO_BIN_EXE_fake-api"));
    node.configure(config);
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
}

/// The runtime and the daemon.
pub(crate) fn start(node: &Node) {
    node.up_with(&format!("--kubeconfig={KUBECONFIG}"));
}

/// `kill -9` of the daemon alone, and another one.
pub(crate) fn restart(node: &Node) {
    node.sh(&format!("svc kill bosun; svc bosun --kubeconfig={KUBECONFIG}"));
    node.wait("bosun to answer", || node.ask("actors").map(drop));
}

/// A pod of one container of busybox, with these fields of its spec.
pub(crate) fn create(node: &Node, name: &str, container: Value, spec: Value) {
    let mut container = container;
    container["name"] = json!("main");
    container["image"] = json!(BUSYBOX_IMAGES[0]);
    // As an API server fills in.
    container["imagePullPolicy"] = json!("IfNotPresent");
    container["terminationMessagePath"] = json!("/dev/termination-log");
    container["terminationMessagePolicy"] = json!("File");
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "spec": {
            "nodeName": "guest", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "automountServiceAccountToken": false,
            "enableServiceLinks": false, "dnsPolicy": "Default", "securityContext": {}, "containers": [container],
        },
    });
    let fields = pod["spec"].as_object_mut().expect("an object");
    fields.extend(spec.as_object().expect("an object").clone());
    lay(node, &format!("{name}.json"), &pod);
}

/// Any object, by its path in the API.
pub(crate) fn create_object(node: &Node, path: &str, object: &Value) {
    let name = path.replace('/', "-");
    lay(node, &format!("{name}.object"), &json!({"path": path, "object": object}));
}

/// A file in the API server's folder; whole, when it is found.
fn lay(node: &Node, name: &str, content: &Value) {
    node.guest.put(&format!("{FOLDER}/{name}.new"), &content.to_string()).expect("written");
    node.sh(&format!("mv {FOLDER}/{name}.new {FOLDER}/{name}"));
}

/// A user deletes it; it is gone when its containers are.
pub(crate) fn delete(node: &Node, name: &str) {
    let path = format!("api/v1/namespaces/default/pods/{name}");
    node.sh(&format!("curl -sSf --max-time 20 -X DELETE $(cat {FOLDER}/url)/{path} > /dev/null"));
}

/// Waits until the API server has it no more.
pub(crate) fn wait_gone(node: &Node, name: &str) {
    node.wait(&format!("pod {name} to go"), || match pod(node, name)? {
        gone if gone["code"] == 404 => Ok(()),
        pod => Err(pod["status"].to_string()),
    });
}

/// As the API server has it.
pub(crate) fn pod(node: &Node, name: &str) -> Result<Value, String> {
    get(node, &format!("namespaces/default/pods/{name}"))
}

/// `GET /api/v1/WHAT` of the API server.
pub(crate) fn get(node: &Node, what: &str) -> Result<Value, String> {
    let text = node.sh(&format!("curl -sS --max-time 20 $(cat {FOLDER}/url)/api/v1/{what}"));
    serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))
}

/// Waits until its container runs.
pub(crate) fn wait_running(node: &Node, name: &str) -> Value {
    node.wait(&format!("pod {name} to run"), || {
        let pod = pod(node, name)?;
        let runs = pod["status"]["containerStatuses"][0]["state"]["running"].is_object();
        if runs { Ok(pod) } else { Err(pod["status"].to_string()) }
    })
}

/// Waits until it has failed; answers it.
pub(crate) fn wait_failed(node: &Node, name: &str) -> Value {
    node.wait(&format!("{name} to have failed"), || {
        let pod = pod(node, name)?;
        if pod["status"]["phase"] == "Failed" { Ok(pod) } else { Err(pod["status"].to_string()) }
    })
}

/// Waits until it was evicted; answers the message.
pub(crate) fn wait_evicted(node: &Node, name: &str) -> String {
    let evicted = wait_failed(node, name);
    assert_eq!(evicted["status"]["reason"], "Evicted", "{}", evicted["status"]);
    evicted["status"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Waits until the Node has a pressure condition like this.
pub(crate) fn wait_condition(node: &Node, kind: &str, status: &str) {
    node.wait(&format!("{kind} to be {status}"), || {
        let told = get(node, "nodes/guest")?["status"]["conditions"].clone();
        let is_it = |c: &Value| c["type"] == kind && c["status"] == status;
        if told.as_array().is_some_and(|all| all.iter().any(is_it)) { Ok(()) } else { Err(told.to_string()) }
    });
}
