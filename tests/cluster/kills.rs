//! The daemon dies at any moment of the set-up and the teardown of claims, with a real driver on real mounts that loses
//! answers. `CLAIM_KILLS` says how often, `CLAIM_KILLS_SEED` by which chance.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use csi_driver::{Config, Effect, Rule};
use fastrand::Rng;
use serde_json::{Value, json};
use testbed::{ClusterNode, wait_until};

use crate::node::{PODS, SOON, create, delete, start, wait_gone, wait_running};
use crate::site::{Claim, DRIVER, Site, claimed, user_that};

const VOLUMES: usize = 3;
const CALLS: [&str; 4] = ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];
/// What users have in a volume beside what pods write.
const FILES: [&str; 3] = ["precious", "deep/er/precious", ".hidden/precious"];

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |n| n.parse().expect("a number"))
}

/// From now on calls take their time, and one kind of call is done and answered with an error some times.
fn trouble(site: &Site, random: &mut Rng) {
    let slow = |call: &str, random: &mut Rng| Rule {
        call: call.to_owned(),
        times: None,
        effect: Effect::SlowMs(random.u64(0..400)),
    };
    let lost = Rule {
        call: CALLS[random.usize(0..CALLS.len())].to_owned(),
        times: Some(random.u32(1..3)),
        // DEADLINE_EXCEEDED, UNAVAILABLE.
        effect: Effect::Lost(if random.bool() { 4 } else { 14 }),
    };
    let rules: Vec<Rule> = std::iter::once(lost).chain(CALLS.map(|call| slow(call, random))).collect();
    site.trouble(DRIVER, &rules);
}

/// The pod that has each volume, and its number.
struct Cast {
    pods: Vec<Option<String>>,
    made: usize,
}

impl Cast {
    /// The pod of a volume goes, or one comes, which adds its name to a file in the volume.
    fn stir(&mut self, node: &ClusterNode, at: usize) {
        if let Some(name) = self.pods[at].take() {
            return delete(node, &name);
        }
        self.made += 1;
        let name = format!("user-{at}-{}", self.made);
        let script = format!("echo {name} >> /data/words;");
        create(node, &user_that(&name, &claimed(&at.to_string()), &script, &json!({})));
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

/// Directories that are left of volumes of drivers.
fn directories(root: &Path) -> Vec<String> {
    let list = |at: &Path| fs::read_dir(at).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    let staged = list(&root.join("plugins/kubernetes.io/csi").join(DRIVER));
    let published = list(&root.join("pods")).into_iter().flat_map(|p| list(&p.join("volumes/kubernetes.io~csi")));
    staged.into_iter().chain(published).map(|p| p.display().to_string()).collect()
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
    let all: Vec<usize> = (0..VOLUMES).collect();
    let claims: Vec<Claim> = all.iter().map(|at| Claim::of(&at.to_string(), DRIVER)).collect();
    let data = |at: usize, file: &str| folder.join(format!("volumes/vol-{at}/data/{file}"));
    for at in &all {
        site.claim(&claims[*at]);
        for file in FILES {
            let path = data(*at, file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of a user");
            fs::write(&path, format!("{file} of {at}")).expect("a file of a user");
        }
    }
    site.attach_these(&claims.iter().map(Claim::unique).collect::<Vec<_>>());

    let mut cast = Cast { pods: vec![None; VOLUMES], made: 0 };
    all.iter().for_each(|at| cast.stir(&site.node, *at));
    let begun = Instant::now();
    for _ in 0..kills {
        trouble(&site, &mut random);
        cast.stir(&site.node, random.usize(0..VOLUMES));
        testbed::let_pass(Duration::from_millis(random.u64(0..2500)));
        site.node.bosun.kill();
        site.node.start_again().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
    println!("{kills} kills in {:?}, seed {seed}, {} pods", begun.elapsed(), cast.made);
    site.trouble(DRIVER, &[]);
    // Whoever is left gets its volume, and all go.
    let left: Vec<String> = cast.pods.iter().flatten().cloned().collect();
    left.iter().for_each(|name| drop(wait_running(&site.node, name)));
    for name in &left {
        let at: usize = name.split('-').nth(1).and_then(|n| n.parse().ok()).expect("a volume");
        let words = || fs::read_to_string(data(at, "words")).map_err(|e| e.to_string());
        let has = || words().and_then(|w| if w.lines().any(|l| l == name) { Ok(()) } else { Err(w) });
        wait_until("the pod's word", SOON, has).unwrap_or_else(|e| panic!("{name}: {e}"));
        delete(&site.node, name);
    }
    let pods = site.node.cluster.admin().list(PODS).expect("pods");
    pods.iter().filter_map(|p| p["metadata"]["name"].as_str()).for_each(|name| wait_gone(&site.node, name));
    let clean = || {
        let left = (mounts(&root), directories(&root), site.in_use());
        let none = left.0.is_empty() && left.1.is_empty() && left.2.is_empty();
        if none { Ok(()) } else { Err(format!("{left:?}")) }
    };
    wait_until("nothing of any volume to be left", 3 * SOON, clean)
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", site.node.bosun.log()));
    for (id, ledger) in ledgers(&folder) {
        println!("{id}: {:?}", ledger.counts);
        assert!(ledger.wrong.is_empty(), "seed {seed}, {id}: {:#?}", ledger.wrong);
        assert!(!ledger.staged && ledger.published.is_empty(), "seed {seed}, {id}: {:?}", ledger.published);
    }
    for (at, file) in all.iter().flat_map(|at| FILES.map(|file| (*at, file))) {
        assert_eq!(fs::read_to_string(data(at, file)).unwrap_or_default(), format!("{file} of {at}"), "seed {seed}");
    }
}
