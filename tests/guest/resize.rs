//! Pods get other resources while they run, on a real cgroup v2, while containers crash and the daemon is killed.
//! `GUEST_RESIZES` says how often, `GUEST_RESIZES_SEED` by which chance.

use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use testbed::{
    BUSYBOX_IMAGES, Fate, Note, Room, Tally, Wish, Wishes, failed_starts, granted, let_pass, notes, plain_id,
    write_noting_runc,
};

use crate::node::Node;
use crate::served::{FOLDER, pod, restart, serve, wait_running};

/// Ends at once on SIGTERM, runs until then, and costs nothing.
const LASTS: &str = "trap 'exit 0' TERM; sleep 100000 & wait";

/// A pod, what was asked of it, and the container that was killed last.
struct Member {
    name: String,
    wishes: Wishes,
    killed: String,
}

/// A guest whose containers are started again at once, and that notes what they start with.
fn start(memory_mib: u32) -> Node {
    let node = Node::with_memory(memory_mib);
    let share = node.guest.share_dir();
    std::fs::create_dir(share.join("notes")).expect("a folder");
    let [notes, granted] = ["/share/notes", "/var/lib/kubelet/allocated_pods_state"].map(std::path::Path::new);
    write_noting_runc(&share.join("noting-runc"), notes, granted).unwrap_or_else(|e| panic!("{e}"));
    let at = share.join("containerd.toml");
    let text = std::fs::read_to_string(&at).expect("containerd's configuration");
    std::fs::write(at, text + "        BinaryName = \"/share/noting-runc\"\n").expect("written");
    let config = json!({
        "featureGates": {"KubeletCrashLoopBackOffMax": true}, "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    });
    serve(&node, &config);
    node
}

/// What containers had whenever they started or were changed.
fn noted(node: &Node) -> Vec<Note> {
    notes(&node.guest.share_dir().join("notes"), "main").unwrap_or_else(|e| panic!("{e}"))
}

/// The id of its container; empty while there is none.
fn id(pod: &Value) -> String {
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
    plain_id(id).to_owned()
}

fn condition<'a>(pod: &'a Value, kind: &str) -> &'a Value {
    let mut all = pod["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

impl Member {
    fn create(node: &Node, number: usize, room: Room, random: &mut Rng) -> Self {
        let name = format!("p{number}");
        let wishes = Wishes::of(number, room, random);
        let word = |restarts| if restarts { "RestartContainer" } else { "NotRequired" };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "generation": 1},
            "spec": {
                "nodeName": "guest", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
                "automountServiceAccountToken": false, "enableServiceLinks": false, "dnsPolicy": "Default",
                "containers": [{
                    "name": "main", "image": BUSYBOX_IMAGES[0], "command": ["sh", "-c", LASTS],
                    "resources": wishes.last().resources(),
                    "resizePolicy": [
                        {"resourceName": "memory", "restartPolicy": word(wishes.restarts[0])},
                        {"resourceName": "cpu", "restartPolicy": word(wishes.restarts[1])},
                    ],
                }],
            },
            "status": {"phase": "Pending", "qosClass": "Burstable"},
        });
        let path = format!("{FOLDER}/{name}.json");
        node.guest.put(&path, &pod.to_string()).unwrap_or_else(|e| panic!("{e}"));
        Member { name, wishes, killed: String::new() }
    }

    /// Asks for what was wished last.
    fn resize(&self, node: &Node) {
        let spec = json!({"spec": {"containers": [{"name": "main", "resources": self.wishes.last().resources()}]}});
        node.sh(&format!(
            "curl -sSf -o /dev/null -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' \
             --data '{spec}' $(cat {FOLDER}/url)/api/v1/namespaces/default/pods/{}/resize",
            self.name
        ));
    }

    /// Its container dies, whatever the daemon is about.
    fn crash(&mut self, node: &Node) {
        self.killed = node.wait(&format!("a container of {} to kill", self.name), || {
            let id = id(&pod(node, &self.name)?);
            if id.is_empty() || id == self.killed {
                return Err(format!("{id:?}"));
            }
            let group = format!("/sys/fs/cgroup/kubepods/burstable/poduid-{}/{id}", self.name);
            let script = format!("read -r pid < {group}/cgroup.procs && kill -9 $pid && echo killed || true");
            let told = node.sh(&script);
            if told.ends_with("killed\n") { Ok(id) } else { Err(told) }
        });
        self.wishes.crashes += 1;
    }

    /// What came last waits, and the container has what it was granted before.
    fn check_waits(&self, node: &Node) {
        node.wait(&format!("{} to wait", self.name), || {
            let pod = pod(node, &self.name)?;
            let told = condition(&pod, "PodResizePending");
            if told["reason"] == "Deferred" { Ok(()) } else { Err(pod["status"].to_string()) }
        });
        self.check(node, |shown| self.wishes.granted(shown).ok_or_else(|| format!("{shown} was never to be had")));
    }

    /// Status, both files and the kernel are of one mind. `has`: what it shall have, by what the status shows.
    fn check(&self, node: &Node, has: impl Fn(&Value) -> Result<Wish, String>) -> Value {
        let uid = format!("uid-{}", self.name);
        node.wait(&format!("{} to be of one mind", self.name), || {
            let pod = pod(node, &self.name)?;
            let told = &pod["status"]["containerStatuses"][0];
            let wish = has(&told["resources"])?;
            let resources = wish.resources();
            let expected = wish.kernel_v2().map(|n| n.to_string());
            // The file of the processor has the quota and its period.
            let script = format!(
                "cd /sys/fs/cgroup/kubepods/burstable/pod{uid} && for d in . {}; do read -r m < $d/memory.max; read -r q p < $d/cpu.max
                 read -r w < $d/cpu.weight; echo $m $q $w; done
                 for f in allocated actuated; do cat /var/lib/kubelet/${{f}}_pods_state; echo; done",
                id(&pod)
            );
            let text = node.sh(&script);
            let lines: Vec<&str> = text.lines().collect();
            let [own @ .., allocated, actuated] = lines.as_slice() else { return Err(text) };
            let of_files = [allocated, actuated]
                .map(|text| granted(&serde_json::from_str(text).unwrap_or_default(), &uid, "main"));
            let good = told["resources"] == resources
                && told["allocatedResources"] == resources["requests"]
                && of_files.iter().all(|has| *has == resources)
                && *own == [expected.join(" "), expected.join(" ")]
                && condition(&pod, "PodResizeInProgress").is_null();
            if good { Ok(pod) } else { Err(format!("{wish:?}: {told}, files {of_files:?}, kernel {own:?}")) }
        })
    }

    /// Of all that happened to it, by the runtime's own word.
    fn judge(&self, all: &[Note], pod: &Value, failed: u64) -> Tally {
        let own: Vec<Note> = all.iter().filter(|n| n.uid == format!("uid-{}", self.name)).cloned().collect();
        let tally = self.wishes.judge(&own, failed).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let told = pod["status"]["containerStatuses"][0]["restartCount"].as_u64().expect("a count");
        let again = tally.starts - 1;
        assert!(
            (again..=again + failed).contains(&told),
            "{}: {told} restarts, {failed} given up, {tally:?}",
            self.name
        );
        if self.wishes.restarts == [false; 2] {
            let crashes = self.wishes.crashes;
            assert!((crashes..=crashes + failed).contains(&told), "{}: {told} restarts, {crashes} crashes", self.name);
        }
        tally
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |n| n.parse().expect("a number"))
}

