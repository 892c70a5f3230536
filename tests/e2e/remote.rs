//! The program of `docs/examples/remote-probes`: bosun's own ProbeManager in a process of its own, as the configuration names it,
//! and swapped with the one that is built in again and again (`SWAPS=200 SWAP_PODS=20` is the long form).

use std::os::unix::net::UnixStream;
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

fn ready(pod: &Value) -> Option<&str> {
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

/// A number from the environment, for the long form.
fn wanted(variable: &str, usual: u32) -> u32 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
        Err(_) => usual,
    }
}

/// What must be the same after every swap: the container, its restarts, and since when the pod is ready.
fn marks(node: &Node, name: &str) -> Value {
    let pod = node.bosun.pod(name).expect("the daemon answers").expect("the pod is there");
    let container = &pod["status"]["containerStatuses"][0];
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let ready = conditions.iter().find(|c| c["type"] == "Ready").expect("a Ready condition");
    json!([container["containerID"], container["restartCount"], ready["status"], ready["lastTransitionTime"]])
}

/// The longest time between two probes of a pod, in hundredths of a second: each leaves the machine's uptime.
fn longest_pause(text: &str) -> u64 {
    let hundredths = |line: &str| -> Option<u64> { line.split(' ').next()?.replace('.', "").parse().ok() };
    let times: Vec<u64> = text.lines().filter_map(hundredths).collect();
    assert!(times.len() > 1, "it was probed: {text}");
    times.windows(2).map(|two| two[1].saturating_sub(two[0])).max().unwrap_or_default()
}

/// Waits until there are so many more lines in the trace of a pod.
fn probed_again(trace: &Path, times: usize) {
    let lines = || std::fs::read_to_string(trace).expect("readable").lines().count();
    let before = lines();
    wait_until("a pod to be probed", SOON, || match lines() {
        now if now >= before + times => Ok(()),
        now => Err(format!("{now} lines in {}", trace.display())),
    })
    .unwrap_or_else(|e| panic!("{e}"));
}

/// The milliseconds that a swap says it took.
fn took(said: &str) -> u64 {
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "after").unwrap_or_else(|| panic!("{said}"));
    words[at + 1].parse().unwrap_or_else(|e| panic!("{said}: {e}"))
}

#[test]
fn swaps_under_pods_with_probes_cost_no_restart_no_readiness_and_no_probe() {
    let (swaps, pods) = (wanted("SWAPS", 20), wanted("SWAP_PODS", 5));
    let mut probes = Probes::new();
    let node = Node::with(BosunOptions { config: json!({"syncFrequency": "60s"}), ..BosunOptions::default() });
    let traces = node.traces();
    let volume = format!("  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n", traces.display());
    let names: Vec<String> = (0..pods).map(|n| format!("web{n}")).collect();
    for name in &names {
        let probe = format!(
            "{{exec: {{command: [\"sh\", \"-c\", \"cat /proc/uptime >> /traces/{name}\"]}}, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1}}"
        );
        let liveness = "{exec: {command: [\"true\"]}, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1}";
        let extra = format!(
            "    volumeMounts: [{{name: t, mountPath: /traces}}]\n    readinessProbe: {probe}\n    livenessProbe: {liveness}\n"
        );
        node.put(
            name,
            &format!(
                "  terminationGracePeriodSeconds: 0\n  containers:\n{}{volume}",
                shell("main", "exec sleep 1000", &extra)
            ),
        );
    }
    for name in &names {
        node.wait(name, "to be ready", |p| (ready(p) == Some("True")).then_some(()));
    }
    let before: Vec<Value> = names.iter().map(|name| marks(&node, name)).collect();
    probes.start();
    wait_until("the program listens", SOON, || {
        // The socket is there a moment before anybody listens at it.
        UnixStream::connect(probes.folder.join("probes.sock")).map(drop).map_err(|e| e.to_string())
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let dry =
        node.bosun.cli(&["manager", "swap", "probes", "--to", &probes.address(), "--dry-run"]).expect("it would do");
    assert!(dry.contains("its contract is the one here") && dry.contains("nothing was changed"), "{dry}");
    for name in &names {
        std::fs::write(traces.join(name), "").expect("written");
    }
    let mut pauses = Vec::new();
    for swap in 0..swaps {
        let is_remote = swap % 2 == 0;
        let to = if is_remote { probes.address() } else { "builtin".to_owned() };
        let said = node.bosun.cli(&["manager", "swap", "probes", "--to", &to, "--probation", "1s"]);
        let said = said.unwrap_or_else(|e| panic!("swap {swap}: {e}\n{}", node.bosun.log()));
        if is_remote {
            pauses.push(took(&said));
        }
        probed_again(&traces.join(&names[swap as usize % names.len()]), 1);
    }
    names.iter().for_each(|name| probed_again(&traces.join(name), 2));
    for (name, before) in names.iter().zip(&before) {
        assert_eq!(&marks(&node, name), before, "{name}\n{}", node.bosun.log());
        let longest = longest_pause(&std::fs::read_to_string(traces.join(name)).expect("readable"));
        eprintln!("{name}: at most {longest} hundredths of a second between probes");
        // Of a period of one second: late by at most one. The rest is for a machine that starts processes late.
        assert!(longest <= 500, "{name}: {longest} hundredths of a second between probes");
    }
    pauses.sort_unstable();
    let of = |percent: usize| pauses.get(pauses.len() * percent / 100).or(pauses.last()).copied().unwrap_or_default();
    eprintln!("{swaps} swaps under {pods} pods; until the process served: p50 {} ms, p99 {} ms", of(50), of(99));
    let line = node.bosun.get("managers/probes").expect("answered");
    assert_eq!(line["remembered"], pods, "{line}");
    let failed = line["history"]
        .as_array()
        .expect("a history")
        .iter()
        .filter(|h| h["text"].as_str().is_some_and(|t| t.contains("rolled back")));
    assert_eq!(failed.count(), 0, "{line}");
}
