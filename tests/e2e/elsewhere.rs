//! bosun's own managers in processes of their own (`bosun serve`), each that may be so, under pods of manifests that run, start and
//! end: swapped with those that are built in (`SWAPS=200 SWAP_PODS=110` is the long form), and killed at any moment (`KILLS=100`).

use serde_json::{Value, json};
use testbed::{Bosun, BosunOptions, Lasting, Place, Processes, TestBed, kills, swaps, wait_until, wanted};

use crate::node::{Node, SOON};

impl Place for Node {
    fn parts(&mut self) -> (&Bosun, &mut TestBed) {
        (&self.bosun, &mut self.bed)
    }

    fn bosun(&self) -> &Bosun {
        &self.bosun
    }

    fn bed(&self) -> &TestBed {
        &self.bed
    }

    fn create(&self, name: &str, spec: Value) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        self.bosun.put(&format!("{name}.yaml"), &pod.to_string()).expect("written");
    }

    fn remove(&self, name: &str) {
        Node::remove(self, name);
    }

    fn wait(&self, name: &str, what: &str, good: &dyn Fn(&Value) -> bool) -> Value {
        let pod = self.bosun.wait_pod(name, what, SOON * 10, |pod| good(pod).then(|| pod.clone()));
        pod.unwrap_or_else(|e| panic!("{e}"))
    }

    fn wait_gone(&self, name: &str) {
        wait_until(&format!("{name} to end"), SOON, || match self.bosun.pod(name) {
            Ok(None) => Ok(()),
            Ok(Some(pod)) => Err(format!("{}\n{}", pod["status"], self.bosun.log())),
            Err(e) => Err(e.to_string()),
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }

    fn full_name(&self, name: &str) -> String {
        format!("{name}-bed")
    }
}

fn node(flags: Vec<String>) -> Node {
    Node::with(BosunOptions { flags, config: json!({"syncFrequency": "60s"}), ..BosunOptions::default() })
}

#[test]
fn swaps_of_all_managers_cost_no_restart_no_readiness_no_status_and_no_probe() {
    let pods = wanted("SWAP_PODS", 5);
    let mut node = node(Vec::new());
    let lasting = Lasting::start(&node, pods);
    swaps(&mut node, &lasting, wanted("SWAPS", 16));
    lasting.are_as_before(&node);
    let line = node.bosun.get("managers/probes").expect("answered");
    assert_eq!(line["remembered"], pods, "{line}");
}

#[test]
fn managers_that_are_killed_at_any_moment_are_followed_by_those_that_are_built_in() {
    let mut processes = Processes::default();
    let mut node = node(processes.flags());
    let lasting = Lasting::start(&node, 3);
    kills(&mut node, &mut processes, &lasting, wanted("KILLS", 3));
    lasting.are_as_before(&node);
}
