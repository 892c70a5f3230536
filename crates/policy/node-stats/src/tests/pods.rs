//! Which pods and containers there are, and whose numbers count.

use cri_api::v1;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};

use super::{NOW, container, node, pod, used};
use crate::{FromRuntime, Samples, choose, measured, summary};

fn sandbox(id: &str, attempt: u32, ready: bool) -> SandboxObservation {
    SandboxObservation { created_at: Timestamp(i64::from(attempt)), ..SandboxObservation::new(id, attempt, ready) }
}

fn observed(id: &str, name: &str, state: ContainerState, created: i64) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp(created),
        started_at: Timestamp(created),
        ..ContainerObservation::new(id, name, "s", state)
    }
}

/// Name; sandboxes and whether they are ready, newest first; containers, newest first; what is chosen.
type Row = (
    &'static str,
    &'static [(&'static str, bool)],
    &'static [(&'static str, &'static str, ContainerState)],
    Option<(&'static str, &'static [&'static str])>,
);

#[test]
fn the_ready_sandbox_counts_else_the_newest() {
    use ContainerState::{Created, Exited, Running, Unknown};
    let table: [Row; 8] = [
        ("one of each", &[("a", true)], &[("1", "app", Running)], Some(("a", &["1"]))),
        ("a newer one that is not ready", &[("b", false), ("a", true)], &[("1", "app", Running)], Some(("a", &["1"]))),
        ("none ready", &[("b", false), ("a", false)], &[("1", "app", Running)], Some(("b", &["1"]))),
        ("a sandbox only", &[("a", true)], &[], None),
        ("none that runs", &[("a", true)], &[("1", "app", Exited), ("2", "two", Created), ("3", "x", Unknown)], None),
        ("no sandbox", &[], &[("1", "app", Running)], None),
        ("restarted", &[("a", true)], &[("2", "app", Running), ("1", "app", Exited)], Some(("a", &["2"]))),
        (
            "twice",
            &[("a", true)],
            &[("9", "z", Running), ("2", "app", Running), ("1", "app", Running)],
            Some(("a", &["2", "9"])),
        ),
    ];
    for (row, sandboxes, containers, expected) in table {
        let mut pod = PodObservation::empty(PodUid::from("u"), "ns", "p");
        let n = u32::try_from(sandboxes.len()).unwrap();
        pod.sandboxes = (0..).zip(sandboxes).map(|(i, (id, ready))| sandbox(id, n - i, *ready)).collect();
        let count = i64::try_from(containers.len()).unwrap();
        let all = (0..).zip(containers).map(|(i, (id, name, state))| observed(id, name, *state, count - i));
        pod.containers = all.collect();
        let found = choose(&pod);
        let found = found.map(|c| (c.sandbox.id.to_string(), c.containers.iter().map(|c| c.id.to_string()).collect()));
        let expected = expected.map(|(s, c)| (s.to_owned(), c.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()));
        assert_eq!(found, expected, "{row}");
    }
}

fn told(cpu: Option<u64>, rate: Option<u64>, memory: Option<u64>) -> FromRuntime {
    let number = |n: Option<u64>| n.map(|value| v1::UInt64Value { value });
    let cpu = v1::CpuUsage {
        timestamp: NOW.0 + 1,
        usage_core_nano_seconds: number(cpu),
        usage_nano_cores: number(rate),
        psi: None,
    };
    let memory = v1::MemoryUsage { timestamp: NOW.0, working_set_bytes: number(memory), ..v1::MemoryUsage::default() };
    let stats = v1::ContainerStats { cpu: Some(cpu), memory: Some(memory), ..v1::ContainerStats::default() };
    FromRuntime { containers: [("id-app".to_owned(), stats)].into(), ..FromRuntime::default() }
}

#[test]
fn the_kernels_numbers_count_before_the_runtimes() {
    let of = |reading, told: &FromRuntime| {
        let pods = [pod("p", vec![container("app", reading)])];
        let answer = summary(&node(), &pods, told, &mut Samples::default());
        let c = answer.pods.first()?.containers[0].clone();
        Some((c.cpu.and_then(|c| c.usage_core_nano_seconds), c.memory.and_then(|m| m.working_set_bytes)))
    };
    assert_eq!(of(Some(used(5, 400)), &told(Some(7), None, Some(70))), Some((Some(5), Some(300))));
    assert_eq!(of(None, &told(Some(7), None, Some(70))), Some((Some(7), Some(70))));
    assert_eq!(of(None, &told(Some(7), None, None)), Some((Some(7), None)));
    assert_eq!(of(None, &FromRuntime::default()), None, "nobody knows anything of it");
}

#[test]
fn a_rate_of_the_runtime_fills_in_until_there_are_two_samples() {
    let rate = |reading, told: &FromRuntime, samples: &mut Samples| {
        let pods = [pod("p", vec![container("app", Some(reading))])];
        let answer = summary(&node(), &pods, told, samples);
        answer.pods[0].containers[0].cpu.unwrap().usage_nano_cores
    };
    let mut samples = Samples::default();
    assert_eq!(rate(used(5, 400), &told(Some(7), Some(42), None), &mut samples), Some(42));
    let mut later = used(2_000_000_005, 400);
    later.at = NOW.plus(std::time::Duration::from_secs(2));
    assert_eq!(rate(later, &told(Some(7), Some(42), None), &mut samples), Some(1_000_000_000));
    assert_eq!(rate(used(5, 400), &told(Some(7), Some(0), None), &mut Samples::default()), None, "0 is no rate");
}

#[test]
fn a_broken_container_loses_only_its_numbers() {
    let mut broken = used(5, 400);
    broken.memory = Default::default();
    let pods = [pod(
        "p",
        vec![container("app", Some(used(1, 4))), container("broken", Some(broken)), container("gone", None)],
    )];
    let answer = summary(&node(), &pods, &FromRuntime::default(), &mut Samples::default());
    let names: Vec<_> = answer.pods[0].containers.iter().map(|c| (c.name.as_str(), c.memory.is_some())).collect();
    assert_eq!(names, [("app", true), ("broken", false)]);
}

#[test]
fn a_container_is_measured_when_the_kernel_knows_both_processor_and_memory() {
    assert!(measured(&container("app", Some(used(1, 4)))));
    assert!(!measured(&container("app", None)));
    let mut half = used(1, 4);
    half.memory.inactive_file = None;
    assert!(!measured(&container("app", Some(half))));
}

#[test]
fn pods_stand_in_order_of_namespace_and_name() {
    let some = || vec![container("app", Some(used(1, 4)))];
    let mut other = pod("a", some());
    other.reference.namespace = "zoo".into();
    let pods = [other, pod("b", some()), pod("a", some()), pod("empty", vec![])];
    let answer = summary(&node(), &pods, &FromRuntime::default(), &mut Samples::default());
    let names: Vec<_> = answer.pods.iter().map(|p| format!("{}/{}", p.pod_ref.namespace, p.pod_ref.name)).collect();
    assert_eq!(names, ["shop/a", "shop/b", "zoo/a"]);
}
