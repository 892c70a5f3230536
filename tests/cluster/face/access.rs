//! Who gets in: decided by the cluster's own authenticator and authorizer.

use std::process::Command;

use serde_json::json;
use testbed::ClusterNode;

use crate::node::{SOON, create, lasting, start, wait_running};

const READERS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Asks the node itself; answers the status code (0: no connection) and the body.
fn ask(node: &ClusterNode, path: &str, more: &[&str]) -> (u16, String) {
    let authority = node.cluster.authority().certificate_path();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "20", "--path-as-is", "--write-out", "\n%{http_code}", "--cacert"])
        .arg(authority);
    curl.args(more).arg(format!("https://{}:10250{path}", node.bed.node_ip()));
    let output = String::from_utf8_lossy(&curl.output().expect("curl runs").stdout).into_owned();
    let (body, code) = output.rsplit_once('\n').expect("a code");
    (code.parse().unwrap_or(0), body.to_owned())
}

fn token(node: &ClusterNode, account: &str) -> String {
    let admin = node.cluster.admin();
    let path = "/api/v1/namespaces/default/serviceaccounts";
    admin
        .create(path, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}))
        .expect("made");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = admin.create(&format!("{path}/{account}/token"), &request).expect("a token");
    format!("Authorization: Bearer {}", answer["status"]["token"].as_str().expect("text"))
}

#[test]
fn the_cluster_decides_who_may_ask_the_node_for_what() {
    let node = start();
    create(&node, &lasting("box"));
    wait_running(&node, "box");
    let metrics = token(&node, "scraper");
    let nobody = token(&node, "nobody");
    let rules = json!([{"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "scrape"}, "rules": rules});
    node.cluster.admin().create(READERS, &role).expect("made");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "scrape"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scrape"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "scraper"}]});
    node.cluster.admin().create(BINDINGS, &binding).expect("made");
    // The API server's own caches learn of the binding in a moment, and denials are kept for 30 s by the node.
    testbed::wait_until("the scraper to get in", SOON, || match ask(&node, "/metrics", &["-H", &metrics]) {
        (200, _) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    let exec = "/exec/default/box/main?command=id&output=1";
    for (who, header, path, code) in [
        ("anonymous", None, "/pods", 401),
        ("anonymous", None, "/healthz", 401),
        ("anonymous", None, "/no/such/path", 401),
        ("a bad token", Some("Authorization: Bearer rubbish"), "/pods", 401),
        ("the scraper", Some(metrics.as_str()), "/metrics/cadvisor", 200),
        ("the scraper", Some(metrics.as_str()), "/pods", 403),
        ("the scraper", Some(metrics.as_str()), exec, 403),
        ("the scraper", Some(metrics.as_str()), "/metrics/../exec/default/box/main?command=id&output=1", 403),
        ("nobody", Some(nobody.as_str()), "/metrics", 403),
        ("nobody", Some(nobody.as_str()), "/no/such/path", 403),
    ] {
        let more: Vec<&str> = header.iter().flat_map(|h| ["-H", h]).collect();
        let (got, body) = ask(&node, path, &more);
        let refused_outright = code == 403 && path.contains("..") && got == 400;
        assert!(got == code || refused_outright, "{who} asks for {path}: {got} {body}");
    }
    let (_, body) = ask(&node, "/pods", &["-H", &nobody]);
    let user = "system:serviceaccount:default:nobody";
    assert_eq!(
        body.trim_end(),
        format!("Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[pods proxy])")
    );
    let pki = node.cluster.authority();
    let admin = pki.issue(&testbed::Subject::admin()).expect("a certificate");
    let expired = testbed::Subject { years: (2020, 2021), ..testbed::Subject::client("late", Some("system:masters")) };
    let expired = pki.issue(&expired).expect("a certificate");
    for (files, code) in [(&admin, 200), (&expired, 401)] {
        let (certificate, key) = (files.certificate.to_string_lossy(), files.key.to_string_lossy());
        let (got, body) = ask(&node, "/pods", &["--cert", &certificate, "--key", &key]);
        assert_eq!(got, code, "{certificate}: {body}");
    }
}
