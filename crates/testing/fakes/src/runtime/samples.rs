//! Minimal requests as a kubelet labels them, for tests that need some pod and do not care which.

use cri_api::v1;

/// A sandbox of pod `name` in namespace `ns`, UID `uid-<name>`.
#[must_use]
pub fn sandbox(name: &str, attempt: u32) -> v1::PodSandboxConfig {
    let uid = format!("uid-{name}");
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: name.to_owned(),
            uid: uid.clone(),
            namespace: "ns".to_owned(),
            attempt,
        }),
        labels: labels(name, &uid),
        ..Default::default()
    }
}

/// A container that runs `image`.
#[must_use]
pub fn container(pod: &str, name: &str, image: &str, attempt: u32) -> v1::ContainerConfig {
    let mut labels = labels(pod, &format!("uid-{pod}"));
    labels.insert("io.kubernetes.container.name".to_owned(), name.to_owned());
    let annotations = [
        ("io.kubernetes.container.hash", "8e45cbd0".to_owned()),
        ("io.kubernetes.container.restartCount", attempt.to_string()),
        ("io.kubernetes.container.terminationMessagePath", "/dev/termination-log".to_owned()),
        ("io.kubernetes.container.terminationMessagePolicy", "File".to_owned()),
        ("io.kubernetes.pod.terminationGracePeriod", "30".to_owned()),
    ];
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata { name: name.to_owned(), attempt }),
        image: Some(v1::ImageSpec {
            image: image.to_owned(),
            user_specified_image: image.to_owned(),
            ..Default::default()
        }),
        labels,
        annotations: annotations.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        log_path: format!("{name}/{attempt}.log"),
        ..Default::default()
    }
}

fn labels(pod: &str, uid: &str) -> std::collections::BTreeMap<String, String> {
    [("io.kubernetes.pod.name", pod), ("io.kubernetes.pod.namespace", "ns"), ("io.kubernetes.pod.uid", uid)]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into()
}
