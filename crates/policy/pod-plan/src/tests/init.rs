use super::world::{World, check, rule};
use ProbeVerdict::{Failure, Success, Unknown as NoVerdict};
use model::probe::ProbeVerdict;
use model::runtime::ContainerState::{Created, Running, Unknown};

fn inits(policy: &str) -> World {
    World::new(policy).init("a").init("b").regular("m").sandbox(true)
}

fn mesh() -> World {
    World::new("Always").init("a").sidecar("s").init("b").regular("m").sandbox(true)
}

fn last_sidecar(policy: &str) -> World {
    World::new(policy).sidecar("s").regular("m").sandbox(true)
}

fn startup(id: &'static str, r: ProbeVerdict) -> impl FnOnce(&mut World) {
    move |w| {
        w.probes.startup.insert(id.into(), r);
    }
}

fn liveness(id: &'static str, r: ProbeVerdict) -> impl FnOnce(&mut World) {
    move |w| {
        w.probes.liveness.insert(id.into(), r);
    }
}

#[test]
fn plain_init_containers_4_4() {
    check(vec![
        ("nothing has a status", inits("Always"), "start a@log"),
        ("created", inits("Always").seen("a", Created), "start a@1"),
        (
            "created, nobody tried to start it",
            inits("Always").seen("a", Created).then(|w| {
                w.resumable.insert("a-0".into());
            }),
            "resume a-0",
        ),
        ("running", inits("Always").running("a"), "wait for init container a to finish"),
        (
            "running with another image: it is not disturbed",
            inits("Always").running("a").with("a", |c| c.image = Some("img:2".into())),
            "wait for init container a to finish",
        ),
        ("exited, ok, not the last", inits("Always").exited("a", 0), "start b@log"),
        ("exited, ok, the last", inits("Always").exited("a", 0).exited("b", 0), "start m@log"),
        ("the last runs", inits("Always").exited("a", 0).running("b"), "wait for init container b to finish"),
        ("failed, Always", inits("Always").exited("a", 1), "start a@1"),
        ("failed, OnFailure", inits("OnFailure").exited("a", 1), "start a@1"),
        ("failed, Never", inits("Never").exited("a", 1), "kill-pod[sb0]"),
        ("the second failed, Never", inits("Never").exited("a", 0).exited("b", 1), "kill-pod[sb0]"),
        (
            "failed, own policy Never in an Always pod",
            inits("Always").own_policy("a", "Never", vec![]).exited("a", 1),
            "kill-pod[sb0]",
        ),
        (
            "failed, own rule restarts",
            inits("Never").own_policy("a", "Never", vec![rule("Restart", "In", &[42])]).exited("a", 42),
            "start a@1",
        ),
        (
            "edge 39: OOM killed with code 0, Never",
            inits("Never").exited("a", 0).newest("a", |o| o.reason = "OOMKilled".into()),
            "kill-pod[sb0]",
        ),
        (
            "edge 39: OOM killed with code 0, Always",
            inits("Always").exited("a", 0).newest("a", |o| o.reason = "OOMKilled".into()),
            "start a@1",
        ),
        (
            "OOM killed with code 0, OnFailure: judged as the failure that it is",
            inits("OnFailure").exited("a", 0).newest("a", |o| o.reason = "OOMKilled".into()),
            "start a@1",
        ),
        ("unknown, Never", inits("Never").seen("a", Unknown), "kill-pod[sb0]"),
        (
            "unknown, otherwise",
            inits("OnFailure").seen("a", Unknown),
            "kill a-0 'Init container is in \"unknown\" state, try killing it before restart'; start a@1",
        ),
        (
            "edge 45: completed one removed by hand while main runs",
            inits("Always").exited("b", 0).running("m"),
            "keep 1",
        ),
        ("failed one while main runs: never rerun", inits("Always").exited("a", 1).running("m"), "keep 1"),
        ("main was created only: initialised all the same", inits("Always").seen("m", Created), "start m@1"),
        ("main exited, init statuses gone: init must run again", inits("Always").exited("m", 1), "start a@log"),
        (
            "main is created in an older sandbox: that does not count",
            World::new("Always").init("a").regular("m").sandbox(false).seen("m", Created).sandbox(true),
            "start a@log",
        ),
        (
            "a failed init container kills what runs",
            World::new("Never").sidecar("s").init("a").regular("m").sandbox(true).running("s").exited("a", 2),
            "kill-pod[s-0 sb0]",
        ),
    ]);
}

