//! Fields of KubeletConfiguration v1beta1 (of Kubernetes 1.36) that bosun knows by name and type and does not use yet.

use crate::reader::{Field, Kind};

const fn field(name: &'static str, kind: Kind, default: &'static str, instead: &'static str) -> Field {
    Field { name, kind, default, instead }
}

const NO_PINNING: &str = "all containers share all CPUs and memory";
const NO_EFFECT: &str = "no effect with a CRI runtime";

/// Top-level fields without a use.
pub(crate) const UNUSED: &[Field] = &[
    field("enableContentionProfiling", Kind::Bool, "false", "there is no profile of contended locks"),
    field("showHiddenMetricsForVersion", Kind::Text, "", "no metric is hidden"),
    field("reservedMemory", Kind::ObjectList, "", NO_PINNING),
    field("cpuManagerPolicy", Kind::Word(&["none", "static"]), "\"none\"", NO_PINNING),
    field("cpuManagerPolicyOptions", Kind::TextMap, "", NO_PINNING),
    field("cpuManagerReconcilePeriod", Kind::Duration, "\"10s\"", NO_PINNING),
    field("memoryManagerPolicy", Kind::Word(&["None", "Static"]), "\"None\"", NO_PINNING),
    field(
        "topologyManagerPolicy",
        Kind::Word(&["none", "best-effort", "restricted", "single-numa-node"]),
        "\"none\"",
        NO_PINNING,
    ),
    field("topologyManagerScope", Kind::Word(&["container", "pod"]), "\"container\"", NO_PINNING),
    field("topologyManagerPolicyOptions", Kind::TextMap, "", NO_PINNING),
    field("maxOpenFiles", Kind::Int(0, i64::MAX), "1000000", "the limit of the service manager holds (LimitNOFILE)"),
    field(
        "hairpinMode",
        Kind::Word(&["hairpin-veth", "none", "promiscuous-bridge"]),
        "\"promiscuous-bridge\"",
        NO_EFFECT,
    ),
    field("iptablesMasqueradeBit", Kind::Int(0, 31), "14", NO_EFFECT),
    field("iptablesDropBit", Kind::Int(0, 31), "15", NO_EFFECT),
    field(
        "volumePluginDir",
        Kind::Text,
        "\"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/\"",
        "there are no volume plugins",
    ),
];
