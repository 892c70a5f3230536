//! Command lines: what pflag does, what each flag means, what is refused.

use std::collections::BTreeMap;

use crate::flags::{self, Asked, Flags, help};
use crate::{Configured, configure};

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|w| (*w).to_owned()).collect()
}

pub(super) fn parsed(line: &[&str]) -> Flags {
    match flags::parse(&words(line)) {
        Ok(Asked::Run(flags)) => *flags,
        other => panic!("{line:?}: {other:?}"),
    }
}

pub(super) fn configured(line: &[&str]) -> Configured {
    configure(&parsed(line)).unwrap_or_else(|e| panic!("{line:?}: {e}"))
}

fn refused(line: &[&str]) -> (String, Option<String>) {
    let error = flags::parse(&words(line)).unwrap_err();
    (error.to_string(), error.hint)
}

#[test]
fn values_are_written_in_every_way_that_pflag_knows() {
    for line in [
        ["--max-pods=7"].as_slice(),
        &["--max-pods", "7"],
        &["--max_pods=7"],
        &["--max-pods=0x7"],
        &["--max-pods=5", "--max-pods", "7"],
    ] {
        assert_eq!(configured(line).config.pods.max_pods, 7, "{line:?}");
    }
    for line in [["-v", "4"].as_slice(), &["-v=4"], &["-v4"], &["--v=4"], &["--v", "4"]] {
        assert_eq!(configured(line).config.logging.verbosity, 4, "{line:?}");
    }
    for (line, on) in [
        (["--seccomp-default"].as_slice(), true),
        (&["--seccomp-default=true"], true),
        (&["--seccomp-default=T"], true),
        (&["--seccomp-default=0"], false),
        (&["--seccomp-default", "--seccomp-default=false"], false),
    ] {
        assert_eq!(configured(line).config.pods.seccomp_default, on, "{line:?}");
    }
    let dns = configured(&["--cluster-dns=10.0.0.1,10.0.0.2", "--cluster-dns", "10.0.0.3"]);
    assert_eq!(dns.config.dns.cluster_dns.len(), 3);
}

#[test]
fn help_and_version_come_before_everything_else() {
    let version = |line: &[&str]| match flags::parse(&words(line)) {
        Ok(Asked::Version(text)) => text,
        other => panic!("{line:?}: {other:?}"),
    };
    assert_eq!(version(&["--version"]), "Kubernetes v1.36.2");
    assert_eq!(version(&["--max-pods=5", "--version=true"]), "Kubernetes v1.36.2");
    assert_eq!(version(&["--version=v1.30.1"]), "Kubernetes v1.30.1");
    assert!(version(&["--version=raw"]).contains("v1.36.2"));
    for line in [["-h"], ["--help"], ["--help=true"]] {
        assert_eq!(flags::parse(&words(&line)), Ok(Asked::Help));
    }
    assert!(matches!(flags::parse(&words(&["--version=false"])), Ok(Asked::Run(_))));
}

