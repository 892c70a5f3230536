use super::world::{World, check, rule};
use ProbeVerdict::{Failure, Success, Unknown as NoVerdict};
use model::probe::ProbeVerdict;
use model::runtime::ContainerState::{Created, Unknown};

fn app() -> World {
    World::new("Always").regular("m")
}

fn up(policy: &str) -> World {
    World::new(policy).regular("m").sandbox(true).running("m")
}

fn other_image(w: World) -> World {
    w.with("m", |c| c.image = Some("img:2".into()))
}

#[test]
fn a_regular_container_that_does_not_run_4_3_c() {
    check(vec![
        ("absent", app().sandbox(true), "start m@log"),
        ("absent beside a running one", app().regular("n").sandbox(true).running("n"), "start m@log; keep 1"),
        ("created after a failed start (edge 48)", app().sandbox(true).seen("m", Created), "start m@1"),
        (
            "created, nobody tried to start it",
            app().sandbox(true).seen("m", Created).then(|w| {
                w.resumable.insert("m-0".into());
            }),
            "resume m-0",
        ),
        (
            "created, nobody tried, but another image is wanted by now",
            other_image(app().sandbox(true).seen("m", Created)).then(|w| {
                w.resumable.insert("m-0".into());
            }),
            "start m@1",
        ),
        (
            "unknown",
            app().sandbox(true).seen("m", Unknown),
            "kill m-0 'Container is in \"unknown\" state, try killing it before restart'; start m@1",
        ),
        ("exited 0, Always", app().sandbox(true).exited("m", 0), "start m@1"),
        ("exited 1, Always", app().sandbox(true).exited("m", 1), "start m@1"),
        (
            "exited 0, OnFailure, a sibling runs",
            World::new("OnFailure").regular("m").regular("n").sandbox(true).exited("m", 0).running("n"),
            "keep 1",
        ),
        ("exited 1, OnFailure", World::new("OnFailure").regular("m").sandbox(true).exited("m", 1), "start m@1"),
        (
            "exited 1, Never, a sibling runs",
            World::new("Never").regular("m").regular("n").sandbox(true).exited("m", 1).running("n"),
            "keep 1",
        ),
        ("third life", app().sandbox(true).exited("m", 1).exited("m", 1), "start m@2"),
        (
            "being deleted",
            app().regular("n").sandbox(true).exited("m", 1).running("n").then(|w| {
                w.pod.metadata.deletion_timestamp = w.now.to_api();
            }),
            "keep 1",
        ),
    ]);
}

#[test]
fn a_regular_container_that_runs_4_3_c() {
    let liveness = |r| {
        move |w: &mut World| {
            w.probes.liveness.insert("m-0".into(), r);
        }
    };
    let startup = |r| {
        move |w: &mut World| {
            w.probes.startup.insert("m-0".into(), r);
        }
    };
    let resize = |w: &mut World| w.shrink("m", true);
    check(vec![
        ("nothing to say", up("Always"), "keep 1"),
        (
            "image changed, Always",
            other_image(up("Always")),
            "kill m-0 'Container m definition changed, will be restarted'; start m@1",
        ),
        (
            "edge 46: image changed, even with Never",
            other_image(up("Never")),
            "kill m-0 'Container m definition changed, will be restarted'; start m@1",
        ),
        (
            "hash annotation missing",
            up("Always").newest("m", |o| o.hash = None),
            "kill m-0 'Container m definition changed, will be restarted'; start m@1",
        ),
        ("edge 47: env and args changed", up("Always").with("m", |c| c.args = Some(vec!["x".into()])), "keep 1"),
        (
            "liveness failed, Always",
            up("Always").then(liveness(Failure)),
            "kill m-0 'Container m failed liveness probe, will be restarted'; start m@1",
        ),
        (
            "liveness failed, OnFailure",
            up("OnFailure").then(liveness(Failure)),
            "kill m-0 'Container m failed liveness probe, will be restarted'; start m@1",
        ),
        (
            "edge 51: liveness failed, Never, a sibling runs",
            up("Never").regular("n").running("n").then(liveness(Failure)),
            "kill m-0 'Container m failed liveness probe' for good; keep 1",
        ),
        (
            "liveness failed, container policy Always in a Never pod",
            up("Never").own_policy("m", "Always", vec![]).then(liveness(Failure)),
            "kill m-0 'Container m failed liveness probe, will be restarted'; start m@1",
        ),
        (
            "liveness failed, container policy Never with a rule that has no exit code to match",
            up("Always")
                .regular("n")
                .running("n")
                .own_policy("m", "Never", vec![rule("Restart", "In", &[137])])
                .then(liveness(Failure)),
            "kill m-0 'Container m failed liveness probe' for good; keep 1",
        ),
        ("liveness succeeded", up("Always").then(liveness(Success)), "keep 1"),
        ("liveness undecided", up("Always").then(liveness(NoVerdict)), "keep 1"),
        (
            "startup failed, Always",
            up("Always").then(startup(Failure)),
            "kill m-0 'Container m failed startup probe, will be restarted'; start m@1",
        ),
        (
            "startup failed, Never, a sibling runs",
            up("Never").regular("n").running("n").then(startup(Failure)),
            "kill m-0 'Container m failed startup probe' for good; keep 1",
        ),
        ("startup undecided", up("Always").then(startup(NoVerdict)), "keep 1"),
        (
            "resize requires restart, even with Never",
            up("Never").then(resize),
            "kill m-0 'Container m resize requires restart'; start m@1",
        ),
        (
            "first hit wins: definition before liveness",
            other_image(up("Always")).then(liveness(Failure)).then(resize),
            "kill m-0 'Container m definition changed, will be restarted'; start m@1",
        ),
        (
            "first hit wins: liveness before startup",
            up("Always").then(liveness(Failure)).then(startup(Failure)),
            "kill m-0 'Container m failed liveness probe, will be restarted'; start m@1",
        ),
        (
            "the verdict of an earlier instance does not count",
            app().sandbox(true).exited("m", 1).running("m").then(liveness(Failure)),
            "keep 1",
        ),
    ]);
    assert!(up("Never").then(resize).plan().resize.restarts);
}

