use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Candidate, Layout, grace_seconds, rank};

fn named(name: &str, priority: i32, requests: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "priority": priority,
            "containers": [{ "name": "app", "resources": { "requests": requests } }],
            "volumes": [
                { "name": "tmp", "emptyDir": {} }, { "name": "mem", "emptyDir": { "medium": "Memory" } },
                { "name": "conf", "configMap": {} }, { "name": "sec", "secret": {} },
            ],
        },
    }))
    .unwrap()
}

fn names(signal: &str, layout: Layout, pods: &[(Pod, Option<PodStats>)]) -> String {
    let mut all: Vec<_> = pods.iter().map(|(pod, stats)| Candidate { pod, stats: stats.as_ref() }).collect();
    rank(Signal::parse(signal).unwrap(), layout, &mut all);
    all.iter().map(|c| model::pod::name(c.pod)).collect::<Vec<_>>().join(" ")
}

fn memory(mi: i64) -> Option<PodStats> {
    Some(stats(json!({ "memory": { "workingSetBytes": mi * MI } })))
}

/// Edge 48.
#[test]
fn memory_goes_by_request_then_priority_then_excess() {
    let requests = json!({ "memory": "100Mi" });
    let pods = [
        (named("within", 0, &requests), memory(100)),
        (named("over-high", 1000, &requests), memory(101)),
        (named("over-little", 0, &requests), memory(110)),
        (named("over-much", 0, &requests), memory(300)),
        (named("no-request", 0, &json!({})), memory(150)),
        (named("unknown-high", 9, &requests), None),
        (named("unknown", 0, &requests), None),
        (named("within-low", -5, &requests), memory(1)),
    ];
    let expected = "unknown unknown-high over-much no-request over-little over-high within-low within";
    assert_eq!(names("memory.available", Layout::Single, &pods), expected);
    assert_eq!(names("allocatableMemory.available", Layout::Single, &pods), expected);
}

/// Edge 59.
#[test]
fn processes_go_by_priority_then_number() {
    let with = |n: u64| Some(stats(json!({ "process_stats": { "process_count": n } })));
    let none = json!({});
    let pods = [
        (named("many-high", 5, &none), with(1000)),
        (named("few", 0, &none), with(1)),
        (named("some", 0, &none), with(7)),
        (named("unknown", 0, &none), None),
    ];
    assert_eq!(names("pid.available", Layout::Single, &pods), "unknown some few many-high");
}

fn on_disk(layer: i64, logs: i64, tmp: i64) -> Option<PodStats> {
    let fs = |mi: i64| json!({ "usedBytes": mi * MI, "inodesUsed": mi });
    let volume = |name: &str, mi: i64| json!({ "name": name, "usedBytes": mi * MI, "inodesUsed": mi });
    Some(stats(json!({
        "containers": [{ "name": "app", "rootfs": fs(layer), "logs": fs(logs) }],
        "volume": [volume("tmp", tmp), volume("mem", 5000), volume("sec", 5000), volume("conf", 1)],
    })))
}

#[test]
fn what_counts_on_a_disk_depends_on_what_is_on_it() {
    let none = json!({});
    let pods = [
        (named("layer", 0, &none), on_disk(30, 1, 1)),
        (named("logs", 0, &none), on_disk(1, 20, 1)),
        (named("volume", 0, &none), on_disk(2, 1, 10)),
    ];
    let table = [
        ("nodefs.available", Layout::Single, "layer logs volume"),
        ("imagefs.available", Layout::Single, "layer logs volume"),
        ("containerfs.inodesFree", Layout::Single, "layer logs volume"),
        ("nodefs.available", Layout::ImagesApart, "logs volume layer"),
        ("imagefs.available", Layout::ImagesApart, "layer volume logs"),
        ("containerfs.available", Layout::ImagesApart, "layer volume logs"),
        ("nodefs.available", Layout::LayersApartFromImages, "layer logs volume"),
        ("containerfs.available", Layout::LayersApartFromImages, "layer logs volume"),
        // Nobody has an image: all are alike and stay as they came.
        ("imagefs.available", Layout::LayersApartFromImages, "layer logs volume"),
        ("imagefs.inodesFree", Layout::LayersApartFromImages, "layer logs volume"),
    ];
    for (signal, layout, expected) in table {
        assert_eq!(names(signal, layout, &pods), expected, "{signal} {layout:?}");
    }
}