/// All that is asked, with crashes and kills between; answers the figures.
fn storm(node: &Node, cast: &mut [Member], room: Room, random: &mut Rng, count: u64) -> [u64; 2] {
    let (mut kills, mut waiting) = (0, 0);
    for turn in 0..count {
        let at = random.usize(0..cast.len());
        let wish = cast[at].wishes.next(room, random);
        waiting += u64::from(wish.fate != Fate::Granted);
        cast[at].resize(node);
        if turn % 10 == 3 {
            let other = random.usize(0..cast.len());
            cast[other].crash(node);
        }
        let_pass(Duration::from_millis(random.u64(0..1500)));
        if turn % 10 == 5 {
            kills += 1;
            restart(node);
        }
    }
    [kills, waiting]
}

#[test]
fn after_resizes_crashes_and_kills_all_agree_and_nobody_ever_had_what_was_not_granted() {
    let (count, seed) = (number("GUEST_RESIZES", 12), number("GUEST_RESIZES_SEED", 1));
    let mut random = Rng::with_seed(seed);
    let pods: usize = if count < 100 { 4 } else { 20 };
    let node = start(if count < 100 { 1024 } else { 3072 });
    let each = 800 / i64::try_from(pods).expect("it fits");
    let room = Room { cpu: 1000, cpu_each: each.min(100), memory_each: 16 };
    let mut cast: Vec<Member> = (0..pods).map(|i| Member::create(&node, i, room, &mut random)).collect();
    cast.iter().for_each(|m| drop(wait_running(&node, &m.name)));
    let begun = Instant::now();
    let [kills, waiting] = storm(&node, &mut cast, room, &mut random, count);
    let resized = begun.elapsed();
    for member in &mut cast {
        if member.wishes.last().fate == Fate::Granted {
            continue;
        }
        member.check_waits(&node);
        member.wishes.next_granted(room, &mut random);
        member.resize(&node);
    }
    let agreed: Vec<Value> = cast.iter().map(|m| m.check(&node, |_| Ok(m.wishes.last()))).collect();
    let log = node.sh("grep -E 'returns (sandbox|container) id|StartContainer for .* failed' /var/log/containerd.log");
    let (failed, all) = (failed_starts(&log), noted(&node));
    let mut sum = Tally::default();
    for (member, pod) in cast.iter().zip(&agreed) {
        sum.add(member.judge(&all, pod, failed.get(&member.name).copied().unwrap_or(0)));
    }
    let crashes: u64 = cast.iter().map(|m| m.wishes.crashes).sum();
    println!(
        "{count} resizes of {pods} pods, seed {seed}, {waiting} of them had to wait; {kills} kills, {crashes} crashes; {sum}; \
         {resized:.0?}, all agreed after {:.0?}",
        begun.elapsed(),
    );
}
