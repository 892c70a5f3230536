//! The cluster itself, without bosun: what the other tests stand on.

use serde_json::json;
use testbed::{Cluster, ClusterOptions, Options, Subject, TestBed};

#[test]
fn a_control_plane_starts_serves_and_leaves_nothing() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let dir = bed.dir().to_owned();
    let begin = std::time::Instant::now();
    let mut cluster = Cluster::start(&mut bed, ClusterOptions::default()).expect("a cluster");
    println!("{} started in {:?}", cluster.version(), begin.elapsed());
    let version = cluster.kubectl(&["version", "-o", "json"]).expect("kubectl talks to it");
    let version: serde_json::Value = serde_json::from_str(&version).expect("JSON");
    assert_eq!(version["serverVersion"]["gitVersion"], cluster.version().as_str(), "{version}");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}});
    cluster.apply(&map).expect("applied");
    let path = "/api/v1/namespaces/default/configmaps/m";
    assert_eq!(cluster.admin().get(path).expect("is there")["data"]["k"], "v");

    cluster.stop_apiserver();
    cluster.admin().get(path).expect_err("nobody answers");
    cluster.start_apiserver(&mut bed).expect("comes back");
    assert_eq!(cluster.admin().get(path).expect("was kept")["data"]["k"], "v");
    let begin = std::time::Instant::now();
    cluster.restart_empty(&mut bed).expect("comes back empty");
    println!("started again in {:?}", begin.elapsed());
    assert_eq!(cluster.admin().request("GET", path, None).expect("answers").code, 404);

    drop(cluster);
    assert_eq!(bed.close(), Vec::<String>::new());
    assert!(!dir.exists());
}

#[test]
fn nodes_may_touch_themselves_and_no_other() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let cluster = Cluster::start(&mut bed, ClusterOptions::default()).expect("a cluster");
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let files = cluster.authority().issue(&Subject::node("one")).expect("a certificate");
    let one = cluster.with_certificate(&files).expect("a client");
    one.create("/api/v1/nodes", &node("one")).expect("a node may register itself");
    let refused = one.request("POST", "/api/v1/nodes", Some(&node("two"))).expect("answers");
    assert_eq!(refused.code, 403, "NodeRestriction: {:?}", refused.body);
    cluster.admin().create("/api/v1/nodes", &node("two")).expect("the admin may");
    let patch = json!({"status": {"phase": "x"}});
    let refused = one.request("PATCH", "/api/v1/nodes/two/status", Some(&patch)).expect("answers");
    assert_eq!(refused.code, 403, "{:?}", refused.body);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    cluster.admin().create("/api/v1/namespaces/default/secrets", &secret).expect("created");
    let path = "/api/v1/namespaces/default/secrets/s";
    assert_eq!(one.request("GET", path, None).expect("answers").code, 403, "no pod of the node needs it");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "one",
        "containers": [{"name": "c", "image": "i", "env": [
            {"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}});
    let pods = cluster.admin().watch("/api/v1/namespaces/default/pods").expect("a watch");
    cluster.admin().create("/api/v1/namespaces/default/pods", &pod).expect("created");
    testbed::wait_until("the node to be let at the secret", std::time::Duration::from_secs(10), || {
        let answer = one.request("GET", path, None).map_err(|e| e.to_string())?;
        if answer.good() { Ok(()) } else { Err(answer.body.to_string()) }
    })
    .expect("allowed as soon as its pod needs it");
    testbed::wait_until("the watch to tell of the pod", std::time::Duration::from_secs(10), || {
        match pods.about("p").first().map(|e| e.kind.clone()) {
            Some(kind) if kind == "ADDED" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .expect("told");
    let asked = cluster.requests_by("system:node:one").expect("audit");
    assert!(asked.iter().any(|r| r.resource == "secrets" && r.code == 403), "{asked:?}");
}

#[test]
fn nothing_falls_between_a_list_and_its_watch() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let cluster = Cluster::start(&mut bed, ClusterOptions::default()).expect("a cluster");
    let admin = cluster.admin();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    admin.create(maps, &map).expect("created");
    let meanwhile = || {
        admin.delete(&format!("{maps}/m")).expect("deleted");
        admin.create(maps, &map).expect("created again");
    };
    let one = format!("{maps}?fieldSelector=metadata.name=m");
    let (items, watch) = admin.follow_after(&one, meanwhile).expect("a list and a watch");
    let told = testbed::wait_until("the watch to tell of both", std::time::Duration::from_secs(10), || {
        let kinds: Vec<String> = watch.seen().into_iter().map(|e| e.kind).collect();
        if kinds.len() > 1 { Ok(kinds) } else { Err(format!("{kinds:?}")) }
    })
    .expect("told");
    assert_eq!((items.len(), told), (1, vec!["DELETED".to_owned(), "ADDED".to_owned()]));
}