#[test]
fn a_pod_with_nothing_left_to_run_is_killed_4_3_c_4() {
    check(vec![
        (
            "edge 42: once pod whose main container ended, sidecar still runs",
            World::new("Never").sidecar("s").regular("m").sandbox(true).running("s").exited("m", 0),
            "kill-pod[s-0 sb0]",
        ),
        (
            "main is done and the sidecar dead: the table starts it; a worker sees the terminal phase before it asks",
            World::new("Never").sidecar("s").regular("m").sandbox(true).exited("s", 1).exited("m", 0),
            "start s@1",
        ),
        ("Never, exited", World::new("Never").regular("m").sandbox(true).exited("m", 3), "kill-pod[sb0]"),
        ("OnFailure, exited 0", World::new("OnFailure").regular("m").sandbox(true).exited("m", 0), "kill-pod[sb0]"),
        (
            "edge 51: liveness failed in a single-container Never pod",
            up("Never").then(|w| {
                w.probes.liveness.insert("m-0".into(), Failure);
            }),
            "kill-pod[m-0 sb0]",
        ),
        (
            "a held start keeps the pod",
            app().sandbox(true).exited("m", 1).then(|w| {
                let key = crate::backoff::crash_key(&w.pod, &w.container("m").1);
                w.backoff.next(&key, w.now, w.now);
            }),
            "hold m@1 10s",
        ),
    ]);
}

#[test]
fn ephemeral_containers_start_once_and_at_once() {
    check(vec![
        ("never seen", up("Always").ephemeral("d"), "start d@log; keep 1"),
        ("running", up("Always").ephemeral("d").running("d"), "keep 1"),
        ("edge 49: exited", up("Always").ephemeral("d").exited("d", 1), "keep 1"),
        ("created after a failed start", up("Always").ephemeral("d").seen("d", Created), "keep 1"),
        (
            "created, nobody tried to start it",
            up("Always").ephemeral("d").seen("d", Created).then(|w| {
                w.resumable.insert("d-0".into());
            }),
            "resume d-0; keep 1",
        ),
        (
            "the pod is killed in the same pass",
            World::new("Never").regular("m").ephemeral("d").sandbox(true).exited("m", 0),
            "kill-pod[sb0]",
        ),
        (
            "initialisation is not complete",
            app().init("i").ephemeral("d").sandbox(true).running("i"),
            "start d@log; wait for init container i to finish",
        ),
    ]);
}

#[test]
fn container_restart_rules_4_5() {
    let exits = |own: Option<&str>, rules, code| {
        let w = World::new("Never").regular("m").regular("n").sandbox(true).running("n").exited("m", code);
        match own {
            Some(p) => w.own_policy("m", p, rules),
            None => w.with("m", |c| c.restart_policy_rules = Some(rules)),
        }
    };
    check(vec![
        (
            "edge 50: code 42 is listed",
            exits(Some("Never"), vec![rule("Restart", "In", &[42])], 42),
            "start m@1; keep 1",
        ),
        ("edge 50: code 1 is not listed", exits(Some("Never"), vec![rule("Restart", "In", &[42])], 1), "keep 1"),
        ("NotIn, not listed", exits(Some("Never"), vec![rule("Restart", "NotIn", &[1, 2])], 3), "start m@1; keep 1"),
        ("NotIn, listed", exits(Some("Never"), vec![rule("Restart", "NotIn", &[1, 2])], 2), "keep 1"),
        ("no match, own policy Always", exits(Some("Always"), vec![], 0), "start m@1; keep 1"),
        ("no match, own policy OnFailure, code 0", exits(Some("OnFailure"), vec![], 0), "keep 1"),
        ("no match, own policy OnFailure, code 1", exits(Some("OnFailure"), vec![], 1), "start m@1; keep 1"),
        ("rules without an own policy do not count", exits(None, vec![rule("Restart", "In", &[42])], 42), "keep 1"),
        (
            "restart all with the gate off falls through to the policy",
            exits(Some("Never"), vec![rule("RestartAllContainers", "In", &[42])], 42)
                .then(|w| w.gates.restart_all_containers = false),
            "keep 1",
        ),
    ]);
}
