use super::*;

fn worker(phase: WorkerPhase) -> Arc<WorkerState> {
    named_worker(phase, "u", "web")
}

fn named_worker(phase: WorkerPhase, uid: &str, name: &str) -> Arc<WorkerState> {
    let pod = fakes::pod(uid, serde_json::json!({"metadata": {"name": name}}));
    let deleted = phase >= WorkerPhase::Terminating;
    Arc::new(WorkerState { deleted, pod: Some(Arc::new(pod)), ..WorkerState::new(phase) })
}

fn desired() -> DesiredFacts {
    DesiredFacts { full_name: "web_default".into(), is_static: true, ..DesiredFacts::default() }
}

fn u() -> PodUid {
    PodUid::from("u")
}

#[test]
fn one_row_per_leftover() {
    use Chore::*;
    use WorkerPhase::*;
    type Build = fn(&mut Situation);
    let table: Vec<(&str, Build, Vec<Chore>)> = vec![
        (
            "a healthy pod needs nothing",
            |w| {
                w.desired.insert(u(), desired());
                w.workers.insert(u(), worker(Syncing));
                w.runtime.insert(u(), true);
                w.cgroups.insert(u());
                w.directories.insert(u(), true);
            },
            vec![],
        ),
        (
            "a worker whose pod is gone is told to stop",
            |w| {
                w.workers.insert(u(), worker(Syncing));
            },
            vec![KillWorker(u())],
        ),
        (
            "a worker that already stops is left alone",
            |w| {
                w.workers.insert(u(), worker(Terminating));
            },
            vec![],
        ),
        (
            "a finished worker of a removed pod is forgotten",
            |w| {
                w.workers.insert(u(), worker(Finished));
            },
            vec![RetireWorker(u())],
        ),
        (
            "a finished worker of a terminal pod that is still wanted stays",
            |w| {
                w.desired.insert(u(), desired());
                w.workers.insert(u(), worker(Finished));
            },
            vec![],
        ),
        (
            "the same UID added again restarts once finished",
            |w| {
                w.desired.insert(u(), DesiredFacts { restart_requested: true, ..desired() });
                w.workers.insert(u(), worker(Finished));
            },
            vec![RetireWorker(u())],
        ),
        (
            "the same UID added again waits for the old one",
            |w| {
                w.desired.insert(u(), DesiredFacts { restart_requested: true, ..desired() });
                w.workers.insert(u(), worker(Terminating));
            },
            vec![],
        ),
        (
            "a worker that does not know yet what is desired is told",
            |w| {
                w.desired.insert(u(), DesiredFacts { changed: true, ..desired() });
                w.workers.insert(u(), worker(Syncing));
            },
            vec![UpdateWorker(u())],
        ),
        (
            "also while it stops, for its grace may be shorter now",
            |w| {
                w.desired.insert(u(), DesiredFacts { changed: true, ..desired() });
                w.workers.insert(u(), worker(Terminating));
            },
            vec![UpdateWorker(u())],
        ),
        (
            "but not for another life of its pod",
            |w| {
                w.desired.insert(u(), DesiredFacts { changed: true, restart_requested: true, ..desired() });
                w.workers.insert(u(), worker(Terminating));
            },
            vec![],
        ),
        (
            "and not when it is through",
            |w| {
                w.desired.insert(u(), DesiredFacts { changed: true, ..desired() });
                w.workers.insert(u(), worker(Finished));
            },
            vec![],
        ),
        (
            "a worker that does not know yet that its pod makes room is told",
            |w| {
                w.desired.insert(u(), DesiredFacts { preempted: true, ..desired() });
                w.workers.insert(u(), worker(Syncing));
            },
            vec![PreemptWorker(u())],
        ),
        (
            "a victim that stops already is left alone",
            |w| {
                w.desired.insert(u(), DesiredFacts { preempted: true, ..desired() });
                w.workers.insert(u(), worker(Terminating));
            },
            vec![],
        ),
        (
            "a desired pod without worker gets one",
            |w| {
                w.desired.insert(u(), desired());
            },
            vec![CreateWorker(u())],
        ),
        (
            "a rejected pod gets none, but a status",
            |w| {
                w.desired.insert(u(), DesiredFacts { rejected: true, ..desired() });
            },
            vec![TellRejection(u())],
        ),
        (
            "once",
            |w| {
                w.desired.insert(u(), DesiredFacts { rejected: true, told: true, ..desired() });
            },
            vec![],
        ),
        (
            "a rejected pod that still runs is ended by a worker, which tells how",
            |w| {
                w.desired.insert(u(), DesiredFacts { rejected: true, ..desired() });
                w.runtime.insert(u(), true);
            },
            vec![KillRuntimeOrphan(u())],
        ),
        (
            "a terminal pod is not started again",
            |w| {
                w.desired.insert(u(), DesiredFacts { terminal: true, ..desired() });
            },
            vec![],
        ),
        (
            "a terminal pod that is deleted is finished by a worker",
            |w| {
                w.desired.insert(u(), DesiredFacts { terminal: true, deleting: true, ..desired() });
            },
            vec![FinishPod(u())],
        ),
        (
            "a running pod that nobody knows is killed",
            |w| {
                w.runtime.insert(u(), true);
            },
            vec![KillRuntimeOrphan(u())],
        ),
        (
            "a dead pod that nobody knows is left to the container GC",
            |w| {
                w.runtime.insert(u(), false);
            },
            vec![],
        ),
        (
            "a running orphan keeps its cgroup and directory until it is dead",
            |w| {
                w.runtime.insert(u(), true);
                w.cgroups.insert(u());
                w.directories.insert(u(), true);
            },
            vec![KillRuntimeOrphan(u())],
        ),
        (
            "an orphaned cgroup is removed",
            |w| {
                w.cgroups.insert(u());
            },
            vec![RemoveCgroup(u())],
        ),
        (
            // Edge 12.
            "an orphaned cgroup with volumes is only throttled, its directory is tried",
            |w| {
                w.cgroups.insert(u());
                w.directories.insert(u(), true);
            },
            vec![ThrottleCgroup(u()), RemovePodDir(u())],
        ),
        (
            "the cgroup of a pod whose worker removes it itself is left to the worker",
            |w| {
                w.workers.insert(u(), worker(Terminated));
                w.desired.insert(u(), desired());
                w.cgroups.insert(u());
            },
            vec![],
        ),
        (
            "the cgroup of a desired pod whose worker is about to be made is kept",
            |w| {
                w.desired.insert(u(), desired());
                w.cgroups.insert(u());
            },
            vec![CreateWorker(u())],
        ),
        (
            "the directory of a finished pod stays while it is known",
            |w| {
                w.desired.insert(u(), desired());
                w.workers.insert(u(), worker(Finished));
                w.directories.insert(u(), false);
            },
            vec![],
        ),
        (
            "the directory of an unknown pod goes",
            |w| {
                w.directories.insert(u(), false);
            },
            vec![RemovePodDir(u())],
        ),
    ];
    for (what, build, expected) in table {
        let mut situation = Situation::default();
        build(&mut situation);
        assert_eq!(chores(&situation), expected, "{what}");
    }
}

