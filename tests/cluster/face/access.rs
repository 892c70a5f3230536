//! Who gets in: decided by the cluster's own authenticator and authorizer.

use serde_json::json;
use testbed::{Access, ClusterNode};

use crate::node::{SOON, create, lasting, start, wait_running};

const READERS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Asks the node itself; answers the status code and the body.
pub(super) fn ask(node: &ClusterNode, who: &Access, path: &str) -> (u16, String) {
    let answer = who.at(&node.bed.node_ip(), 10250).request("GET", path, None).expect("an answer");
    let body = answer.body.as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
    (answer.code, body)
}

/// A service account of that name.
pub(super) fn account(node: &ClusterNode, account: &str) -> Access {
    let admin = node.cluster.admin();
    let path = "/api/v1/namespaces/default/serviceaccounts";
    admin
        .create(path, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}))
        .expect("made");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = admin.create(&format!("{path}/{account}/token"), &request).expect("a token");
    node.cluster.with_token(answer["status"]["token"].as_str().expect("text")).expect("a client")
}

#[test]
fn the_cluster_decides_who_may_ask_the_node_for_what() {
    let node = start();
    create(&node, &lasting("box"));
    wait_running(&node, "box");
    let anonymous = node.cluster.anonymous().expect("a client");
    let rubbish = node.cluster.with_token("rubbish").expect("a client");
    let scraper = account(&node, "scraper");
    let nobody = account(&node, "nobody");
    let rules = json!([{"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "scrape"}, "rules": rules});
    node.cluster.admin().create(READERS, &role).expect("made");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "scrape"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scrape"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "scraper"}]});
    node.cluster.admin().create(BINDINGS, &binding).expect("made");
    // The API server's own caches learn of the binding in a moment, and denials are kept for 30 s by the node.
    testbed::wait_until("the scraper to get in", SOON, || match ask(&node, &scraper, "/metrics") {
        (200, _) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    let exec = "/exec/default/box/main?command=id&output=1";
    for (name, who, path, code) in [
        ("anonymous", &anonymous, "/pods", 401),
        ("anonymous", &anonymous, "/healthz", 401),
        ("anonymous", &anonymous, "/no/such/path", 401),
        ("a bad token", &rubbish, "/pods", 401),
        ("the scraper", &scraper, "/metrics/cadvisor", 200),
        ("the scraper", &scraper, "/pods", 403),
        ("the scraper", &scraper, exec, 403),
        ("the scraper", &scraper, "/metrics/../exec/default/box/main?command=id&output=1", 400),
        ("nobody", &nobody, "/metrics", 403),
        ("nobody", &nobody, "/no/such/path", 403),
    ] {
        let (got, body) = ask(&node, who, path);
        assert_eq!(got, code, "{name} asks for {path}: {body}");
    }
    let (_, body) = ask(&node, &nobody, "/pods");
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
        let who = node.cluster.with_certificate(files).expect("a client");
        let (got, body) = ask(&node, &who, "/pods");
        assert_eq!(got, code, "{}: {body}", files.certificate.display());
    }
}
