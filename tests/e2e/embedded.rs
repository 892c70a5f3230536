//! The runtime within the daemon (`containerRuntimeEndpoint: embedded://`), whatever runtime the other tests have.

use std::process::Command;

use testbed::{Bosun, BosunOptions, Options, RuntimeKind, TestBed, identity, program_under_test};

use crate::node::{Node, block, shell};

mod kills;

fn node() -> Node {
    with(BosunOptions::default())
}

fn with(daemon: BosunOptions) -> Node {
    let options = Options { runtime: RuntimeKind::Own(program_under_test()), ..Options::default() };
    let mut bed = TestBed::start(options).expect("a bed");
    let bosun = Bosun::start(&mut bed, daemon).expect("bosun starts");
    Node { bosun, bed }
}

/// A pod that stays, with a container that ends at once when it is told to.
fn lasting(node: &Node, name: &str) {
    let script = "trap 'exit 0' TERM; while :; do sleep 0.2; done";
    let spec = format!("  terminationGracePeriodSeconds: 2\n  containers:\n{}", shell("main", script, ""));
    node.put(name, &spec);
}

#[test]
fn pods_run_with_nothing_else_installed_and_outlive_the_daemon_that_serves_them() {
    let mut node = node();
    lasting(&node, "a");
    let before = identity(&node.wait_running("a"));
    let info = node.bosun.get("node").expect("node");
    assert!(info["runtime"].as_str().is_some_and(|name| name.starts_with("bosun ")), "{info}");
    assert_eq!(info["events"], "cri-stream", "{info}");
    let list = block(async { node.cri().containers().await }).expect("others may ask at its socket");
    assert_eq!(list.len(), 1, "{list:?}");
    node.bosun.kill();
    node.bosun.start_again(&mut node.bed).expect("starts again");
    assert_eq!(identity(&node.wait_running("a")), before, "the same container");
    lasting(&node, "b");
    node.wait_running("b");
    node.remove("a");
    node.wait_gone("a");
}

#[test]
fn a_store_has_one_owner_and_who_comes_second_is_told() {
    let mut node = node();
    let file = node.bed.dir().join("runtime.toml");
    let second =
        Command::new(program_under_test()).arg("runtime").arg("--config").arg(&file).output().expect("it runs");
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && told.contains("serves this folder and holds its lock"), "{told}");
    // The other way round.
    node.bosun.kill();
    let mut first =
        Command::new(program_under_test()).arg("runtime").arg("--config").arg(&file).spawn().expect("it runs");
    testbed::wait_until("bosun runtime to serve", crate::node::SOON, || {
        std::os::unix::net::UnixStream::connect(node.bed.socket()).map(drop).map_err(|e| e.to_string())
    })
    .expect("it serves");
    let refused = node.bosun.start_again(&mut node.bed).expect_err("somebody else has the store").to_string();
    assert!(refused.contains("containerRuntimeEndpoint: embedded://) does not start"), "{refused}");
    assert!(refused.contains("runtime/lock: another `bosun runtime`"), "{refused}");
    first.kill().expect("killed");
    first.wait().expect("ended");
    node.bosun.start_again(&mut node.bed).expect("it is free now");
}

#[test]
fn a_file_that_cannot_be_is_told_by_check_config_and_at_the_start() {
    let node = node();
    let bad = node.bed.write("bad.toml", "state = \"run\"\n").expect("written");
    let endpoint = format!("--container-runtime-endpoint=embedded://{}", bad.display());
    let config = node.bed.dir().join("kubelet.yaml");
    for words in [["check-config", "--config"], ["run", "--config"]] {
        let out = Command::new(program_under_test()).args(words).arg(&config).arg(&endpoint).output().expect("it runs");
        let told = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert!(!out.status.success() && told.contains("bad.toml: state: run: not an absolute path"), "{told}");
    }
}
