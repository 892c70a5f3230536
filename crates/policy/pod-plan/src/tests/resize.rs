//! In-place resize (pod-lifecycle 4.8).

use model::allocation::Amounts;
use model::core::ResourceRequirements;

use super::world::World;
use crate::Resize;

const NOTHING: Amounts =
    Amounts { cpu_request_milli: 0, cpu_limit_milli: 0, memory_request_bytes: 0, memory_limit_bytes: 0 };

fn app() -> World {
    World::new("Always").regular("a").regular("b").regular("c").sandbox(true).running("a").running("b").running("c")
}

fn names(list: &[crate::ContainerResize]) -> Vec<&str> {
    list.iter().map(|r| r.name.as_str()).collect()
}

fn limits(cpu: &str, memory: &str) -> Option<ResourceRequirements> {
    serde_json::from_value(serde_json::json!({"limits": {"cpu": cpu, "memory": memory}})).unwrap()
}

#[test]
fn who_gets_less_comes_first() {
    let mut w = app();
    for name in ["a", "b", "c"] {
        w = w.with(name, |c| c.resources = limits("1", "1Mi"));
    }
    let has = |cpu_limit_milli, memory_limit_bytes| Amounts { cpu_limit_milli, memory_limit_bytes, ..NOTHING };
    w.resized("a", has(500, 1 << 20), false);
    w.resized("b", has(2000, 1 << 10), false);
    w.resized("c", has(1000, 1 << 21), false);
    let plan = w.plan();
    assert_eq!(names(&plan.resize.memory), ["c", "b"]);
    assert_eq!(names(&plan.resize.cpu), ["b", "a"]);
    assert_eq!((plan.keep, plan.is_quiet(), plan.resize.restarts), (3, false, false));
    assert_eq!(plan.explain()[0], "resize memory of c");
}

#[test]
fn a_request_alone_counts_where_the_limit_stays() {
    let mut w = app().with("a", |c| c.resources = limits("1", "1Mi"));
    let as_wanted = Amounts { cpu_limit_milli: 1000, memory_limit_bytes: 1 << 20, ..NOTHING };
    w.resized("a", as_wanted, true);
    assert_eq!(w.plan().resize, Resize::default(), "nothing has changed");
    w.resized("a", Amounts { cpu_request_milli: 5, ..as_wanted }, true);
    assert_eq!(names(&w.plan().resize.cpu), ["a"], "its policy is about memory");
    w.resized("a", Amounts { memory_request_bytes: 5, ..as_wanted }, true);
    let plan = w.plan();
    assert!(plan.resize.restarts && plan.resize.memory.is_empty());
    assert_eq!((plan.kill.len(), plan.regular.len(), plan.keep), (1, 1, 2));
}

#[test]
fn what_does_not_run_has_its_size_from_its_next_start() {
    let mut w = World::new("Always").regular("a").sandbox(true).exited("a", 1);
    w.shrink("a", true);
    assert!(w.plan().resize.is_none());
}

#[test]
fn a_pod_that_goes_is_not_resized() {
    let mut w = World::new("Never").regular("a").sidecar("s").sandbox(true).running("s").exited("a", 0);
    w.shrink("s", false);
    w.pod_resized = true;
    let plan = w.plan();
    assert!(plan.kill_pod.is_some() && plan.resize.is_none());
}

#[test]
fn init_containers_are_resized_while_they_run_by_a_gate() {
    let mut w = World::new("Always").init("i").regular("a").sandbox(true).running("i");
    w.shrink("i", false);
    assert_eq!(names(&w.plan().resize.memory), ["i"]);
    w.gates.resizable.init_containers = false;
    assert!(w.plan().resize.is_none());
}

#[test]
fn the_cgroup_follows_also_where_nothing_runs() {
    let mut w = World::new("Always").init("i").regular("a").sandbox(true).exited("i", 1);
    w.pod_resized = true;
    let plan = w.plan();
    assert!(plan.resize.pod && plan.resize.cpu.is_empty() && !plan.is_quiet());
}
