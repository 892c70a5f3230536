//! The daemon dies at any moment of the set-up and the teardown of claims, with a real driver on real mounts that loses
//! answers, hangs and dies itself. `CLAIM_KILLS` says how often, `CLAIM_KILLS_SEED` by which chance.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use csi_driver::{Config, Effect, Rule};
use fastrand::Rng;
use serde_json::Value;
use testbed::{ClusterNode, wait_until};

use crate::claims::looped;
use crate::node::{PODS, SOON, create, delete, start, wait_gone, wait_running};
use crate::site::{Claim, DRIVER, Site};
use kept::Kept;
use volumes::Volume;

mod kept;
mod volumes;

const VOLUMES: usize = 3;
const CALLS: [&str; 4] = ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |n| n.parse().expect("a number"))
}

/// From now on calls take their time, and one kind of call goes wrong some times: it is done and answered with an error, it hangs
/// until its caller is gone, or the driver ends before it or after it.
fn trouble(site: &Site, random: &mut Rng) {
    let slow = |call: &str, random: &mut Rng| Rule {
        call: call.to_owned(),
        times: None,
        effect: Effect::SlowMs(random.u64(0..400)),
    };
    // DEADLINE_EXCEEDED, UNAVAILABLE.
    let effects = [Effect::Lost(4), Effect::Lost(14), Effect::Hang, Effect::Exit, Effect::ExitAfter];
    let wrong = Rule {
        call: CALLS[random.usize(0..CALLS.len())].to_owned(),
        times: Some(random.u32(1..3)),
        effect: effects[random.usize(0..effects.len())].clone(),
    };
    let rules: Vec<Rule> = std::iter::once(wrong).chain(CALLS.map(|call| slow(call, random))).collect();
    site.trouble(DRIVER, &rules);
}

/// The pod that has each volume, and its number.
struct Cast {
    volumes: Vec<Volume>,
    pods: Vec<Option<String>>,
    made: usize,
}

impl Cast {
    /// The pod of a volume goes, or one comes, which leaves its name in the volume.
    fn stir(&mut self, node: &ClusterNode, at: usize) {
        if let Some(name) = self.pods[at].take() {
            return delete(node, &name);
        }
        self.made += 1;
        let name = format!("user-{at}-{}", self.made);
        create(node, &self.volumes[at].user(&name));
        self.pods[at] = Some(name);
    }
}

/// Mounts of volumes below a folder.
fn mounts(folder: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the mount table");
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let of_drivers = |at: &&str| Path::new(at).starts_with(folder) && at.contains("kubernetes.io");
    points.filter(of_drivers).filter(|at| at.contains("csi")).map(str::to_owned).collect()
}

/// Directories and links that are left of volumes of drivers.
fn directories(root: &Path) -> Vec<String> {
    let list = |at: &Path| fs::read_dir(at).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    let raw = root.join("plugins/kubernetes.io/csi/volumeDevices");
    let kept = [raw.join("staging"), raw.join("publish")];
    let of_raw = list(&raw).into_iter().filter(|at| !kept.contains(at)).chain(kept.iter().flat_map(|at| list(at)));
    let staged = list(&root.join("plugins/kubernetes.io/csi").join(DRIVER));
    let of_pod = |p: &Path| ["volumes", "volumeDevices"].map(|dir| list(&p.join(dir).join("kubernetes.io~csi")));
    let published = list(&root.join("pods")).into_iter().flat_map(|p| of_pod(&p).concat());
    staged.into_iter().chain(of_raw.collect::<Vec<_>>()).chain(published).map(|p| p.display().to_string()).collect()
}

