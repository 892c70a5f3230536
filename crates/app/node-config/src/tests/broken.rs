//! More than a hundred broken configurations: each is refused with the path of the field that is wrong.

use proptest::prelude::*;

use super::*;

/// Lines, and the path that the one error must have.
const BROKEN: &[(&str, &str)] = &[
    // wrong types
    ("staticPodPath: 5", "staticPodPath"),
    ("staticPodPath: [/a]", "staticPodPath"),
    ("fileCheckFrequency: 20", "fileCheckFrequency"),
    ("fileCheckFrequency: true", "fileCheckFrequency"),
    ("syncFrequency: {}", "syncFrequency"),
    ("runtimeRequestTimeout: [2m]", "runtimeRequestTimeout"),
    ("podLogsDir: {a: b}", "podLogsDir"),
    ("containerRuntimeEndpoint: 1", "containerRuntimeEndpoint"),
    ("cgroupDriver: 1", "cgroupDriver"),
    ("cgroupRoot: []", "cgroupRoot"),
    ("cgroupsPerQOS: 'true'", "cgroupsPerQOS"),
    ("enforceNodeAllocatable: pods", "enforceNodeAllocatable"),
    ("enforceNodeAllocatable: [1]", "enforceNodeAllocatable[0]"),
    ("systemReserved: [cpu]", "systemReserved"),
    ("systemReserved: {cpu: [1]}", "systemReserved.cpu"),
    ("kubeReserved: cpu=1", "kubeReserved"),
    ("kubeReservedCgroup: 7", "kubeReservedCgroup"),
    ("systemReservedCgroup: true", "systemReservedCgroup"),
    ("cpuCFSQuota: 1", "cpuCFSQuota"),
    ("cpuCFSQuotaPeriod: 100", "cpuCFSQuotaPeriod"),
    ("podPidsLimit: many", "podPidsLimit"),
    ("podPidsLimit: 1.5", "podPidsLimit"),
    ("singleProcessOOMKill: 1", "singleProcessOOMKill"),
    ("failSwapOn: 'no'", "failSwapOn"),
    ("failCgroupV1: 0", "failCgroupV1"),
    ("memorySwap: NoSwap", "memorySwap"),
    ("memorySwap: {swapBehavior: 1}", "memorySwap.swapBehavior"),
    ("clusterDNS: 10.0.0.10", "clusterDNS"),
    ("clusterDNS: [10]", "clusterDNS[0]"),
    ("clusterDomain: 1", "clusterDomain"),
    ("resolvConf: [a]", "resolvConf"),
    ("serializeImagePulls: 0", "serializeImagePulls"),
    ("maxParallelImagePulls: two", "maxParallelImagePulls"),
    ("registryPullQPS: '5'", "registryPullQPS"),
    ("registryBurst: {}", "registryBurst"),
    ("maxPods: '110'", "maxPods"),
    ("podsPerCore: []", "podsPerCore"),
    ("crashLoopBackOff: 300s", "crashLoopBackOff"),
    ("seccompDefault: RuntimeDefault", "seccompDefault"),
    ("allowedUnsafeSysctls: kernel.msg*", "allowedUnsafeSysctls"),
    ("userNamespaces: 65536", "userNamespaces"),
    ("containerLogMaxSize: true", "containerLogMaxSize"),
    ("containerLogMaxFiles: '5'", "containerLogMaxFiles"),
    ("containerLogMaxWorkers: 1.5", "containerLogMaxWorkers"),
    ("containerLogMonitorInterval: 10", "containerLogMonitorInterval"),
    ("eventRecordQPS: []", "eventRecordQPS"),
    ("oomScoreAdj: low", "oomScoreAdj"),
    ("logging: json", "logging"),
    ("logging: {verbosity: high}", "logging.verbosity"),
    ("logging: {options: {text: 1}}", "logging.options.text"),
    ("featureGates: [A]", "featureGates"),
    ("featureGates: {EventedPLEG: 'true'}", "featureGates.EventedPLEG"),
    ("runOnce: maybe", "runOnce"),
    // wrong types of fields that are not used yet, or not for long
    ("volumeStatsAggPeriod: -1", "volumeStatsAggPeriod"),
    ("volumeStatsAggPeriod: -soon", "volumeStatsAggPeriod"),
    ("streamingConnectionIdleTimeout: -1s", "streamingConnectionIdleTimeout"),
    ("readOnlyPort: 65536", "readOnlyPort"),
    ("authorization: {webhook: {cacheAuthorizedTTL: 5}}", "authorization.webhook.cacheAuthorizedTTL"),
    ("enableProfilingHandler: 'yes'", "enableProfilingHandler"),
    ("port: '10250'", "port"),
    ("enableServer: 1", "enableServer"),
    ("tlsCipherSuites: TLS_X", "tlsCipherSuites"),
    ("tlsCurvePreferences: [X25519]", "tlsCurvePreferences[0]"),
    ("authentication: {x509: {clientCAFile: 1}}", "authentication.x509.clientCAFile"),
    ("authentication: {anonymous: true}", "authentication.anonymous"),
    ("authentication: {webhook: {cacheTTL: 120}}", "authentication.webhook.cacheTTL"),
    ("staticPodURLHeader: {a: b}", "staticPodURLHeader.a"),
    ("registerWithTaints: [a=b]", "registerWithTaints[0]"),
    ("evictionHard: {memory.available: 100}", "evictionHard.memory.available"),
    ("cpuManagerPolicyOptions: [a]", "cpuManagerPolicyOptions"),
    ("tracing: {samplingRatePerMillion: all}", "tracing.samplingRatePerMillion"),
    ("memoryThrottlingFactor: big", "memoryThrottlingFactor"),
    // values that are not allowed
    ("fileCheckFrequency: -1s", "fileCheckFrequency"),
    ("fileCheckFrequency: 1d", "fileCheckFrequency"),
    ("syncFrequency: '10'", "syncFrequency"),
    ("syncFrequency: soon", "syncFrequency"),
    ("podLogsDir: /a/../b", "podLogsDir"),
    ("podLogsDir: /a//b", "podLogsDir"),
    ("podLogsDir: /l\u{f6}gs", "podLogsDir"),
    ("containerRuntimeEndpoint: tcp://127.0.0.1:1234", "containerRuntimeEndpoint"),
    ("containerRuntimeEndpoint: npipe:////./pipe/x", "containerRuntimeEndpoint"),
    ("containerRuntimeEndpoint: unix://relative", "containerRuntimeEndpoint"),
    ("containerRuntimeEndpoint: relative", "containerRuntimeEndpoint"),
    ("imageServiceEndpoint: tcp://h:1", "imageServiceEndpoint"),
    ("containerRuntimeEndpoint: embedded://etc/r.toml", "containerRuntimeEndpoint"),
    ("containerRuntimeEndpoint: embedded:///", "containerRuntimeEndpoint"),
    ("imageServiceEndpoint: embedded://", "imageServiceEndpoint"),
    ("containerRuntimeEndpoint: embedded://\nimageServiceEndpoint: unix:///x.sock", "imageServiceEndpoint"),
    ("containerRuntimeEndpoint: embedded:///a\nimageServiceEndpoint: embedded:///b", "imageServiceEndpoint"),
    ("cgroupDriver: Systemd", "cgroupDriver"),
    ("cgroupRoot: kubepods", "cgroupRoot"),
    ("cgroupsPerQOS: false", "enforceNodeAllocatable"),
    ("enforceNodeAllocatable: [everything]", "enforceNodeAllocatable[0]"),
    ("enforceNodeAllocatable: [none, pods]", "enforceNodeAllocatable[0]"),
    ("enforceNodeAllocatable: [pods, pods]", "enforceNodeAllocatable[1]"),
    ("enforceNodeAllocatable: [system-reserved]", "systemReservedCgroup"),
    ("enforceNodeAllocatable: [kube-reserved-compressible]", "kubeReservedCgroup"),
    (
        "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k",
        "enforceNodeAllocatable",
    ),
    ("systemReserved: {gpu: 1}", "systemReserved.gpu"),
    ("systemReserved: {memory: -1Gi}", "systemReserved.memory"),
    ("kubeReserved: {memory: 1GB}", "kubeReserved.memory"),
    ("cpuCFSQuotaPeriod: 2s", "cpuCFSQuotaPeriod"),
    ("cpuCFSQuotaPeriod: 10us", "cpuCFSQuotaPeriod"),
    ("memorySwap: {swapBehavior: UnlimitedSwap}", "memorySwap.swapBehavior"),
    ("maxParallelImagePulls: 0", "maxParallelImagePulls"),
    ("serializeImagePulls: true\nmaxParallelImagePulls: 2", "maxParallelImagePulls"),
    ("registryPullQPS: -1", "registryPullQPS"),
    ("registryBurst: -1", "registryBurst"),
    ("maxPods: -1", "maxPods"),
    ("maxPods: 99999999999", "maxPods"),
    ("podsPerCore: -1", "podsPerCore"),
    ("crashLoopBackOff: {maxContainerRestartPeriod: 0s}", "crashLoopBackOff.maxContainerRestartPeriod"),
    ("crashLoopBackOff: {maxContainerRestartPeriod: 301s}", "crashLoopBackOff.maxContainerRestartPeriod"),
    ("allowedUnsafeSysctls: ['*']", "allowedUnsafeSysctls[0]"),
    ("allowedUnsafeSysctls: [kernel.msgmax, Kernel]", "allowedUnsafeSysctls[1]"),
    ("userNamespaces: {idsPerPod: 1000}", "userNamespaces.idsPerPod"),
    ("userNamespaces: {idsPerPod: 65537}", "userNamespaces.idsPerPod"),
    ("containerLogMaxSize: 10MB", "containerLogMaxSize"),
    ("containerLogMaxSize: 0", "containerLogMaxSize"),
    ("containerLogMaxFiles: 1", "containerLogMaxFiles"),
    ("containerLogMaxWorkers: 0", "containerLogMaxWorkers"),
    ("containerLogMonitorInterval: 1s", "containerLogMonitorInterval"),
    ("eventRecordQPS: -1", "eventRecordQPS"),
    ("eventBurst: -1", "eventBurst"),
    ("oomScoreAdj: 1001", "oomScoreAdj"),
    ("logging: {format: xml}", "logging.format"),
    ("runOnce: true", "runOnce"),
    ("featureGates: {SidecarContainers: false}", "featureGates.SidecarContainers"),
    ("featureGates: {CPUManager: true}", "featureGates.CPUManager"),
    ("port: -1", "port"),
    ("port: 70000", "port"),
    ("readOnlyPort: -1", "readOnlyPort"),
    ("address: here", "address"),
    ("healthzBindAddress: localhost", "healthzBindAddress"),
    ("tlsMinVersion: TLS1.2", "tlsMinVersion"),
    ("authorization: {mode: RBAC}", "authorization.mode"),
    ("configMapAndSecretChangeDetectionStrategy: Poll", "configMapAndSecretChangeDetectionStrategy"),
    ("nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds"),
    ("nodeStatusMaxImages: -2", "nodeStatusMaxImages"),
    ("imageGCHighThresholdPercent: 101", "imageGCHighThresholdPercent"),
    ("imageGCHighThresholdPercent: 70", "imageGCHighThresholdPercent"),
    ("imageGCLowThresholdPercent: 90", "imageGCLowThresholdPercent"),
    ("imageMaximumGCAge: 1m", "imageMaximumGCAge"),
    ("shutdownGracePeriodCriticalPods: 10s", "shutdownGracePeriodCriticalPods"),
    ("shutdownGracePeriod: 10s\nshutdownGracePeriodByPodPriority: [{priority: 0}]", "shutdownGracePeriodByPodPriority"),
    ("evictionSoft: {memory.available: 1Gi}", "evictionSoft.memory.available"),
    ("reservedSystemCPUs: 0-1\nkubeReservedCgroup: /k", "reservedSystemCPUs"),
    ("systemCgroups: /system", "cgroupRoot"),
    ("systemCgroups: /\ncgroupRoot: /", "systemCgroups"),
    ("systemCgroups: //\ncgroupRoot: /", "systemCgroups"),
    ("systemCgroups: /a/../b\ncgroupRoot: /", "systemCgroups"),
    ("cpuManagerPolicy: dynamic", "cpuManagerPolicy"),
    ("memoryManagerPolicy: static", "memoryManagerPolicy"),
    ("topologyManagerPolicy: best", "topologyManagerPolicy"),
    ("topologyManagerScope: node", "topologyManagerScope"),
    ("memoryThrottlingFactor: 1.5", "memoryThrottlingFactor"),
    ("memoryThrottlingFactor: 0", "memoryThrottlingFactor"),
    ("hairpinMode: bridge", "hairpinMode"),
    ("iptablesDropBit: 32", "iptablesDropBit"),
    ("staticPodURL: somewhere", "staticPodURL"),
    ("memoryReservationPolicy: TieredReservation", "memoryReservationPolicy"),
    ("qosReserved: {memory: 50%}", "qosReserved"),
    ("featureGates: {QOSReserved: true}\nqosReserved: {cpu: 50%}", "qosReserved.cpu"),
    ("featureGates: {QOSReserved: true}\nqosReserved: {memory: 50}", "qosReserved.memory"),
    ("featureGates: {QOSReserved: true}\nqosReserved: {memory: '50'}", "qosReserved.memory"),
    ("featureGates: {QOSReserved: true}\nqosReserved: {memory: 101%}", "qosReserved.memory"),
    ("featureGates: {QOSReserved: true}\nqosReserved: {memory: -1%}", "qosReserved.memory"),
    ("featureGates: {QOSReserved: true}\nqosReserved: {memory: 5.5%}", "qosReserved.memory"),
    ("enableSystemLogQuery: true\nenableSystemLogHandler: false", "enableSystemLogQuery"),
    ("showHiddenMetricsForVersion: '1.30'", "showHiddenMetricsForVersion"),
    ("shutdownGracePeriod: 500ms", "shutdownGracePeriod"),
    (
        "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: -1}]",
        "shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds",
    ),
    (
        "shutdownGracePeriodByPodPriority: [{priority: 1}]\nfeatureGates: {GracefulNodeShutdownBasedOnPodPriority: false}",
        "shutdownGracePeriodByPodPriority",
    ),
    ("shutdownGracePeriod: 30s\nfeatureGates: {GracefulNodeShutdown: false}", "shutdownGracePeriod"),
    ("reservedMemory: [{numaNode: 0}]", "reservedMemory[0]"),
    ("reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]", "reservedMemory[0].limits.cpu"),
    ("reservedMemory: [{numaNode: 0, limits: {memory: 0}}]", "reservedMemory[0].limits.memory"),
    (
        "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 1Gi}}]",
        "reservedMemory[1].limits.memory",
    ),
    ("tracing: {endpoint: 'http://collector:4317'}", "tracing.endpoint"),
    ("tracing: {endpoint: 'collector:otlp'}", "tracing.endpoint"),
    ("tracing: {endpoint: ':4317'}", "tracing.endpoint"),
    ("tracing: {endpoint: '::1:4317'}", "tracing.endpoint"),
    ("tracing: {endpoint: 'dns://collector'}", "tracing.endpoint"),
    ("tracing: {endpoint: 'unix:otel.sock'}", "tracing.endpoint"),
    ("tracing: {endpoint: 'unix-abstract:'}", "tracing.endpoint"),
    ("tracing: {endpoint: 4317}", "tracing.endpoint"),
    ("tracing: {samplingRatePerMillion: -1}", "tracing.samplingRatePerMillion"),
    ("tracing: {samplingRatePerMillion: 1000001}", "tracing.samplingRatePerMillion"),
    ("tracing: on", "tracing"),
    ("registerNode: 1", "registerNode"),
    ("registerWithTaints: [{key: a, effect: Never}]", "registerWithTaints[0].effect"),
    ("registerWithTaints: [{key: a}]", "registerWithTaints[0].effect"),
    ("registerWithTaints: [{effect: NoSchedule}]", "registerWithTaints[0].key"),
    ("registerWithTaints: [{key: a, value: 'b c', effect: NoSchedule}]", "registerWithTaints[0].value"),
    (
        "registerWithTaints: [{key: a, effect: NoSchedule, timeAdded: 2024-01-01T00:00:00Z}]",
        "registerWithTaints[0].timeAdded",
    ),
    (
        "registerWithTaints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]",
        "registerWithTaints[1]",
    ),
    ("kubeAPIQPS: -1", "kubeAPIQPS"),
    ("kubeAPIBurst: many", "kubeAPIBurst"),
    ("contentType: text", "contentType"),
    ("nodeStatusUpdateFrequency: 10", "nodeStatusUpdateFrequency"),
    ("nodeStatusReportFrequency: -5m", "nodeStatusReportFrequency"),
    ("providerID: 5", "providerID"),
    ("podCIDR: 10.0.0.0", "podCIDR"),
    ("podCIDR: 10.0.0.0/33", "podCIDR"),
    ("rotateCertificates: yes please", "rotateCertificates"),
    ("serverTLSBootstrap: true\nfeatureGates: {RotateKubeletServerCertificate: false}", "serverTLSBootstrap"),
    ("tlsCertFile: /a", "tlsCertFile"),
    ("tlsPrivateKeyFile: /a", "tlsPrivateKeyFile"),
    ("tlsCipherSuites: [TLS_NOPE]", "tlsCipherSuites[0]"),
    ("healthzPort: 65536", "healthzPort"),
    ("evictionHard: {memory: 1Gi}", "evictionHard.memory"),
    ("evictionHard: {memory.available: 1GB}", "evictionHard.memory.available"),
    ("evictionHard: {nodefs.available: 101%}", "evictionHard.nodefs.available"),
    ("evictionHard: {nodefs.available: '-1%'}", "evictionHard.nodefs.available"),
    ("evictionHard: {memory.available: '0'}", "evictionHard.memory.available"),
    ("evictionSoftGracePeriod: {memory.available: 10}", "evictionSoftGracePeriod.memory.available"),
    ("evictionMinimumReclaim: {disk: 1Gi}", "evictionMinimumReclaim.disk"),
    ("evictionMinimumReclaim: {memory.available: -1Mi}", "evictionMinimumReclaim.memory.available"),
    ("evictionMinimumReclaim: {memory.available: 0%}", "evictionMinimumReclaim.memory.available"),
    ("imageMinimumGCAge: -1s", "imageMinimumGCAge"),
    ("imagePullCredentialsVerificationPolicy: Always", "imagePullCredentialsVerificationPolicy"),
    (
        "imagePullCredentialsVerificationPolicy: AlwaysVerify\nfeatureGates: {KubeletEnsureSecretPulledImages: false}",
        "imagePullCredentialsVerificationPolicy",
    ),
    ("preloadedImagesVerificationAllowlist: [a]", "preloadedImagesVerificationAllowlist"),
    (
        "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ['a.io/b:1']",
        "preloadedImagesVerificationAllowlist[0]",
    ),
    ("reservedSystemCPUs: 3-1", "reservedSystemCPUs"),
    ("reservedSystemCPUs: all", "reservedSystemCPUs"),
    ("logging: {flushFrequency: soon}", "logging.flushFrequency"),
    ("logging: {vmodule: [{filePattern: a}, {verbosity: 1}]}", "logging.vmodule[1].filePattern"),
    ("logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}", "logging.vmodule"),
    ("logging: {options: {json: {splitStream: true}}}", "logging.options.json.splitStream"),
    ("logging: {options: {text: {infoBufferSize: 1Mi}}}", "logging.options.text.infoBufferSize"),
    ("logging: {verbosity: -1}", "logging.verbosity"),
    ("featureGates: {NotAGate: true}", "featureGates.NotAGate"),
    (
        "crashLoopBackOff: {maxContainerRestartPeriod: 10s}\nfeatureGates: {KubeletCrashLoopBackOffMax: false}",
        "crashLoopBackOff.maxContainerRestartPeriod",
    ),
];