/// A command line, the error's beginning, and a part of the hint.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (&["--nope"], "failed to parse kubelet flag: unknown flag: --nope", ""),
    (&["--max-pod=5"], "failed to parse kubelet flag: unknown flag: --max-pod", "did you mean --max-pods?"),
    (&["--maxPods=5"], "failed to parse kubelet flag: unknown flag: --maxPods", "did you mean --max-pods?"),
    (&["--Config=x"], "failed to parse kubelet flag: unknown flag: --Config", "did you mean --config?"),
    (&["-x"], "failed to parse kubelet flag: unknown shorthand flag: 'x' in -x", ""),
    (&["-config=a"], "failed to parse kubelet flag: unknown shorthand flag: 'c' in -config=a", ""),
    (&["--config"], "failed to parse kubelet flag: flag needs an argument: --config", ""),
    (&["-v"], "failed to parse kubelet flag: flag needs an argument: --v", ""),
    (&["--fail-swap-on", "true"], "unknown command true", "--name=true"),
    (&["start"], "unknown command start", ""),
    (&["--", "--config"], "unknown command --config", ""),
    (&["--max-pods=many"], "failed to parse kubelet flag: invalid argument \"many\" for \"--max-pods\" flag", ""),
    (&["--max-pods="], "failed to parse kubelet flag: invalid argument \"\" for \"--max-pods\" flag", ""),
    (&["--max-pods=1.5"], "failed to parse kubelet flag: invalid argument \"1.5\" for \"--max-pods\" flag", ""),
    (&["--fail-swap-on=yes"], "failed to parse kubelet flag: invalid argument \"yes\" for \"--fail-swap-on\" flag", ""),
    (
        &["--sync-frequency=10"],
        "failed to parse kubelet flag: invalid argument \"10\" for \"--sync-frequency\" flag",
        "",
    ),
    (
        &["--sync-frequency=1d"],
        "failed to parse kubelet flag: invalid argument \"1d\" for \"--sync-frequency\" flag",
        "",
    ),
    (&["--address=host"], "failed to parse kubelet flag: invalid argument \"host\" for \"--address\" flag", ""),
    (&["--node-labels=a"], "failed to parse kubelet flag: invalid argument \"a\" for \"--node-labels\" flag", ""),
    (
        &["--system-reserved=cpu"],
        "failed to parse kubelet flag: invalid argument \"cpu\" for \"--system-reserved\" flag",
        "",
    ),
    (
        &["--eviction-hard=memory.available=1Gi"],
        "failed to parse kubelet flag: invalid argument \"memory.available=1Gi\"",
        "",
    ),
    (
        &["--register-with-taints=a=b"],
        "failed to parse kubelet flag: invalid argument \"a=b\" for \"--register-with-taints\" flag",
        "",
    ),
    (
        &["--feature-gates=EventedPLEG"],
        "failed to parse kubelet flag: invalid argument \"EventedPLEG\" for \"--feature-gates\" flag",
        "",
    ),
    (&["--feature-gates=EventedPLEG=on"], "failed to parse kubelet flag: invalid argument \"EventedPLEG=on\"", ""),
    (
        &["--manifest-url-header=a"],
        "failed to parse kubelet flag: invalid argument \"a\" for \"--manifest-url-header\" flag",
        "",
    ),
    (
        &["--reserved-memory=1Gi"],
        "failed to parse kubelet flag: invalid argument \"1Gi\" for \"--reserved-memory\" flag",
        "",
    ),
    (
        &["--vmodule=sync=high"],
        "failed to parse kubelet flag: invalid argument \"sync=high\" for \"--vmodule\" flag",
        "",
    ),
    (&["--v=high"], "failed to parse kubelet flag: invalid argument \"high\" for \"--v\" flag", ""),
    (
        &["--cloud-provider=aws"],
        "failed to parse kubelet flag: invalid argument \"aws\" for \"--cloud-provider\" flag",
        "",
    ),
    (&["--maximum-dead-containers=9999999999"], "failed to parse kubelet flag: invalid argument \"9999999999\"", ""),
    (&["--network-plugin=cni"], "failed to parse kubelet flag: unknown flag: --network-plugin", "removed"),
    (&["--cni-bin-dir=/opt"], "failed to parse kubelet flag: unknown flag: --cni-bin-dir", "CNI"),
    (&["--container-runtime=remote"], "failed to parse kubelet flag: unknown flag: --container-runtime", "1.27"),
    (
        &["--docker-endpoint=x"],
        "failed to parse kubelet flag: unknown flag: --docker-endpoint",
        "--container-runtime-endpoint",
    ),
    (&["--dynamic-config-dir=x"], "failed to parse kubelet flag: unknown flag: --dynamic-config-dir", "--config-dir"),
    (&["--cloud-config=x"], "failed to parse kubelet flag: unknown flag: --cloud-config", "--cloud-provider=external"),
    (
        &["--register-schedulable=false"],
        "failed to parse kubelet flag: unknown flag: --register-schedulable",
        "--register-with-taints",
    ),
    (
        &["--keep-terminated-pod-volumes"],
        "failed to parse kubelet flag: unknown flag: --keep-terminated-pod-volumes",
        "leave it out",
    ),
    (&["--windows-service"], "failed to parse kubelet flag: unknown flag: --windows-service", "Windows"),
];

