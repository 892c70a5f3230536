use serde_json::json;

use super::*;
use crate::testing::*;

fn first(case: &Case) -> ContainerStatus {
    case.generate().container_statuses.unwrap().remove(0)
}

fn init_pod() -> Pod {
    pod(json!({"restartPolicy": "Always",
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "app", "image": "img:1"}]}))
}

#[test]
fn regular_container_rows() {
    let always = || app_pod("Always");
    let old = |short: &str| base("Running", &[short]);
    let rows: Vec<(&str, Case, &str)> = vec![
        ("default without init containers", Case::new(always(), Seen::nothing()), "W(ContainerCreating)/- rc=0"),
        ("default with init containers", Case::new(init_pod(), Seen::nothing()), "W(PodInitializing)/- rc=0"),
        (
            "absent, base waiting: count and last state are kept",
            Case::new(always(), Seen::sandbox()).base(old("app W T3 2")),
            "W(ContainerCreating)/T3(Error) rc=2",
        ),
        (
            "absent, base terminated: the whole old status stays",
            Case::new(always(), Seen::sandbox()).base(old("app T3 T2 2")),
            "T3(Error)/T2(Error) rc=2",
        ),
        (
            "absent, base running without last state: unknown end, one restart more",
            Case::new(always(), Seen::sandbox()).base(old("app R - 2")),
            "W(ContainerCreating)/T137(ContainerStatusUnknown) rc=3",
        ),
        (
            "absent, base running, pod deleting: no restart counted",
            Case::new(deleting(always()), Seen::sandbox()).base(old("app R - 2")),
            "W(ContainerCreating)/T137(ContainerStatusUnknown) rc=2",
        ),
        (
            "absent, base running with a last state: that one is kept",
            Case::new(always(), Seen::sandbox()).base(old("app R T4 2")),
            "W(ContainerCreating)/T4(Error) rc=2",
        ),
        ("running", Case::new(always(), Seen::sandbox().with("app R 20 a")), "R/- rc=0"),
        ("created", Case::new(always(), Seen::sandbox().with("app C 20 a")), "W()/- rc=0"),
        ("exited", Case::new(always(), Seen::sandbox().with("app X7 20 a")), "T7(Error)/- rc=0"),
        (
            "unknown and base running",
            Case::new(always(), Seen::sandbox().with("app U 20 a")).base(old("app R - 1")),
            "T137(ContainerStatusUnknown)/- rc=2",
        ),
        (
            "unknown and base not running",
            Case::new(always(), Seen::sandbox().with("app U 20 a")).base(old("app W - 1")),
            "W()/- rc=1",
        ),
        (
            "unknown again: the verdict on this instance is kept",
            Case::new(always(), Seen::sandbox().with("app U 20 app-old"))
                .base(old("app T137:ContainerStatusUnknown - 2")),
            "T137(ContainerStatusUnknown)/- rc=2",
        ),
        (
            "two instances: newest is the state, the older one the last state",
            Case::new(always(), Seen::sandbox().with("app R 30 b").with("app X1 20 a").count("b", 1)),
            "R/T1(Error) rc=1",
        ),
        (
            "an older instance that never ran is no last state",
            Case::new(always(), Seen::sandbox().with("app R 30 b").with("app C 25 c").with("app X1 20 a")),
            "R/T1(Error) rc=0",
        ),
        (
            "restart count does not go back",
            Case::new(always(), Seen::sandbox().with("app R 30 b")).base(old("app R - 5")),
            "R/- rc=5",
        ),
        (
            "the old instance was removed: its end becomes the last state",
            Case::new(always(), Seen::sandbox().with("app R 30 b").count("b", 1)).base(old("app T9 - 0")),
            "R/T9(Error) rc=1",
        ),
        (
            "same instance as before: last state is kept",
            Case::new(always(), Seen::sandbox().with("app R 30 app-old")).base(old("app R T9 1")),
            "R/T9(Error) rc=1",
        ),
    ];
    for (name, case, expected) in rows {
        assert_eq!(show(&first(&case)), expected, "{name}");
    }
}

