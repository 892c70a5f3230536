use serde_json::json;

use super::*;

fn pod(spec: &serde_json::Value) -> Arc<Pod> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap())
}

fn with(cpu: &str, level: &str, init: &str) -> Arc<Pod> {
    pod(&json!({
        "resources": {"limits": {"cpu": level}},
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": init}}},
            {"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
    }))
}

#[test]
fn what_was_granted_stands_in_for_what_is_asked_for() {
    let what = Resizable::default();
    let (old, new) = (with("100m", "1", "10m"), with("200m", "2", "20m"));
    let granted = Allocation::of(&old, what);
    assert!(granted.agrees(&old, what) && !granted.agrees(&new, what));
    assert_eq!(*granted.overlay(&new, what), *old);
    assert!(Arc::ptr_eq(&granted.overlay(&old, what), &old));
    // Amounts count, not how they are written.
    let same = with("0.1", "1000m", "10m");
    assert!(Arc::ptr_eq(&granted.overlay(&same, what), &same));
    assert!(asks_the_same(&old, &same, what) && !asks_the_same(&old, &new, what));
}

#[test]
fn gates_say_what_can_be_resized() {
    let (old, new) = (with("100m", "1", "10m"), with("100m", "2", "20m"));
    let none = Resizable { pod_level: false, init_containers: false };
    let granted = Allocation::of(&old, none);
    assert_eq!(granted.containers.keys().collect::<Vec<_>>(), ["c", "s"]);
    assert!(granted.agrees(&new, none) && granted.pod.is_none());
    let init = Resizable { init_containers: true, ..none };
    assert!(!Allocation::of(&old, init).agrees(&new, init));
    let level = Resizable { pod_level: true, ..none };
    assert!(!Allocation::of(&old, level).agrees(&new, level));
}

#[test]
fn a_container_without_a_limit_has_that_of_its_pod() {
    let p = with("100m", "1500m", "10m");
    let of = |name: &str| Amounts::of(&p, &pod::find_container(&p, name).unwrap().1);
    let expected = Amounts { cpu_request_milli: 100, cpu_limit_milli: 1500, ..Amounts::default() };
    assert_eq!(of("c"), expected);
    assert_eq!(Amounts::of_pod_level(&p), Amounts { cpu_request_milli: 0, ..expected });
}

/// Recorded from `events.PodResizeStartedMsg` of 1.36.2.
#[test]
fn a_summary_is_the_line_of_a_kubelet() {
    let p = pod(&json!({"containers": [
        {"name": "c", "resources": {"requests": {"memory": "64Mi", "cpu": "100m"}, "limits": {"cpu": "1"}}}, {"name": "d"}]}));
    let containers = concat!(
        r#""containers":[{"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"100m","memory":"64Mi"}}},"#,
        r#"{"name":"d","resources":{}}]"#
    );
    assert_eq!(summary(&p, 2, ""), format!(r#"{{{containers},"generation":2}}"#));
    assert_eq!(summary(&p, 2, "a \"b\""), format!(r#"{{{containers},"generation":2,"error":"a \"b\""}}"#));
}
