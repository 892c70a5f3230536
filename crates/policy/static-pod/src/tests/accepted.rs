//! What a kubelet accepts must run here too.

use super::*;

#[test]
fn the_rich_pod_is_accepted_without_a_warning() {
    let manifest = read_json(&rich()).unwrap();
    assert_eq!(manifest.warnings, []);
}

#[test]
fn accepts_what_the_api_accepts() {
    let rows: &[(&str, &str, Value)] = &[
        ("variable names of any printable ASCII", "spec.containers.0.env.0.name", json!("1 odd-name.x")),
        ("search domain with underscore", "spec.dnsConfig.searches", json!(["_tcp.example.", "."])),
        ("upper case annotation key", "metadata.annotations.Example~com/Note", json!("x")),
        ("label value with dots", "metadata.labels.app", json!("v1.2_3-x")),
        ("grace 0", "spec.containers.0.lifecycle", json!({"preStop": {"sleep": {"seconds": 0}}})),
        ("hook of the whole grace", "spec.containers.0.lifecycle", json!({"preStop": {"sleep": {"seconds": 20}}})),
        ("extended resource", "spec.containers.0.resources", json!({"limits": {"example.com/gpu": 2}})),
        (
            "huge pages beside memory",
            "spec.containers.0.resources",
            json!({"limits": {"hugepages-2Mi": "4Mi", "memory": "1Mi"}}),
        ),
        ("request of 0", "spec.containers.0.resources", json!({"requests": {"cpu": 0}})),
        (
            "init containers on one host port",
            "spec.initContainers.0.ports",
            json!([{"containerPort": 1, "hostPort": 8080}]),
        ),
        (
            "one port on two addresses",
            "spec.containers.1.ports",
            json!([{"containerPort": 1, "hostPort": 8080, "hostIP": "127.0.0.1"}]),
        ),
        (
            "one port of two protocols",
            "spec.containers.1.ports",
            json!([{"containerPort": 1, "hostPort": 8080, "protocol": "UDP"}]),
        ),
        (
            "bidirectional mount when privileged",
            "spec.containers.1",
            json!({"name": "p", "image": "x", "securityContext": {"privileged": true}, "volumeMounts": [{"name": "host", "mountPath": "/h", "mountPropagation": "Bidirectional"}]}),
        ),
        (
            "recursive read-only",
            "spec.containers.0.volumeMounts.1",
            json!({"name": "host", "mountPath": "/h", "readOnly": true, "recursiveReadOnly": "Enabled"}),
        ),
        (
            "one volume twice in a container",
            "spec.containers.0.volumeMounts.1",
            json!({"name": "scratch", "mountPath": "/other"}),
        ),
        (
            "local seccomp profile",
            "spec.securityContext.seccompProfile",
            json!({"type": "Localhost", "localhostProfile": "profiles/a.json"}),
        ),
        (
            "label reference",
            "spec.containers.0.env.1.valueFrom.fieldRef.fieldPath",
            json!("metadata.labels['example.com/tier']"),
        ),
        ("divisor 0", "spec.containers.0.env.2.valueFrom.resourceFieldRef.divisor", json!("0")),
        (
            "variable from a file of an emptyDir",
            "spec.containers.0.env.1.valueFrom",
            json!({"fileKeyRef": {"volumeName": "scratch", "path": "a/env", "key": "K"}}),
        ),
        ("restart of all containers", "spec.containers.0.restartPolicyRules.0.action", json!("RestartAllContainers")),
        (
            "sidecar with rules",
            "spec.initContainers.1.restartPolicyRules",
            json!([{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0]}}]),
        ),
        (
            "node affinity",
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            json!([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]),
        ),
        ("windows options without an os", "spec.securityContext.windowsOptions", json!({"runAsUserName": "x"})),
        ("image volume", "spec.volumes.3", json!({"name": "all", "image": {"reference": "a:1"}})),
        ("nfs", "spec.volumes.3", json!({"name": "all", "nfs": {"server": "s", "path": "/p"}})),
        ("huge page emptyDir", "spec.volumes.0.emptyDir.medium", json!("HugePages-2Mi")),
        ("priority of the system", "spec.priorityClassName", json!("system-node-critical")),
        ("user name spaces", "spec.hostUsers", json!(false)),
        ("hostname override", "spec.hostnameOverride", json!("some.where.example")),
        ("path that starts with two dots and more", "spec.containers.0.volumeMounts.0.subPath", json!("..data/x")),
    ];
    for (name, path, value) in rows {
        let mut pod = rich();
        put(&mut pod, path, value.clone());
        if let Err(error) = read_json(&pod) {
            panic!("{name}: {error}");
        }
    }
}