#[test]
fn a_command_line_that_is_no_command_line_is_refused_in_a_kubelet_s_words_and_with_a_hint() {
    for (line, start, in_hint) in REFUSED {
        let (text, hint) = refused(line);
        assert!(text.starts_with(start), "{line:?}: {text}");
        assert!(hint.as_deref().unwrap_or_default().contains(in_hint), "{line:?}: {hint:?}");
    }
}

/// Well-formed flags with values that are not allowed, and what the error starts with.
const NOT_ALLOWED: &[(&[&str], &str)] = &[
    (&["--max-pods=-1"], "--max-pods: maxPods: -1: is out of range"),
    (&["--port=70000"], "--port: port: 70000: is out of range"),
    (&["--healthz-port=-1"], "--healthz-port: healthzPort: -1"),
    (
        &["--container-runtime-endpoint=tcp://h:1"],
        "--container-runtime-endpoint: containerRuntimeEndpoint: \"tcp://h:1\"",
    ),
    (
        &["--container-runtime-endpoint="],
        "--container-runtime-endpoint: containerRuntimeEndpoint: \"\": must name a socket",
    ),
    (&["--authorization-mode=RBAC"], "--authorization-mode: authorization.mode: \"RBAC\""),
    (&["--eviction-hard=memory<1Gi"], "--eviction-hard: evictionHard.memory: \"1Gi\": is no eviction signal"),
    (&["--eviction-hard=memory.available<lots"], "--eviction-hard: evictionHard.memory.available: \"lots\""),
    (&["--eviction-soft=memory.available<1Gi"], "--eviction-soft: evictionSoft.memory.available: needs a grace period"),
    (&["--system-reserved=gpu=1"], "--system-reserved: systemReserved.gpu"),
    (&["--kube-reserved=memory=1GB"], "--kube-reserved: kubeReserved.memory: \"1GB\""),
    (&["--reserved-cpus=a-b"], "--reserved-cpus: reservedSystemCPUs: \"a-b\""),
    (&["--cgroup-driver=docker"], "--cgroup-driver: cgroupDriver: \"docker\""),
    (&["--enforce-node-allocatable=pods,everything"], "--enforce-node-allocatable: enforceNodeAllocatable[1]"),
    (&["--image-gc-high-threshold=70"], "--image-gc-high-threshold: imageGCHighThresholdPercent: 70: must be above"),
    (&["--tls-cert-file=/a.crt"], "--tls-cert-file: tlsCertFile: \"/a.crt\": needs tlsPrivateKeyFile"),
    (&["--tls-min-version=1.2"], "--tls-min-version: tlsMinVersion: \"1.2\""),
    (&["--tls-cipher-suites=NULL"], "--tls-cipher-suites: tlsCipherSuites[0]: \"NULL\""),
    (&["--register-with-taints=a:Never"], "--register-with-taints: registerWithTaints[0].effect: \"Never\""),
    (&["--register-with-taints=-a:NoSchedule"], "--register-with-taints: registerWithTaints[0].key: \"-a\""),
    (&["--feature-gates=NotAGate=true"], "--feature-gates: featureGates.NotAGate: unrecognized feature gate: NotAGate"),
    (
        &["--feature-gates=SystemdWatchdog=false"],
        "--feature-gates: featureGates.SystemdWatchdog: false: cannot set feature gate SystemdWatchdog to false, feature is locked to true",
    ),
    (&["--runonce"], "--runonce: runOnce: true"),
    (&["--logging-format=xml"], "--logging-format: logging.format: \"xml\""),
    (&["--logging-format=json", "--vmodule=a=1"], "--vmodule: logging.vmodule: works with the format text only"),
    (&["--log-text-split-stream"], "--log-text-split-stream: logging.options.text.splitStream: needs the feature gate"),
    (&["--pod-cidr=10.0.0.0"], "--pod-cidr: podCIDR: \"10.0.0.0\""),
    (
        &["--node-labels=kubernetes.io/role=a"],
        "--node-labels: \"kubernetes.io/role\": unknown 'kubernetes.io' or 'k8s.io' labels",
    ),
    (
        &["--node-labels=node-role.kubernetes.io/worker="],
        "--node-labels: \"node-role.kubernetes.io/worker\": unknown 'kubernetes.io'",
    ),
    (&["--node-labels=a b=c"], "--node-labels: \"a b=c\": the key is no label name"),
    (&["--node-ip=10.0.0.1,10.0.0.2"], "--node-ip: \"10.0.0.1,10.0.0.2\": names two addresses of one family"),
    (&["--node-ip=0.0.0.0,fd00::1"], "--node-ip: \"0.0.0.0,fd00::1\": names 0.0.0.0"),
    (&["--node-ip=127.0.0.1"], "--node-ip: \"127.0.0.1\": is a loopback"),
    (&["--hostname-override=a_b"], "--hostname-override: \"a_b\": is no name of a node"),
    (&["--root-dir=/a/../b"], "--root-dir: \"/a/../b\": must be a path without"),
    (
        &["--image-credential-provider-config=/a"],
        "--image-credential-provider-config: \"/a\": needs --image-credential-provider-bin-dir",
    ),
    (
        &["--image-credential-provider-bin-dir=/a"],
        "--image-credential-provider-bin-dir: \"/a\": needs --image-credential-provider-config",
    ),
    (&["--exit-on-lock-contention"], "--exit-on-lock-contention: \"true\": needs --lock-file"),
    (&["--config=/nonexistent/c.yaml"], "/nonexistent/c.yaml: cannot be read"),
    (&["--config-dir=/nonexistent/d"], "/nonexistent/d: cannot be read as a folder of --config-dir"),
];