#[test]
fn waiting_reason_overlay_rows() {
    let exited = |code: u8| Seen::sandbox().with(&format!("app X{code} 20 a"));
    let crash = |case: Case| case.reason("app", "CrashLoopBackOff");
    let rows: Vec<(&str, Case, &str)> = vec![
        (
            "edge 85: first crash without an entry stays terminated",
            Case::new(app_pod("Always"), exited(1)),
            "T1(Error)/- rc=0",
        ),
        (
            "edge 85: with an entry the end moves to the last state",
            crash(Case::new(app_pod("Always"), exited(1))),
            "W(CrashLoopBackOff)/T1(Error) rc=0",
        ),
        (
            "exit 0 under Always backs off too",
            crash(Case::new(app_pod("Always"), exited(0))),
            "W(CrashLoopBackOff)/T0(Completed) rc=0",
        ),
        ("not restartable: no overlay", crash(Case::new(app_pod("Never"), exited(1))), "T1(Error)/- rc=0"),
        ("running: no overlay", crash(Case::new(app_pod("Always"), Seen::sandbox().with("app R 20 a"))), "R/- rc=0"),
        (
            "never created",
            Case::new(app_pod("Always"), Seen::sandbox()).reason("app", "ErrImagePull"),
            "W(ErrImagePull)/- rc=0",
        ),
        (
            "created but not started",
            Case::new(app_pod("Always"), Seen::sandbox().with("app C 20 a")).reason("app", "RunContainerError"),
            "W(RunContainerError)/- rc=0",
        ),
        (
            "deleting pod: no overlay",
            Case::new(deleting(app_pod("Always")), Seen::sandbox()).reason("app", "ErrImagePull"),
            "W(ContainerCreating)/- rc=0",
        ),
        (
            "removed from the runtime after its end was shown",
            crash(Case::new(app_pod("Always"), Seen::sandbox()).base(base("Running", &["app T5 T4 3"]))),
            "W(CrashLoopBackOff)/T5(Error) rc=3",
        ),
    ];
    for (name, case, expected) in rows {
        assert_eq!(show(&first(&case)), expected, "{name}");
    }
    let case = Case::new(app_pod("Always"), Seen::sandbox()).reason("app", "ErrImagePull");
    assert_eq!(first(&case).state.unwrap().waiting.unwrap().message.as_deref(), Some("why app"));
}

#[test]
fn init_container_rows() {
    let with_base = |case: Case, init: &[&str]| {
        let mut b = base("Running", &[]);
        b.init_container_statuses = Some(init.iter().map(|c| container(c)).collect());
        case.base(b)
    };
    let rows: Vec<(&str, Case, [&str; 2])> = vec![
        (
            "nothing seen: init containers wait for initialisation too",
            Case::new(init_pod(), Seen::nothing()),
            ["W(PodInitializing)/- rc=0", "W(PodInitializing)/- rc=0"],
        ),
        (
            "lost init status of an initialised pod counts as success, a lost sidecar does not",
            Case::new(init_pod(), Seen::sandbox().with("app R 20 a")),
            ["T0(Completed)/- rc=0", "W(PodInitializing)/- rc=0"],
        ),
        (
            "a known end of a removed init container is kept",
            with_base(Case::new(init_pod(), Seen::sandbox().with("app R 20 a")), &["i T0:Done - 1"]),
            ["T0(Done)/- rc=1", "W(PodInitializing)/- rc=0"],
        ),
        (
            "init containers that exited 0 get no waiting reason, sidecars do",
            Case::new(init_pod(), Seen::sandbox().with("i X0 20 x").with("s X0 21 y"))
                .reason("i", "CrashLoopBackOff")
                .reason("s", "CrashLoopBackOff"),
            ["T0(Completed)/- rc=0", "W(CrashLoopBackOff)/T0(Completed) rc=0"],
        ),
        (
            "failed init container in back-off",
            Case::new(init_pod(), Seen::sandbox().with("i X3 20 x")).reason("i", "CrashLoopBackOff"),
            ["W(CrashLoopBackOff)/T3(Error) rc=0", "W(PodInitializing)/- rc=0"],
        ),
        (
            "an init container that cannot start after a reboot shows why, not success",
            Case::new(init_pod(), Seen::sandbox().with("app X1 20 a@s-old")).reason("i", "ErrImagePull"),
            ["W(ErrImagePull)/- rc=0", "W(PodInitializing)/- rc=0"],
        ),
    ];
    for (name, case, expected) in rows {
        let lists = case.generate().init_container_statuses.unwrap();
        assert_eq!([show(&lists[0]), show(&lists[1])], expected, "{name}");
    }
}

