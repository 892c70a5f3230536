//! The daemon and supervisors of pods killed at any moment: no exit is lost, nothing stays behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testbed::{BosunOptions, let_pass, state, wait_until};

use super::{lasting, with};
use crate::node::{Node, block, shell};

/// How often something is killed where `RUNTIME_KILLS` does not say.
const KILLS: u32 = 12;
/// 128 and SIGKILL.
const KILLED: i64 = 137;
/// What a container is told to have ended with whose supervisor was killed over its start.
const NOT_STARTED: i64 = 128;
/// Pods that stay, whatever happens to those who keep them.
const LASTING: [&str; 3] = ["stays-1", "stays-2", "stays-3"];
/// Pods that end which there are at a time.
const MOST: usize = 8;
/// Longer than it takes to come back after two kills in a row on a busy machine.
const LATE: Duration = Duration::from_secs(90);

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A pod that ends by itself.
struct Ending {
    code: i64,
    /// Its supervisor was killed, at one time or another.
    struck: bool,
}

struct Field {
    node: Node,
    rng: Rng,
    ending: BTreeMap<String, Ending>,
    count: u32,
    /// How often the daemon was killed over its start.
    early: u32,
    /// How pods ended, by how it was told.
    told: BTreeMap<&'static str, u32>,
}

impl Field {
    fn put(&mut self) {
        self.count += 1;
        let (name, code) = (format!("e{}", self.count), self.rng.i64(1..=100));
        let script = format!("sleep {}.{}; exit {code}", self.rng.u8(..3), self.rng.u8(..10));
        let containers = shell("main", &script, "");
        self.node.put(&name, &format!("  restartPolicy: Never\n  containers:\n{containers}"));
        self.ending.insert(name, Ending { code, struck: false });
    }

    /// Kills the daemon, which comes back, or the supervisor of a pod, which does not.
    fn strike(&mut self) {
        let_pass(Duration::from_millis(self.rng.u64(..1500)));
        if self.rng.u8(..10) < 6 {
            self.node.bosun.kill();
            let_pass(Duration::from_millis(self.rng.u64(..400)));
            // Sometimes over its start, while it finds everything again; also more than once.
            while self.rng.u8(..3) == 0 {
                self.node.bosun.launch(&mut self.node.bed).expect("it starts");
                let_pass(Duration::from_millis(self.rng.u64(..400)));
                self.node.bosun.kill();
                self.early += 1;
            }
            return self.node.bosun.start_again(&mut self.node.bed).expect("the daemon comes back");
        }
        let all = supervisors(self.node.bed.dir());
        let Some((pid, sandbox)) = self.rng.choice(&all) else { return };
        let known = block(async { self.node.cri().sandboxes().await }).expect("sandboxes");
        let of = known.iter().find(|s| s.id == *sandbox).and_then(|s| s.metadata.as_ref());
        // One that is being made is known by nobody yet; whose it is does not show, and each that ends may be meant.
        let of = of.map(|metadata| metadata.name.trim_end_matches("-bed").to_owned());
        for (name, pod) in &mut self.ending {
            pod.struck |= of.as_ref().is_none_or(|of| of == name);
        }
        // It may have ended.
        let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, Signal::KILL));
    }

    /// Waits for the ends of pods until no more than `most` are left.
    fn settle(&mut self, most: usize) {
        while self.ending.len() > most {
            let name = self.ending.keys().next().expect("one is left").clone();
            let pod = self.ending.remove(&name).expect("known");
            let ended = self.node.bosun.wait_pod(&name, "to end", LATE, |p| {
                let code = state(p, "terminated")["exitCode"].as_i64()?;
                matches!(p["status"]["phase"].as_str(), Some("Failed" | "Succeeded")).then_some((code, p.clone()))
            });
            let (code, shown) = ended.unwrap_or_else(|e| panic!("{e}"));
            let how = match code {
                code if code == pod.code => "with its own code",
                KILLED if pod.struck => "with its supervisor",
                NOT_STARTED if pod.struck && state(&shown, "terminated")["reason"] == "StartError" => {
                    "before its start"
                }
                _ => panic!("{name} ended with {code}, not {} (struck: {}): {shown:#}", pod.code, pod.struck),
            };
            *self.told.entry(how).or_default() += 1;
            self.node.remove(&name);
        }
    }
}

