//! The program of `docs/replace-a-manager.md`, built outside of this workspace.

use std::process::Command;

use testbed::BosunOptions;

use crate::node::{Node, shell};

#[test]
fn a_program_of_ones_own_is_a_node_with_its_own_probe_manager() {
    let program = std::env::var_os("REPLACED_PROBES_BIN").expect("`cargo xtask e2e` builds it and says where it is");
    let version = Command::new(&program).arg("--version").output().expect("it starts");
    assert!(version.status.success() && version.stdout.starts_with(b"bosun "), "{version:?}");

    let node = Node::with(BosunOptions { program: program.into(), ..BosunOptions::default() });
    let fails = "    readinessProbe: {exec: {command: [\"false\"]}, periodSeconds: 1}\n";
    node.put("web", &format!("  containers:\n{}", shell("main", "exec sleep 1000", fails)));
    // Its ProbeManager runs no probe: what runs is ready. With ours the pod never is.
    let pod = node.wait("web", "to be ready", |p| {
        let conditions = p["status"]["conditions"].as_array()?;
        conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True").then(|| p.clone())
    });
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true, "{pod}");
    let actors = node.bosun.actors().expect("actors");
    let probes = actors.iter().find(|a| a["name"] == "probe-manager").expect("by the name of the role");
    assert_eq!(probes["restarts"], 0, "{probes}");
}
