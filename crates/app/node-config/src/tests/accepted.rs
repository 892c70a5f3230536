use model::node::{CgroupDriver, SwapBehavior};
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::{
    AuthorizationMode, ChangeDetection, Enforce, LogFormat, MemoryQos, PullVerification, Threshold, TlsVersion,
};

#[test]
fn an_empty_configuration_is_the_default() {
    let (config, warnings) = read("").unwrap();
    assert_eq!(config, NodeConfig::default());
    assert!(warnings.is_empty());
}

#[test]
fn zero_and_empty_mean_not_set_where_the_field_is_no_pointer() {
    let lines = "syncFrequency: 0s\nfileCheckFrequency: 0s\nruntimeRequestTimeout: 0s\nmaxPods: 0\nregistryBurst: 0\neventBurst: 0\ncgroupDriver: ''\ncontainerRuntimeEndpoint: ''\nstaticPodPath: ''\npodLogsDir: ''\nmemorySwap: {swapBehavior: ''}\nlogging: {format: ''}\nmaxParallelImagePulls: null\ncgroupRoot: null\n";
    assert_eq!(good(lines), NodeConfig::default());
}

#[test]
fn kubeadm_s_configuration_is_taken_without_an_error() {
    // What kubeadm 1.34 writes.
    let lines = "authentication:\n  anonymous: {enabled: false}\n  webhook: {cacheTTL: 0s, enabled: true}\n  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}\nauthorization:\n  mode: Webhook\n  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}\ncgroupDriver: systemd\nclusterDNS: [10.96.0.10]\nclusterDomain: cluster.local\ncontainerRuntimeEndpoint: ''\ncpuManagerReconcilePeriod: 0s\ncrashLoopBackOff: {}\nevictionPressureTransitionPeriod: 0s\nfileCheckFrequency: 0s\nhealthzBindAddress: 127.0.0.1\nhealthzPort: 10248\nhttpCheckFrequency: 0s\nimageMaximumGCAge: 0s\nimageMinimumGCAge: 0s\nlogging:\n  flushFrequency: 0\n  options: {json: {infoBufferSize: '0'}, text: {infoBufferSize: '0'}}\n  verbosity: 0\nmemorySwap: {}\nnodeStatusReportFrequency: 0s\nnodeStatusUpdateFrequency: 0s\nrotateCertificates: true\nruntimeRequestTimeout: 0s\nshutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s\nstaticPodPath: /etc/kubernetes/manifests\nstreamingConnectionIdleTimeout: 0s\nsyncFrequency: 0s\nvolumeStatsAggPeriod: 0s\n";
    let config = good(lines);
    assert_eq!(config.cgroups.driver, CgroupDriver::Systemd);
    assert_eq!(config.server.authentication.client_ca_file, Some("/etc/kubernetes/pki/ca.crt".into()));
    assert_eq!(config.server.authentication.webhook_cache_ttl.as_secs(), 120);
    assert_eq!(config.pods.volume_stats_agg_period, Some(Duration::from_secs(60)));
    assert_eq!(warnings(lines), Vec::<String>::new());
}

type Check = fn(&NodeConfig) -> bool;

