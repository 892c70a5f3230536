//! As `tests/e2e/elsewhere.rs`, with pods of an API server: what it was told of them, version by version, is looked at, too.

use serde_json::{Value, json};
use testbed::{
    Bosun, BosunOptions, ClusterNode, Lasting, MANAGERS, NodeOptions, Place, Processes, TestBed, Watch, identity,
    kills, swaps, wait_served, wanted,
};

use crate::node::{PODS, SOON, condition, create, delete, kubectl, make, pod, start_with};

impl Place for Served {
    fn parts(&mut self) -> (&Bosun, &mut TestBed) {
        (&self.0.bosun, &mut self.0.bed)
    }

    fn bosun(&self) -> &Bosun {
        &self.0.bosun
    }

    fn bed(&self) -> &TestBed {
        &self.0.bed
    }

    /// With a volume whose content the API server has.
    fn create(&self, name: &str, mut spec: Value) {
        let more = [
            ("volumes", json!({"name": "words", "configMap": {"name": "words"}})),
            ("volumeMounts", json!({"name": "words", "mountPath": "/words"})),
        ];
        for (field, value) in more {
            let at = if field == "volumes" { &mut spec } else { &mut spec["containers"][0] };
            at[field].as_array_mut().expect("it has some").push(value);
        }
        create(&self.0, &pod(name, spec));
    }

    fn remove(&self, name: &str) {
        delete(&self.0, name);
    }

    fn wait(&self, name: &str, what: &str, good: &dyn Fn(&Value) -> bool) -> Value {
        let pod = self.0.wait_pod(name, what, SOON * 5, |pod| good(pod).then(|| pod.clone()));
        pod.unwrap_or_else(|e| panic!("{e}"))
    }

    fn wait_gone(&self, name: &str) {
        crate::node::wait_gone(&self.0, name);
    }

    fn full_name(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// A node whose pods are all of an API server.
struct Served(ClusterNode);

fn served(flags: Vec<String>) -> Served {
    let config = json!({"syncFrequency": "60s", "maxPods": 250, "kubeAPIQPS": 100, "kubeAPIBurst": 200});
    let bosun = BosunOptions { flags, config, ..BosunOptions::default() };
    let node = start_with(NodeOptions { bosun, ..NodeOptions::default() });
    make(
        &node,
        "configmaps",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"a": "b"}}),
    );
    Served(node)
}

/// Those that last, and all that the API server is told from then on.
fn lasting(served: &Served, pods: usize) -> (Lasting, Watch) {
    let lasting = Lasting::start(served, pods);
    let watch = served.0.cluster.admin().watch(PODS).expect("a watch");
    (lasting, watch)
}

/// Each version of a lasting pod says what the one before said of its containers and of its readiness, and nobody's status was said
/// as it was before.
fn was_told_well(watch: &Watch) {
    assert!(!watch.ended(), "all was seen");
    let seen = watch.seen();
    assert!(!seen.is_empty(), "pods came and went");
    for pod in
        seen.iter().map(|s| &s.object).filter(|p| p["metadata"]["name"].as_str().is_some_and(|n| n.starts_with("web")))
    {
        assert_eq!(condition(pod, "Ready")["status"], "True", "{pod}");
        assert_eq!(identity(pod)[0].1, 0, "{pod}");
    }
    let phases = ["Pending", "Running", "Succeeded", "Failed"];
    let mut last = std::collections::BTreeMap::new();
    for pod in seen.iter().map(|s| &s.object) {
        let (uid, phase) = (pod["metadata"]["uid"].to_string(), pod["status"]["phase"].as_str().unwrap_or_default());
        let phase = phases.iter().position(|p| *p == phase).unwrap_or_else(|| panic!("{pod}"));
        let before = last.insert(uid, phase).unwrap_or_default();
        assert!(before <= phase, "its phase went back: {pod}");
    }
}

#[test]
fn swaps_of_all_managers_under_pods_of_a_cluster_cost_no_restart_no_readiness_no_status_and_no_probe() {
    let mut served = served(Vec::new());
    let (lasting, watch) = lasting(&served, wanted("SWAP_PODS", 3));
    swaps(&mut served, &lasting, wanted("SWAPS", 8));
    lasting.are_as_before(&served);
    was_told_well(&watch);
}

#[test]
fn managers_of_a_cluster_node_that_are_killed_are_followed_by_those_that_are_built_in() {
    let mut processes = Processes::default();
    let mut served = served(processes.flags());
    let (lasting, watch) = lasting(&served, 3);
    kills(&mut served, &mut processes, &lasting, wanted("KILLS", 2));
    lasting.are_as_before(&served);
    was_told_well(&watch);
}

/// The sum of a family's series that hold these words.
fn told(served: &Served, path: &str, family: &str, words: &str) -> f64 {
    let text = kubectl(&served.0, &["get", "--raw", &format!("/api/v1/nodes/bed/proxy/{path}")]);
    let lines = text.lines().filter(|line| line.starts_with(family) && line.contains(words));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn what_managers_elsewhere_count_is_told_with_the_metrics_of_the_node() {
    let mut processes = Processes::default();
    let mut served = served(processes.flags());
    processes.start_all(&mut served);
    MANAGERS.into_iter().for_each(|manager| wait_served(&served, manager, &processes.address(manager)));
    let lasting = Lasting::start(&served, 1);
    let probes = |served: &Served| told(served, "metrics/probes", "prober_probe_total{", "pod=\"web0\"");
    let images = |served: &Served| told(served, "metrics", "kubelet_image_manager_ensure_image_requests_total{", "");
    let (probed, asked) = (probes(&served), images(&served));
    assert!(probed >= 1.0 && asked >= 1.0, "{probed} probes, {asked} images, none of them by the daemon itself");
    processes.kill("images");
    wait_served(&served, "images", "builtin");
    assert!(images(&served) >= asked, "what the process had counted when it was last asked stays");
    lasting.are_as_before(&served);
}
