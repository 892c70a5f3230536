//! What containers are given from objects: environment, image pull secrets, tokens.

use serde_json::{Value, json};
use testbed::{ClusterNode, Image, Login, Registry};

use crate::node::{
    LASTS, create, make, pod, shell, start, state, wait, wait_output, wait_phase, wait_reasons, wait_running,
};

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn secret(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// Runs a script once and answers what it wrote.
fn told(node: &ClusterNode, name: &str, script: &str, extra: Value) -> String {
    let spec = json!({"restartPolicy": "Never", "containers": [shell("main", script, extra)]});
    create(node, &pod(name, spec));
    let pod = wait_phase(node, name, "Succeeded");
    node.output(&pod, "main")
}

#[test]
fn environment_comes_from_config_maps_secrets_and_services() {
    let node = start();
    make(&node, "configmaps", &config_map("settings", json!({"COLOUR": "green", "size": "7"})));
    make(&node, "secrets", &secret("keys", json!({"password": "s3cr3t", "user": "anna"})));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front-door"},
        "spec": {"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 8443}]}});
    make(&node, "services", &service);
    let service = node.cluster.admin().get("/api/v1/namespaces/default/services/front-door").expect("a service");
    let ip = service["spec"]["clusterIP"].as_str().expect("a cluster IP").to_owned();
    let all = json!({"env": [
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "none", "optional": true}}},
        {"name": "SIZE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "size"}}},
        {"name": "TWICE", "value": "$(SIZE)$(SIZE)"}],
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"prefix": "K_", "secretRef": {"name": "keys"}}]});
    // A service reaches the node by a watch of its own, so the first pod may come too early for it.
    let mut attempts = 0;
    let env = testbed::wait_until("the service to be known", crate::node::SOON, || {
        attempts += 1;
        let text = told(&node, &format!("env-{attempts}"), "env", all.clone());
        if text.contains("FRONT_DOOR") { Ok(text) } else { Err(text) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let address = format!("FRONT_DOOR_SERVICE_HOST={ip}");
    let port = format!("FRONT_DOOR_PORT_8443_TCP=tcp://{ip}:8443");
    let server = format!("KUBERNETES_SERVICE_HOST={}", node.cluster.address());
    for line in [
        "PASSWORD=s3cr3t",
        "SIZE=7",
        "TWICE=77",
        "COLOUR=green",
        "K_user=anna",
        "K_password=s3cr3t",
        address.as_str(),
        "FRONT_DOOR_SERVICE_PORT=80",
        "FRONT_DOOR_SERVICE_PORT_HTTPS=8443",
        port.as_str(),
        server.as_str(),
        "KUBERNETES_SERVICE_PORT=443",
    ] {
        assert!(env.lines().any(|l| l == line), "{line} is missing:\n{env}");
    }
    assert!(!env.contains("MAYBE"), "optional and not there:\n{env}");
}

#[test]
fn service_links_can_be_left_out_but_the_api_server_stays() {
    let node = start();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hidden"},
        "spec": {"ports": [{"port": 80}]}});
    make(&node, "services", &service);
    let spec = json!({"restartPolicy": "Never", "enableServiceLinks": false,
        "containers": [shell("main", "env", json!({}))]});
    create(&node, &pod("alone", spec));
    let env = node.output(&wait_phase(&node, "alone", "Succeeded"), "main");
    assert!(env.contains("KUBERNETES_SERVICE_HOST=") && !env.contains("HIDDEN"), "{env}");
}

#[test]
fn a_missing_object_holds_the_container_until_it_is_there() {
    let node = start();
    let needs = json!({"env": [
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "colour"}}}]});
    let script = "echo colour $COLOUR; exec sleep 1000";
    create(&node, &pod("waits", json!({"containers": [shell("main", script, needs)]})));
    let waiting = wait(&node, "waits", "to miss its object", |p| {
        let waiting = state(p, "waiting");
        (waiting["reason"] == "CreateContainerConfigError").then(|| waiting.clone())
    });
    let message = waiting["message"].as_str().unwrap_or_default();
    assert!(message.contains("configmap \"late\" not found"), "{message}");
    wait_reasons(&node, "waits", &["Failed"]);
    make(&node, "configmaps", &config_map("late", json!({"size": "1"})));
    wait(&node, "waits", "to miss its key", |p| {
        let message = state(p, "waiting")["message"].as_str().unwrap_or_default().to_owned();
        message.contains("couldn't find key colour in ConfigMap default/late").then_some(())
    });
    let full = json!({"data": {"colour": "blue"}});
    node.cluster.admin().patch("/api/v1/namespaces/default/configmaps/late", &full).expect("patched");
    let pod = wait_running(&node, "waits");
    wait_output(&node, &pod, "the colour", |t| t.contains("colour blue"));
}

