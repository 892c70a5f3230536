use super::world::{START, World, check};
use crate::sandbox::{SandboxChange, sandbox_decision};
use model::runtime::ContainerState::{Created, Exited, Running, Unknown};

fn app() -> World {
    World::new("Always").regular("m")
}

#[test]
fn sandbox_change_test_4_2() {
    use SandboxChange::{ManyReady, Missing, NetworkMode, NoAddress, NotReady};
    let host = |w: World| w.then(|w| w.spec().host_network = Some(true));
    let ips = |ips: Option<Vec<String>>| move |w: &mut World| w.observed.sandboxes[0].ips = ips;
    let rows = [
        ("no sandbox at all", app(), Some(Missing), 0, None),
        ("more than one ready", app().sandbox(true).sandbox(true), Some(ManyReady), 2, Some("sb1")),
        (
            "two ready below a dead newest",
            app().sandbox(true).sandbox(true).sandbox(false),
            Some(ManyReady),
            3,
            Some("sb2"),
        ),
        ("newest not ready", app().sandbox(false), Some(NotReady), 1, Some("sb0")),
        ("an older one ready, newest not", app().sandbox(true).sandbox(false), Some(NotReady), 2, Some("sb1")),
        ("pod network, host network wanted", host(app().sandbox(true)), Some(NetworkMode), 1, None),
        (
            "host network, pod network wanted",
            host(app()).sandbox(true).then(|w| w.spec().host_network = None),
            Some(NetworkMode),
            1,
            None,
        ),
        (
            "runtime does not say which network",
            host(app().sandbox(true)).then(|w| w.observed.sandboxes[0].host_network = None),
            None,
            0,
            Some("sb0"),
        ),
        ("address empty", app().sandbox(true).then(ips(Some(vec![String::new()]))), Some(NoAddress), 1, Some("sb0")),
        ("address list empty", app().sandbox(true).then(ips(Some(Vec::new()))), Some(NoAddress), 1, Some("sb0")),
        ("no network struct", app().sandbox(true).then(ips(None)), None, 0, Some("sb0")),
        ("host network without address", host(app()).sandbox(true).then(ips(Some(Vec::new()))), None, 0, Some("sb0")),
        ("all well", app().sandbox(false).sandbox(true), None, 1, Some("sb1")),
    ];
    for (name, world, changed, attempt, id) in rows {
        let got = sandbox_decision(&world.pod, &world.observed);
        assert_eq!((got.changed, got.attempt, got.id.as_ref().map(|i| i.as_str())), (changed, attempt, id), "{name}");
    }
}

#[test]
fn nothing_else_replaces_a_sandbox() {
    let world = app().sandbox(true).running("m").then(|w| {
        w.spec().host_pid = Some(true);
        w.spec().hostname = Some("other".into());
        w.spec().dns_policy = Some("Default".into());
        w.pod.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    });
    assert!(world.plan().is_quiet());
}

