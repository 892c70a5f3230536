use std::net::IpAddr;

use model::Timestamp;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};

use super::{Ids, Inspected, merge};

pub(crate) fn sandbox(id: &str, attempt: u32, ready: bool) -> SandboxObservation {
    SandboxObservation {
        created_at: Timestamp(i64::from(attempt)),
        host_network: Some(false),
        ips: Some(vec![if ready { "10.0.0.1".to_owned() } else { String::new() }]),
        ..SandboxObservation::new(id, attempt, ready)
    }
}

pub(crate) fn container(id: &str, name: &str, state: ContainerState) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp(id.bytes().map(i64::from).sum()),
        ..ContainerObservation::new(id, name, "s1", state)
    }
}

pub(crate) fn pod(sandboxes: Vec<SandboxObservation>, containers: Vec<ContainerObservation>) -> PodObservation {
    let mut pod = PodObservation::empty("u1".into(), "ns", "web");
    (pod.sandboxes, pod.containers) = (sandboxes, containers);
    pod.normalise();
    pod
}

#[derive(Default)]
struct Known {
    gone: Vec<&'static str>,
    newer: Vec<&'static str>,
}

impl Ids for Known {
    fn is_gone(&self, id: &str) -> bool {
        self.gone.contains(&id)
    }
    fn is_newer(&self, id: &str) -> bool {
        self.newer.contains(&id)
    }
}

fn part(containers: Vec<ContainerObservation>) -> Inspected {
    Inspected { containers, ..Inspected::default() }
}

fn complete(sandboxes: Vec<SandboxObservation>, containers: Vec<ContainerObservation>) -> Inspected {
    Inspected { complete: true, sandboxes, containers, ..Inspected::default() }
}

fn gone(id: &str) -> Inspected {
    Inspected { gone: [id.to_owned()].into(), ..Inspected::default() }
}

