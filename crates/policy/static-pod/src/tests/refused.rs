//! One row per rule of create-validation.

use super::*;
use Fault::{Duplicate, Forbidden, Invalid, NotFound, Required, TooLong, Unsupported};

type Row = (&'static str, Value, &'static str, Fault);

/// Each row changes one path of the rich pod and names the one fault that this must give.
fn check(rows: &[Row]) {
    for (path, value, at, fault) in rows {
        let mut pod = rich();
        put(&mut pod, path, value.clone());
        let what = format!("{path} = {value}");
        match read_json(&pod) {
            Ok(_) => panic!("{what}: accepted"),
            Err(error) => assert_eq!(faults(&error), [((*at).to_owned(), *fault)], "{what}: {error}"),
        }
    }
}

#[test]
fn refuses_bad_metadata() {
    check(&[
        ("metadata.name", json!("Web"), "metadata.name", Invalid),
        ("metadata.name", json!("a_b"), "metadata.name", Invalid),
        ("metadata.name", json!("a..b"), "metadata.name", Invalid),
        ("metadata.name", json!("a".repeat(250)), "metadata.name", Invalid),
        ("metadata.namespace", json!("a.b"), "metadata.namespace", Invalid),
        ("metadata.uid", json!("../../etc"), "metadata.uid", Invalid),
        ("metadata.uid", json!(".."), "metadata.uid", Invalid),
        ("metadata.labels.a b", json!("x"), "metadata.labels[a b]", Invalid),
        ("metadata.labels.app", json!("-x"), "metadata.labels[app]", Invalid),
        ("metadata.labels.app", json!("x".repeat(64)), "metadata.labels[app]", Invalid),
        ("metadata.annotations.a/b/c", json!("x"), "metadata.annotations[a/b/c]", Invalid),
        ("metadata.annotations.big", json!("x".repeat(300_000)), "metadata.annotations", TooLong),
    ]);
}