#[test]
fn running_sidecars_4_4() {
    check(vec![
        ("edge 40: first init done, sidecar next", mesh().exited("a", 0), "start s@log"),
        (
            "edge 40: sidecar runs without startup probe, so b may start",
            mesh().exited("a", 0).running("s"),
            "start b@log",
        ),
        (
            "edge 40: startup probe without result",
            mesh().startup_probe("s").exited("a", 0).running("s"),
            "wait for sidecar s to pass its startup probe",
        ),
        (
            "startup undecided",
            mesh().startup_probe("s").exited("a", 0).running("s").then(startup("s-0", NoVerdict)),
            "wait for sidecar s to pass its startup probe",
        ),
        (
            "startup succeeded",
            mesh().startup_probe("s").exited("a", 0).running("s").then(startup("s-0", Success)),
            "start b@log",
        ),
        (
            "startup failed",
            mesh().startup_probe("s").exited("a", 0).running("s").then(startup("s-0", Failure)),
            "kill s-0 'Init container s failed startup probe'; start s@1",
        ),
        ("started, last: initialised", last_sidecar("Always").running("s"), "start m@log"),
        (
            "started, not last, initialised before",
            mesh().exited("a", 0).running("s").exited("b", 0).running("m"),
            "keep 1",
        ),
        (
            "definition changed while the next is due",
            mesh().exited("a", 0).running("s").with("s", |c| c.image = Some("img:2".into())),
            "kill s-0 'Init container s definition changed'; start s@1; start b@log",
        ),
        (
            "definition changed while main runs",
            last_sidecar("Never").running("s").running("m").with("s", |c| c.image = Some("img:2".into())),
            "kill s-0 'Init container s definition changed'; start s@1; keep 1",
        ),
        (
            "liveness without a result: the next starts all the same",
            mesh().liveness_probe("s").exited("a", 0).running("s"),
            "start b@log; wait for the first liveness result of sidecar s",
        ),
        (
            "liveness failed",
            last_sidecar("Never").liveness_probe("s").running("s").running("m").then(liveness("s-0", Failure)),
            "kill s-0 'Init container s failed liveness probe'; start s@1; keep 1",
        ),
        (
            "liveness fine",
            last_sidecar("Always").liveness_probe("s").running("s").running("m").then(liveness("s-0", Success)),
            "keep 1",
        ),
        (
            "resize requires restart",
            last_sidecar("Always").running("s").running("m").then(|w| w.shrink("s", true)),
            "kill s-0 'Init container s resize requires restart'; start s@1; keep 1",
        ),
        (
            "readiness never gates",
            last_sidecar("Always").running("s").then(|w| {
                w.probes.readiness.insert("s-0".into(), Failure);
            }),
            "start m@log",
        ),
    ]);
}

#[test]
fn sidecars_that_do_not_run_4_4() {
    check(vec![
        ("no status, initialised", last_sidecar("Always").running("m"), "start s@log; keep 1"),
        ("no status, nothing before", last_sidecar("Always"), "start s@log"),
        (
            "no status, a later init is done",
            World::new("Always").sidecar("s").init("b").regular("m").sandbox(true).exited("b", 0),
            "start s@log; start m@log",
        ),
        ("created", last_sidecar("Always").seen("s", Created), "start s@1"),
        ("exited 1, main runs", last_sidecar("Always").exited("s", 1).running("m"), "start s@1; keep 1"),
        ("edge 41: exited 0, Never, main runs", last_sidecar("Never").exited("s", 0).running("m"), "start s@1; keep 1"),
        ("exited before main ever ran", last_sidecar("Never").exited("s", 0), "start s@1"),
        (
            "unknown, main runs",
            last_sidecar("Never").seen("s", Unknown).running("m"),
            "kill s-0 'Init container is in \"unknown\" state, try killing it before restart'; start s@1; keep 1",
        ),
        (
            "all dead sidecars start in one pass, in spec order",
            World::new("Always")
                .sidecar("s1")
                .init("i")
                .sidecar("s2")
                .regular("m")
                .sandbox(true)
                .exited("s1", 1)
                .exited("i", 0)
                .exited("s2", 1)
                .running("m"),
            "start s1@1; start s2@1; keep 1",
        ),
        (
            "a dead early sidecar starts while a later init runs",
            mesh().exited("a", 0).exited("s", 1).running("b"),
            "start s@1; wait for init container b to finish",
        ),
    ]);
}

#[test]
fn init_instances_are_pruned_to_the_newest_dead_one_4_6() {
    check(vec![
        ("two dead, one started anew", inits("Always").exited("a", 1).exited("a", 1), "prune a-0; start a@2"),
        (
            "a running one beside two dead",
            inits("Always").exited("a", 1).exited("a", 1).running("a"),
            "prune a-0; wait for init container a to finish",
        ),
        ("created ones stay", inits("Always").seen("a", Created).exited("a", 0), "start b@log"),
        (
            "dead regular containers stay",
            inits("Always").exited("a", 0).exited("b", 0).exited("m", 1).exited("m", 1).seen("m", Running),
            "keep 1",
        ),
    ]);
}

#[test]
fn a_sidecar_in_back_off_does_not_hold_the_rest() {
    let world = last_sidecar("Always").exited("s", 1).running("m").then(|w| {
        let key = crate::backoff::crash_key(&w.pod, &w.container("s").1);
        w.backoff.next(&key, w.now, w.now);
    });
    check(vec![("held sidecar", world, "hold s@1 10s; keep 1")]);
}