#[test]
fn inodes_are_above_any_request_and_compared_less_the_request_of_bytes() {
    let requests = json!({ "ephemeral-storage": "25" });
    let pods =
        [(named("asks", 0, &requests), on_disk(30, 0, 0)), (named("asks-nothing", 0, &json!({})), on_disk(10, 0, 0))];
    assert_eq!(names("nodefs.inodesFree", Layout::Single, &pods), "asks-nothing asks");
    assert_eq!(names("nodefs.available", Layout::Single, &pods), "asks asks-nothing");
}

/// Edge 51.
#[test]
fn grace_is_a_second_or_what_both_allow() {
    let hard = threshold(Signal::MemoryAvailable, amount("1Gi"), None);
    let soft = Threshold { grace: Duration::from_secs(9), ..hard };
    let with = |own: Option<i64>| pod(json!({ "terminationGracePeriodSeconds": own, "containers": [] }));
    let table = [
        (hard, Some(30), 60, 1),
        (soft, Some(30), 60, 30),
        (soft, Some(90), 60, 60),
        (soft, None, 60, 60),
        (soft, Some(30), 0, 0),
    ];
    for (threshold, own, most, expected) in table {
        assert_eq!(grace_seconds(&threshold, &with(own), Duration::from_secs(most)), expected, "{own:?} {most}");
    }
}

/// A pod as a property test draws it: amounts in MiB, `usage` of all kinds alike.
#[derive(Clone, Debug)]
struct Drawn {
    priority: i32,
    request: i64,
    usage: Option<i64>,
}

const SIGNALS: [&str; 9] = [
    "memory.available",
    "allocatableMemory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
];

impl Drawn {
    fn pod(&self, number: usize) -> (Pod, Option<PodStats>) {
        let request = format!("{}Mi", self.request);
        let requests = json!({ "memory": request, "ephemeral-storage": request });
        let stats = self.usage.map(|mi| {
            let fs = json!({ "usedBytes": mi * MI, "inodesUsed": mi });
            stats(json!({
                "memory": { "workingSetBytes": mi * MI }, "process_stats": { "process_count": mi },
                "containers": [{ "name": "app", "rootfs": fs, "logs": fs }],
            }))
        });
        (named(&number.to_string(), self.priority, &requests), stats)
    }

    /// What it is compared by, in words of 3.5: does it use more than it asked for; priority; how much more.
    fn key(&self, signal: &str, layout: Layout) -> (u8, i32, bool, i64) {
        let of_disk = !signal.contains("emory") && !signal.starts_with("pid");
        let parts = match layout {
            _ if !of_disk => 1,
            // Layers and logs lie there.
            Layout::Single => 2,
            // One of the two.
            Layout::ImagesApart => 1,
            // With the layers lie logs and all the rest, with the images nothing of a pod.
            Layout::LayersApartFromImages => {
                if signal.starts_with("imagefs") {
                    0
                } else {
                    2
                }
            }
        };
        let unit = if of_disk && signal.ends_with("inodesFree") || signal.starts_with("pid") { 1 } else { MI };
        let Some(usage) = self.usage.map(|u| u * parts * unit) else { return (0, self.priority, false, 0) };
        let request = self.request * MI;
        let (compared, subtracted) = match signal {
            "pid.available" => return (0, self.priority, true, -usage),
            s if s.ends_with("inodesFree") => (0, request),
            _ => (request, request),
        };
        (if usage > compared { 1 } else { 2 }, self.priority, true, subtracted - usage)
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    (-2_i32..3, 0_i64..4, proptest::option::of(0_i64..6)).prop_map(|(priority, request, usage)| Drawn {
        priority,
        request,
        usage,
    })
}

proptest! {
    /// Whatever the order in which pods come, they go in the order of what they are compared by; those that are alike go as they
    /// came; none is lost.
    #[test]
    fn the_order_is_total_and_stable(
        pods in proptest::collection::vec(drawn(), 0..12).prop_shuffle(),
        signal in proptest::sample::select(SIGNALS.as_slice()),
        layout in proptest::sample::select([Layout::Single, Layout::ImagesApart, Layout::LayersApartFromImages].as_slice()),
    ) {
        let all: Vec<_> = pods.iter().enumerate().map(|(number, drawn)| drawn.pod(number)).collect();
        let mut expected: Vec<_> = pods.iter().enumerate().map(|(n, drawn)| (drawn.key(signal, layout), n)).collect();
        expected.sort();
        let expected: Vec<String> = expected.iter().map(|(_, number)| number.to_string()).collect();
        prop_assert_eq!(names(signal, layout, &all), expected.join(" "));
    }
}