#[test]
fn restarting_all_containers() {
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}]);
    let p = pod(json!({"restartPolicy": "Never", "containers": [
        {"name": "a"}, {"name": "b", "restartPolicy": "Never", "restartPolicyRules": rules}, {"name": "c"}]}));
    let seen = Seen::sandbox().with("b X9 20 b1");
    let case = Case::new(p, seen).base(base("Running", &["a R - 0", "b R - 0", "c W:RestartingAllContainers - 1"]));
    let status = case.generate();
    let shown: Vec<String> = status.container_statuses.as_ref().unwrap().iter().map(show).collect();
    let expected = [
        "W(RestartingAllContainers)/T137(RestartingAllContainers) rc=1",
        "T9(Error)/- rc=0",
        "W(RestartingAllContainers)/- rc=1",
    ];
    assert_eq!(shown, expected);
    let began = "True RestartAllContainersStarted: container exited with restart policy rule";
    assert_eq!(show_condition(&status, "AllContainersRestarting"), began);
}

/// One status after the other, as a worker makes them.
#[test]
fn a_restart_of_all_from_its_beginning_to_its_end() {
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}]);
    let p = pod(json!({"restartPolicy": "Never", "initContainers": [{"name": "i"}], "containers": [
        {"name": "a"}, {"name": "b", "restartPolicy": "Never", "restartPolicyRules": rules}]}));
    let ran = Seen::sandbox().with("i X0 20 i0").with("a R 21 a0");
    let steps: Vec<(&str, Seen, [&str; 3], &str)> = vec![
        ("all is well", ran.clone().with("b R 21 b0"), ["T0(Completed)/- rc=0", "R/- rc=0", "R/- rc=0"], "False"),
        (
            "a rule matches",
            ran.with("b X9 21 b0"),
            ["T0(Completed)/- rc=0", "R/- rc=0", "T9(Error)/- rc=0"],
            "True RestartAllContainersStarted: container exited with restart policy rule",
        ),
        (
            "half of it is removed, the source among it",
            Seen::sandbox().with("a R 21 a0"),
            [
                "W(RestartingAllContainers)/T137(RestartingAllContainers) rc=1",
                "R/- rc=0",
                "W(RestartingAllContainers)/T137(RestartingAllContainers) rc=1",
            ],
            "True RestartAllContainersStarted: container exited with restart policy rule",
        ),
        (
            "all is removed",
            Seen::sandbox(),
            ["W(RestartingAllContainers)/T137(RestartingAllContainers) rc=1"; 3],
            "False",
        ),
        (
            "the first container runs again, its count is of before",
            Seen::sandbox().with("i R 30 i1"),
            [
                "R/T137(RestartingAllContainers) rc=1",
                "W(RestartingAllContainers)/T137(RestartingAllContainers) rc=1",
                "W(RestartingAllContainers)/T137(RestartingAllContainers) rc=1",
            ],
            "False",
        ),
    ];
    let mut base = None;
    for (name, seen, expected, condition) in steps {
        let mut case = Case::new(p.clone(), seen);
        case.base = base.take();
        let status = case.generate();
        let lists = [&status.init_container_statuses, &status.container_statuses];
        let shown: Vec<String> = lists.into_iter().flatten().flatten().map(show).collect();
        assert_eq!(shown, expected, "{name}");
        assert_eq!(show_condition(&status, "AllContainersRestarting"), condition, "{name}");
        assert_eq!(show_condition(&status, "Initialized"), "True", "{name}");
        if name == "all is removed" {
            let waits = status.container_statuses.as_ref().unwrap()[0].state.clone().unwrap().waiting.unwrap();
            let text = "The container is removed because RestartAllContainers in place";
            assert_eq!(waits.message.as_deref(), Some(text));
        }
        base = Some(status);
    }
}

