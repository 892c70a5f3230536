//! `/flagz` beside that of a kubelet with the same command line.

use std::collections::BTreeMap;

use crate::flags::{self, Asked};
use crate::flagz::flagz;

fn shown(line: &[&str]) -> BTreeMap<&'static str, String> {
    let line: Vec<String> = line.iter().map(|w| (*w).to_owned()).collect();
    let Ok(Asked::Run(flags)) = flags::parse(&line) else { panic!("{line:?}") };
    flagz(&flags).into_iter().collect()
}

/// Flags of bosun alone, and those that this recording has no line for.
const MORE: &[&str] = &[
    "bosun-config",
    "container-logs-dir",
    "enable-faults",
    "eviction-early-looks",
    "log",
    // Its build registered the text options only.
    "log-json-info-buffer-size",
    "log-json-split-stream",
    "manager",
    "object-cache",
    "pod-store",
    "pod-store-after-boot",
    "pod-store-max-age",
    "pod-store-wait",
    "socket",
    "sysctl-dir",
];

#[test]
fn each_flag_has_the_value_that_a_kubelet_lists_for_the_same_command_line() {
    let ours = shown(&[
        "--config=g.yaml",
        "--kubeconfig=g.kubeconfig",
        "--hostname-override=gold-node",
        "--node-ip=10.90.0.1",
        "-v=2",
    ]);
    let golden: BTreeMap<&str, &str> = include_str!("flagz.txt").lines().filter_map(|l| l.split_once(':')).collect();
    let differ: Vec<String> = golden
        .iter()
        .filter(|(name, _)| !name.starts_with("Warning"))
        .filter(|(name, value)| ours.get(*name).map(String::as_str) != Some(**value))
        .map(|(name, value)| format!("{name}: {value:?}, ours {:?}", ours.get(name)))
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
    let more: Vec<&str> = ours.keys().copied().filter(|name| !golden.contains_key(name)).collect();
    assert_eq!(more, MORE);
}

#[test]
fn values_are_written_as_a_kubelet_writes_them() {
    let rows: &[(&[&str], &str, &str)] = &[
        (&["--sync-frequency=90s"], "sync-frequency", "1m30s"),
        (&["--minimum-container-ttl-duration=1m"], "minimum-container-ttl-duration", "1m0s"),
        (&["--cluster-dns=10.0.0.1", "--cluster-dns=10.0.0.2"], "cluster-dns", "[10.0.0.1,10.0.0.2]"),
        (&["--feature-gates=MemoryQoS=true,EventedPLEG=false"], "feature-gates", "EventedPLEG=false,MemoryQoS=true"),
        (&["--eviction-hard=memory.available<1Gi"], "eviction-hard", "memory.available<1Gi"),
        (&["--system-reserved=memory=1Gi,cpu=1"], "system-reserved", "cpu=1,memory=1Gi"),
        (&["--register-with-taints=a=b:NoSchedule,c:NoExecute"], "register-with-taints", "a=b:NoSchedule,c:NoExecute"),
        (&["--reserved-memory=0:memory=1Gi;1:memory=2Gi"], "reserved-memory", "0:memory=1Gi;1:memory=2Gi"),
        (&["--node-labels=a=b,c=d"], "node-labels", "a=b,c=d"),
        (&["--vmodule=a=1"], "vmodule", "a=1"),
        (&["--fail-swap-on=f"], "fail-swap-on", "false"),
        (&["--seccomp-default"], "seccomp-default", "true"),
        (&["--manifest-url-header=a:b"], "manifest-url-header", "<masked>"),
        (&["--storage-driver-password=x"], "storage-driver-password", "<masked>"),
        (&["--max-pods=5", "--max-pods=6"], "max-pods", "6"),
    ];
    for (line, name, value) in rows {
        assert_eq!(shown(line)[name], *value, "{line:?}");
    }
}
