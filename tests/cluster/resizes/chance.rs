//! Resizes by chance while containers crash and the daemon dies: what agrees at the end, and what never happened meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use testbed::{
    BosunOptions, ClusterNode, Fate, NodeOptions, Options, Room, Tally, Wish, Wishes, granted, let_pass, notes,
    wait_until,
};

use super::{MEMORY, QUOTA, SHARES, can_resize, is_v1, kernel_now, number, resize, restarts, status};
use crate::node::{LASTS, PODS, SOON, condition, create, pod, shell, start_with, wait, wait_running};

/// A pod, what was asked of it, and the container that was killed last.
struct Member {
    name: String,
    uid: String,
    wishes: Wishes,
    killed: String,
}

impl Member {
    fn resize(&self, node: &ClusterNode) {
        resize(node, &self.name, "main", &self.wishes.last().resources());
    }

    /// Its container dies, whatever the daemon is about.
    fn crash(&mut self, node: &ClusterNode) {
        self.killed = wait_until(&format!("a container of {} to kill", self.name), SOON, || {
            let pod = node.cluster.admin().get(&format!("{PODS}/{}", self.name)).map_err(|e| e.to_string())?;
            let id = status(&pod, "main")["containerID"].as_str().unwrap_or_default();
            if id.is_empty() || id == self.killed {
                return Err(format!("{id:?}"));
            }
            node.bed.kill_container(id).map(|()| id.to_owned()).map_err(|e| e.to_string())
        })
        .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
        self.wishes.crashes += 1;
    }

    /// What came last waits, and the container has what it was granted before.
    fn check_waits(&self, node: &ClusterNode) {
        wait(node, &self.name, "to wait", |pod| {
            (condition(pod, "PodResizePending")["reason"] == "Deferred").then_some(())
        });
        self.check(node, |shown| self.wishes.granted(shown).ok_or_else(|| format!("{shown} was never to be had")));
    }

    /// Specification, status, both files and the kernel are of one mind. `has`: what it shall have, by what the status shows.
    fn check(&self, node: &ClusterNode, has: impl Fn(&Value) -> Result<Wish, String>) -> Value {
        let files = ["allocated_pods_state", "actuated_pods_state"].map(|name| node.bed.dir().join("node").join(name));
        let agree = || {
            let pod = node.cluster.admin().get(&format!("{PODS}/{}", self.name)).map_err(|e| e.to_string())?;
            let shown = &status(&pod, "main")["resources"];
            let wish = has(shown)?;
            let resources = wish.resources();
            let of_files = files.each_ref().map(|path| {
                let text = fs::read_to_string(path).unwrap_or_default();
                granted(&serde_json::from_str(&text).unwrap_or_default(), &self.uid, "main")
            });
            let allocated = &status(&pod, "main")["allocatedResources"];
            let own =
                [Some("main"), None].map(|of| [MEMORY, QUOTA, SHARES].map(|file| kernel_now(node, &pod, of, file)));
            let expected = if is_v1() { wish.kernel() } else { wish.kernel_v2() };
            let good = *shown == resources
                && *allocated == resources["requests"]
                && of_files.iter().all(|has| *has == resources)
                && own == [expected; 2].map(|all| all.map(Ok))
                && condition(&pod, "PodResizeInProgress").is_null();
            let detail = || format!("{wish:?}: status {shown} {allocated}, files {of_files:?}, kernel {own:?}");
            if good { Ok(pod.clone()) } else { Err(detail()) }
        };
        wait_until(&format!("{} to be of one mind", self.name), SOON, agree)
            .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()))
    }

    /// Of all that happened to it, by the runtime's own word.
    fn judge(&self, node: &ClusterNode, pod: &Value) -> Tally {
        let all = notes(&node.bed.notes_dir(), "main").unwrap_or_else(|e| panic!("{e}"));
        let own: Vec<_> = all.into_iter().filter(|n| n.uid == self.uid).collect();
        let failed = node.bed.failed_starts().get(&self.name).copied().unwrap_or(0);
        let tally = self.wishes.judge(&own, failed).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let again = i64::try_from(tally.starts).expect("it fits") - 1;
        let told = restarts(pod, "main");
        let most = again + i64::try_from(failed).expect("it fits");
        assert!((again..=most).contains(&told), "{}: {told} restarts, {failed} given up, {tally:?}", self.name);
        if self.wishes.restarts == [false; 2] {
            let crashes = i64::try_from(self.wishes.crashes).expect("it fits");
            assert!(
                (crashes..=crashes + most - again).contains(&told),
                "{}: {told} restarts, {crashes} crashes",
                self.name
            );
        }
        tally
    }
}