#[test]
fn a_value_that_is_not_allowed_is_refused_with_flag_field_and_reason() {
    for (line, start) in NOT_ALLOWED {
        let errors = configure(&parsed(line)).unwrap_err();
        assert_eq!(errors.errors.len(), 1, "{line:?}: {errors}");
        assert!(errors.to_string().starts_with(start), "{line:?}: {errors}");
    }
}

#[test]
fn what_only_flags_say_has_its_own_place() {
    let flags = parsed(&[
        "--kubeconfig=/k",
        "--bootstrap-kubeconfig=/b",
        "--cert-dir=/c",
        "--root-dir=/r",
        "--hostname-override= Node-1 ",
        "--node-ip=10.0.0.1,fd00::1,x",
        "--node-labels=a=b,c.d/e=",
        "--cloud-provider=external",
        "--image-credential-provider-config=/p",
        "--image-credential-provider-bin-dir=/q",
        "--runtime-cgroups=/system.slice/containerd.service",
        "--maximum-dead-containers-per-container=-1",
        "--minimum-container-ttl-duration=1m",
    ]);
    assert_eq!(flags.kubeconfig, Some("/k".into()));
    assert_eq!(flags.bootstrap_kubeconfig, Some("/b".into()));
    assert_eq!((flags.cert_dir.as_os_str(), flags.root_dir.as_os_str()), ("/c".as_ref(), "/r".as_ref()));
    assert_eq!(flags.hostname_override.as_deref(), Some("node-1"));
    assert_eq!(flags.node_ips.len(), 2);
    assert_eq!(flags.warnings[0].located(), "--node-ip: \"x\" is not an IP address, skipped");
    let labels = [("a", "b"), ("c.d/e", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(flags.node_labels, BTreeMap::from(labels));
    assert!(flags.external_cloud_provider);
    assert_eq!(flags.runtime_cgroups.as_deref(), Some("/system.slice/containerd.service"));
    assert_eq!(flags.maximum_dead_containers_per_container, None);
    assert_eq!(flags.minimum_container_ttl.as_secs(), 60);
    assert_eq!(parsed(&["--node-labels="]).node_labels, BTreeMap::new());
    assert_eq!(configure(&flags).unwrap().files, Vec::<std::path::PathBuf>::new());
}

#[test]
fn flags_of_every_form_reach_their_field() {
    let c = configured(&[
        "--register-with-taints=a=b:NoSchedule,c:NoExecute",
        "--eviction-hard=memory.available<5%,nodefs.available<1Gi",
        "--eviction-soft=memory.available<1Gi",
        "--eviction-soft-grace-period=memory.available=1m30s",
        "--system-reserved=cpu=500m,memory=1Gi",
        "--feature-gates=EventedPLEG=true,ContainerCheckpoint=false",
        "--vmodule=sync=5,pod_*=6",
        "--provider-id=cloud://1",
        "--register-node=false",
        "--rotate-server-certificates",
        "--image-gc-high-threshold=90",
        "--pod-max-pids=100",
        "--enforce-node-allocatable=",
        "--resolv-conf=",
        "--healthz-port=0",
        "--node-status-update-frequency=4s",
    ])
    .config;
    assert_eq!(c.node.register_with_taints.len(), 2);
    assert_eq!(c.eviction.hard.len(), 2);
    assert_eq!(c.eviction.soft["memory.available"].grace.as_secs(), 90);
    assert_eq!(c.allocatable.system_reserved["cpu"].milli_value(), 500);
    assert!(c.feature_gates.enabled("EventedPLEG") && !c.feature_gates.enabled("ContainerCheckpoint"));
    assert_eq!(c.logging.vmodule.len(), 2);
    assert_eq!(c.node.provider_id.as_deref(), Some("cloud://1"));
    assert!(!c.node.register && c.server.tls.bootstrap);
    assert_eq!(c.images.gc_high_threshold_percent, 90);
    assert_eq!(c.limits.pod_pids_limit, Some(100));
    assert!(c.allocatable.enforce.is_empty() && c.dns.resolv_conf.is_none() && c.healthz.port.is_none());
    // The report frequency has its default before flags are read.
    assert_eq!(c.node.status_report_frequency.as_secs(), 300);
}

#[test]
fn deprecated_flags_say_so_once_and_flags_without_effect_say_what_happens() {
    let flags = parsed(&["--max-pods=5", "--max-pods=6", "--provider-id=a", "-v=2", "--containerd=/x"]);
    assert_eq!(flags.notices, ["Flag --max-pods has been deprecated, set maxPods in the file of --config"]);
    assert_eq!(flags.warnings.len(), 1);
    let image = parsed(&["--pod-infra-container-image=registry.k8s.io/pause:3.10"]);
    assert!(
        image.warnings[0].located().starts_with("--pod-infra-container-image: no effect: "),
        "{:?}",
        image.warnings
    );
}

#[test]
fn secrets_are_not_shown() {
    let flags = parsed(&["--manifest-url-header=Authorization:Bearer x", "--storage-driver-password=x"]);
    assert!(flags.given.iter().all(|(_, value)| value == "<masked>"), "{:?}", flags.given);
}

#[test]
fn every_flag_of_a_running_kubelet_is_known_and_its_own_default_is_taken() {
    let recorded = include_str!("flagz.txt");
    let mut count = 0;
    for line in recorded.lines().filter(|l| !l.starts_with("kubelet") && !l.starts_with("Warning")) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if ["help", "version"].contains(&name) {
            continue;
        }
        count += 1;
        let word = format!("--{name}={}", value.trim_start_matches('[').trim_end_matches(']'));
        assert!(matches!(flags::parse(std::slice::from_ref(&word)), Ok(Asked::Run(_))), "{word}");
    }
    assert!(count > 130, "{count}");
}

#[test]
fn the_help_names_every_flag_with_its_field() {
    let text = help::text("kubelet");
    for part in ["--max-pods N", "(maxPods) [110]", "--kubeconfig", "--enable-faults", "Precedence"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.lines().all(|l| l.chars().count() <= 160), "{text}");
}
