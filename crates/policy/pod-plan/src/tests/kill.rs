use std::collections::BTreeSet;

use super::world::World;
use crate::KillReason;
use crate::grace::{PodGrace, container_grace, pod_grace, stop_seconds};
use crate::kill_order::kill_order;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn mesh() -> World {
    World::new("Always").sidecar("s1").init("i").sidecar("s2").regular("m").regular("n").ephemeral("d")
}

#[test]
fn termination_order_4_9() {
    type Row = (&'static str, World, &'static [&'static str], &'static [&'static [&'static str]]);
    let rows: [Row; 7] = [
        (
            "edge 43: main, then the last sidecar, then the first",
            World::new("Always").sidecar("s1").sidecar("s2").regular("m"),
            &["s1", "s2", "m"],
            &[&["m"], &["s2"], &["s1"]],
        ),
        (
            "regular containers together, ephemeral at once",
            mesh(),
            &["s1", "s2", "m", "n", "d"],
            &[&["d", "m", "n"], &["s2"], &["s1"]],
        ),
        ("not-running ones count as stopped", mesh(), &["s1", "n"], &[&["n"], &["s1"]]),
        ("a sidecar between is gone", mesh(), &["s1", "s2"], &[&["s2"], &["s1"]]),
        ("an init container waits for nobody", mesh(), &["s1", "i"], &[&["i", "s1"]]),
        ("no sidecars", World::new("Always").regular("m").regular("n"), &["m", "n"], &[&["m", "n"]]),
        ("nothing runs", mesh(), &[], &[]),
    ];
    for (name, world, running, want) in rows {
        let running = set(running);
        let got = kill_order(&world.pod, &running).waves(&running);
        let want: Vec<BTreeSet<String>> = want.iter().map(|w| set(w)).collect();
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn prerequisites_name_later_sidecars_and_regular_containers() {
    let order = kill_order(&mesh().pod, &set(&["s1", "s2", "m", "n", "d"]));
    assert_eq!(order.prerequisites("s1"), ["s2", "m", "n"]);
    assert_eq!(order.prerequisites("s2"), ["m", "n"]);
    for free in ["m", "n", "i", "d", "nobody"] {
        assert!(order.prerequisites(free).is_empty(), "{free}");
    }
    assert!(!order.is_free());
    assert!(kill_order(&World::new("Always").regular("m").pod, &set(&["m"])).is_free());
}

#[test]
fn grace_of_a_pod_2_3() {
    // (name, stored, deletion grace, override, spec grace, seconds, shortened)
    let rows = [
        ("spec value", None, None, None, Some(30), 30, false),
        ("a stored 0 counts as unset", Some(0), None, None, Some(30), 30, false),
        ("nothing set", None, None, None, None, 1, false),
        ("edge 23: force-deleted static pods use the spec", None, None, None, Some(45), 45, false),
        ("deletion grace", None, Some(5), None, Some(30), 5, false),
        ("deletion grace longer than the spec's counts", None, Some(60), None, Some(30), 60, false),
        ("deletion grace 0 is 1", None, Some(0), None, Some(30), 1, false),
        ("override", None, None, Some(7), Some(30), 7, false),
        ("override 0 is 1", None, None, Some(0), Some(30), 1, false),
        ("least of both", None, Some(5), Some(7), Some(30), 5, false),
        ("edge 22: shortened by a second delete", Some(30), Some(5), None, Some(30), 5, true),
        ("edge 22: never grows", Some(5), Some(60), None, Some(30), 5, false),
        ("edge 24: eviction of a terminating pod", Some(30), Some(30), Some(1), Some(30), 1, true),
        ("stored and nothing new", Some(5), None, None, Some(30), 5, false),
    ];
    for (name, stored, deletion, over, spec, seconds, shortened) in rows {
        let w = World::new("Always").then(|w| {
            w.pod.metadata.deletion_grace_period_seconds = deletion;
            w.spec().termination_grace_period_seconds = spec;
        });
        assert_eq!(pod_grace(stored, &w.pod, over), PodGrace { seconds, shortened }, "{name}");
    }
}

#[test]
fn grace_of_a_container_4_9() {
    use KillReason::{DefinitionChanged, LivenessProbe, Pod, StartupProbe};
    // (name, deletion grace, spec grace, probe grace, override, reason, seconds)
    let rows = [
        ("spec value", None, Some(30), None, None, Pod, 30),
        ("neither set", None, None, None, None, Pod, 2),
        ("neither set, a probe's is not looked at", None, None, Some(9), None, LivenessProbe, 2),
        ("deletion grace wins", Some(5), Some(30), Some(9), None, LivenessProbe, 5),
        ("liveness failure, probe sets it", None, Some(30), Some(9), None, LivenessProbe, 9),
        ("startup failure, probe sets it", None, Some(30), Some(9), None, StartupProbe, 10),
        ("liveness failure, probe does not set it", None, Some(30), None, None, LivenessProbe, 30),
        ("another reason does not look at probes", None, Some(30), Some(9), None, DefinitionChanged, 30),
        ("override", Some(5), Some(30), Some(9), Some(1), LivenessProbe, 1),
        ("override 0 stays 0: no hook, no order", None, Some(30), None, Some(0), Pod, 0),
        ("spec 0", None, Some(0), None, None, Pod, 0),
    ];
    for (name, deletion, spec, probe, over, reason, seconds) in rows {
        let w = World::new("Always").regular("m").liveness_probe("m").startup_probe("m").then(|w| {
            w.pod.metadata.deletion_grace_period_seconds = deletion;
            w.spec().termination_grace_period_seconds = spec;
            let c = &mut w.spec().containers[0];
            c.liveness_probe.as_mut().unwrap().termination_grace_period_seconds = probe;
            c.startup_probe.as_mut().unwrap().termination_grace_period_seconds = probe.map(|s| s + 1);
        });
        assert_eq!(container_grace(&w.pod, &w.container("m").1, reason, over), seconds, "{name}");
    }
}

#[test]
fn the_runtime_gets_at_least_two_seconds() {
    for (remaining, want) in [(-3, 2), (0, 2), (1, 2), (2, 2), (30, 30)] {
        assert_eq!(stop_seconds(remaining), want, "edges 24, 44 and 60: {remaining} left");
    }
}