#[test]
fn sandbox_must_be_created_4_3_b() {
    check(vec![
        ("first sync", app(), "kill-pod[]; sandbox 0; start m@log"),
        ("first sync with init", app().init("i").init("j"), "kill-pod[]; sandbox 0; start i@log"),
        (
            "edge 33: reboot, Always, with init",
            app().init("i").init("j").sandbox(false).exited("i", 0).exited("j", 0).exited("m", 255),
            "kill-pod[sb0]; purge i-0; purge j-0; sandbox 1 for sb0; start i@1",
        ),
        (
            "purge takes init instances of any state, oldest first",
            app().init("i").sandbox(false).exited("i", 1).seen("i", Unknown).seen("i", Created),
            "kill-pod[sb0]; purge i-0; purge i-1; purge i-2; sandbox 1 for sb0; start i@3",
        ),
        (
            "edge 34: reboot, Never, something was recorded",
            World::new("Never").regular("m").sandbox(false).exited("m", 255),
            "kill-pod[sb0]",
        ),
        (
            "Never, containers recorded but no sandbox at all: attempt 0 is tried",
            World::new("Never").regular("m").exited("m", 1),
            "kill-pod[]; sandbox 0; start m@1",
        ),
        (
            "reboot, Never, only a created init container was recorded",
            World::new("Never").regular("m").init("i").sandbox(false).seen("i", Created),
            "kill-pod[sb0]",
        ),
        (
            "edge 35: Never, sandbox failed before any container",
            World::new("Never").regular("m").sandbox(false).sandbox(false),
            "kill-pod[sb1 sb0]; sandbox 2 for sb1; start m@log",
        ),
        (
            "edge 36: OnFailure, reboot, all exited 0",
            World::new("OnFailure").regular("m").regular("n").sandbox(false).exited("m", 0).exited("n", 0),
            "kill-pod[sb0]",
        ),
        (
            "OnFailure, reboot, one exited 0",
            World::new("OnFailure").regular("m").regular("n").sandbox(false).exited("m", 0).exited("n", 137),
            "kill-pod[sb0]; sandbox 1 for sb0; start n@1",
        ),
        (
            "container policy OnFailure in an Always pod: the one that succeeded is not run again",
            app().regular("n").own_policy("m", "OnFailure", vec![]).sandbox(false).exited("m", 0).exited("n", 0),
            "kill-pod[sb0]; sandbox 1 for sb0; start n@1",
        ),
        (
            "container policy Always in an OnFailure pod: it is run again",
            World::new("OnFailure").regular("m").own_policy("m", "Always", vec![]).sandbox(false).exited("m", 0),
            "kill-pod[sb0]; sandbox 1 for sb0; start m@1",
        ),
        (
            "edge 37: two ready sandboxes",
            app().sandbox(true).running("m").sandbox(true),
            "kill-pod[m-0 sb1 sb0]; sandbox 2 for sb1; start m@1",
        ),
        (
            "edge 38: ready without address",
            app().sandbox(true).running("m").then(|w| w.observed.sandboxes[0].ips = Some(vec![])),
            "kill-pod[m-0 sb0]; sandbox 1 for sb0; start m@1",
        ),
        (
            "changed network mode names no old sandbox",
            app().sandbox(true).running("m").then(|w| w.spec().host_network = Some(true)),
            "kill-pod[m-0 sb0]; sandbox 1; start m@1",
        ),
        ("ephemeral containers wait for the next pass", app().ephemeral("debug"), "kill-pod[]; sandbox 0; start m@log"),
        (
            "a container that is only created in the old sandbox is not resumed",
            app().sandbox(false).seen("m", Created).then(|w| {
                w.resumable.insert("m-0".into());
            }),
            "kill-pod[sb0]; sandbox 1 for sb0; start m@1",
        ),
    ]);
}

#[test]
fn a_pod_without_regular_containers_left_gets_its_sandbox_when_none_ever_ran() {
    let world = World::new("OnFailure").regular("m").sandbox(false).seen("m", Unknown);
    assert!(world.plan().create_sandbox.is_some());
}

#[test]
fn back_off_counts_in_a_new_sandbox_too() {
    let crashed = |w: World| {
        w.sandbox(false).exited("m", 1).then(|w| {
            let (_, c) = w.container("m");
            let at = w.observed.container("m").unwrap().finished_at;
            let key = crate::backoff::crash_key(&w.pod, &c);
            w.backoff.next(&key, at, w.now);
            assert_eq!(w.now.0 / 1_000_000_000, START);
        })
    };
    check(vec![("crashed just before", crashed(app()), "kill-pod[sb0]; sandbox 1 for sb0; hold m@1 10s")]);
}

#[test]
fn only_running_containers_are_killed_with_the_pod() {
    let mut world = app().sandbox(true).sandbox(true);
    for (name, state) in [("a", Running), ("b", Created), ("c", Exited), ("d", Unknown)] {
        world = world.seen(name, state);
    }
    let kill = world.plan().kill_pod.unwrap();
    assert_eq!(kill.containers.iter().map(|c| c.as_str()).collect::<Vec<_>>(), ["a-0"]);
    assert!(kill.anything_alive);
}
