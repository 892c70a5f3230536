//! Every flag of a kubelet 1.36, those that bosun adds, and those that went away.

use super::own::Own;
use super::values::Kind;

/// Where a value goes.
pub(super) enum To {
    /// The field of the configuration that it stands for; the flag wins.
    Field(&'static str),
    /// A place in [`super::Flags`].
    Own(Own),
    /// Nowhere; with what happens instead.
    Nothing(&'static str),
}

/// Heading in the help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Group {
    Files,
    Node,
    Api,
    Server,
    Pods,
    Runtime,
    Images,
    Resources,
    Pinning,
    Eviction,
    Logging,
    Bosun,
    Idle,
}

/// One flag.
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) to: To,
    pub(super) group: Group,
    /// One line for the help.
    pub(super) help: &'static str,
}

impl Flag {
    pub(super) fn is_switch(&self) -> bool {
        self.kind == Kind::Switch
    }

    /// How a kubelet writes the value of nothing.
    pub(super) fn empty(&self) -> &'static str {
        match self.kind {
            Kind::Switch => "false",
            Kind::Number => "0",
            Kind::Duration => "0s",
            Kind::List => "[]",
            _ => "",
        }
    }

    /// What stands between a name and its value.
    pub(super) fn between(&self) -> char {
        match self.kind {
            Kind::Pairs(between) => between,
            Kind::Headers => ':',
            _ => '=',
        }
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Headers)
    }
}

pub(super) fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|f| f.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FLAGS.iter().map(|f| f.name).chain(["help", "version"])
}

const fn field(name: &'static str, kind: Kind, field: &'static str, group: Group, help: &'static str) -> Flag {
    Flag { name, kind, to: To::Field(field), group, help }
}

const fn own(name: &'static str, kind: Kind, own: Own, group: Group, help: &'static str) -> Flag {
    Flag { name, kind, to: To::Own(own), group, help }
}

const fn idle(name: &'static str, kind: Kind, instead: &'static str) -> Flag {
    Flag { name, kind, to: To::Nothing(instead), group: Group::Idle, help: instead }
}

/// Flags that stand for a field and are there to stay.
pub(super) const NOT_DEPRECATED: &[&str] = &["provider-id", "fail-cgroupv1", "v", "vmodule", "log-flush-frequency"];

const CADVISOR: &str = "bosun reads cgroups itself, there is no cAdvisor";

use Group::{Api, Bosun, Eviction, Files, Images, Logging, Node, Pinning, Pods, Resources, Runtime, Server};
use Kind::{Address, Duration, Gates, Headers, List, Memory, Modules, Number, Pairs, Secret, Switch, Taints, Text};