#[test]
fn refuses_bad_fields_of_the_spec() {
    let affinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    check(&[
        ("spec.containers", json!([]), "spec.containers", Required),
        ("spec.restartPolicy", json!("Sometimes"), "spec.restartPolicy", Unsupported),
        ("spec.dnsPolicy", json!("Cluster"), "spec.dnsPolicy", Unsupported),
        ("spec.preemptionPolicy", json!("Maybe"), "spec.preemptionPolicy", Unsupported),
        ("spec.os", json!({"name": "plan9"}), "spec.os.name", Unsupported),
        ("spec.os", json!({}), "spec.os.name", Required),
        ("spec.terminationGracePeriodSeconds", json!(-1), "spec.terminationGracePeriodSeconds", Invalid),
        ("spec.activeDeadlineSeconds", json!(0), "spec.activeDeadlineSeconds", Invalid),
        ("spec.activeDeadlineSeconds", json!(1_i64 << 31), "spec.activeDeadlineSeconds", Invalid),
        ("spec.schedulingGates", json!([{"name": "g"}]), "spec.schedulingGates", Forbidden),
        ("spec.hostname", json!("a.b"), "spec.hostname", Invalid),
        ("spec.subdomain", json!("UP"), "spec.subdomain", Invalid),
        ("spec.schedulerName", json!("a b"), "spec.schedulerName", Invalid),
        ("spec.priorityClassName", json!("a b"), "spec.priorityClassName", Invalid),
        ("spec.runtimeClassName", json!("a b"), "spec.runtimeClassName", Invalid),
        ("spec.nodeSelector.a", json!("b c"), "spec.nodeSelector[a]", Invalid),
        ("spec.readinessGates", json!([{"conditionType": "a b"}]), "spec.readinessGates[0].conditionType", Invalid),
        ("spec.hostnameOverride", json!("a_b"), "spec.hostnameOverride", Invalid),
        ("spec.hostnameOverride", json!("a".repeat(65)), "spec.hostnameOverride", TooLong),
        ("spec.ephemeralContainers", json!([{"name": "e", "image": "x"}]), "spec.ephemeralContainers", Forbidden),
        ("spec.tolerations.0.operator", json!("Like"), "spec.tolerations[0].operator", Unsupported),
        ("spec.tolerations.0", json!({"effect": "NoSchedule"}), "spec.tolerations[0].operator", Invalid),
        ("spec.tolerations.0", json!({"operator": "Exists", "value": "x"}), "spec.tolerations[0].value", Invalid),
        ("spec.tolerations.0.effect", json!("Never"), "spec.tolerations[0].effect", Unsupported),
        ("spec.tolerations.0.tolerationSeconds", json!(3), "spec.tolerations[0].effect", Invalid),
        ("spec.hostAliases.0.ip", json!("10.0.0.256"), "spec.hostAliases[0].ip", Invalid),
        ("spec.hostAliases.0.hostnames.0", json!("a b"), "spec.hostAliases[0].hostnames[0]", Invalid),
        ("spec.dnsConfig", Value::Null, "spec.dnsConfig.nameservers", Required),
        (
            "spec.dnsConfig.nameservers",
            json!(["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]),
            "spec.dnsConfig.nameservers",
            TooLong,
        ),
        ("spec.dnsConfig.nameservers.0", json!("dns.example"), "spec.dnsConfig.nameservers[0]", Invalid),
        ("spec.dnsConfig.searches", json!(vec!["a"; 33]), "spec.dnsConfig.searches", TooLong),
        ("spec.dnsConfig.searches", json!(vec!["a.".repeat(100); 11]), "spec.dnsConfig.searches", TooLong),
        ("spec.dnsConfig.searches.0", json!("a b"), "spec.dnsConfig.searches[0]", Invalid),
        ("spec.dnsConfig.options.0", json!({"value": "x"}), "spec.dnsConfig.options[0].name", Required),
        ("spec.overhead", json!({"cpu": "-1"}), "spec.overhead[cpu]", Invalid),
        (affinity, json!([]), affinity, Required),
    ]);
}

#[test]
fn refuses_name_spaces_that_exclude_each_other() {
    let rows: &[(Changes<'_>, &str, Fault)] = &[
        (
            &[("spec.hostPID", json!(true)), ("spec.shareProcessNamespace", json!(true))],
            "spec.shareProcessNamespace",
            Invalid,
        ),
        (&[("spec.hostUsers", json!(false)), ("spec.hostPID", json!(true))], "spec.hostPID", Forbidden),
        (&[("spec.hostUsers", json!(false)), ("spec.hostIPC", json!(true))], "spec.hostIPC", Forbidden),
        (
            &[("spec.hostnameOverride", json!("a")), ("spec.setHostnameAsFQDN", json!(true))],
            "spec.hostnameOverride",
            Forbidden,
        ),
        (
            &[("spec.hostIPC", json!(true)), ("spec.securityContext.sysctls.0.name", json!("kernel.shmmax"))],
            "spec.securityContext.sysctls[0].name",
            Invalid,
        ),
        (
            &[
                ("spec.hostNetwork", json!(true)),
                ("spec.containers.0.ports.0.hostPort", json!(81)),
                ("spec.securityContext.sysctls", json!([])),
            ],
            "spec.containers[0].ports[0].hostPort",
            Invalid,
        ),
        (&[("spec.hostNetwork", json!(true))], "spec.securityContext.sysctls[0].name", Invalid),
        (
            &[("spec.os", json!({"name": "linux"})), ("spec.securityContext.windowsOptions", json!({}))],
            "spec.securityContext.windowsOptions",
            Forbidden,
        ),
        (
            &[("spec.os", json!({"name": "linux"})), ("spec.containers.0.securityContext.windowsOptions", json!({}))],
            "spec.containers[0].securityContext.windowsOptions",
            Forbidden,
        ),
    ];
    for (changes, at, fault) in rows {
        let mut pod = rich();
        for (path, value) in *changes {
            put(&mut pod, path, value.clone());
        }
        let error = read_json(&pod).unwrap_err();
        assert_eq!(faults(&error), [((*at).to_owned(), *fault)], "{error}");
    }
}

#[test]
fn refuses_bad_containers() {
    let c = "spec.containers[0]";
    let at = |field: &str| -> &'static str { Box::leak(format!("{c}.{field}").into_boxed_str()) };
    let rule = |rule: Value| json!([rule]);
    check(&[
        ("spec.containers.0.name", json!(""), at("name"), Required),
        ("spec.containers.0.name", json!("App"), at("name"), Invalid),
        ("spec.containers.1.name", json!("app"), "spec.containers[1].name", Duplicate),
        ("spec.containers.1.name", json!("setup"), "spec.containers[1].name", Duplicate),
        ("spec.containers.0.image", json!(""), at("image"), Required),
        ("spec.containers.0.image", json!(" x"), at("image"), Invalid),
        ("spec.containers.0.imagePullPolicy", json!("Often"), at("imagePullPolicy"), Unsupported),
        ("spec.containers.0.terminationMessagePolicy", json!("Log"), at("terminationMessagePolicy"), Unsupported),
        ("spec.containers.0.ports.0.name", json!("HTTP"), at("ports[0].name"), Invalid),
        (
            "spec.containers.1.ports",
            json!([{"name": "a-much-too-long-name", "containerPort": 1}]),
            "spec.containers[1].ports[0].name",
            Invalid,
        ),
        (
            "spec.containers.1.ports",
            json!([{"name": "8080", "containerPort": 1}]),
            "spec.containers[1].ports[0].name",
            Invalid,
        ),
        (
            "spec.containers.1.ports",
            json!([{"name": "a--b", "containerPort": 1}]),
            "spec.containers[1].ports[0].name",
            Invalid,
        ),
        ("spec.containers.0.ports.1", json!({"name": "http", "containerPort": 1}), at("ports[1].name"), Duplicate),
        ("spec.containers.0.ports.0.containerPort", json!(0), at("ports[0].containerPort"), Required),
        ("spec.containers.0.ports.0.containerPort", json!(65536), at("ports[0].containerPort"), Invalid),
        ("spec.containers.0.ports.0.hostPort", json!(-1), at("ports[0].hostPort"), Invalid),
        ("spec.containers.0.ports.0.protocol", json!("tcp"), at("ports[0].protocol"), Unsupported),
        ("spec.containers.0.ports.0.hostIP", json!("here"), at("ports[0].hostIP"), Invalid),
        (
            "spec.containers.1.ports",
            json!([{"containerPort": 1, "hostPort": 8080}]),
            "spec.containers[1].ports[0].hostPort",
            Duplicate,
        ),
        (
            "spec.containers.1.ports",
            json!([{"containerPort": 1, "hostPort": 9000}]),
            "spec.containers[1].ports[0].hostPort",
            Duplicate,
        ),
        ("spec.containers.0.restartPolicy", json!("No"), at("restartPolicy"), Unsupported),
        ("spec.containers.0.restartPolicy", Value::Null, at("restartPolicy"), Required),
        (
            "spec.containers.0.restartPolicyRules",
            json!(vec![json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}); 21]),
            at("restartPolicyRules"),
            TooLong,
        ),
        (
            "spec.containers.0.restartPolicyRules",
            rule(json!({"action": "Stop", "exitCodes": {"operator": "In", "values": [1]}})),
            at("restartPolicyRules[0].action"),
            Unsupported,
        ),
        (
            "spec.containers.0.restartPolicyRules",
            rule(json!({"action": "Restart"})),
            at("restartPolicyRules[0].exitCodes"),
            Required,
        ),
        (
            "spec.containers.0.restartPolicyRules",
            rule(json!({"action": "Restart", "exitCodes": {"operator": "Is", "values": [1]}})),
            at("restartPolicyRules[0].exitCodes.operator"),
            Unsupported,
        ),
        (
            "spec.containers.0.restartPolicyRules",
            rule(json!({"action": "Restart", "exitCodes": {"operator": "In", "values": []}})),
            at("restartPolicyRules[0].exitCodes.values"),
            Required,
        ),
        (
            "spec.containers.0.restartPolicyRules",
            rule(json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [1, 1]}})),
            at("restartPolicyRules[0].exitCodes.values[1]"),
            Duplicate,
        ),
        (
            "spec.initContainers.0.livenessProbe",
            json!({"exec": {"command": ["x"]}}),
            "spec.initContainers[0].livenessProbe",
            Forbidden,
        ),
        (
            "spec.initContainers.0.readinessProbe",
            json!({"exec": {"command": ["x"]}}),
            "spec.initContainers[0].readinessProbe",
            Forbidden,
        ),
        (
            "spec.initContainers.0.startupProbe",
            json!({"exec": {"command": ["x"]}}),
            "spec.initContainers[0].startupProbe",
            Forbidden,
        ),
        (
            "spec.initContainers.0.lifecycle",
            json!({"preStop": {"exec": {"command": ["x"]}}}),
            "spec.initContainers[0].lifecycle",
            Forbidden,
        ),
        ("spec.initContainers.0.image", Value::Null, "spec.initContainers[0].image", Required),
    ]);
}