fn room(node: &ClusterNode, pods: i64) -> Room {
    let all = node.node().expect("the node");
    let cores = all["status"]["allocatable"]["cpu"].as_str().and_then(|n| n.parse::<i64>().ok()).expect("whole cores");
    Room { cpu: cores * 1000, cpu_each: (cores * 800 / pods).min(100), memory_each: 32 }
}

fn member(node: &ClusterNode, number: usize, room: Room, random: &mut Rng) -> Member {
    let name = format!("p{number}");
    let wishes = Wishes::of(number, room, random);
    let word = |restarts| if restarts { "RestartContainer" } else { "NotRequired" };
    let policy = json!([
        {"resourceName": "memory", "restartPolicy": word(wishes.restarts[0])},
        {"resourceName": "cpu", "restartPolicy": word(wishes.restarts[1])},
    ]);
    let main = shell("main", LASTS, json!({"resources": wishes.last().resources(), "resizePolicy": policy}));
    let made = create(node, &pod(&name, json!({"containers": [main]})));
    Member { name, uid: made["metadata"]["uid"].as_str().expect("a UID").to_owned(), wishes, killed: String::new() }
}

/// A node whose containers are started again at once, and that notes what they start with.
fn start() -> ClusterNode {
    let config = json!({
        "featureGates": {"KubeletCrashLoopBackOffMax": true}, "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    });
    let bosun = BosunOptions { config, ..BosunOptions::default() };
    let bed = Options { notes: true, ..Options::default() };
    start_with(NodeOptions { bed, bosun, ..NodeOptions::default() })
}

/// Containers crash and the daemon dies meanwhile: at the end cgroups, specification, allocation and status agree, and no container
/// ever had what was not granted then.
#[test]
fn at_the_end_all_agree_whatever_happens() {
    if !can_resize() {
        return;
    }
    let (count, seed) = (number("RESIZES", 20), number("RESIZES_SEED", 1));
    let mut random = Rng::with_seed(seed);
    let mut node = start();
    let pods = if count < 100 { 4 } else { 20 };
    let room = room(&node, pods);
    let mut cast: Vec<Member> =
        (0..usize::try_from(pods).expect("it fits")).map(|i| member(&node, i, room, &mut random)).collect();
    cast.iter().for_each(|m| drop(wait_running(&node, &m.name)));
    let (mut kills, mut waiting, begun) = (0_u64, 0_u64, Instant::now());
    for turn in 0..count {
        let at = random.usize(0..cast.len());
        let wish = cast[at].wishes.next(room, &mut random);
        waiting += u64::from(wish.fate != Fate::Granted);
        cast[at].resize(&node);
        if turn % 4 == 3 {
            let other = random.usize(0..cast.len());
            cast[other].crash(&node);
        }
        let_pass(Duration::from_millis(random.u64(0..300)));
        if turn % 10 == 5 {
            kills += 1;
            node.bosun.kill();
            node.start_again().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }
    let resized = begun.elapsed();
    for member in &mut cast {
        if member.wishes.last().fate == Fate::Granted {
            continue;
        }
        member.check_waits(&node);
        member.wishes.next_granted(room, &mut random);
        member.resize(&node);
    }
    let mut all = Tally::default();
    for member in &cast {
        let wish = member.wishes.last();
        let pod = member.check(&node, |_| Ok(wish));
        let tally = member.judge(&node, &pod);
        all.add(tally);
    }
    let crashes: u64 = cast.iter().map(|m| m.wishes.crashes).sum();
    println!(
        "{count} resizes of {pods} pods, seed {seed}, {waiting} of them had to wait; {kills} kills, {crashes} crashes; {all}; \
         {resized:.0?}, all agreed after {:.0?}",
        begun.elapsed(),
    );
}