#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    own("config", Text, Own::Config, Files, "KubeletConfiguration file; without it the insecure defaults of bare flags hold"),
    own("config-dir", Text, Own::ConfigDir, Files, "folder of drop-ins (*.conf), merged over --config in lexical order"),
    own("kubeconfig", Text, Own::Kubeconfig, Files, "how to reach the API server; without it the node runs alone"),
    own("bootstrap-kubeconfig", Text, Own::BootstrapKubeconfig, Files, "used to get a first certificate while --kubeconfig is absent or of no use"),
    own("cert-dir", Text, Own::CertDir, Files, "folder of the node's certificates [/var/lib/kubelet/pki]"),
    own("root-dir", Text, Own::RootDir, Files, "folder of pods and volumes [/var/lib/kubelet]"),
    own("lock-file", Text, Own::LockFile, Files, "file to hold locked while running"),
    own("exit-on-lock-contention", Switch, Own::ExitOnContention, Files, "end when somebody else opens the lock file"),
    field("feature-gates", Gates, "featureGates", Files, "Name=true|false,...; joined with the file, the flag wins"),

    own("hostname-override", Text, Own::HostnameOverride, Node, "name of the node [the host's name]"),
    own("node-ip", Text, Own::NodeIp, Node, "address of the node, or one of each family with a comma [found]"),
    own("node-labels", Pairs('='), Own::NodeLabels, Node, "labels of the node when it is registered"),
    own("cloud-provider", Text, Own::CloudProvider, Node, "external: a cloud controller will finish the node"),
    field("provider-id", Text, "providerID", Node, "the machine's name at its cloud"),
    field("register-node", Switch, "registerNode", Node, "make the Node object [true]"),
    field("register-with-taints", Taints, "registerWithTaints", Node, "key=value:Effect,... of the node when it is registered"),
    field("node-status-update-frequency", Duration, "nodeStatusUpdateFrequency", Node, "how often the node looks at itself [10s]"),
    field("node-status-max-images", Number, "nodeStatusMaxImages", Node, "images in the node's status; -1: all [50]"),
    field("max-pods", Number, "maxPods", Node, "[110]"),
    field("pods-per-core", Number, "podsPerCore", Node, "0: no such limit [0]"),
    field("pod-cidr", Text, "podCIDR", Node, "addresses of pods, for a node that runs alone"),

    field("kube-api-qps", Number, "kubeAPIQPS", Api, "[50]"),
    field("kube-api-burst", Number, "kubeAPIBurst", Api, "[100]"),
    field("kube-api-content-type", Text, "contentType", Api, "[application/vnd.kubernetes.protobuf]"),
    field("event-qps", Number, "eventRecordQPS", Api, "[50]"),
    field("event-burst", Number, "eventBurst", Api, "[100]"),
    field("rotate-certificates", Switch, "rotateCertificates", Api, "renew the client certificate through the cluster [false]"),
    field("rotate-server-certificates", Switch, "serverTLSBootstrap", Api, "get the serving certificate from the cluster [false]"),

    field("enable-server", Switch, "enableServer", Server, "[true]"),
    field("address", Address, "address", Server, "[0.0.0.0]"),
    field("port", Number, "port", Server, "[10250]"),
    field("read-only-port", Number, "readOnlyPort", Server, "0: none [0 with --config, else 10255]"),
    field("healthz-bind-address", Address, "healthzBindAddress", Server, "[127.0.0.1]"),
    field("healthz-port", Number, "healthzPort", Server, "0: none [10248]"),
    field("tls-cert-file", Text, "tlsCertFile", Server, "serving certificate"),
    field("tls-private-key-file", Text, "tlsPrivateKeyFile", Server, "its key"),
    field("tls-cipher-suites", List, "tlsCipherSuites", Server, "for TLS 1.2 and below"),
    field("tls-min-version", Text, "tlsMinVersion", Server, "VersionTLS10 to VersionTLS13 [VersionTLS12]"),
    field("client-ca-file", Text, "authentication.x509.clientCAFile", Server, "CA of callers with certificates"),
    field("anonymous-auth", Switch, "authentication.anonymous.enabled", Server, "[false with --config, else true]"),
    field("authentication-token-webhook", Switch, "authentication.webhook.enabled", Server, "[true with --config, else false]"),
    field("authentication-token-webhook-cache-ttl", Duration, "authentication.webhook.cacheTTL", Server, "[2m]"),
    field("authorization-mode", Text, "authorization.mode", Server, "[Webhook with --config, else AlwaysAllow]"),
    field("authorization-webhook-cache-authorized-ttl", Duration, "authorization.webhook.cacheAuthorizedTTL", Server, "[5m]"),
    field("authorization-webhook-cache-unauthorized-ttl", Duration, "authorization.webhook.cacheUnauthorizedTTL", Server, "[30s]"),
    field("enable-debugging-handlers", Switch, "enableDebuggingHandlers", Server, "[true]"),
    field("contention-profiling", Switch, "enableContentionProfiling", Server, "[false]"),
    field("streaming-connection-idle-timeout", Duration, "streamingConnectionIdleTimeout", Server, "[4h]"),

    field("pod-manifest-path", Text, "staticPodPath", Pods, "folder or file with static pods"),
    field("manifest-url", Text, "staticPodURL", Pods, "URL with static pods"),
    field("manifest-url-header", Headers, "staticPodURLHeader", Pods, "name:value,... sent with --manifest-url"),
    field("file-check-frequency", Duration, "fileCheckFrequency", Pods, "[20s]"),
    field("http-check-frequency", Duration, "httpCheckFrequency", Pods, "[20s]"),
    field("sync-frequency", Duration, "syncFrequency", Pods, "[1m]"),
    field("cluster-dns", List, "clusterDNS", Pods, "DNS servers of the cluster"),
    field("cluster-domain", Text, "clusterDomain", Pods, "domain of the cluster"),
    field("resolv-conf", Text, "resolvConf", Pods, "[/etc/resolv.conf]"),
    field("allowed-unsafe-sysctls", List, "allowedUnsafeSysctls", Pods, "patterns such as net.core.*"),
    own("seccomp-default", Switch, Own::SeccompDefault, Pods, "RuntimeDefault where a pod names no profile [false]"),
    field("pod-max-pids", Number, "podPidsLimit", Pods, "-1: no limit [-1]"),
    field("runonce", Switch, "runOnce", Pods, "removed: only false is taken"),
    field("enable-controller-attach-detach", Switch, "enableControllerAttachDetach", Pods, "[true]"),
    field("volume-plugin-dir", Text, "volumePluginDir", Pods, "[/usr/libexec/kubernetes/kubelet-plugins/volume/exec/]"),
    field("volume-stats-agg-period", Duration, "volumeStatsAggPeriod", Pods, "negative: off [1m]"),
    own("minimum-container-ttl-duration", Duration, Own::MinimumTtl, Pods, "a dead container is kept at least this long [0s]"),
    own("maximum-dead-containers-per-container", Number, Own::DeadPerContainer, Pods, "dead instances kept per container; -1: all [1]"),
    own("maximum-dead-containers", Number, Own::Dead, Pods, "dead containers kept on the node; -1: all [-1]"),

    field("container-runtime-endpoint", Text, "containerRuntimeEndpoint", Runtime, "embedded://: bosun's own [unix:///run/containerd/containerd.sock]"),
    field("image-service-endpoint", Text, "imageServiceEndpoint", Runtime, "[--container-runtime-endpoint]"),
    field("runtime-request-timeout", Duration, "runtimeRequestTimeout", Runtime, "[2m]"),
    field("container-log-max-size", Text, "containerLogMaxSize", Runtime, "[10Mi]"),
    field("container-log-max-files", Number, "containerLogMaxFiles", Runtime, "[5]"),
    own("runtime-cgroups", Text, Own::RuntimeCgroups, Runtime, "cgroup of the runtime, for figures"),

    field("serialize-image-pulls", Switch, "serializeImagePulls", Images, "[true]"),
    field("registry-qps", Number, "registryPullQPS", Images, "0: no limit [5]"),
    field("registry-burst", Number, "registryBurst", Images, "[10]"),
    own("image-credential-provider-config", Text, Own::ProviderConfig, Images, "CredentialProviderConfig: a file or a folder"),
    own("image-credential-provider-bin-dir", Text, Own::ProviderBinDir, Images, "folder of the plugins"),
    field("minimum-image-ttl-duration", Duration, "imageMinimumGCAge", Images, "[2m]"),
    field("image-gc-high-threshold", Number, "imageGCHighThresholdPercent", Images, "[85]"),
    field("image-gc-low-threshold", Number, "imageGCLowThresholdPercent", Images, "[80]"),

    field("cgroup-driver", Text, "cgroupDriver", Resources, "cgroupfs or systemd; the runtime's answer wins [cgroupfs]"),
    field("cgroup-root", Text, "cgroupRoot", Resources, "cgroup below which pods live"),
    field("cgroups-per-qos", Switch, "cgroupsPerQOS", Resources, "[true]"),
    field("enforce-node-allocatable", List, "enforceNodeAllocatable", Resources, "[pods]"),
    field("system-reserved", Pairs('='), "systemReserved", Resources, "cpu=500m,memory=1Gi,ephemeral-storage=..,pid=.."),
    field("kube-reserved", Pairs('='), "kubeReserved", Resources, "as --system-reserved"),
    field("system-reserved-cgroup", Text, "systemReservedCgroup", Resources, ""),
    field("kube-reserved-cgroup", Text, "kubeReservedCgroup", Resources, ""),
    field("system-cgroups", Text, "systemCgroups", Resources, ""),
    field("kubelet-cgroups", Text, "kubeletCgroups", Resources, ""),
    field("cpu-cfs-quota", Switch, "cpuCFSQuota", Resources, "[true]"),
    field("cpu-cfs-quota-period", Duration, "cpuCFSQuotaPeriod", Resources, "[100ms]"),
    field("fail-swap-on", Switch, "failSwapOn", Resources, "[true]"),
    field("fail-cgroupv1", Switch, "failCgroupV1", Resources, "[true]"),
    field("oom-score-adj", Number, "oomScoreAdj", Resources, "[-999]"),
    field("max-open-files", Number, "maxOpenFiles", Resources, "[1000000]"),
    field("qos-reserved", Pairs('='), "qosReserved", Resources, ""),
    field("protect-kernel-defaults", Switch, "protectKernelDefaults", Resources, "[false]"),
    field("local-storage-capacity-isolation", Switch, "localStorageCapacityIsolation", Resources, "[true]"),
    field("make-iptables-util-chains", Switch, "makeIPTablesUtilChains", Resources, "[true]"),
    field("hairpin-mode", Text, "hairpinMode", Resources, "no effect with CRI [promiscuous-bridge]"),

    field("cpu-manager-policy", Text, "cpuManagerPolicy", Pinning, "[none]"),
    field("cpu-manager-policy-options", Pairs('='), "cpuManagerPolicyOptions", Pinning, ""),
    field("cpu-manager-reconcile-period", Duration, "cpuManagerReconcilePeriod", Pinning, "[10s]"),
    field("memory-manager-policy", Text, "memoryManagerPolicy", Pinning, "[None]"),
    field("topology-manager-policy", Text, "topologyManagerPolicy", Pinning, "[none]"),
    field("topology-manager-scope", Text, "topologyManagerScope", Pinning, "[container]"),
    field("topology-manager-policy-options", Pairs('='), "topologyManagerPolicyOptions", Pinning, ""),
    field("reserved-cpus", Text, "reservedSystemCPUs", Pinning, "CPUs kept from pods, as in 0-1,4"),
    field("reserved-memory", Memory, "reservedMemory", Pinning, "0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=1Gi"),

    field("eviction-hard", Pairs('<'), "evictionHard", Eviction, "memory.available<100Mi,nodefs.available<10%; replaces the file's"),
    field("eviction-soft", Pairs('<'), "evictionSoft", Eviction, ""),
    field("eviction-soft-grace-period", Pairs('='), "evictionSoftGracePeriod", Eviction, "memory.available=1m30s"),
    field("eviction-minimum-reclaim", Pairs('='), "evictionMinimumReclaim", Eviction, ""),
    field("eviction-max-pod-grace-period", Number, "evictionMaxPodGracePeriod", Eviction, "seconds [0]"),
    field("eviction-pressure-transition-period", Duration, "evictionPressureTransitionPeriod", Eviction, "[5m]"),
    field("kernel-memcg-notification", Switch, "kernelMemcgNotification", Eviction, "[false]"),

    field("v", Number, "logging.verbosity", Logging, "-v, --v: verbosity; 4 debug, 6 trace [0]"),
    field("vmodule", Modules, "logging.vmodule", Logging, "file=N,...: verbosity of single source files (text form)"),
    field("logging-format", Text, "logging.format", Logging, "text or json [text]"),
    field("log-flush-frequency", Duration, "logging.flushFrequency", Logging, "lines are written at once [5s]"),
    field("log-text-split-stream", Switch, "logging.options.text.splitStream", Logging, "info to standard output [false]"),
    field("log-text-info-buffer-size", Text, "logging.options.text.infoBufferSize", Logging, "[0]"),
    field("log-json-split-stream", Switch, "logging.options.json.splitStream", Logging, "[false]"),
    field("log-json-info-buffer-size", Text, "logging.options.json.infoBufferSize", Logging, "[0]"),

    own("socket", Text, Own::Socket, Bosun, "socket of the bosun command line, for root [/run/bosun/bosun.sock]"),
    own("container-logs-dir", Text, Own::ContainerLogsDir, Bosun, "folder of the legacy log links [/var/log/containers]"),
    own("sysctl-dir", Text, Own::SysctlDir, Bosun, "folder of the kernel parameters that are set or checked at start [/proc/sys]"),
    own("pod-store", Switch, Own::PodStore, Bosun, "run the API server's pods from a copy here while it is away [true]"),
    own("pod-store-wait", Duration, Own::PodStoreWait, Bosun, "after a start, wait this long for the API server first [5s]"),
    own("pod-store-after-boot", Text, Own::PodStoreAfterBoot, Bosun, "which of them start after a boot: safe, all, none [safe]"),
    own("pod-store-max-age", Duration, Own::PodStoreMaxAge, Bosun, "safe: none when the server was last heard longer ago [5m]"),
    own("eviction-early-looks", Switch, Own::EvictionEarlyLooks, Bosun, "look for memory pressure sooner than every 10s when it comes fast [true]"),
    own("object-cache", Switch, Own::ObjectCache, Bosun, "keep configMaps and secrets of pods here, sealed, for that time [true]"),
    own("bosun-config", Text, Own::BosunConfig, Bosun, "file for what a KubeletConfiguration has no field for: managers"),
    own("manager", Text, Own::Manager, Bosun, "NAME=unix:///PATH[,whenAway=...]: a manager in a process of its own; once per manager"),
    own("log", Text, Own::Log, Bosun, "log filter such as info,pod_worker=debug; wins over -v; also BOSUN_LOG"),
    own("enable-faults", Switch, Own::EnableFaults, Bosun, "let `bosun fault` inject faults, for tests [false]"),

    idle("pod-infra-container-image", Text, "the runtime's own configuration names the sandbox image"),
    idle("experimental-mounter-path", Text, "mounts are made by bosun itself"),
    idle("experimental-allocatable-ignore-eviction", Switch, "eviction thresholds count for node allocatable"),
    idle("application-metrics-count-limit", Number, CADVISOR),
    idle("boot-id-file", Text, CADVISOR),
    idle("container-hints", Text, CADVISOR),
    idle("containerd", Text, CADVISOR),
    idle("containerd-namespace", Text, CADVISOR),
    idle("enable-load-reader", Switch, CADVISOR),
    idle("event-storage-age-limit", Text, CADVISOR),
    idle("event-storage-event-limit", Text, CADVISOR),
    idle("global-housekeeping-interval", Duration, CADVISOR),
    idle("housekeeping-interval", Duration, CADVISOR),
    idle("log-cadvisor-usage", Switch, CADVISOR),
    idle("machine-id-file", Text, CADVISOR),
    idle("max-housekeeping-interval", Duration, CADVISOR),
    idle("storage-driver-buffer-duration", Duration, CADVISOR),
    idle("storage-driver-db", Text, CADVISOR),
    idle("storage-driver-host", Text, CADVISOR),
    idle("storage-driver-password", Secret, CADVISOR),
    idle("storage-driver-secure", Switch, CADVISOR),
    idle("storage-driver-table", Text, CADVISOR),
    idle("storage-driver-user", Text, CADVISOR),
];