#[test]
fn refuses_bad_environments() {
    let base = "spec.containers.0.env.0";
    let p = |rest: &str| -> &'static str { Box::leak(format!("spec.containers[0].env[0]{rest}").into_boxed_str()) };
    let from = |v: Value| json!({"name": "A", "valueFrom": v});
    check(&[
        (base, json!({"value": "x"}), p(".name"), Required),
        (base, json!({"name": "A=B"}), p(".name"), Invalid),
        (
            base,
            json!({"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
            p(".valueFrom"),
            Invalid,
        ),
        (base, from(json!({})), p(".valueFrom"), Required),
        (base, from(json!({"fieldRef": {}})), p(".valueFrom.fieldRef.fieldPath"), Required),
        (
            base,
            from(json!({"fieldRef": {"fieldPath": "spec.volumes"}})),
            p(".valueFrom.fieldRef.fieldPath"),
            Unsupported,
        ),
        (
            base,
            from(json!({"fieldRef": {"fieldPath": "metadata.labels"}})),
            p(".valueFrom.fieldRef.fieldPath"),
            Unsupported,
        ),
        (
            base,
            from(json!({"fieldRef": {"fieldPath": "metadata.labels['a b']"}})),
            p(".valueFrom.fieldRef.fieldPath"),
            Invalid,
        ),
        (
            base,
            from(json!({"fieldRef": {"fieldPath": "spec.nodeName['x']"}})),
            p(".valueFrom.fieldRef.fieldPath"),
            Invalid,
        ),
        (
            base,
            from(json!({"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}})),
            p(".valueFrom.fieldRef.apiVersion"),
            Unsupported,
        ),
        (base, from(json!({"resourceFieldRef": {}})), p(".valueFrom.resourceFieldRef.resource"), Required),
        (
            base,
            from(json!({"resourceFieldRef": {"resource": "limits.gpu"}})),
            p(".valueFrom.resourceFieldRef.resource"),
            Unsupported,
        ),
        (
            base,
            from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}})),
            p(".valueFrom.resourceFieldRef.divisor"),
            Unsupported,
        ),
        (
            base,
            from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "x"}})),
            p(".valueFrom.resourceFieldRef.divisor"),
            Invalid,
        ),
        (
            base,
            from(json!({"fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"resource": "limits.cpu"}})),
            p(".valueFrom.resourceFieldRef"),
            Forbidden,
        ),
        (
            base,
            from(json!({"fileKeyRef": {"volumeName": "nope", "path": "a", "key": "K"}})),
            p(".valueFrom.fileKeyRef.volumeName"),
            NotFound,
        ),
        (
            base,
            from(json!({"fileKeyRef": {"volumeName": "host", "path": "a", "key": "K"}})),
            p(".valueFrom.fileKeyRef.volumeName"),
            Invalid,
        ),
        (
            base,
            from(json!({"fileKeyRef": {"volumeName": "scratch", "path": "../a", "key": "K"}})),
            p(".valueFrom.fileKeyRef.path"),
            Invalid,
        ),
        (
            base,
            from(json!({"fileKeyRef": {"volumeName": "scratch", "path": "a"}})),
            p(".valueFrom.fileKeyRef.key"),
            Required,
        ),
        ("spec.containers.0.envFrom", json!([{}]), "spec.containers[0].envFrom[0]", Required),
    ]);
}