#[test]
fn without_its_gate_nothing_is_said_of_a_restart_of_all() {
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}]);
    let p = pod(json!({"restartPolicy": "Never", "containers": [
        {"name": "a", "restartPolicy": "Never", "restartPolicyRules": rules}]}));
    let mut case = Case::new(p, Seen::sandbox().with("a X9 21 a0"));
    assert_eq!(case.generate().phase.as_deref(), Some("Running"));
    case.restart_all = false;
    let status = case.generate();
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(show_condition(&status, "AllContainersRestarting"), "absent");
}

#[test]
fn fields_come_from_the_runtime_and_mounts_from_base() {
    let p = pod(json!({"containers": [{"name": "app", "image": "img:1", "volumeMounts": [
        {"name": "v", "mountPath": "/v"}, {"name": "r", "mountPath": "/r", "readOnly": true},
        {"name": "q", "mountPath": "/q", "readOnly": true, "recursiveReadOnly": "IfPossible"}]}]}));
    let mut case = Case::new(p, Seen::sandbox().with("app R 20 abc"));
    case.seen.containers[0].user = Some((1, 2, vec![3]));
    let status = serde_json::to_value(first(&case)).unwrap();
    let mounts = json!([{"name": "v", "mountPath": "/v"},
        {"name": "r", "mountPath": "/r", "readOnly": true, "recursiveReadOnly": "Disabled"},
        {"name": "q", "mountPath": "/q", "readOnly": true, "recursiveReadOnly": "Disabled"}]);
    let expected = json!({"name": "app", "image": "img:1", "imageID": "sha256:ref",
        "containerID": "containerd://abc", "ready": true, "started": true, "restartCount": 0, "lastState": {},
        "state": {"running": {"startedAt": "1970-01-01T00:00:20Z"}}, "resources": {}, "volumeMounts": mounts,
        "user": {"linux": {"uid": 1, "gid": 2, "supplementalGroups": [3]}}});
    assert_eq!(status, expected);

    let mut input = case.input();
    input.recursive_read_only = true;
    let mounts = crate::generate(&input).container_statuses.unwrap().remove(0).volume_mounts.unwrap();
    assert_eq!(mounts[2].recursive_read_only.as_deref(), Some("Enabled"));
}

#[test]
fn an_end_carries_id_reason_message_and_times() {
    let mut case = Case::new(app_pod("Never"), Seen::sandbox().with("app X7 20 abc"));
    case.seen.containers[0].message = "boom\n".into();
    let state = serde_json::to_value(first(&case).state).unwrap();
    let expected = json!({"terminated": {"exitCode": 7, "reason": "Error", "message": "boom\n",
        "startedAt": "1970-01-01T00:00:20Z", "finishedAt": "1970-01-01T00:00:20Z",
        "containerID": "containerd://abc"}});
    assert_eq!(state, expected);
}

#[test]
fn init_statuses_keep_spec_order_and_others_sort_by_name() {
    let p = pod(json!({"initContainers": [{"name": "z"}, {"name": "y"}], "containers": [{"name": "b"}, {"name": "a"}],
        "ephemeralContainers": [{"name": "e2"}, {"name": "e1"}]}));
    let status = Case::new(p, Seen::nothing()).generate();
    let names = |list: Option<Vec<ContainerStatus>>| list.unwrap().into_iter().map(|s| s.name).collect::<Vec<_>>();
    assert_eq!(names(status.init_container_statuses), ["z", "y"]);
    assert_eq!(names(status.container_statuses), ["a", "b"]);
    assert_eq!(names(status.ephemeral_container_statuses), ["e1", "e2"]);
}