const NO_DOCKER: &str = "containers run on a CRI runtime since 1.24; name its socket with --container-runtime-endpoint";
const NO_CNI: &str = "the runtime sets up the network since 1.24; configure CNI there";
const NO_BIT: &str = "iptables belongs to kube-proxy";
const NO_WINDOWS: &str = "it is for Windows";

/// Flags that a kubelet 1.36 on Linux does not know any more, with what to do.
pub(super) const REMOVED: &[(&str, &str)] = &[
    ("allow-privileged", "use Pod Security admission"),
    ("api-servers", "use --kubeconfig"),
    ("cadvisor-port", "there is no such port any more"),
    ("chaos-chance", "it was for tests; bosun has `bosun fault`"),
    ("cloud-config", "a cloud controller manager reads it; use --cloud-provider=external"),
    ("cni-bin-dir", NO_CNI),
    ("cni-cache-dir", NO_CNI),
    ("cni-conf-dir", NO_CNI),
    ("container-runtime", "there is no choice since 1.27: it is always a CRI runtime; leave the flag out"),
    ("docker", NO_DOCKER),
    ("docker-endpoint", NO_DOCKER),
    ("docker-root", NO_DOCKER),
    ("dynamic-config-dir", "dynamic configuration ended with 1.26; use --config and --config-dir"),
    ("experimental-bootstrap-kubeconfig", "use --bootstrap-kubeconfig"),
    ("experimental-check-node-capabilities-before-mount", "it had no effect; leave it out"),
    ("experimental-kernel-memcg-notification", "use --kernel-memcg-notification"),
    ("image-pull-progress-deadline", NO_DOCKER),
    ("iptables-drop-bit", NO_BIT),
    ("iptables-masquerade-bit", NO_BIT),
    ("keep-terminated-pod-volumes", "it had no effect; leave it out"),
    ("master-service-namespace", "it had no effect; leave it out"),
    ("network-plugin", NO_CNI),
    ("network-plugin-mtu", NO_CNI),
    ("non-masquerade-cidr", NO_CNI),
    ("redirect-container-streaming", "streams are always proxied"),
    ("register-schedulable", "use --register-with-taints"),
    ("require-kubeconfig", "give --kubeconfig or leave it out"),
    ("windows-priorityclass", NO_WINDOWS),
    ("windows-service", NO_WINDOWS),
];
