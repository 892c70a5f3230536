//! metrics-server's reading of `/metrics/resource` (interfaces 5.2): what it would drop must not be lost.

use std::collections::BTreeMap;

use model::Timestamp;
use model::stats::Summary;

use super::{container, node, pod, used};
use crate::{FromRuntime, Samples, resource, summary};

#[derive(Debug, Default, Clone, PartialEq)]
struct Point {
    cpu_ns: Option<u64>,
    bytes: Option<u64>,
    at_ms: Option<i64>,
    start_ms: Option<i64>,
}

#[derive(Debug, Default)]
struct Decoded {
    node: Point,
    pods: BTreeMap<(String, String), BTreeMap<String, Point>>,
}

/// Parses by names and labels; a sample of processor or memory without a time is an error, and a pod with a container that
/// lacks either is dropped whole.
fn decode(text: &str) -> Result<Decoded, String> {
    let mut out = Decoded::default();
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let (series, rest) = match line.split_once("} ") {
            Some((series, rest)) => (series, rest),
            None => line.split_once(' ').ok_or("no value")?,
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let mut words = rest.split(' ');
        let value: f64 = words.next().and_then(|v| v.parse().ok()).ok_or_else(|| format!("value of {line}"))?;
        let at_ms: Option<i64> = words.next().map(|t| t.parse().map_err(|_| format!("time of {line}"))).transpose()?;
        let label = |key: &str| {
            let found = labels.split("\",").find_map(|l| l.strip_prefix(key)?.strip_prefix("=\""));
            found.map(|v| v.trim_end_matches('"').to_owned()).ok_or_else(|| format!("{key} of {line}"))
        };
        let needed = || at_ms.ok_or_else(|| format!("no time: {line}"));
        let of_container = name.starts_with("container_");
        let point = if of_container {
            let pod = (label("namespace")?, label("pod")?);
            out.pods.entry(pod).or_default().entry(label("container")?).or_default()
        } else {
            &mut out.node
        };
        match name {
            "node_cpu_usage_seconds_total" | "container_cpu_usage_seconds_total" => {
                point.cpu_ns = Some((value * 1e9).round() as u64);
                point.at_ms = Some(needed()?);
            }
            "node_memory_working_set_bytes" | "container_memory_working_set_bytes" => {
                point.bytes = Some(value as u64);
                needed()?;
            }
            "container_start_time_seconds" => {
                assert_eq!(at_ms, None, "the start time has no time of its own: {line}");
                point.start_ms = Some((value * 1e3) as i64);
            }
            _ => {}
        }
    }
    out.pods.retain(|_, containers| containers.values().all(|p| p.cpu_ns.is_some() && p.bytes.is_some()));
    Ok(out)
}

fn answer(pods: &[crate::PodReadings]) -> Summary {
    summary(&node(), pods, &FromRuntime::default(), &mut Samples::default())
}

#[test]
fn it_takes_node_and_containers_with_their_times() {
    let pods = [pod("web", vec![container("app", Some(used(10_745_953, 400))), container("two", Some(used(7, 40)))])];
    let decoded = decode(&resource::render(Some(&answer(&pods)))).unwrap();
    assert_eq!((decoded.node.cpu_ns, decoded.node.bytes), (Some(5_000_000_000), Some(3000)));
    assert_eq!(decoded.node.at_ms, Some(1_795_165_689_310));
    let web = &decoded.pods[&("shop".to_owned(), "web".to_owned())];
    assert_eq!(web.len(), 2);
    let app = Point {
        cpu_ns: Some(10_745_953),
        bytes: Some(300),
        at_ms: Some(1_795_165_689_310),
        start_ms: Some(1_795_165_679_392),
    };
    assert_eq!(web["app"], app);
}

#[test]
fn it_drops_a_pod_whose_container_lacks_a_number_and_no_other() {
    let mut half = used(1, 4);
    half.memory.usage = None;
    let pods = [
        pod("half", vec![container("app", Some(used(1, 4))), container("two", Some(half))]),
        pod("web", vec![container("app", Some(used(1, 4)))]),
    ];
    let decoded = decode(&resource::render(Some(&answer(&pods)))).unwrap();
    assert_eq!(decoded.pods.keys().map(|k| k.1.as_str()).collect::<Vec<_>>(), ["web"]);
}

#[test]
fn odd_names_stay_readable() {
    let mut summary = answer(&[pod("web", vec![container("app", Some(used(1, 4)))])]);
    summary.pods[0].containers[0].start_time = Timestamp::ZERO;
    let text = resource::render(Some(&summary));
    assert!(!text.contains("container_start_time_seconds"), "a start that is not known is left out");
    assert!(decode(&text).unwrap().pods.len() == 1);
}

#[test]
fn a_failed_gathering_says_so_and_nothing_else() {
    let text = resource::render(None);
    let samples: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(samples, ["resource_scrape_error 1"]);
    assert!(resource::render(Some(&Summary::default())).contains("resource_scrape_error 0\n"));
}