#[test]
fn each_of_more_than_a_hundred_broken_configurations_is_refused_with_its_path() {
    const { assert!(BROKEN.len() >= 100) };
    for (lines, path) in BROKEN {
        let errors = match read(lines) {
            Ok(_) => panic!("{lines}: accepted"),
            Err(errors) => errors,
        };
        let paths: Vec<&str> = errors.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(paths, [*path], "{lines}");
        assert!(!errors[0].reason.is_empty(), "{lines}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    // Rows that share a field or a rule with another row cannot stand in one file.
    const REPAIRS: [&str; 6] = [
        "systemCgroups",
        "cgroupRoot",
        "imageGCLow",
        "imageMinimumGCAge",
        "evictionSoftGracePeriod",
        "tlsPrivateKeyFile",
    ];
    let mut seen = std::collections::BTreeSet::new();
    let chosen: Vec<&(&str, &str)> = BROKEN
        .iter()
        .filter(|(lines, _)| !lines.contains('\n'))
        .filter(|(lines, _)| seen.insert(lines.split(':').next().unwrap().to_owned()))
        .filter(|(lines, _)| !REPAIRS.iter().any(|field| lines.starts_with(field)))
        .collect();
    let text: Vec<&str> = chosen.iter().map(|(lines, _)| *lines).collect();
    let errors = read(&text.join("\n")).unwrap_err();
    assert!(chosen.len() > 70, "{}", chosen.len());
    for (lines, path) in chosen {
        assert!(errors.iter().any(|e| e.path == *path), "{lines}");
    }
}

#[test]
fn a_file_that_is_no_configuration_is_refused() {
    let parse = |text: &str| crate::parse(text, Path::new("/")).unwrap_err()[0].to_string();
    assert_eq!(parse(""), "is empty");
    assert_eq!(parse("# nothing\n"), "is empty");
    assert_eq!(parse("- a\n"), "[\"a\"]: must be a mapping of field names to values");
    assert_eq!(
        parse("kind: KubeletConfiguration"),
        "apiVersion: must be given (allowed: kubelet.config.k8s.io/v1beta1)"
    );
    assert_eq!(
        parse("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod"),
        "kind: \"Pod\": is not what this file must be (allowed: KubeletConfiguration)"
    );
    assert_eq!(
        parse("apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration"),
        "apiVersion: \"kubelet.config.k8s.io/v1\": is not what this file must be (allowed: kubelet.config.k8s.io/v1beta1)"
    );
    assert!(parse("a: [1").starts_with("line "), "{}", parse("a: [1"));
    assert!(parse("a: [1").contains("is neither YAML nor JSON"), "{}", parse("a: [1"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _any_answer = read(&text);
    }

    #[test]
    fn no_value_of_a_known_field_makes_it_panic(row in 0..BROKEN.len(), value in "[-a-z0-9.:{}\\[\\], '\"]{0,12}") {
        let field = BROKEN[row].0.split(':').next().unwrap();
        if let Err(errors) = read(&format!("{field}: {value}")) {
            prop_assert!(!errors.is_empty());
        }
    }
}