#[test]
fn an_image_is_pulled_with_the_password_that_the_pod_brings() {
    let mut node = start();
    let registry = Registry::start(&mut node.bed, "closed.example", Login::Password).expect("a registry");
    registry.push(&Image::busybox("app:1").expect("an image"), "app:1").expect("pushed with the password");
    let container = |image: &str| shell("main", LASTS, json!({"image": image, "imagePullPolicy": "Always"}));
    let image = "closed.example/app:1";
    create(&node, &pod("stranger", json!({"containers": [container(image)]})));
    wait(&node, "stranger", "to be turned away", |p| {
        let reason = state(p, "waiting")["reason"].clone();
        (reason == "ErrImagePull" || reason == "ImagePullBackOff").then_some(())
    });
    let logins = json!({"auths": {"closed.example": {"username": Registry::USER, "password": Registry::PASSWORD}}});
    let key = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": logins.to_string()}});
    make(&node, "secrets", &key);
    let spec = json!({"imagePullSecrets": [{"name": "login"}], "containers": [container(image)]});
    create(&node, &pod("guest", spec));
    let guest = wait_running(&node, "guest");
    assert!(guest["status"]["containerStatuses"][0]["imageID"].as_str().is_some_and(|id| !id.is_empty()));
    wait_reasons(&node, "guest", &["Pulling", "Pulled"]);

    // A service account may bring it, too: the API server copies it into its pods.
    let account = json!({"imagePullSecrets": [{"name": "login"}]});
    node.cluster.admin().patch("/api/v1/namespaces/default/serviceaccounts/default", &account).expect("patched");
    create(&node, &pod("member", json!({"containers": [container(image)]})));
    wait_running(&node, "member");
}

#[test]
fn a_process_talks_to_the_api_server_with_the_token_of_its_pod() {
    let node = start();
    // kubectl is a static program that finds server, authority and token where every client library does.
    let program = std::fs::read(node.cluster.kubectl_program()).expect("kubectl");
    let name = "docker.io/library/client:1";
    let image = Image::busybox(name).expect("an image").file("bin/kubectl", program, 0o755);
    node.bed.import(&image).expect("imported");
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "see"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "see"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]});
    node.cluster.admin().create(&format!("{rbac}/roles"), &role).expect("a role");
    node.cluster.admin().create(&format!("{rbac}/rolebindings"), &binding).expect("a binding");

    let script = "cd /var/run/secrets/kubernetes.io/serviceaccount; ls; echo in $(cat namespace); echo token $(cat token); \
                  kubectl get pod \"$HOSTNAME\" -o name && kubectl get nodes 2>&1; exec sleep 1000";
    let container = shell("main", script, json!({"image": name, "imagePullPolicy": "Never"}));
    create(&node, &pod("client", json!({"containers": [container]})));
    let pod = wait_running(&node, "client");
    let text = wait_output(&node, &pod, "its answers", |t| t.contains("forbidden"));
    for line in ["ca.crt", "namespace", "token", "in default", "pod/client"] {
        assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
    }
    assert!(text.contains("system:serviceaccount:default:default"), "{text}");

    // The same token, looked at from outside: it belongs to the pod and dies with it.
    let token = text.lines().find_map(|l| l.strip_prefix("token ")).expect("a token");
    let client = node.cluster.with_token(token).expect("a client");
    let path = format!("{}/client", crate::node::PODS);
    assert_eq!(client.get(&path).expect("allowed")["metadata"]["name"], "client");
    let asked = node.cluster.requests_by(&node.user()).expect("audit");
    let tokens = asked.iter().filter(|r| r.resource == "serviceaccounts/token" && r.code == 201).count();
    assert_eq!(tokens, 1, "one token for one pod");
    crate::node::delete(&node, "client");
    crate::node::wait_gone(&node, "client");
    testbed::wait_until("the token to be worth nothing", crate::node::SOON, || {
        match client.request("GET", &path, None).map_err(|e| e.to_string())?.code {
            401 => Ok(()),
            code => Err(code.to_string()),
        }
    })
    .expect("bound to the pod");
}