#[test]
fn each_field_is_read_into_its_place() {
    let rows: &[(&str, Check)] = &[
        ("staticPodPath: /etc/kubernetes/manifests/", |c| {
            c.sources.static_pod_path == Some(PathBuf::from("/etc/kubernetes/manifests/"))
        }),
        ("fileCheckFrequency: 1m30s", |c| c.sources.file_check_frequency == Duration::from_secs(90)),
        ("staticPodURL: https://h/p\nstaticPodURLHeader: {A: [b, c]}\nhttpCheckFrequency: 5s", |c| {
            c.sources.static_pod_url.as_deref() == Some("https://h/p")
                && c.sources.static_pod_url_headers.len() == 2
                && c.sources.http_check_frequency.as_secs() == 5
        }),
        ("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s", |c| {
            (c.shutdown.grace_period.as_secs(), c.shutdown.critical.as_secs()) == (30, 10)
        }),
        ("shutdownGracePeriodByPodPriority: [{priority: -7, shutdownGracePeriodSeconds: 60}, {priority: 1000}]", |c| {
            let list: Vec<_> = c.shutdown.by_priority.iter().map(|p| (p.priority, p.period_s)).collect();
            list == [(-7, 60), (1000, 0)]
        }),
        ("syncFrequency: 5s", |c| c.pods.sync_frequency == Duration::from_secs(5)),
        ("podLogsDir: /log", |c| c.pods.logs_dir.as_path() == Path::new("/log")),
        ("containerRuntimeEndpoint: unix:///x.sock", |c| {
            c.runtime.container_runtime_endpoint == "unix:///x.sock"
                && c.runtime.image_service_endpoint == "unix:///x.sock"
        }),
        ("imageServiceEndpoint: unix:///y.sock", |c| {
            c.runtime.image_service_endpoint == "unix:///y.sock"
                && c.runtime.container_runtime_endpoint.contains("containerd")
        }),
        ("containerRuntimeEndpoint: embedded://", |c| {
            let of_file = |file: Option<&str>| Some(crate::EmbeddedRuntime { file: file.map(Into::into) });
            c.runtime.embedded() == of_file(None) && c.runtime.image_service_endpoint == "embedded://"
        }),
        ("containerRuntimeEndpoint: embedded:///etc/r.toml\nimageServiceEndpoint: embedded:///etc/r.toml", |c| {
            c.runtime.embedded().and_then(|e| e.file).as_deref() == Some(Path::new("/etc/r.toml"))
        }),
        ("containerRuntimeEndpoint: unix:///x.sock", |c| c.runtime.embedded().is_none()),
        ("runtimeRequestTimeout: 10s", |c| c.runtime.runtime_request_timeout == Duration::from_secs(10)),
        ("cgroupDriver: systemd", |c| c.cgroups.driver == CgroupDriver::Systemd),
        ("cgroupRoot: /a/b", |c| c.cgroups.root == "/a/b"),
        ("kubeletCgroups: /daemons/kubelet", |c| c.cgroups.own == "/daemons/kubelet"),
        ("systemCgroups: /system/daemons/\ncgroupRoot: /", |c| c.cgroups.system == "/system/daemons"),
        ("systemCgroups: system\ncgroupRoot: /", |c| c.cgroups.system == "/system"),
        ("cgroupsPerQOS: false\nenforceNodeAllocatable: []", |c| {
            !c.cgroups.per_qos && c.allocatable.enforce.is_empty()
        }),
        ("enforceNodeAllocatable: [none]", |c| c.allocatable.enforce.is_empty()),
        ("enforceNodeAllocatable: [pods, kube-reserved]\nkubeReservedCgroup: /k", |c| {
            c.allocatable.enforce == [Enforce::Pods, Enforce::KubeReserved]
        }),
        ("systemReserved: {cpu: 500m, memory: 1Gi}", |c| {
            c.allocatable.system_reserved["cpu"].milli_value() == 500
                && c.allocatable.system_reserved["memory"].value() == 1 << 30
        }),
        ("kubeReserved: {pid: 1000}", |c| c.allocatable.kube_reserved["pid"].value() == 1000),
        ("cpuCFSQuota: false", |c| !c.limits.cpu_cfs_quota),
        ("cpuCFSQuotaPeriod: 10ms", |c| c.limits.cpu_cfs_quota_period == Duration::from_millis(10)),
        ("podPidsLimit: 100", |c| c.limits.pod_pids_limit == Some(100)),
        ("podPidsLimit: -5", |c| c.limits.pod_pids_limit.is_none()),
        ("singleProcessOOMKill: true", |c| c.limits.single_process_oom_kill == Some(true)),
        ("failSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}", |c| {
            !c.cgroups.fail_swap_on && c.limits.swap_behavior == SwapBehavior::LimitedSwap
        }),
        ("memoryThrottlingFactor: 0.5", |c| c.limits.memory_qos.is_none()),
        ("featureGates: {MemoryQoS: true}", |c| {
            c.limits.memory_qos == Some(MemoryQos { throttling_factor: 0.9, tiered_reservation: false })
        }),
        (
            "featureGates: {MemoryQoS: true}\nmemoryThrottlingFactor: 1\nmemoryReservationPolicy: TieredReservation",
            |c| c.limits.memory_qos == Some(MemoryQos { throttling_factor: 1.0, tiered_reservation: true }),
        ),
        ("featureGates: {QOSReserved: true}\nqosReserved: {memory: 50%}", |c| c.limits.qos_reserved_memory == Some(50)),
        ("featureGates: {QOSReserved: true}\nqosReserved: {memory: 0%}", |c| c.limits.qos_reserved_memory == Some(0)),
        ("qosReserved: {}", |c| c.limits.qos_reserved_memory.is_none()),
        ("protectKernelDefaults: true", |c| c.host.protect_kernel_defaults && c.host.iptables_util_chains),
        ("makeIPTablesUtilChains: false", |c| !c.host.protect_kernel_defaults && !c.host.iptables_util_chains),
        ("failCgroupV1: false", |c| !c.cgroups.fail_cgroup_v1),
        ("clusterDNS: [10.0.0.10, 'fd00::a']", |c| c.dns.cluster_dns.len() == 2),
        ("clusterDNS: [dns]", |c| c.dns.cluster_dns.is_empty()),
        ("clusterDomain: cluster.local", |c| c.dns.cluster_domain == "cluster.local"),
        ("resolvConf: ''", |c| c.dns.resolv_conf.is_none()),
        ("resolvConf: /run/r", |c| c.dns.resolv_conf == Some(PathBuf::from("/run/r"))),
        ("serializeImagePulls: false", |c| !c.images.serialize_pulls && c.images.max_parallel_pulls.is_none()),
        ("maxParallelImagePulls: 4", |c| !c.images.serialize_pulls && c.images.max_parallel_pulls == Some(4)),
        ("maxParallelImagePulls: 1", |c| c.images.serialize_pulls),
        ("registryPullQPS: 0\nregistryBurst: 3", |c| c.images.registry_pull_qps == 0 && c.images.registry_burst == 3),
        ("maxPods: 250\npodsPerCore: 10", |c| c.pods.max_pods == 250 && c.pods.pods_per_core == 10),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 10s}", |c| {
            c.pods.max_container_restart_period == Duration::from_secs(10)
        }),
        ("seccompDefault: true", |c| c.pods.seccomp_default),
        ("allowedUnsafeSysctls: [kernel.msg*, net.core.somaxconn, net.ipv4.*]", |c| {
            c.pods.allowed_unsafe_sysctls.len() == 3
        }),
        ("userNamespaces: {idsPerPod: 131072}", |c| c.pods.user_namespace_ids_per_pod == 131_072),
        ("evictionMinimumReclaim: {memory.available: 0Mi, nodefs.available: 500Mi, imagefs.available: 100%}", |c| {
            let all = &c.eviction.minimum_reclaim;
            all.len() == 2
                && all["imagefs.available"] == Threshold::Percent(100.0)
                && all.contains_key("nodefs.available")
        }),
        ("containerLogMaxSize: 1Mi\ncontainerLogMaxFiles: 3", |c| {
            c.container_logs.max_size == Some(1 << 20) && c.container_logs.max_files == 3
        }),
        ("containerLogMaxSize: -1", |c| c.container_logs.max_size.is_none()),
        ("containerLogMaxWorkers: 2\ncontainerLogMonitorInterval: 3s", |c| {
            c.container_logs.max_workers == 2 && c.container_logs.monitor_interval == Duration::from_secs(3)
        }),
        // Edge 18.
        ("reservedSystemCPUs: '0-1,4'\nkubeReserved: {cpu: 1, pid: 5}", |c| {
            c.allocatable.system_reserved["cpu"].value() == 3 && !c.allocatable.kube_reserved.contains_key("cpu")
        }),
        ("kubeAPIQPS: 0\nkubeAPIBurst: 7", |c| c.api.kube_api_qps == 5 && c.api.kube_api_burst == 7),
        ("contentType: application/json", |c| c.api.content_type == "application/json"),
        ("configMapAndSecretChangeDetectionStrategy: Get", |c| c.api.change_detection == ChangeDetection::Get),
        ("configMapAndSecretChangeDetectionStrategy: Cache", |c| c.api.change_detection == ChangeDetection::Cache),
        ("registerNode: false", |c| !c.node.register),
        ("registerWithTaints: [{key: a.io/b, value: c, effect: NoExecute}, {key: d, effect: NoSchedule}]", |c| {
            c.node.register_with_taints.len() == 2 && c.node.register_with_taints[0].value.as_deref() == Some("c")
        }),
        ("providerID: kind://a/b", |c| c.node.provider_id.as_deref() == Some("kind://a/b")),
        ("nodeStatusUpdateFrequency: 4s", |c| {
            c.node.status_update_frequency.as_secs() == 4 && c.node.status_report_frequency.as_secs() == 4
        }),
        ("nodeStatusReportFrequency: 7m", |c| c.node.status_report_frequency.as_secs() == 420),
        ("nodeLeaseDurationSeconds: 20", |c| c.node.lease_duration.as_secs() == 20),
        ("nodeLeaseDurationSeconds: 0", |c| c.node.lease_duration.as_secs() == 40),
        ("nodeStatusMaxImages: -1", |c| c.node.status_max_images.is_none()),
        ("nodeStatusMaxImages: 0", |c| c.node.status_max_images == Some(0)),
        ("podCIDR: 10.0.0.0/24", |c| c.node.pod_cidr.is_some()),
        ("enableControllerAttachDetach: false", |c| !c.node.enable_controller_attach_detach),
        ("localStorageCapacityIsolation: false", |c| !c.node.local_storage_capacity_isolation),
        ("rotateCertificates: true\nserverTLSBootstrap: true", |c| c.api.rotate_certificates && c.server.tls.bootstrap),
        ("port: 10350\naddress: '::'", |c| c.server.port == 10350 && c.server.address.is_ipv6()),
        ("port: 0", |c| c.server.port == 10250),
        ("tlsCertFile: a.crt\ntlsPrivateKeyFile: /k", |c| {
            c.server.tls.cert_file == Some("/etc/bosun/a.crt".into())
                && c.server.tls.private_key_file == Some("/k".into())
        }),
        ("tlsMinVersion: VersionTLS13", |c| c.server.tls.min_version == TlsVersion::Tls13),
        ("tlsCipherSuites: [TLS_AES_128_GCM_SHA256]", |c| c.server.tls.cipher_suites.len() == 1),
        ("enableServer: false", |c| !c.server.enable_server),
        ("readOnlyPort: 10255", |c| c.server.read_only_port == Some(10255)),
        ("readOnlyPort: 0", |c| c.server.read_only_port.is_none()),
        ("authentication: {x509: {clientCAFile: ca.crt}}", |c| {
            c.server.authentication.client_ca_file == Some("/etc/bosun/ca.crt".into())
        }),
        ("authentication: {webhook: {enabled: false, cacheTTL: 1s}, anonymous: {enabled: true}}", |c| {
            let a = &c.server.authentication;
            !a.webhook && a.anonymous && a.webhook_cache_ttl.as_secs() == 1
        }),
        ("authorization: {mode: AlwaysAllow}", |c| c.server.authorization.mode == AuthorizationMode::AlwaysAllow),
        ("authorization: {mode: '', webhook: {cacheAuthorizedTTL: 1s, cacheUnauthorizedTTL: 2s}}", |c| {
            let a = &c.server.authorization;
            a.mode == AuthorizationMode::Webhook
                && (a.cache_authorized_ttl.as_secs(), a.cache_unauthorized_ttl.as_secs()) == (1, 2)
        }),
        ("enableDebuggingHandlers: false", |c| !c.server.enable_debugging_handlers),
        ("enableSystemLogHandler: false", |c| !c.server.enable_system_log_handler),
        ("enableSystemLogQuery: true", |c| c.server.enable_system_log_query),
        ("enableProfilingHandler: false", |c| !c.server.enable_profiling_handler),
        ("enableDebugFlagsHandler: false", |c| !c.server.enable_debug_flags_handler),
        ("streamingConnectionIdleTimeout: 5m", |c| c.server.streaming_connection_idle_timeout.as_secs() == 300),
        ("volumeStatsAggPeriod: 2m", |c| c.pods.volume_stats_agg_period == Some(Duration::from_secs(120))),
        ("volumeStatsAggPeriod: -1s", |c| c.pods.volume_stats_agg_period.is_none()),
        ("volumeStatsAggPeriod: 0s", |c| c.pods.volume_stats_agg_period == Some(Duration::from_secs(60))),
        ("healthzPort: 0", |c| c.healthz.port.is_none()),
        ("healthzPort: 1\nhealthzBindAddress: '::1'", |c| {
            c.healthz.port == Some(1) && c.healthz.bind_address.is_ipv6()
        }),
        // Edge 45.
        ("evictionHard: {memory.available: 500Mi}", |c| {
            c.eviction.hard.len() == 1 && c.eviction.hard["memory.available"].amount(0) == 500 << 20
        }),
        ("evictionHard: {memory.available: 500Mi}\nmergeDefaultEvictionSettings: true", |c| {
            c.eviction.hard.len() == 5 && c.eviction.hard["nodefs.available"].amount(1000) == 100
        }),
        ("evictionHard: {imagefs.available: 0%, nodefs.available: 100%, nodefs.inodesFree: '0%'}", |c| {
            c.eviction.hard.is_empty()
        }),
        ("evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 90s}", |c| {
            c.eviction.soft["memory.available"].grace.as_secs() == 90
        }),
        ("evictionPressureTransitionPeriod: 0s\nevictionMaxPodGracePeriod: 30", |c| {
            c.eviction.pressure_transition_period.as_secs() == 300 && c.eviction.max_pod_grace_period.as_secs() == 30
        }),
        ("imageMinimumGCAge: 1m\nimageMaximumGCAge: 1h", |c| {
            c.images.minimum_gc_age.as_secs() == 60 && c.images.maximum_gc_age == Some(Duration::from_secs(3600))
        }),
        ("imageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: 0", |c| {
            c.images.gc_high_threshold_percent == 100 && c.images.gc_low_threshold_percent == 0
        }),
        ("imagePullCredentialsVerificationPolicy: AlwaysVerify", |c| {
            c.images.pull_verification == PullVerification::AlwaysVerify
        }),
        ("featureGates: {KubeletEnsureSecretPulledImages: false}", |c| {
            c.images.pull_verification == PullVerification::NeverVerify
        }),
        (
            "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [a.io/b/*]",
            |c| c.images.pull_verification_allowlist == ["a.io/b/*"],
        ),
        ("logging: {vmodule: [{filePattern: 'pod_*', verbosity: 5}]}", |c| c.logging.vmodule[0].verbosity == 5),
        ("featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: true}}}", |c| {
            c.logging.split_stream
        }),
        ("eventRecordQPS: 0\neventBurst: 7", |c| c.api.event_record_qps == 0 && c.api.event_burst == 7),
        ("oomScoreAdj: -500", |c| c.cgroups.oom_score_adj == -500),
        ("logging: {format: json, verbosity: 4}", |c| c.logging.format == LogFormat::Json && c.logging.verbosity == 4),
        ("containerRuntimeEndpoint: /run/x.sock", |c| c.runtime.container_runtime_endpoint == "unix:///run/x.sock"),
    ];
    for (lines, check) in rows {
        let config = good(lines);
        assert!(check(&config), "{lines}: {config:?}");
    }
}

