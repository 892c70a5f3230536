use model::runtime::RuntimeResources;
use serde_json::{Value, json};

use super::*;
use crate::testing::*;

fn shown(resources: Value, state: &str, actual: Option<RuntimeResources>) -> Value {
    let p = pod(json!({"containers": [{"name": "app", "resources": resources}]}));
    let mut seen = Seen::sandbox().with(&format!("app {state} 20 a")).0.containers.remove(0);
    seen.resources = actual;
    let container = &model::pod::regular_containers(&p)[0];
    serde_json::to_value(of_container(container, &seen, None).in_force).unwrap()
}

#[test]
fn actual_values_replace_allocated_ones_only_where_they_differ() {
    let asked =
        || json!({"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "0.5", "memory": "65536Ki"}});
    let actual = |cpu_shares, cpu_quota_us, memory_limit_bytes| {
        Some(RuntimeResources { cpu_shares, cpu_quota_us, cpu_period_us: 100_000, memory_limit_bytes })
    };
    let limits = |cpu: &str, memory: &str, request: &str| json!({"requests": {"cpu": request, "memory": "64Mi"}, "limits": {"cpu": cpu, "memory": memory}});
    let rows = [
        ("runtime says nothing", asked(), "R", None, limits("500m", "64Mi", "250m")),
        ("equal values keep their text", asked(), "R", actual(256, 50_000, 64 << 20), limits("500m", "64Mi", "250m")),
        ("resized values show", asked(), "R", actual(512, 100_000, 128 << 20), limits("1", "128Mi", "500m")),
        ("absent values stay as allocated", asked(), "R", actual(0, 0, 0), limits("500m", "64Mi", "250m")),
        ("not running: allocated", asked(), "X0", actual(512, 100_000, 1), limits("500m", "64Mi", "250m")),
        ("smallest shares are no request", json!({}), "R", actual(2, 0, 0), json!({})),
        (
            "shares below one per mille round up",
            json!({"requests": {"cpu": "100m"}}),
            "R",
            actual(103, 0, 0),
            json!({"requests": {"cpu": "101m"}}),
        ),
        (
            "shares of 100m are 102",
            json!({"requests": {"cpu": "100m"}}),
            "R",
            actual(102, 0, 0),
            json!({"requests": {"cpu": "100m"}}),
        ),
    ];
    for (name, resources, state, actual, expected) in rows {
        assert_eq!(shown(resources, state, actual), expected, "{name}");
    }
}

#[test]
fn a_container_that_does_not_exist_has_no_resources_but_the_pod_has() {
    let p = pod(json!({"containers": [{"name": "app", "resources": {"requests": {"cpu": "250m"}}}]}));
    let status = Case::new(p, Seen::nothing()).generate();
    assert_eq!(status.container_statuses.unwrap()[0].resources, None);
    assert_eq!(serde_json::to_value(status.resources).unwrap(), json!({"requests": {"cpu": "250m"}}));
    assert_eq!(serde_json::to_value(status.allocated_resources).unwrap(), json!({"cpu": "250m"}));
}

#[test]
fn of_a_pod_that_has_run_what_its_cgroup_held_shows() {
    let both = json!({"cpu": "250m", "memory": "64Mi", "ephemeral-storage": "1Gi"});
    let limited = json!({"requests": both, "limits": both});
    let pod_level = json!({"requests": {"cpu": "2m"}, "limits": {"memory": "1Gi"}});
    let plain = json!({"cpu": "250m", "memory": "64Mi"});
    let rows = [
        ("nothing asked for", json!({}), json!([{}]), json!({}), json!({})),
        (
            "all limited",
            json!({}),
            json!([limited]),
            json!({"requests": both, "limits": both}),
            json!({"requests": plain, "limits": plain}),
        ),
        (
            "one is not limited",
            json!({}),
            json!([limited, {}]),
            json!({"requests": both, "limits": both}),
            json!({"requests": plain}),
        ),
        (
            "the smallest shares",
            json!({}),
            json!([{"requests": {"cpu": "1m"}}]),
            json!({"requests": {"cpu": "1m"}}),
            json!({}),
        ),
        ("the pod as a whole", pod_level.clone(), json!([{}]), pod_level.clone(), pod_level),
    ];
    for (name, whole, containers, idle, running) in rows {
        let containers: Vec<_> = (0..)
            .zip(containers.as_array().unwrap())
            .map(|(i, r)| json!({"name": format!("c{i}"), "resources": r}))
            .collect();
        let p = pod(json!({"resources": whole, "containers": containers}));
        let shown = |has_run| serde_json::to_value(of_pod(&p, &BTreeMap::new(), has_run).in_force).unwrap();
        assert_eq!(shown(false), idle, "{name}: pending");
        assert_eq!(shown(true), running, "{name}: has run");
    }
}