/// Ids with their states, in the order of the observation.
fn short(pod: Option<&PodObservation>) -> String {
    let Some(pod) = pod else { return "nothing".to_owned() };
    let sandboxes = pod.sandboxes.iter().map(|s| format!("{}{}", s.id, if s.ready { "+" } else { "-" }));
    let containers = pod.containers.iter().map(|c| format!("{}:{:?}", c.id, c.state));
    sandboxes.chain(containers).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_inspection_changes_what_is_known() {
    use ContainerState::{Created, Exited, Running, Unknown};
    let c = container;
    let s = || sandbox("s1", 0, true);
    let both = || vec![c("c2", "b", Running), c("c1", "a", Running)];
    let none = Known::default;
    let rows: Vec<(&str, PodObservation, Inspected, Known, &str)> = vec![
        ("nothing becomes a pod", pod(vec![], vec![]), complete(vec![s()], vec![]), none(), "s1+"),
        (
            "what is told twice is there once, as far as it has come",
            pod(vec![], vec![]),
            Inspected {
                sandboxes: vec![s(), sandbox("s1", 0, false), s()],
                containers: vec![c("c1", "a", Created), c("c1", "a", Exited), c("c1", "a", Running)],
                ..Inspected::default()
            },
            none(),
            "s1- c1:Exited",
        ),
        (
            "a part changes that part",
            pod(vec![s()], both()),
            part(vec![c("c1", "a", Exited)]),
            none(),
            "s1+ c2:Running c1:Exited",
        ),
        ("a part adds", pod(vec![s()], vec![]), part(vec![c("c1", "a", Created)]), none(), "s1+ c1:Created"),
        ("a part that is gone", pod(vec![s()], both()), gone("c1"), none(), "s1+ c2:Running"),
        (
            "the whole drops what it lacks",
            pod(vec![s()], both()),
            complete(vec![s()], vec![c("c1", "a", Running)]),
            none(),
            "s1+ c1:Running",
        ),
        (
            "but not what came after it began",
            pod(vec![s()], both()),
            complete(vec![s()], vec![c("c1", "a", Running)]),
            Known { newer: vec!["c2"], ..none() },
            "s1+ c2:Running c1:Running",
        ),
        (
            "a late inspection shows what was removed",
            pod(vec![s()], vec![]),
            part(vec![c("c1", "a", Exited)]),
            Known { gone: vec!["c1"], ..none() },
            "s1+",
        ),
        (
            "exited never runs again",
            pod(vec![s()], vec![c("c1", "a", Exited)]),
            part(vec![c("c1", "a", Running)]),
            none(),
            "s1+ c1:Exited",
        ),
        (
            "running was created before",
            pod(vec![s()], vec![c("c1", "a", Running)]),
            part(vec![c("c1", "a", Created)]),
            none(),
            "s1+ c1:Running",
        ),
        (
            "unknown may run",
            pod(vec![s()], vec![c("c1", "a", Unknown)]),
            part(vec![c("c1", "a", Running)]),
            none(),
            "s1+ c1:Running",
        ),
        (
            "running may become unknown",
            pod(vec![s()], vec![c("c1", "a", Running)]),
            part(vec![c("c1", "a", Unknown)]),
            none(),
            "s1+ c1:Unknown",
        ),
        (
            "a sandbox never becomes ready again",
            pod(vec![sandbox("s1", 0, false)], vec![]),
            complete(vec![s()], vec![]),
            none(),
            "s1-",
        ),
        ("the last one gone", pod(vec![s()], vec![]), gone("s1"), none(), "nothing"),
        ("all gone", pod(vec![s()], both()), complete(vec![], vec![]), none(), "nothing"),
        (
            "newest sandbox first",
            pod(vec![sandbox("s1", 0, false)], vec![]),
            Inspected { sandboxes: vec![sandbox("s2", 1, true)], ..Inspected::default() },
            none(),
            "s2+ s1-",
        ),
    ];
    for (name, old, inspected, ids, want) in rows {
        assert_eq!(short(merge(&old, inspected, &ids).as_ref()), want, "{name}");
    }
}

#[test]
fn the_order_of_inspections_does_not_matter() {
    use ContainerState::{Created, Exited, Running};
    let inspections = [Created, Running, Exited].map(|s| part(vec![container("c1", "a", s)]));
    let old = pod(vec![sandbox("s1", 0, true)], vec![]);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let end = order.iter().try_fold(old.clone(), |pod, &i| merge(&pod, inspections[i].clone(), &Known::default()));
        assert_eq!(short(end.as_ref()), "s1+ c1:Exited", "{order:?}");
    }
}

#[test]
fn addresses_come_from_the_newest_ready_sandbox_and_outlive_it() {
    let with = |ips: &[&str]| SandboxObservation {
        ips: Some(ips.iter().map(|&i| i.to_owned()).collect()),
        ..sandbox("s1", 0, true)
    };
    type Row = (&'static str, Vec<SandboxObservation>, &'static [&'static str], &'static [&'static str]);
    let rows: Vec<Row> = vec![
        ("one", vec![with(&["10.0.0.2"])], &[], &["10.0.0.2"]),
        ("two families", vec![with(&["10.0.0.2", "fd00::2"])], &[], &["10.0.0.2", "fd00::2"]),
        ("one unreadable spoils all", vec![with(&["10.0.0.2", "x"])], &["10.0.0.1"], &[]),
        ("none while the network is set up", vec![with(&[""])], &["10.0.0.1"], &[]),
        ("kept when no sandbox is ready", vec![sandbox("s1", 0, false)], &["10.0.0.1"], &["10.0.0.1"]),
        ("none to keep", vec![sandbox("s1", 0, false)], &[], &[]),
        (
            "the newest is down, an older one is not",
            vec![sandbox("s2", 1, false), with(&["10.0.0.2"])],
            &["10.0.0.1"],
            &[],
        ),
    ];
    for (name, sandboxes, before, want) in rows {
        let ip = |t: &&str| t.parse::<IpAddr>().unwrap();
        let mut old = pod(vec![], vec![container("c1", "a", ContainerState::Running)]);
        old.ips = before.iter().map(ip).collect();
        let new = merge(&old, complete(sandboxes, vec![]), &Known::default()).unwrap();
        assert_eq!(new.ips, want.iter().map(ip).collect::<Vec<_>>(), "{name}");
    }
}
