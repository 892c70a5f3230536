//! bosun's own managers in processes of their own (`bosun serve`), each that may be so, under pods that run, start and end: swapped
//! with those that are built in (`SWAPS=200 SWAP_PODS=110` is the long form), and killed at any moment (`KILLS=100`).

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::{BosunOptions, Image, Login, Registry, let_pass, wait_until};

use crate::node::{Node, SOON, shell, state};
use crate::remote::ready;

const MANAGERS: [&str; 4] = ["probes", "status", "images", "volumes"];

/// The processes, and the folder of their sockets. Both go with this.
struct Processes {
    folder: PathBuf,
    running: BTreeMap<&'static str, Child>,
}

impl Processes {
    fn new() -> Self {
        // Tests of one process have a folder each.
        let name = format!("bosun-elsewhere-{}-{:?}", std::process::id(), std::thread::current().id());
        Processes { folder: std::env::temp_dir().join(name), running: BTreeMap::new() }
    }

    fn socket(&self, manager: &str) -> PathBuf {
        self.folder.join(format!("{manager}.sock"))
    }

    fn address(&self, manager: &str) -> String {
        format!("unix://{}", self.socket(manager).display())
    }

    fn start(&mut self, node: &mut Node, manager: &'static str) {
        let child = node.bosun.serve(&mut node.bed, manager, &self.address(manager)).expect("it starts");
        self.running.insert(manager, child);
    }

    /// All of them, until somebody listens at each socket: that is there a moment before.
    fn start_all(&mut self, node: &mut Node) {
        MANAGERS.into_iter().for_each(|manager| self.start(node, manager));
        for manager in MANAGERS {
            wait_until(&format!("{manager} to listen"), SOON, || {
                let log = || std::fs::read_to_string(node.bosun.serve_log(manager)).unwrap_or_default();
                UnixStream::connect(self.socket(manager)).map(drop).map_err(|e| format!("{e}\n{}", log()))
            })
            .unwrap_or_else(|e| panic!("{e}"));
        }
    }

    fn kill(&mut self, manager: &str) {
        if let Some(mut child) = self.running.remove(manager) {
            child.kill().expect("it ran");
            child.wait().expect("reaped");
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        MANAGERS.into_iter().for_each(|manager| self.kill(manager));
        if let Err(e) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {e}", self.folder.display());
        }
    }
}

/// A number from the environment, for the long form.
fn wanted(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
        Err(_) => usual,
    }
}

/// Moments are by chance: `SEED` has the same ones again.
fn seed() {
    let seed = wanted("SEED", fastrand::usize(..1_000_000));
    eprintln!("SEED={seed}");
    fastrand::seed(seed as u64);
}

/// Pods that run all the while. Each notes the machine's uptime with each probe.
struct Lasting {
    names: Vec<String>,
    traces: PathBuf,
    before: Vec<Value>,
}

impl Lasting {
    fn start(node: &Node, pods: usize) -> Self {
        let traces = node.traces();
        let names: Vec<String> = (0..pods).map(|n| format!("web{n}")).collect();
        let volumes = format!("  volumes:\n  - name: t\n    hostPath: {{path: {}}}\n", traces.display());
        for (n, name) in names.iter().enumerate() {
            let serve = format!(
                "mkdir -p /www/cgi-bin; cd /www; printf '#!/bin/sh\\ncat /proc/uptime >> /traces/{name}\\nprintf \"Content-Type: text/plain\\\\r\\\\n\\\\r\\\\n\"\\n' > cgi-bin/p; chmod +x cgi-bin/p; exec httpd -f -p 8080 -h /www"
            );
            let rules = "periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1";
            let mut extra = format!(
                "    volumeMounts: [{{name: t, mountPath: /traces}}]\n    readinessProbe: {{httpGet: {{path: /cgi-bin/p, port: 8080}}, {rules}}}\n"
            );
            // A process a second for each pod is more than the machine has for many.
            if n < 5 {
                extra += &format!("    livenessProbe: {{exec: {{command: [\"true\"]}}, {rules}}}\n");
            }
            let containers = shell("main", &serve, &extra);
            node.put(name, &format!("  terminationGracePeriodSeconds: 0\n  containers:\n{containers}{volumes}"));
        }
        for name in &names {
            node.bosun
                .wait_pod(name, "to be ready", SOON * 10, |p| (ready(p) == Some("True")).then_some(()))
                .unwrap_or_else(|e| panic!("{e}"));
        }
        let before = names.iter().map(|name| marks(node, name)).collect();
        for name in &names {
            std::fs::write(traces.join(name), "").expect("written");
        }
        Lasting { names, traces, before }
    }

