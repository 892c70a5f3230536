use super::*;
use crate::{Resource, told, was_for};

fn hog() -> Pod {
    let of = |name: &str, memory: &str| json!({ "name": name, "resources": { "requests": { "memory": memory } } });
    pod(
        json!({ "containers": [of("app", "50Mi"), of("quiet", "50Mi"), { "name": "free" }], "initContainers": [{ "name": "init" }] }),
    )
}

fn measured() -> PodStats {
    let of = |name: &str, mi: i64| {
        json!({
            "name": name, "memory": { "workingSetBytes": mi * MI },
            "rootfs": { "usedBytes": mi * MI }, "logs": { "usedBytes": 1024 },
        })
    };
    stats(
        json!({ "containers": [of("app", 60), of("quiet", 50), of("free", 1), of("unknown", 9)], "memory": { "workingSetBytes": 111 * MI } }),
    )
}

#[test]
fn texts_and_annotations_are_those_of_a_kubelet() {
    let due = [
        threshold(Signal::PidAvailable, amount("10"), None),
        threshold(Signal::MemoryAvailable, amount("100Mi"), None),
    ];
    let memory = seen(Signal::MemoryAvailable, 99 * MI + 1, GI);
    let got = told(Resource::Memory, &hog(), Some(&measured()), &due, &memory);
    let text = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 103809025. \
                Container app was using 60Mi, request is 50Mi, has larger consumption of memory. \
                Container free was using 1Mi, request is 0, has larger consumption of memory. ";
    assert_eq!(got.message, text);
    let annotations: Vec<_> = got.annotations.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        annotations,
        ["offending_containers=app,free", "offending_containers_usage=60Mi,1Mi", "starved_resource=memory"]
    );
}

#[test]
fn amounts_print_as_they_were_configured_or_observed() {
    let bare = pod(json!({ "containers": [] }));
    let table = [
        (
            Resource::EphemeralStorage,
            Signal::NodefsAvailable,
            Amount::percent(10.0),
            (GI, 100 * GI),
            "Threshold quantity: 10737418400, available: 1Gi. ",
        ),
        (
            Resource::Inodes,
            Signal::NodefsInodesFree,
            Amount::percent(5.0),
            (1000, 200_000),
            "Threshold quantity: 10000, available: 1k. ",
        ),
        (Resource::Pids, Signal::PidAvailable, amount("1k"), (999, 32768), "Threshold quantity: 1k, available: 999. "),
        (
            Resource::Memory,
            Signal::MemoryAvailable,
            amount("1.5Gi"),
            (0, GI),
            "Threshold quantity: 1536Mi, available: 0. ",
        ),
    ];
    for (resource, signal, below, (available, capacity), expected) in table {
        let got = told(resource, &bare, None, &[threshold(signal, below, None)], &seen(signal, available, capacity));
        assert_eq!(got.message, format!("The node was low on resource: {}. {expected}", resource.as_str()));
        assert!(got.annotations.is_empty(), "nothing is known of it");
    }
    let got = told(Resource::Pids, &bare, Some(&stats(json!({}))), &[], &Signals::new());
    assert_eq!(got.message, "The node was low on resource: pids. ", "a threshold that was not observed is not named");
    assert_eq!(got.annotations["offending_containers"], "");
}

#[test]
fn a_pod_that_requests_as_a_whole_is_named_as_a_whole() {
    let whole = pod(json!({ "resources": { "requests": { "memory": "100Mi" } }, "containers": [{ "name": "app" }] }));
    let got = told(Resource::Memory, &whole, Some(&measured()), &[], &Signals::new());
    let text = "The node was low on resource: memory. \
                Pod web was using 111Mi, request is 100Mi, has larger consumption of memory. \
                Container app was using 60Mi, request is 0, has larger consumption of memory. ";
    assert_eq!(got.message, text);
    assert_eq!((&*got.annotations["offending_pod"], &*got.annotations["offending_pod_usage"]), ("web", "111Mi"));
}

#[test]
fn disk_counts_layer_and_logs() {
    let got = told(Resource::EphemeralStorage, &hog(), Some(&measured()), &[], &Signals::new());
    assert!(got.message.contains("Container quiet was using 51201Ki, request is 0, "), "{}", got.message);
}

#[test]
fn for_what_somebody_went_is_known_from_what_was_said() {
    let all = [Resource::Memory, Resource::EphemeralStorage, Resource::Inodes, Resource::Pids];
    let bare = pod(json!({ "containers": [] }));
    for of in all {
        let message = told(of, &bare, None, &[], &Signals::new()).message;
        let known: Vec<_> = all.into_iter().filter(|resource| was_for(*resource, &message)).collect();
        assert_eq!(known, [of]);
    }
    assert!(!was_for(Resource::Memory, "Preempted in order to admit critical pod"));
}
