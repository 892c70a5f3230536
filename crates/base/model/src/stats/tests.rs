use super::*;

#[test]
fn times_keep_their_fraction_and_unset_is_null() {
    let stats = CpuStats { time: Timestamp(1_795_165_689_999_000_000), ..CpuStats::default() };
    let text = serde_json::to_string(&stats).unwrap();
    assert_eq!(text, r#"{"time":"2026-11-20T09:08:09.999Z"}"#);
    assert_eq!(serde_json::from_str::<CpuStats>(&text).unwrap(), stats);
    assert_eq!(serde_json::to_string(&CpuStats::default()).unwrap(), r#"{"time":null}"#);
    let back: CpuStats = serde_json::from_str(r#"{"time":null}"#).unwrap();
    assert!(!back.time.is_set());
}

#[test]
fn whole_floats_have_no_fraction_as_go_prints_them() {
    let psi = PsiData { total: 1, avg10: 0.0, avg60: 1.5, avg300: 100.0 };
    assert_eq!(serde_json::to_string(&psi).unwrap(), r#"{"total":1,"avg10":0,"avg60":1.5,"avg300":100}"#);
}

#[test]
fn the_default_interface_stands_in_line_with_the_time() {
    let one = InterfaceStats { name: "eth0".into(), rx_bytes: Some(1), ..InterfaceStats::default() };
    let net = NetworkStats { time: Timestamp::ZERO, default_interface: one.clone(), interfaces: vec![one] };
    let text = r#"{"time":null,"name":"eth0","rxBytes":1,"interfaces":[{"name":"eth0","rxBytes":1}]}"#;
    assert_eq!(serde_json::to_string(&net).unwrap(), text);
    assert_eq!(serde_json::from_str::<NetworkStats>(text).unwrap(), net);
}

#[test]
fn lists_that_a_reader_counts_on_are_there_when_empty() {
    let text = serde_json::to_string(&Summary::default()).unwrap();
    assert_eq!(text, r#"{"node":{"nodeName":"","startTime":null},"pods":[]}"#);
}

#[test]
fn a_kubelet_shows_whole_seconds() {
    let time = Timestamp(1_795_165_689_999_000_000);
    let cpu = Some(CpuStats { time, ..CpuStats::default() });
    let node = NodeStats { start_time: time, cpu, ..NodeStats::default() };
    let shown = serde_json::to_string(&Summary { node, pods: Vec::new() }.in_whole_seconds()).unwrap();
    let at = r#""2026-11-20T09:08:09Z""#;
    assert_eq!(shown, format!(r#"{{"node":{{"nodeName":"","startTime":{at},"cpu":{{"time":{at}}}}},"pods":[]}}"#));
}