#[test]
fn refuses_bad_mounts() {
    let base = "spec.containers.0.volumeMounts.0";
    let p = |rest: &str| -> &'static str {
        Box::leak(format!("spec.containers[0].volumeMounts[0].{rest}").into_boxed_str())
    };
    check(&[
        (base, json!({"mountPath": "/a"}), p("name"), Required),
        (base, json!({"name": "nope", "mountPath": "/a"}), p("name"), NotFound),
        (base, json!({"name": "scratch"}), p("mountPath"), Required),
        (
            "spec.containers.0.volumeMounts.1.mountPath",
            json!("/scratch"),
            "spec.containers[0].volumeMounts[1].mountPath",
            Duplicate,
        ),
        (base, json!({"name": "scratch", "mountPath": "/a", "subPath": "/abs"}), p("subPath"), Invalid),
        (base, json!({"name": "scratch", "mountPath": "/a", "subPath": "a/../b"}), p("subPath"), Invalid),
        (base, json!({"name": "scratch", "mountPath": "/a", "subPathExpr": ".."}), p("subPathExpr"), Invalid),
        (
            base,
            json!({"name": "scratch", "mountPath": "/a", "subPath": "a", "subPathExpr": "b"}),
            p("subPathExpr"),
            Invalid,
        ),
        (
            base,
            json!({"name": "scratch", "mountPath": "/a", "mountPropagation": "Both"}),
            p("mountPropagation"),
            Unsupported,
        ),
        (
            base,
            json!({"name": "scratch", "mountPath": "/a", "mountPropagation": "Bidirectional"}),
            p("mountPropagation"),
            Forbidden,
        ),
        (
            base,
            json!({"name": "scratch", "mountPath": "/a", "recursiveReadOnly": "Yes"}),
            p("recursiveReadOnly"),
            Unsupported,
        ),
        (
            base,
            json!({"name": "scratch", "mountPath": "/a", "recursiveReadOnly": "Enabled"}),
            p("recursiveReadOnly"),
            Forbidden,
        ),
        (
            base,
            json!({"name": "scratch", "mountPath": "/a", "readOnly": true, "mountPropagation": "HostToContainer", "recursiveReadOnly": "Enabled"}),
            p("recursiveReadOnly"),
            Forbidden,
        ),
        (
            "spec.containers.0.volumeDevices",
            json!([{"name": "nope", "devicePath": "/dev/x"}]),
            "spec.containers[0].volumeDevices[0].name",
            NotFound,
        ),
        (
            "spec.containers.0.volumeDevices",
            json!([{"name": "host", "devicePath": "/dev/x"}]),
            "spec.containers[0].volumeDevices[0].name",
            Invalid,
        ),
    ]);
}