/// Number and sandbox of each supervisor of a bed.
fn supervisors(bed: &Path) -> Vec<(i32, String)> {
    let all = std::fs::read_dir("/proc").expect("proc").flatten();
    let numbers = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let run = format!("{}/", bed.join("run").display());
    let sandbox = |pid: i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).into_owned();
        let mut words = words.split('\0');
        let is_supervisor = words.next()?.ends_with("bosun-pod") && words.next()? == "run";
        let sandbox = words.next()?.strip_prefix(&run)?.to_owned();
        is_supervisor.then_some((pid, sandbox))
    };
    numbers.filter_map(sandbox).collect()
}

/// What is there of pods though there are none: mounts and namespaces, cgroups, processes, addresses, links, files.
fn remains(node: &Node) -> BTreeSet<String> {
    let dir = node.bed.dir();
    let mut found: BTreeSet<String> =
        supervisors(dir).into_iter().map(|(pid, of)| format!("supervisor {pid} of {of}")).collect();
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let here = ["run", "runtime", "node/pods"].map(|name| format!("{}/", dir.join(name).display()));
    let points = mounts.lines().filter_map(|l| l.split(' ').nth(1));
    found.extend(points.filter(|at| here.iter().any(|h| at.starts_with(h))).map(|at| format!("mount {at}")));
    let mut list = |folder: std::path::PathBuf, kind: &str, counts: &dyn Fn(&str) -> bool| {
        let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = names.filter_map(|e| e.file_name().into_string().ok()).filter(|name| counts(name));
        found.extend(names.map(|name| format!("{kind} {}", folder.join(name).display())));
    };
    for controller in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        for class in ["", "besteffort", "burstable"] {
            let folder = controller.path().join(&node.bed.cgroup_root()[1..]).join("kubepods").join(class);
            list(folder, "cgroup", &|name| name.starts_with("pod"));
        }
    }
    let network = format!("bosun-{}", node.bed.id());
    list(dir.join("ipam").join(network), "address", &|name| name.starts_with("10."));
    list(Path::new("/sys/class/net").join(format!("bsn-{}", node.bed.id())).join("brif"), "link", &|_| true);
    list(dir.join("run"), "file", &|name| name.len() == 64);
    list(dir.join("run/oci"), "container", &|_| true);
    list(dir.join("runtime/pods"), "record", &|_| true);
    list(dir.join("cni-cache/results"), "result", &|_| true);
    found
}

#[test]
fn the_daemon_and_supervisors_are_killed_and_no_exit_is_lost_and_nothing_left() {
    let kills = number("RUNTIME_KILLS").unwrap_or(KILLS);
    let seed = number("RUNTIME_KILLS_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("RUNTIME_KILLS={kills} RUNTIME_KILLS_SEED={seed}");
    let rng = Rng::with_seed(seed);
    // Pods whose supervisor is killed often are not held back for minutes.
    let config = json!({"crashLoopBackOff": {"maxContainerRestartPeriod": "2s"}, "featureGates": {"KubeletCrashLoopBackOffMax": true}});
    let node = with(BosunOptions { config, ..BosunOptions::default() });
    let mut field = Field { node, rng, ending: BTreeMap::new(), count: 0, early: 0, told: BTreeMap::new() };
    LASTING.iter().for_each(|name| lasting(&field.node, name));
    for _ in 0..kills {
        (0..field.rng.u32(1..3)).for_each(|_| field.put());
        field.strike();
        field.settle(MOST);
    }
    field.settle(0);
    for name in LASTING {
        let found =
            field.node.bosun.wait_pod(name, "to run again", LATE, |p| state(p, "running").is_object().then_some(()));
        found.unwrap_or_else(|e| panic!("{e}"));
        field.node.remove(name);
    }
    let Field { node, count, early, told, .. } = field;
    println!("{count} pods ended: {told:?}; the daemon was killed {early} times over its start");
    let empty = wait_until("nothing to be left", LATE, || {
        let left = remains(&node);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:#?}\n{}", node.bosun.log())) }
    });
    empty.unwrap_or_else(|e| panic!("{e}"));
    assert!(node.runtime().is_empty() && node.bed.sandboxes().expect("sandboxes").is_empty());
    assert_eq!(node.bed.close(), Vec::<String>::new());
}