/// What a volume is after the calls that the driver was asked, in order; and calls that should not have come.
#[derive(Default)]
struct Ledger {
    staged: bool,
    published: Vec<String>,
    counts: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Ledger {
    fn note(&mut self, line: &Value) {
        let word = |key: &str| line["request"][key].as_str().unwrap_or_default().to_owned();
        let call = line["call"].as_str().unwrap_or_default();
        // What was done, whatever was answered.
        if line["code"] != "Ok" && line["message"] != format!("{call}: told to") {
            return;
        }
        *self.counts.entry(call.to_owned()).or_default() += 1;
        match call {
            "NodeStageVolume" => self.staged = true,
            "NodePublishVolume" if !self.staged => self.wrong.push(format!("published without a stage: {line}")),
            "NodePublishVolume" if !self.published.contains(&word("target_path")) => {
                self.published.push(word("target_path"));
            }
            "NodeUnpublishVolume" => self.published.retain(|at| *at != word("target_path")),
            "NodeUnstageVolume" if !self.published.is_empty() => {
                self.wrong.push(format!("unstaged while {:?} have it", self.published));
            }
            "NodeUnstageVolume" => self.staged = false,
            _ => {}
        }
    }
}

fn ledgers(folder: &Path) -> BTreeMap<String, Ledger> {
    let mut all: BTreeMap<String, Ledger> = BTreeMap::new();
    for line in fs::read_to_string(folder.join("log.jsonl")).expect("the driver's log").lines() {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        if let Some(id) = line["request"]["volume_id"].as_str() {
            all.entry(id.to_owned()).or_default().note(&line);
        }
    }
    all
}

#[test]
fn a_daemon_that_is_killed_again_and_again_leaves_no_volume_behind_and_none_empty() {
    let (kills, seed) = (number("CLAIM_KILLS", 5), number("CLAIM_KILLS_SEED", 1));
    let mut random = Rng::with_seed(seed);
    let mut site = Site::on(start(), &Config::default());
    let (folder, root) = (site.folder(DRIVER), site.root());
    let driver = Kept::start(site.release(DRIVER));
    let volumes: Vec<Volume> = (0..VOLUMES).map(|at| Volume::new(at, &folder)).collect();
    let claims: Vec<Claim> = volumes.iter().map(Volume::claim).collect();
    for (volume, claim) in volumes.iter().zip(&claims) {
        site.claim(claim);
        volume.fill();
    }
    site.attach_these(&claims.iter().map(Claim::unique).collect::<Vec<_>>());

    let mut cast = Cast { volumes, pods: vec![None; VOLUMES], made: 0 };
    (0..VOLUMES).for_each(|at| cast.stir(&site.node, at));
    let begun = Instant::now();
    for kill in 1..=kills {
        trouble(&site, &mut random);
        cast.stir(&site.node, random.usize(0..VOLUMES));
        testbed::let_pass(Duration::from_millis(random.u64(0..2500)) * testbed::patience());
        site.node.bosun.kill();
        if kill == kills {
            // What hangs from now on would hang until its deadline.
            site.trouble(DRIVER, &[]);
        }
        site.node.start_again().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    println!("{kills} kills in {:?}, seed {seed}, {} pods", begun.elapsed(), cast.made);
    // Whoever is left gets its volume, and all go.
    let left: Vec<String> = cast.pods.iter().flatten().cloned().collect();
    left.iter().for_each(|name| drop(wait_running(&site.node, name)));
    left.iter().for_each(|name| delete(&site.node, name));
    let pods = site.node.cluster.admin().list(PODS).expect("pods");
    pods.iter().filter_map(|p| p["metadata"]["name"].as_str()).for_each(|name| wait_gone(&site.node, name));
    let clean = || {
        let left = (mounts(&root), directories(&root), looped(&root), site.in_use());
        let none = left.0.is_empty() && left.1.is_empty() && left.2.is_empty() && left.3.is_empty();
        if none { Ok(()) } else { Err(format!("{left:?}")) }
    };
    wait_until("nothing of any volume to be left", 3 * SOON, clean)
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", site.node.bosun.log()));
    println!("the driver ended {} times", driver.end());
    for (id, ledger) in ledgers(&folder) {
        println!("{id}: {:?}", ledger.counts);
        assert!(ledger.wrong.is_empty(), "seed {seed}, {id}: {:#?}", ledger.wrong);
        assert!(!ledger.staged && ledger.published.is_empty(), "seed {seed}, {id}: {:?}", ledger.published);
    }
    for (volume, pod) in cast.volumes.iter().zip(&cast.pods) {
        volume.assert_whole(&format!("seed {seed}"));
        let said = pod.as_ref().map_or(Ok(()), |name| volume.was_left_by(name));
        said.unwrap_or_else(|e| panic!("seed {seed}: {pod:?}: {e}"));
    }
}
