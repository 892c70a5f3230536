//! The program of `docs/examples/remote-probes`: bosun's own ProbeManager in a process of its own, as the configuration names it.
//! `elsewhere.rs` has all managers of a node in processes of their own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testbed::{BosunOptions, wait_until};

use crate::node::{Node, SOON, shell};

/// A worker says again what is to be probed with its next step, which comes so often in this test, and half of it later at most.
const STEP: &str = "5s";

/// The program in a folder that it makes, both gone with this.
struct Probes {
    folder: PathBuf,
    child: Option<Child>,
}

impl Probes {
    fn new() -> Self {
        // Tests of one process have a folder each.
        let name = format!("bosun-remote-{}-{:?}", std::process::id(), std::thread::current().id());
        Probes { folder: std::env::temp_dir().join(name), child: None }
    }

    fn address(&self) -> String {
        format!("unix://{}/probes.sock", self.folder.display())
    }

    fn start(&mut self) {
        let program = std::env::var_os("REMOTE_PROBES_BIN").expect("`cargo xtask e2e` builds it and says where it is");
        let mut command = Command::new(program);
        let child = command.args(["--at", &self.address()]).stderr(Stdio::null()).spawn().expect("it starts");
        self.child = Some(child);
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it ran");
            child.wait().expect("reaped");
        }
    }

    /// Memory that it holds, in KiB.
    fn resident_kib(&self) -> u64 {
        let pid = self.child.as_ref().expect("it runs").id();
        let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).expect("it runs");
        let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.kill();
        if let Err(e) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {e}", self.folder.display());
        }
    }
}

pub(crate) fn ready(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|c| c["type"] == "Ready")?["status"].as_str()
}

fn wait_ready(node: &Node, wanted: &str) {
    let what = format!("to have Ready {wanted}");
    let pod = node.bosun.wait_pod("web", &what, SOON, |p| (ready(p) == Some(wanted)).then(|| p.clone()));
    let pod = pod.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{pod}");
}

/// How often the audit has these words; the event about the same thing is logged, too.
fn wait_said(node: &Node, words: &str, times: usize) {
    wait_until(words, SOON, || {
        let log = std::fs::read_to_string(node.bosun.log_path()).map_err(|e| e.to_string())?;
        let said = log.lines().filter(|l| l.contains(words) && l.ends_with("role=\"ProbeManager\"")).count();
        if said == times { Ok(()) } else { Err(format!("{said} times\n{}", node.bosun.log())) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn probes_in_a_process_of_their_own_are_those_of_the_node_whatever_becomes_of_it() {
    let mut probes = Probes::new();
    probes.start();
    let flags = vec![format!("--manager=probes={},whenAway=builtin,probation=0s", probes.address())];
    let node = Node::with(BosunOptions { flags, config: json!({"syncFrequency": STEP}), ..BosunOptions::default() });
    let there = format!("ProbeManager is served by {} now", probes.address());
    wait_said(&node, &there, 1);

    let traces = node.traces();
    let file = traces.join("ready");
    let extra = "    volumeMounts: [{name: t, mountPath: /traces}]\n    readinessProbe: {exec: {command: [\"test\", \"-e\", \"/traces/ready\"]}, periodSeconds: 1, failureThreshold: 1}\n";
    let volume = format!("  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n", traces.display());
    node.put("web", &format!("  containers:\n{}{volume}", shell("main", "exec sleep 1000", extra)));
    node.wait_running("web");
    wait_ready(&node, "False");
    std::fs::write(&file, "").expect("written");
    wait_ready(&node, "True");
    eprintln!("resident: {} KiB", probes.resident_kib());

    probes.kill();
    wait_said(&node, "ProbeManager is served by the one that is built in again", 1);
    wait_ready(&node, "True");
    std::fs::remove_file(&file).expect("removed");
    wait_ready(&node, "False");

    probes.start();
    wait_said(&node, &there, 2);
    std::fs::write(&file, "").expect("written");
    wait_ready(&node, "True");
    let actors = node.bosun.actors().expect("actors");
    let stand_in = actors.iter().find(|a| a["name"] == "probe-manager").expect("by the name of the role");
    assert_eq!(stand_in["restarts"], 0, "{stand_in}");
}