    /// Waits until one of them was probed again.
    fn probed_again(&self, which: usize, times: usize) {
        let trace = self.traces.join(&self.names[which % self.names.len()]);
        let lines = || std::fs::read_to_string(&trace).expect("readable").lines().count();
        let before = lines();
        wait_until("a pod to be probed", SOON, || match lines() {
            now if now >= before + times => Ok(()),
            now => Err(format!("{now} lines in {}", trace.display())),
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }

    /// Nobody was started again or unready for a moment, and probes went on.
    fn are_as_before(&self, node: &Node) {
        (0..self.names.len()).for_each(|which| self.probed_again(which, 2));
        let mut longest = 0;
        for (name, before) in self.names.iter().zip(&self.before) {
            assert_eq!(&marks(node, name), before, "{name}\n{}", node.bosun.log());
            let pause = longest_pause(&std::fs::read_to_string(self.traces.join(name)).expect("readable"));
            // A period of one second, and late by at most one; where the process was killed the one that is built in waits for a second
            // whether it comes back. The rest is for a machine that starts processes late.
            assert!(pause <= 500, "{name}: {pause} hundredths of a second between probes");
            longest = longest.max(pause);
        }
        eprintln!("{} pods: at most {longest} hundredths of a second between two probes of one", self.names.len());
        let run: Vec<_> = node.runtime().into_iter().map(|(pod, _, attempt, state)| (pod, attempt, state)).collect();
        let mut wanted: Vec<_> = self.names.iter().map(|name| (format!("{name}-bed"), 0, 1)).collect();
        wanted.sort();
        assert_eq!(run, wanted, "what the runtime has is what the statuses say, and nothing else");
    }
}

/// What must stay the same: the container, its restarts, and since when the pod is ready.
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

/// A pod that comes and goes: its image is pulled, its volumes are made, and every second one ends by itself.
struct Guest(usize);

impl Guest {
    fn name(&self) -> String {
        format!("guest{}", self.0)
    }

    fn ends(&self) -> bool {
        self.0 % 2 == 1
    }

    fn comes(&self, node: &Node) {
        let then = if self.ends() { "exit 3" } else { "touch /room/up; exec sleep 1000" };
        let script = Value::from(format!("grep -q '^{}-bed$' /info/name || exit 9; {then}", self.name()));
        let probe = "{exec: {command: [cat, /room/up]}, periodSeconds: 1, timeoutSeconds: 10}";
        let container = format!(
            "  - name: main\n    image: pull.example/app:1\n    imagePullPolicy: Always\n    command: [sh, -c, {script}]\n    volumeMounts: [{{name: info, mountPath: /info}}, {{name: room, mountPath: /room}}]\n    readinessProbe: {probe}\n"
        );
        let volumes = "  volumes:\n  - name: info\n    downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}\n  - name: room\n    emptyDir: {}\n";
        let pod = "  restartPolicy: Never\n  terminationGracePeriodSeconds: 0\n  containers:\n";
        node.put(&self.name(), &format!("{pod}{container}{volumes}"));
    }

    /// Waits until the status says what is true of it at last.
    fn is_told_of(&self, node: &Node) {
        if self.ends() {
            let pod = node.wait_phase(&self.name(), "Failed");
            let ended = state(&pod, "terminated");
            assert_eq!(ended["exitCode"], 3, "{pod}");
        } else {
            node.wait(&self.name(), "to be ready", |p| (ready(p) == Some("True")).then_some(()));
        }
    }

    /// Waits until nothing is left to do for it: its container has stopped, its volumes are gone.
    fn has_ended(&self, node: &Node) {
        wait_until(&format!("{} to end", self.name()), SOON, || match node.bosun.pod(&self.name()) {
            Ok(None) => Ok(()),
            Ok(Some(pod)) => Err(format!("{}\n{}", pod["status"], node.bosun.log())),
            Err(e) => Err(e.to_string()),
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }
}

fn registry(node: &mut Node) -> Registry {
    let registry = Registry::start(&mut node.bed, "pull.example", Login::Open).expect("a registry");
    registry.push(&Image::busybox("app:1").expect("an image"), "app:1").expect("pushed");
    registry
}

/// The milliseconds that a swap says it took.
fn took(said: &str) -> u64 {
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "after").unwrap_or_else(|| panic!("{said}"));
    words[at + 1].parse().unwrap_or_else(|e| panic!("{said}: {e}"))
}

fn swap(node: &Node, manager: &str, to: &str) -> String {
    let said = node.bosun.cli(&["manager", "swap", manager, "--to", to, "--probation", "1s"]);
    said.unwrap_or_else(|e| panic!("{manager} to {to}: {e}\n{}", node.bosun.log()))
}

/// Nothing of it was refused, and no other one had to take its place.
fn was_good(node: &Node, manager: &str) {
    let line = node.bosun.get(&format!("managers/{manager}")).expect("answered");
    for (what, count) in line["refused"].as_object().into_iter().flatten() {
        assert_eq!(count, 0, "{what}: {line}");
    }
    let history = line["history"].as_array().expect("a history");
    let failed = history.iter().filter(|h| h["text"].as_str().is_some_and(|t| t.contains("rolled back")));
    assert_eq!(failed.count(), 0, "{line}");
}

#[test]
fn swaps_of_all_managers_cost_no_restart_no_readiness_no_status_and_no_probe() {
    let (swaps, pods) = (wanted("SWAPS", 16), wanted("SWAP_PODS", 5));
    assert!(swaps >= 2 * MANAGERS.len(), "each manager goes and comes back");
    seed();
    let mut node = Node::with(BosunOptions { config: json!({"syncFrequency": "60s"}), ..BosunOptions::default() });
    let _registry = registry(&mut node);
    let lasting = Lasting::start(&node, pods);
    // What a pull takes here is known before a candidate is judged by it.
    let first = Guest(swaps);
    first.comes(&node);
    first.is_told_of(&node);
    node.remove(&first.name());
    node.wait_gone(&first.name());
    let mut processes = Processes::new();
    processes.start_all(&mut node);
    for manager in MANAGERS {
        let to = processes.address(manager);
        let dry = node.bosun.cli(&["manager", "swap", manager, "--to", &to, "--dry-run"]).expect("it would do");
        assert!(dry.contains("its contract is the one here") && dry.contains("nothing was changed"), "{dry}");
    }
    let mut pauses: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for round in 0..swaps / 2 {
        let manager = MANAGERS[round % MANAGERS.len()];
        let guest = Guest(round);
        guest.comes(&node);
        // Somewhere in its start.
        let_pass(Duration::from_millis(fastrand::u64(..1000)));
        pauses.entry(manager).or_default().push(took(&swap(&node, manager, &processes.address(manager))));
        guest.is_told_of(&node);
        lasting.probed_again(round, 1);
        was_good(&node, manager);
        node.remove(&guest.name());
        swap(&node, manager, "builtin");
        lasting.probed_again(round, 1);
        was_good(&node, manager);
    }
    (0..swaps / 2).for_each(|round| node.wait_gone(&Guest(round).name()));
    lasting.are_as_before(&node);
    eprintln!("{swaps} swaps under {pods} pods; until the process served:");
    for (manager, mut all) in pauses {
        all.sort_unstable();
        let of = |percent: usize| all.get(all.len() * percent / 100).or(all.last()).copied().unwrap_or_default();
        eprintln!("{manager}: p50 {} ms, p99 {} ms of {}", of(50), of(99), all.len());
    }
    let line = node.bosun.get("managers/probes").expect("answered");
    assert_eq!(line["remembered"], pods, "{line}");
}

fn wait_served(node: &Node, manager: &str, by: &str) {
    wait_until(&format!("{manager} to be served by {by}"), SOON, || {
        let line = node.bosun.get(&format!("managers/{manager}")).map_err(|e| e.to_string())?;
        // One that is there and has begun.
        let is = line["servedBy"] == by && (by == "builtin" || line["program"].is_string());
        if is { Ok(()) } else { Err(format!("{line}\n{}", node.bosun.log())) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn managers_that_are_killed_at_any_moment_are_followed_by_those_that_are_built_in() {
    let kills = wanted("KILLS", 3);
    seed();
    let mut processes = Processes::new();
    let flag = |manager| format!("--manager={manager}={},whenAway=builtin,probation=0s", processes.address(manager));
    let flags = MANAGERS.map(flag).to_vec();
    let config = json!({"syncFrequency": "60s"});
    let mut node = Node::with(BosunOptions { flags, config, ..BosunOptions::default() });
    let _registry = registry(&mut node);
    let lasting = Lasting::start(&node, 3);
    for kill in 0..kills {
        processes.start_all(&mut node);
        MANAGERS.into_iter().for_each(|manager| wait_served(&node, manager, &processes.address(manager)));
        let (begun, later) = (Guest(2 * kill), Guest(2 * kill + 1));
        begun.comes(&node);
        let mut moments = MANAGERS.map(|manager| (fastrand::u64(..1500), manager));
        moments.sort_unstable();
        let mut now = 0;
        for (moment, manager) in moments {
            let_pass(Duration::from_millis(moment - now));
            now = moment;
            processes.kill(manager);
        }
        MANAGERS.into_iter().for_each(|manager| wait_served(&node, manager, "builtin"));
        later.comes(&node);
        begun.is_told_of(&node);
        later.is_told_of(&node);
        lasting.probed_again(kill, 1);
        [&begun, &later].into_iter().for_each(|guest| node.remove(&guest.name()));
        [&begun, &later].into_iter().for_each(|guest| guest.has_ended(&node));
    }
    (0..2 * kills).for_each(|guest| node.wait_gone(&Guest(guest).name()));
    lasting.are_as_before(&node);
}