#[test]
fn what_is_odd_is_said_and_does_not_stop_the_node() {
    let rows: &[(&str, &str)] = &[
        ("maxPod: 5", "maxPod: unknown field, ignored; did you mean maxPods?"),
        ("staticpodpath: /x", "staticpodpath: unknown field, ignored; did you mean staticPodPath?"),
        ("somethingElse: 1", "somethingElse: unknown field, ignored"),
        (
            "memorySwap: {swapBehaviour: NoSwap}",
            "memorySwap.swapBehaviour: unknown field, ignored; did you mean swapBehavior?",
        ),
        ("authentication: {anonymus: {}}", "authentication.anonymus: unknown field, ignored; did you mean anonymous?"),
        (
            "enableControllerAttachDetach: false",
            "enableControllerAttachDetach: pods wait for ever for volumes that must be attached: a node attaches none itself, a kubelet neither",
        ),
        ("tlsMinVersion: VersionTLS11", "tlsMinVersion: not implemented yet: nothing older than TLS 1.2 is spoken"),
        (
            "enableContentionProfiling: true",
            "enableContentionProfiling: not implemented yet: there is no profile of contended locks",
        ),
        (
            "evictionHard: {containerfs.available: 200Mi}",
            "evictionHard.containerfs.available: has no effect: the threshold of nodefs or imagefs holds, whichever disk the runtime's layers are on",
        ),
        ("cpuManagerPolicy: static", "cpuManagerPolicy: not implemented yet: all containers share all CPUs and memory"),
        (
            "reservedSystemCPUs: 0-1",
            "reservedSystemCPUs: as many CPUs are set aside; not implemented yet: containers are not kept off these very ones",
        ),
        ("clusterDNS: [dns]", "clusterDNS[0]: \"dns\" is not an IP address, skipped"),
        (
            "containerRuntimeEndpoint: /x",
            "containerRuntimeEndpoint: a bare path is deprecated, write unix:// in front of it",
        ),
        ("memorySwap: {swapBehavior: LimitedSwap}", "memorySwap.swapBehavior: has no effect while failSwapOn is true"),
        ("maxPods: 5\nmaxPods: 6", "line 4, column 1: maxPods is given twice in one mapping, the last one counts"),
    ];
    for (lines, expected) in rows {
        assert_eq!(warnings(lines), [*expected], "{lines}");
    }
    assert_eq!(good("maxPods: 5\nmaxPods: 6").pods.max_pods, 6);
}

#[test]
fn a_value_that_is_the_default_anyway_is_not_worth_a_word() {
    for lines in [
        "port: 10250",
        "enableServer: true",
        "httpCheckFrequency: 20s",
        "nodeStatusReportFrequency: 300s",
        "streamingConnectionIdleTimeout: 240m",
        "authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 5m0s}}",
        "evictionHard: {}",
        "registerWithTaints: null",
    ] {
        assert_eq!(warnings(lines), Vec::<String>::new(), "{lines}");
    }
}

#[test]
fn a_share_is_counted_to_the_byte_as_a_kubelet_counts_it() {
    // Capacity, evictionHard and allocatable of the recorded node.
    let config = good("evictionHard: {nodefs.available: 1%}");
    let capacity = 264_212_084 << 10;
    assert_eq!(capacity - config.eviction.hard["nodefs.available"].amount(capacity), 267_847_642_337);
}
