//! Fault points of the source, against those that the matrix strikes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use contract::DECLARATIONS;

use super::cases::{KINDS, Kind, Passages, is_enough, kinds};
use super::round::Round;
use super::scenes::{SCENES, Scene};

/// Points that no round and no scene passes, with the reason. The list is exact: one that is passed may not stand here.
const NOT_PASSED: &[(&str, &str, &str)] = &[
    ("certificate-manager", "load", ROTATED),
    ("certificate-manager", "key", ROTATED),
    ("certificate-manager", "before create", ROTATED),
    ("certificate-manager", "after create", ROTATED),
    ("certificate-manager", "before store", ROTATED),
    ("certificate-manager", "read serving files", "the node of the rounds has no serving certificate"),
    ("object-store", "turn:FetchPodCertificate", OF_PODS),
    ("object-store", "turn:FetchTrustAnchors", OF_PODS),
    (
        "pod-manager",
        "turn:RemoveDeadContainers",
        "the disk of the rounds is never full: struck by the crate's own tests, in src/tests/cluster.rs",
    ),
    ("pod-worker", "turn:RetireWorker", "the route to the workers answers it, no worker has a turn"),
];
const OF_PODS: &str =
    "no pod of the rounds projects one: struck by the crate's own tests, in src/tests/{bundles,certificates}.rs";
const ROTATED: &str = "nobody signs certificates here: struck by the crate's own tests, in src/tests/faults.rs";

/// The crate of an actor below `crates/managers`.
fn crate_of(actor: &str) -> &str {
    match actor {
        "folder-source" | "http-source" | "api-source" => "config-sources",
        "status-syncer" => "status-manager",
        "node-lease" => "node-manager",
        own => own,
    }
}

/// What fault points stand behind in the source.
const MARKS: [&str; 3] = [".hit(", "fault_point(", ", fault_points("];
/// What stands there instead of a name, where `fault_points` has it.
const NAMED_ELSEWHERE: [&str; 2] = ["before", "after"];

/// (crate, point) of every fault point that the managers name, and what is not read as one.
fn in_source() -> (BTreeSet<(String, String)>, Vec<String>) {
    let (mut points, mut unread) = (BTreeSet::new(), Vec::new());
    let managers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/managers");
    for path in files(&managers) {
        let crate_name = path.strip_prefix(&managers).expect("it is below").iter().next().expect("a crate");
        let crate_name = crate_name.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a source file can be read");
        for behind in MARKS.iter().flat_map(|mark| text.split(mark).skip(1)) {
            let arguments = behind.split_once(')').map_or(behind, |(arguments, _)| arguments);
            let names: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
            if names.is_empty() && !NAMED_ELSEWHERE.contains(&arguments) {
                unread.push(format!("{}: {arguments}", path.display()));
            }
            points.extend(names.into_iter().map(|point| (crate_name.clone(), point.to_owned())));
        }
    }
    (points, unread)
}

/// Source files without tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the source").map(|e| e.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !["tests", "benches"].contains(&name.as_str()) {
                out.extend(files(&path));
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            out.push(path);
        }
    }
    out
}

/// Points that every actor has: it starts, and takes the messages of its role.
fn of_declarations() -> BTreeSet<(String, String)> {
    let actors = DECLARATIONS.iter().filter(|d| !d.actor.is_empty());
    let points = |d: &contract::Declaration| {
        let messages = d.answers.iter().map(|m| format!("turn:{}", m.name));
        messages.chain(["started".to_owned()]).map(|p| (d.actor.to_owned(), p)).collect::<Vec<_>>()
    };
    actors.flat_map(points).collect()
}

/// (actor, point) of all that undisturbed rounds pass on the kinds of runtime on which the actor is struck, and of what the actors
/// of scenes pass in theirs.
fn passed() -> BTreeSet<(String, String)> {
    let of_scene = |scene: Scene| scene.points().into_iter().map(move |point| (scene.actor().to_owned(), point));
    let mut out: BTreeSet<(String, String)> = SCENES.into_iter().flat_map(of_scene).collect();
    let on = KINDS.map(|(name, features, _)| {
        let Passages(found) = actor::testing::run(7, |kernel| async move {
            Round::undisturbed_on(&kernel, features()).await;
            Passages::of(&kernel)
        });
        (name, found)
    });
    let on = BTreeMap::from(on);
    let points = |kind: &Kind, actor: &String| -> Vec<String> {
        on[kind.0].get(actor).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    };
    for actor in on.values().flat_map(BTreeMap::keys) {
        let mut struck = BTreeSet::new();
        for kind in &kinds(actor) {
            if is_enough(struck.len()) {
                break;
            }
            struck.extend(points(kind, actor));
        }
        out.extend(struck.into_iter().map(|p| (actor.clone(), p)));
    }
    out
}

#[test]
fn every_fault_point_of_the_source_is_struck() {
    let passed = passed();
    let of_crates: BTreeSet<(String, String)> =
        passed.iter().map(|(actor, point)| (crate_of(actor).to_owned(), point.clone())).collect();
    let (in_source, unread) = in_source();
    assert!(unread.is_empty(), "a fault point is a literal, or this test does not see it: {unread:#?}");
    assert!(in_source.len() > 100, "only {} fault points in the source: {in_source:?}", in_source.len());
    let of_declarations = of_declarations();
    let missing = in_source.difference(&of_crates).chain(of_declarations.difference(&passed));
    let missing: BTreeSet<(&str, &str)> = missing.map(|(owner, point)| (owner.as_str(), point.as_str())).collect();
    let listed: BTreeSet<(&str, &str)> = NOT_PASSED.iter().map(|(owner, point, _)| (*owner, *point)).collect();
    assert_eq!(
        missing, listed,
        "points that no round and no scene passes (left), and those that are listed so (right)"
    );
    let known: BTreeSet<&String> = in_source.iter().chain(&of_declarations).map(|(_, point)| point).collect();
    // Messages of an actor to itself are in no declaration.
    let strange = passed.iter().filter(|(_, point)| !known.contains(point) && !point.starts_with("turn:"));
    let strange: Vec<_> = strange.collect();
    assert!(strange.is_empty(), "passed, but in no source that this test reads: {strange:?}");
}