fn waiting_situation(phases: &[(&str, &str, WorkerPhase)]) -> Situation {
    let mut w = Situation::default();
    for (uid, name, phase) in phases {
        let id = PodUid::from(*uid);
        w.workers.insert(id.clone(), named_worker(*phase, uid, name));
        w.desired.insert(
            id.clone(),
            DesiredFacts { full_name: format!("{name}_default"), is_static: true, ..Default::default() },
        );
        w.arrivals.push(id);
    }
    w
}

fn grant(uid: &str) -> Chore {
    Chore::GrantStart(uid.into())
}

#[test]
fn a_static_pod_waits_for_one_of_its_name_that_an_earlier_daemon_left_running() {
    let with = |full_name: &str, is_gone| {
        let mut w = waiting_situation(&[("a", "web", WorkerPhase::Waiting), ("b", "web", WorkerPhase::Waiting)]);
        w.strays.insert("old".into(), Stray { full_name: full_name.to_owned(), is_gone });
        w
    };
    let worked_on = |phase| {
        let mut w = with("web_default", true);
        w.workers.insert("old".into(), Arc::new(WorkerState { deleted: true, ..WorkerState::new(phase) }));
        w
    };
    for (what, situation, expected) in [
        ("another name", with("db_default", true), vec![grant("a")]),
        ("it goes first", with("web_default", true), vec![Chore::KillStray("old".into())]),
        ("its source may still have it", with("web_default", false), vec![]),
        ("it is being stopped", worked_on(WorkerPhase::Terminating), vec![]),
        ("it was stopped, and the runtime was not looked at since", worked_on(WorkerPhase::Finished), vec![]),
    ] {
        assert_eq!(grants(&situation), expected, "{what}");
    }
    let mut none_waits = with("web_default", true);
    none_waits.arrivals.clear();
    assert_eq!(grants(&none_waits), [], "nobody needs the name: it is left to those who look at all sources");
}

#[test]
fn static_pods_of_one_name_take_turns() {
    use WorkerPhase::*;
    type Row = (&'static str, Vec<(&'static str, &'static str, WorkerPhase)>, Vec<&'static str>);
    let table: Vec<Row> = vec![
        ("the only one starts", vec![("a", "web", Waiting)], vec!["a"]),
        ("two names do not wait for each other", vec![("a", "web", Waiting), ("b", "db", Waiting)], vec!["a", "b"]),
        ("the second of one name waits", vec![("a", "web", Waiting), ("b", "web", Waiting)], vec!["a"]),
        ("the new one waits while the old one stops", vec![("a", "web", Terminating), ("b", "web", Waiting)], vec![]),
        ("and while its volumes are removed", vec![("a", "web", Terminated), ("b", "web", Waiting)], vec![]),
        ("and starts when the old one is finished", vec![("a", "web", Finished), ("b", "web", Waiting)], vec!["b"]),
    ];
    for (what, phases, expected) in table {
        let expected: Vec<Chore> = expected.into_iter().map(grant).collect();
        assert_eq!(grants(&waiting_situation(&phases)), expected, "{what}");
    }
}

#[test]
fn a_waiting_pod_that_is_already_being_stopped_is_passed_over() {
    let mut w = waiting_situation(&[("a", "web", WorkerPhase::Waiting), ("b", "web", WorkerPhase::Waiting)]);
    let mut a = (*w.workers[&PodUid::from("a")]).clone();
    a.termination_requested = true;
    w.workers.insert(PodUid::from("a"), Arc::new(a));
    assert_eq!(grants(&w), [grant("b")]);
}

#[test]
fn a_worker_that_was_just_made_is_granted_its_slot_at_once() {
    let mut w = waiting_situation(&[("a", "web", WorkerPhase::Waiting), ("b", "web", WorkerPhase::Waiting)]);
    w.workers.clear();
    assert_eq!(grants(&w), [grant("a")], "the first of the name, before it has shown itself");
    w.desired.get_mut(&PodUid::from("a")).unwrap().rejected = true;
    assert_eq!(grants(&w), [grant("b")], "a rejected pod takes no slot");
}
