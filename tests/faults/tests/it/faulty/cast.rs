//! Who takes part: the pods that are there all the time, and those that come and go.

use serde_json::{Value, json};

use crate::{drivers, luns, pod, simple};

/// The pods of the folder that are there all the time: name, manifest.
pub(super) fn residents() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, text: String| all.push((name.to_owned(), text));
    for i in 0..8 {
        add(&format!("plain{i}"), simple(&format!("plain{i}"), ""));
    }
    for i in 0..3 {
        let name = format!("side{i}");
        let spec = "
  initContainers:
  - {name: proxy, image: 'tool:1', restartPolicy: Always}
  - {name: quick, image: 'tool:1'}
  containers:
  - {name: app, image: 'app:1'}";
        add(&name, pod(&name, spec));
    }
    for i in 0..2 {
        let name = format!("probed{i}");
        let spec = "
  containers:
  - name: app
    image: app:1
    livenessProbe: {exec: {command: [ok]}, periodSeconds: 5}
    readinessProbe: {exec: {command: [ok]}, periodSeconds: 5}";
        add(&name, pod(&name, spec));
    }
    let hooked = "
  containers:
  - name: app
    image: app:1
    lifecycle: {postStart: {exec: {command: [hi]}}, preStop: {exec: {command: [bye]}}}";
    add("hooked", pod("hooked", hooked));
    let volumes = "
  volumes: [{name: v, emptyDir: {}}, {name: h, hostPath: {path: /tmp}}]
  containers:
  - {name: app, image: 'app:1', volumeMounts: [{name: v, mountPath: /v}, {name: h, mountPath: /h}]}
  - {name: more, image: 'app:2'}";
    add("volumes", pod("volumes", volumes));
    add("onhost", simple("onhost", "\n  hostNetwork: true"));
    let limited = "
  containers:
  - {name: app, image: 'app:1', resources: {limits: {cpu: 50m, memory: 32Mi}}}";
    add("limited", pod("limited", limited));
    add("loop", pod("loop", "\n  containers:\n  - {name: crash, image: 'app:1'}"));
    add("job", pod("job", "\n  restartPolicy: Never\n  containers:\n  - {name: quick, image: 'app:1'}"));
    add("noimage", pod("noimage", "\n  containers:\n  - {name: app, image: 'missing:1'}"));
    assert_eq!(all.len(), 20);
    all
}

/// A pod of the folder with a little of everything, which comes and goes.
pub(super) fn guest(name: &str) -> String {
    let spec = "
  terminationGracePeriodSeconds: 10
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - name: proxy
    image: tool:1
    restartPolicy: Always
    startupProbe: {exec: {command: [ok]}, periodSeconds: 1}
  - {name: quick, image: 'tool:1'}
  containers:
  - name: app
    image: app:1
    volumeMounts: [{name: v, mountPath: /v, subPath: sub}]
    readinessProbe: {exec: {command: [ok]}, periodSeconds: 2}
    lifecycle: {postStart: {exec: {command: [hi]}}, preStop: {exec: {command: [bye]}}}
  - {name: other, image: 'pulled:1', imagePullPolicy: IfNotPresent}";
    pod(name, spec)
}

/// Residents of the API server, and that of the URL.
pub(super) const BOUND: &str = "bound";
pub(super) const OBJECTS: &str = "objects";
pub(super) const OF_URL: &str = "web";
/// The claim of a resident.
pub(super) const KEPT: &str = "kept";
/// The resident whose log grows.
pub(super) const TALKS: &str = "onhost";
/// Residents whose worker rightly has an error all the time.
pub(super) const TROUBLED: [&str; 2] = ["loop-sim", "noimage-sim"];
/// Residents of the folder, the three others, two guests, two visitors, the critical one and its victim.
pub(super) const WORKERS: usize = 20 + 3 + 2 + 2 + 2;

/// A pod that is not there all the time, by its full name.
pub(super) fn comes_and_goes(pod: &str) -> bool {
    ["guest", "visitor", "critical", "stranger"].iter().any(|part| pod.starts_with(part))
}

/// Spec of a pod of the API server.
pub(super) fn bound() -> Value {
    json!({ "containers": [{ "name": "app", "image": "app:1", "resources": { "limits": { "memory": size(0) } } }] })
}

/// How much memory [`BOUND`] may have in this round.
pub(super) fn size(k: usize) -> String {
    format!("{}Mi", 64 * (1 + k % 3))
}

/// Spec of a pod with users of its own, objects of the API server in its volumes, see [`super::world::has_objects`], and a claim.
pub(super) fn with_volumes(claim: &str) -> Value {
    let token = json!({ "serviceAccountToken": { "path": "token", "expirationSeconds": 3600 } });
    json!({
        "hostUsers": false,
        "securityContext": {},
        "volumes": [
            { "name": "settings", "configMap": { "name": "settings", "defaultMode": 0o644 } },
            { "name": "keys", "secret": { "secretName": "keys", "defaultMode": 0o644 } },
            { "name": "token", "projected": { "sources": [token], "defaultMode": 0o644 } },
            drivers::volume(claim),
        ],
        "containers": [{
            "name": "app",
            "image": "app:1",
            "volumeMounts": [
                { "name": "settings", "mountPath": "/settings" },
                { "name": "keys", "mountPath": "/keys" },
                { "name": "token", "mountPath": "/token" },
                { "name": "disk", "mountPath": "/disk" },
            ],
        }],
    })
}

/// A visitor: of a runtime class, with such volumes, a disk of a target, and an environment that is made of objects too.
pub(super) fn visitor(claim: &str, lun: usize) -> Value {
    let mut spec = with_volumes(claim);
    let lists = [
        ("/volumes", luns::volume(lun)),
        ("/containers/0/volumeMounts", json!({ "name": "lun", "mountPath": "/lun" })),
    ];
    for (list, one) in lists {
        spec.pointer_mut(list).and_then(Value::as_array_mut).expect("a pod with volumes").push(one);
    }
    spec["runtimeClassName"] = "special".into();
    spec["containers"][0]["envFrom"] =
        json!([{ "configMapRef": { "name": "settings" } }, { "secretRef": { "name": "keys" } }]);
    spec
}

/// What a visitor is given in its second round: another container, which has a secret that its pod did not have before.
pub(super) fn ephemeral() -> Value {
    let late = json!({ "name": "LATE", "valueFrom": { "secretKeyRef": { "name": "late", "key": "pass" } } });
    json!([{ "name": "debug", "image": "tool:1", "env": [late] }])
}

/// A pod that does not fit the node.
pub(super) fn refused() -> Value {
    let mut spec = bound();
    spec["nodeSelector"] = json!({ "disk": "none" });
    spec
}

/// A pod that takes most of the node, and is more important than the one before.
pub(super) fn critical(k: usize) -> Value {
    let mut spec = bound();
    spec["priority"] = (2_000_000_000 + k).into();
    spec["containers"][0]["resources"] = json!({ "requests": { "cpu": "3" } });
    spec
}
