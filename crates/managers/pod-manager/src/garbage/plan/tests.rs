use super::*;
use model::runtime::{PodObservation, SandboxObservation};

fn container(name: &str, id: &str, sandbox: &str, created: i64, state: ContainerState) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp(created),
        log_path: format!("/logs/{id}"),
        ..ContainerObservation::new(id, name, sandbox, state)
    }
}

fn sandbox(id: &str, attempt: u32, ready: bool) -> SandboxObservation {
    SandboxObservation { created_at: Timestamp(1), ..SandboxObservation::new(id, attempt, ready) }
}

fn world(sandboxes: Vec<SandboxObservation>, containers: Vec<ContainerObservation>) -> BTreeMap<PodUid, Arc<Observed>> {
    let mut pod = PodObservation::empty("u".into(), "ns", "p");
    pod.sandboxes = sandboxes;
    pod.containers = containers;
    pod.normalise();
    BTreeMap::from([("u".into(), Arc::new(Observed { pod: Arc::new(pod), observed_at: Timestamp(9) }))])
}

fn ids(plan: &GcPlan) -> (Vec<&str>, Vec<&str>) {
    (plan.containers.iter().map(|c| c.id.as_str()).collect(), plan.sandboxes.iter().map(|(_, s)| s.as_str()).collect())
}

use ContainerState::{Created, Exited, Running, Unknown};

#[test]
fn a_live_pod_keeps_one_dead_instance_per_container() {
    let pods = world(
        vec![sandbox("s", 0, true)],
        vec![
            container("a", "a3", "s", 3, Running),
            container("a", "a2", "s", 2, Exited),
            container("a", "a1", "s", 1, Exited),
            container("b", "b1", "s", 1, Exited),
        ],
    );
    assert_eq!(ids(&plan(&pods, |_| false, GcPolicy::default(), Timestamp(100))), (vec!["a1"], vec![]));
}

#[test]
fn a_removable_pod_loses_everything_that_does_not_run() {
    let pods = world(
        vec![sandbox("s1", 1, false), sandbox("s0", 0, false)],
        vec![container("a", "a2", "s1", 2, Exited), container("a", "a1", "s0", 1, Created)],
    );
    assert_eq!(ids(&plan(&pods, |_| true, GcPolicy::default(), Timestamp(100))), (vec!["a2", "a1"], vec!["s1", "s0"]));
}

#[test]
fn a_pod_that_goes_loses_its_newest_container_first() {
    let pods = world(
        vec![sandbox("s", 0, false)],
        vec![
            container("a", "a1", "s", 3, Exited),
            container("b", "b1", "s", 4, Exited),
            container("i", "i1", "s", 1, Exited),
        ],
    );
    let of_pod = plan(&pods, |_| true, GcPolicy::default(), Timestamp(100));
    assert_eq!(ids(&of_pod).0, vec!["b1", "a1", "i1"]);
}

#[test]
fn a_running_container_and_its_sandbox_are_never_collected() {
    let pods = world(vec![sandbox("s", 0, false)], vec![container("a", "a", "s", 1, Running)]);
    assert_eq!(ids(&plan(&pods, |_| true, GcPolicy::default(), Timestamp(100))), (vec![], vec![]));
}

#[test]
fn a_ready_sandbox_is_never_collected() {
    let pods = world(vec![sandbox("s", 0, true)], vec![]);
    assert_eq!(ids(&plan(&pods, |_| true, GcPolicy::default(), Timestamp(100))), (vec![], vec![]));
}

#[test]
fn the_newest_sandbox_of_a_known_pod_stays_and_older_empty_ones_go() {
    let pods = world(vec![sandbox("s1", 1, false), sandbox("s0", 0, false)], vec![]);
    assert_eq!(ids(&plan(&pods, |_| false, GcPolicy::default(), Timestamp(100))), (vec![], vec!["s0"]));
}

#[test]
fn a_container_of_unknown_state_is_killed_first() {
    let pods = world(vec![], vec![container("a", "a", "s", 1, Unknown)]);
    assert!(plan(&pods, |_| true, GcPolicy::default(), Timestamp(100)).containers[0].kill_first);
}

#[test]
fn young_containers_wait_for_the_minimum_age() {
    let pods = world(vec![], vec![container("a", "a", "s", 90, Exited)]);
    let policy = GcPolicy { min_age_ns: 20, ..GcPolicy::default() };
    assert!(plan(&pods, |_| true, policy, Timestamp(100)).containers.is_empty());
    assert_eq!(plan(&pods, |_| true, policy, Timestamp(110)).containers.len(), 1);
}

#[test]
fn what_was_made_before_the_clock_was_set_back_does_not_wait_until_it_has_caught_up() {
    let pods = world(vec![], vec![container("a", "a", "s", 90, Exited)]);
    for min_age_ns in [0, 20] {
        let policy = GcPolicy { min_age_ns, ..GcPolicy::default() };
        assert_eq!(plan(&pods, |_| true, policy, Timestamp(10)).containers.len(), 1, "minimum of {min_age_ns}");
    }
}

#[test]
fn the_total_limit_is_shared_and_then_the_oldest_go() {
    let pods = world(
        vec![],
        vec![
            container("a", "a2", "s", 20, Exited),
            container("a", "a1", "s", 10, Exited),
            container("b", "b2", "s", 40, Exited),
            container("c", "c2", "s", 30, Exited),
        ],
    );
    let policy = GcPolicy { max_per_container: 2, max_containers: 2, ..GcPolicy::default() };
    assert_eq!(ids(&plan(&pods, |_| false, policy, Timestamp(100))).0, vec!["a1", "a2"]);
}

#[test]
fn names_of_log_files_tell_their_owner() {
    assert_eq!(log_dir_uid("default_web-node_0af3"), Some("0af3".into()));
    assert_eq!(log_dir_uid("nonsense"), None);
    assert_eq!(symlink_container("web_default_app-0123456789.log"), Some("0123456789".into()));
    assert_eq!(symlink_container("web_default_app-01234.log"), None);
    assert_eq!(symlink_container("web_default_app-0123456789.txt"), None);
}

#[test]
fn content_goes_early_only_for_evicted_or_deleted_pods_that_are_torn_down() {
    let state = |evicted, deleted, phase| {
        Arc::new(WorkerState {
            termination_requested: true,
            started_terminating: true,
            evicted,
            deleted,
            ..WorkerState::new(phase)
        })
    };
    let none = BTreeSet::new();
    let table = [
        ("evicted, its end is not told yet", state(true, false, WorkerPhase::Terminating), false),
        ("evicted and torn down", state(true, false, WorkerPhase::Terminated), true),
        ("deleted, still stopping", state(false, true, WorkerPhase::Terminating), false),
        ("deleted and torn down", state(false, true, WorkerPhase::Terminated), true),
        ("finished but still wanted", state(false, false, WorkerPhase::Finished), false),
    ];
    for (what, worker, expected) in table {
        let workers = BTreeMap::from([("u".into(), worker)]);
        assert_eq!(content_removable(&"u".into(), &workers, &none), expected, "{what}");
    }
    assert!(content_removable(&"u".into(), &BTreeMap::new(), &none), "unknown to everybody");
    assert!(!content_removable(&"u".into(), &BTreeMap::new(), &BTreeSet::from(["u".into()])), "wanted, worker to come");
}