#[test]
fn refuses_bad_probes_and_hooks() {
    let live = "spec.containers.0.livenessProbe";
    let p = |rest: &str| -> &'static str { Box::leak(format!("spec.containers[0].{rest}").into_boxed_str()) };
    check(&[
        (live, json!({}), p("livenessProbe"), Required),
        (live, json!({"exec": {"command": ["x"]}, "grpc": {"port": 1}}), p("livenessProbe.grpc"), Forbidden),
        (live, json!({"exec": {}}), p("livenessProbe.exec.command"), Required),
        (live, json!({"httpGet": {"port": 0}}), p("livenessProbe.httpGet.port"), Invalid),
        (live, json!({"httpGet": {"port": "not a port"}}), p("livenessProbe.httpGet.port"), Invalid),
        (live, json!({"httpGet": {"port": 1, "scheme": "FTP"}}), p("livenessProbe.httpGet.scheme"), Unsupported),
        (
            live,
            json!({"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}}),
            p("livenessProbe.httpGet.httpHeaders[0].name"),
            Invalid,
        ),
        (live, json!({"tcpSocket": {"port": 70000}}), p("livenessProbe.tcpSocket.port"), Invalid),
        (live, json!({"grpc": {}}), p("livenessProbe.grpc.port"), Invalid),
        (
            "spec.containers.0.livenessProbe.initialDelaySeconds",
            json!(-1),
            p("livenessProbe.initialDelaySeconds"),
            Invalid,
        ),
        ("spec.containers.0.livenessProbe.timeoutSeconds", json!(-1), p("livenessProbe.timeoutSeconds"), Invalid),
        ("spec.containers.0.livenessProbe.periodSeconds", json!(-1), p("livenessProbe.periodSeconds"), Invalid),
        ("spec.containers.0.livenessProbe.failureThreshold", json!(-1), p("livenessProbe.failureThreshold"), Invalid),
        ("spec.containers.0.livenessProbe.successThreshold", json!(2), p("livenessProbe.successThreshold"), Invalid),
        ("spec.containers.0.startupProbe.successThreshold", json!(2), p("startupProbe.successThreshold"), Invalid),
        (
            "spec.containers.0.livenessProbe.terminationGracePeriodSeconds",
            json!(0),
            p("livenessProbe.terminationGracePeriodSeconds"),
            Invalid,
        ),
        (
            "spec.containers.0.readinessProbe.terminationGracePeriodSeconds",
            json!(1),
            p("readinessProbe.terminationGracePeriodSeconds"),
            Invalid,
        ),
        ("spec.initContainers.1.startupProbe", json!({}), "spec.initContainers[1].startupProbe", Required),
        ("spec.containers.0.lifecycle.preStop", json!({}), p("lifecycle.preStop"), Required),
        (
            "spec.containers.0.lifecycle.preStop",
            json!({"sleep": {"seconds": 21}}),
            p("lifecycle.preStop.sleep.seconds"),
            Invalid,
        ),
        (
            "spec.containers.0.lifecycle.preStop",
            json!({"sleep": {"seconds": -1}}),
            p("lifecycle.preStop.sleep.seconds"),
            Invalid,
        ),
        (
            "spec.containers.0.lifecycle.postStart",
            json!({"exec": {"command": []}}),
            p("lifecycle.postStart.exec.command"),
            Required,
        ),
        (
            "spec.containers.0.lifecycle.postStart",
            json!({"httpGet": {}}),
            p("lifecycle.postStart.httpGet.port"),
            Invalid,
        ),
        ("spec.containers.0.lifecycle.stopSignal", json!("SIGUSR1"), p("lifecycle.stopSignal"), Forbidden),
    ]);
}

#[test]
fn refuses_bad_resources() {
    let r = "spec.containers.1.resources";
    let p = |rest: &str| -> &'static str { Box::leak(format!("spec.containers[1].resources{rest}").into_boxed_str()) };
    check(&[
        (r, json!({"requests": {"cpu": "lots"}}), p(".requests[cpu]"), Invalid),
        (r, json!({"requests": {"memory": "-1"}}), p(".requests[memory]"), Invalid),
        (r, json!({"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}), p(".requests[cpu]"), Invalid),
        (r, json!({"requests": {"gpu": 1}}), p(".requests[gpu]"), Unsupported),
        (r, json!({"limits": {"a b/c": 1}}), p(".limits[a b/c]"), Invalid),
        (r, json!({"limits": {"example.com/gpu": "500m"}}), p(".limits[example.com/gpu]"), Invalid),
        (r, json!({"requests": {"example.com/gpu": 1}}), p(".limits[example.com/gpu]"), Required),
        (
            r,
            json!({"requests": {"example.com/gpu": 1}, "limits": {"example.com/gpu": 2}}),
            p(".requests[example.com/gpu]"),
            Invalid,
        ),
        (r, json!({"limits": {"hugepages-2Mi": "4Mi"}}), p(""), Forbidden),
        (r, json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": 1}}), p(".limits[hugepages-2Mi]"), Invalid),
        (
            r,
            json!({"requests": {"hugepages-2Mi": "2Mi", "cpu": 1}, "limits": {"hugepages-2Mi": "4Mi"}}),
            p(".requests[hugepages-2Mi]"),
            Invalid,
        ),
        (
            "spec.containers.0.resizePolicy.0.resourceName",
            json!("disk"),
            "spec.containers[0].resizePolicy[0].resourceName",
            Unsupported,
        ),
        (
            "spec.containers.0.resizePolicy.0.restartPolicy",
            json!("Maybe"),
            "spec.containers[0].resizePolicy[0].restartPolicy",
            Unsupported,
        ),
        (
            "spec.containers.0.resizePolicy.1",
            json!({"resourceName": "cpu", "restartPolicy": "NotRequired"}),
            "spec.containers[0].resizePolicy[1].resourceName",
            Duplicate,
        ),
        (
            "spec.resources",
            json!({"limits": {"ephemeral-storage": "1Gi"}}),
            "spec.resources.limits[ephemeral-storage]",
            Unsupported,
        ),
        ("spec.resources", json!({"requests": {"cpu": "50m"}}), "spec.resources.requests[cpu]", Invalid),
        (
            "spec.resources",
            json!({"limits": {"memory": "48Mi"}}),
            "spec.containers[0].resources.limits[memory]",
            Invalid,
        ),
        (
            "spec.resources",
            json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
            "spec.resources.requests[cpu]",
            Invalid,
        ),
    ]);
}

#[test]
fn refuses_bad_security_contexts() {
    let pod = "spec.securityContext";
    let c = "spec.containers[0].securityContext";
    let p = |base: &str, rest: &str| -> &'static str { Box::leak(format!("{base}.{rest}").into_boxed_str()) };
    check(&[
        ("spec.securityContext.runAsUser", json!(-1), p(pod, "runAsUser"), Invalid),
        ("spec.securityContext.runAsGroup", json!(1_i64 << 31), p(pod, "runAsGroup"), Invalid),
        ("spec.securityContext.fsGroup", json!(-1), p(pod, "fsGroup"), Invalid),
        ("spec.securityContext.supplementalGroups", json!([-1]), p(pod, "supplementalGroups[0]"), Invalid),
        ("spec.securityContext.fsGroupChangePolicy", json!("Never"), p(pod, "fsGroupChangePolicy"), Unsupported),
        (
            "spec.securityContext.supplementalGroupsPolicy",
            json!("Mix"),
            p(pod, "supplementalGroupsPolicy"),
            Unsupported,
        ),
        ("spec.securityContext.seLinuxChangePolicy", json!("No"), p(pod, "seLinuxChangePolicy"), Unsupported),
        ("spec.securityContext.sysctls.0.name", json!("Net.x"), p(pod, "sysctls[0].name"), Invalid),
        (
            "spec.securityContext.sysctls.1",
            json!({"name": "net/ipv4/tcp_syncookies", "value": "0"}),
            p(pod, "sysctls[1].name"),
            Duplicate,
        ),
        ("spec.securityContext.seccompProfile", json!({}), p(pod, "seccompProfile.type"), Required),
        ("spec.securityContext.seccompProfile", json!({"type": "Strict"}), p(pod, "seccompProfile.type"), Unsupported),
        (
            "spec.securityContext.seccompProfile",
            json!({"type": "Localhost"}),
            p(pod, "seccompProfile.localhostProfile"),
            Required,
        ),
        (
            "spec.securityContext.seccompProfile",
            json!({"type": "Localhost", "localhostProfile": "/etc/x"}),
            p(pod, "seccompProfile.localhostProfile"),
            Invalid,
        ),
        (
            "spec.securityContext.seccompProfile",
            json!({"type": "Localhost", "localhostProfile": "../x"}),
            p(pod, "seccompProfile.localhostProfile"),
            Invalid,
        ),
        (
            "spec.securityContext.seccompProfile",
            json!({"type": "Unconfined", "localhostProfile": "x"}),
            p(pod, "seccompProfile.localhostProfile"),
            Invalid,
        ),
        (
            "spec.containers.0.securityContext.appArmorProfile",
            json!({"type": "Localhost", "localhostProfile": " a"}),
            p(c, "appArmorProfile.localhostProfile"),
            Invalid,
        ),
        ("spec.containers.0.securityContext.runAsUser", json!(-5), p(c, "runAsUser"), Invalid),
        ("spec.containers.0.securityContext.procMount", json!("None"), p(c, "procMount"), Unsupported),
        ("spec.containers.0.securityContext.procMount", json!("Unmasked"), p(c, "procMount"), Invalid),
        ("spec.containers.0.securityContext.privileged", json!(true), p(c, "allowPrivilegeEscalation"), Invalid),
        (
            "spec.containers.0.securityContext.capabilities.add",
            json!(["CAP_SYS_ADMIN"]),
            p(c, "allowPrivilegeEscalation"),
            Invalid,
        ),
    ]);
}

#[test]
fn refuses_bad_volumes() {
    let v = "spec.volumes.3";
    let p = |rest: &str| -> &'static str { Box::leak(format!("spec.volumes[3].{rest}").into_boxed_str()) };
    let with = |source: &str, value: Value| json!({"name": "all", source: value});
    let item = |item: Value| json!({"items": [item]});
    check(&[
        (v, json!({"emptyDir": {}}), p("name"), Required),
        (v, json!({"name": "a.b"}), p("name"), Invalid),
        (v, json!({"name": "host"}), p("name"), Duplicate),
        (v, json!({"name": "all", "emptyDir": {}, "hostPath": {"path": "/x"}}), p("hostPath"), Forbidden),
        (v, with("emptyDir", json!({"medium": "Disk"})), p("emptyDir.medium"), Unsupported),
        (v, with("emptyDir", json!({"medium": "HugePages-x"})), p("emptyDir.medium"), Invalid),
        (v, with("emptyDir", json!({"sizeLimit": "-1"})), p("emptyDir.sizeLimit"), Invalid),
        (v, with("emptyDir", json!({"sizeLimit": "big"})), p("emptyDir.sizeLimit"), Invalid),
        (v, with("hostPath", json!({})), p("hostPath.path"), Required),
        (v, with("hostPath", json!({"path": "/a/../../etc"})), p("hostPath.path"), Invalid),
        (v, with("hostPath", json!({"path": "/a", "type": "Folder"})), p("hostPath.type"), Unsupported),
        (v, with("downwardAPI", json!({"defaultMode": 512})), p("downwardAPI.defaultMode"), Invalid),
        (
            v,
            with("downwardAPI", item(json!({"fieldRef": {"fieldPath": "metadata.name"}}))),
            p("downwardAPI.items[0].path"),
            Required,
        ),
        (
            v,
            with("downwardAPI", item(json!({"path": "/a", "fieldRef": {"fieldPath": "metadata.name"}}))),
            p("downwardAPI.items[0].path"),
            Invalid,
        ),
        (
            v,
            with("downwardAPI", item(json!({"path": "..a", "fieldRef": {"fieldPath": "metadata.name"}}))),
            p("downwardAPI.items[0].path"),
            Invalid,
        ),
        (v, with("downwardAPI", item(json!({"path": "a"}))), p("downwardAPI.items[0]"), Required),
        (
            v,
            with("downwardAPI", item(json!({"path": "a", "mode": -1, "fieldRef": {"fieldPath": "metadata.name"}}))),
            p("downwardAPI.items[0].mode"),
            Invalid,
        ),
        (
            v,
            with("downwardAPI", item(json!({"path": "a", "fieldRef": {"fieldPath": "status.podIP"}}))),
            p("downwardAPI.items[0].fieldRef.fieldPath"),
            Unsupported,
        ),
        (
            v,
            with("downwardAPI", item(json!({"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}))),
            p("downwardAPI.items[0].resourceFieldRef.containerName"),
            Required,
        ),
        (v, with("projected", json!({"defaultMode": -1})), p("projected.defaultMode"), Invalid),
        (v, with("projected", json!({"sources": [{}]})), p("projected.sources[0]"), Required),
        (
            v,
            with(
                "projected",
                json!({"sources": [{"downwardAPI": item(json!({"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}))}, {"downwardAPI": item(json!({"path": "a", "fieldRef": {"fieldPath": "metadata.uid"}}))}]}),
            ),
            p("projected.sources[1].downwardAPI.items[0].path"),
            Duplicate,
        ),
        (v, with("image", json!({})), p("image.reference"), Required),
        (v, with("image", json!({"reference": "a", "pullPolicy": "x"})), p("image.pullPolicy"), Unsupported),
        (v, with("nfs", json!({"server": "s"})), p("nfs.path"), Required),
        (v, with("nfs", json!({"server": "s", "path": "rel"})), p("nfs.path"), Invalid),
        (v, with("iscsi", json!({"targetPortal": "h", "lun": 0})), p("iscsi.iqn"), Required),
    ]);
}

#[test]
fn refuses_references_to_api_objects() {
    let env = |from: Value| json!([{"name": "A", "valueFrom": from}]);
    let volume = |source: &str, value: Value| json!([{"name": "v", source: value}]);
    let rows: &[(&str, Value, &str, &str)] = &[
        ("spec.serviceAccountName", json!("sa"), "spec.serviceAccountName", "serviceaccounts"),
        ("spec.serviceAccount", json!("sa"), "spec.serviceAccountName", "serviceaccounts"),
        ("spec.imagePullSecrets", json!([{"name": "s"}]), "spec.imagePullSecrets[0]", "secrets"),
        (
            "spec.containers.0.env",
            env(json!({"secretKeyRef": {"name": "s", "key": "k"}})),
            "spec.containers[0].env[0].valueFrom.secretKeyRef",
            "secrets",
        ),
        (
            "spec.containers.0.env",
            env(json!({"configMapKeyRef": {"name": "s", "key": "k"}})),
            "spec.containers[0].env[0].valueFrom.configMapKeyRef",
            "configmaps",
        ),
        (
            "spec.containers.0.envFrom",
            json!([{"secretRef": {"name": "s"}}]),
            "spec.containers[0].envFrom[0].secretRef",
            "secrets",
        ),
        (
            "spec.containers.0.envFrom",
            json!([{"configMapRef": {"name": "s"}}]),
            "spec.containers[0].envFrom[0].configMapRef",
            "configmaps",
        ),
        (
            "spec.initContainers",
            json!([{"name": "i", "image": "x", "envFrom": [{"secretRef": {"name": "s"}}]}]),
            "spec.initContainers[0].envFrom[0].secretRef",
            "secrets",
        ),
        (
            "spec.resourceClaims",
            json!([{"name": "c", "resourceClaimName": "x"}]),
            "spec.resourceClaims",
            "resourceclaims",
        ),
        (
            "spec.volumes",
            volume("secret", json!({"secretName": "s"})),
            "spec.volumes[0].secret",
            "secrets (via secret volumes)",
        ),
        (
            "spec.volumes",
            volume("configMap", json!({"name": "s"})),
            "spec.volumes[0].configMap",
            "configmaps (via configmap volumes)",
        ),
        ("spec.volumes", volume("csi", json!({"driver": "d"})), "spec.volumes[0].csi", "csidrivers (via CSI volumes)"),
        (
            "spec.volumes",
            volume("persistentVolumeClaim", json!({"claimName": "c"})),
            "spec.volumes[0].persistentVolumeClaim",
            "persistentvolumeclaims",
        ),
        (
            "spec.volumes",
            volume("ephemeral", json!({})),
            "spec.volumes[0].ephemeral",
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            "spec.volumes",
            volume("glusterfs", json!({"endpoints": "e", "path": "p"})),
            "spec.volumes[0].glusterfs",
            "endpoints (via glusterFS volumes)",
        ),
        (
            "spec.volumes",
            volume("azureFile", json!({"secretName": "e", "shareName": "p"})),
            "spec.volumes[0].azureFile",
            "secrets (via azureFile volumes)",
        ),
        (
            "spec.volumes",
            volume("rbd", json!({"image": "i", "monitors": ["m"], "secretRef": {"name": "s"}})),
            "spec.volumes[0].rbd.secretRef",
            "secrets",
        ),
        (
            "spec.volumes",
            volume("projected", json!({"sources": [{"serviceAccountToken": {"path": "t"}}]})),
            "spec.volumes[0].projected.sources[0].serviceAccountToken",
            "serviceaccounts (via projected volumes)",
        ),
        (
            "spec.volumes",
            volume("projected", json!({"sources": [{"clusterTrustBundle": {"path": "t"}}]})),
            "spec.volumes[0].projected.sources[0].clusterTrustBundle",
            "clustertrustbundles",
        ),
        (
            "spec.volumes",
            volume("projected", json!({"sources": [{"podCertificate": {"keyType": "t", "signerName": "s"}}]})),
            "spec.volumes[0].projected.sources[0].podCertificate",
            "podcertificates",
        ),
        (
            "spec.volumes",
            volume("projected", json!({"sources": [{"secret": {"name": "t"}}]})),
            "spec.volumes[0].projected.sources[0].secret",
            "secrets (via projected volumes)",
        ),
        (
            "spec.volumes",
            volume("projected", json!({"sources": [{"configMap": {"name": "t"}}]})),
            "spec.volumes[0].projected.sources[0].configMap",
            "configmaps (via projected volumes)",
        ),
    ];
    for (path, value, at, resource) in rows {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "c", "image": "x:1"}]}});
        put(&mut pod, path, value.clone());
        let error = read_json(&pod).unwrap_err();
        assert_eq!(faults(&error), [((*at).to_owned(), Forbidden)], "{error}");
        let text = error.to_string();
        assert!(text.ends_with(&format!("static pods may not reference {resource}")), "{text}");
    }
}

#[test]
fn reports_all_faults_at_once() {
    let mut pod = rich();
    put(&mut pod, "metadata.namespace", json!("Bad"));
    put(&mut pod, "spec.volumes.0.name", json!("other"));
    put(&mut pod, "spec.containers.0.image", json!(""));
    put(&mut pod, "spec.containers.1.envFrom", json!([{"secretRef": {"name": "s"}}]));
    let error = read_json(&pod).unwrap_err();
    let paths: Vec<String> = faults(&error).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "metadata.namespace",
            "spec.containers[0].image",
            "spec.containers[0].volumeMounts[0].name",
            "spec.containers[1].envFrom[0].secretRef",
        ]
    );
}

#[test]
fn an_error_reads_as_path_fault_value_reason_and_what_is_allowed() {
    let mut pod = rich();
    put(&mut pod, "spec.containers.0.ports.0.containerPort", json!(70000));
    put(&mut pod, "spec.containers.1.imagePullPolicy", json!("Often"));
    assert_eq!(
        read_json(&pod).unwrap_err().to_string(),
        "invalid pod: spec.containers[0].ports[0].containerPort: invalid value 70000: out of range (allowed: 1 to 65535); \
         spec.containers[1].imagePullPolicy: unsupported value \"Often\" (allowed: \"Always\", \"IfNotPresent\", \"Never\")"
    );
}
