//! What is known, in words of the CRI.

use cri_api::v1;

use crate::records::{ContainerRecord, PodStage, SandboxRecord};

/// `name_namespace_uid_attempt`.
pub(crate) fn sandbox_name(metadata: Option<&v1::PodSandboxMetadata>) -> String {
    metadata.map(|m| format!("{}_{}_{}_{}", m.name, m.namespace, m.uid, m.attempt)).unwrap_or_default()
}

pub(crate) fn sandbox_state(record: &SandboxRecord) -> v1::PodSandboxState {
    match record.stage {
        PodStage::Ready => v1::PodSandboxState::SandboxReady,
        PodStage::Starting | PodStage::NotReady => v1::PodSandboxState::SandboxNotready,
    }
}

/// Whether a sandbox is in lists. One that is being made is not, as with containerd and CRI-O: shown as not ready it would count as one
/// that has ended, which never becomes ready again, and whoever asked for it would make another one in its place.
pub(crate) fn is_listed(record: &SandboxRecord) -> bool {
    record.stage != PodStage::Starting
}

/// The status of a sandbox.
pub(crate) fn sandbox(record: &SandboxRecord) -> v1::PodSandboxStatus {
    let mut ips = record.network.ips.iter();
    let network = v1::PodSandboxNetworkStatus {
        ip: ips.next().cloned().unwrap_or_default(),
        additional_ips: ips.map(|ip| v1::PodIp { ip: ip.clone() }).collect(),
    };
    v1::PodSandboxStatus {
        id: record.id.clone(),
        metadata: record.config.metadata.clone(),
        state: sandbox_state(record).into(),
        created_at: record.created_at,
        network: Some(network),
        linux: Some(v1::LinuxPodSandboxStatus {
            namespaces: Some(v1::Namespace { options: Some(record.namespaces()) }),
        }),
        labels: record.config.labels.clone(),
        annotations: record.config.annotations.clone(),
        runtime_handler: record.runtime_handler.clone(),
    }
}

/// A sandbox in a list.
pub(crate) fn sandbox_item(record: &SandboxRecord) -> v1::PodSandbox {
    v1::PodSandbox {
        id: record.id.clone(),
        metadata: record.config.metadata.clone(),
        state: sandbox_state(record).into(),
        created_at: record.created_at,
        labels: record.config.labels.clone(),
        annotations: record.config.annotations.clone(),
        runtime_handler: record.runtime_handler.clone(),
    }
}

/// Why a container is where it is: `OOMKilled`, `Completed`, `Error` of an end that says no more.
fn reason(record: &ContainerRecord) -> &str {
    match &record.exit {
        _ if !record.reason.is_empty() => &record.reason,
        None => "",
        Some(exit) if exit.oom => "OOMKilled",
        Some(exit) if exit.exit_code == 0 => "Completed",
        Some(_) => "Error",
    }
}

/// The image as it was asked for.
fn image(record: &ContainerRecord) -> Option<v1::ImageSpec> {
    let mut spec = record.config.image.clone()?;
    if !spec.user_specified_image.is_empty() {
        spec.image.clone_from(&spec.user_specified_image);
    }
    Some(spec)
}

/// The status of a container.
pub(crate) fn container(record: &ContainerRecord) -> v1::ContainerStatus {
    let user = v1::LinuxContainerUser {
        uid: record.user.uid.into(),
        gid: record.user.gid.into(),
        supplemental_groups: record.user.groups.iter().map(|g| i64::from(*g)).collect(),
    };
    v1::ContainerStatus {
        id: record.id.clone(),
        metadata: record.config.metadata.clone(),
        state: record.state().into(),
        created_at: record.created_at,
        started_at: record.started_at,
        finished_at: record.exit.as_ref().map_or(0, |e| e.finished_at),
        exit_code: record.exit.as_ref().map_or(0, |e| e.exit_code),
        image: image(record),
        image_ref: record.image_ref.clone(),
        reason: reason(record).to_owned(),
        message: record.message.clone(),
        labels: record.config.labels.clone(),
        annotations: record.config.annotations.clone(),
        mounts: record.config.mounts.clone(),
        log_path: record.log_path.clone(),
        resources: Some(v1::ContainerResources {
            linux: record.config.linux.as_ref().and_then(|l| l.resources.clone()),
        }),
        image_id: record.image_id.clone(),
        user: Some(v1::ContainerUser { linux: Some(user) }),
        stop_signal: record.config.stop_signal,
    }
}

/// A container in a list.
pub(crate) fn container_item(record: &ContainerRecord) -> v1::Container {
    v1::Container {
        id: record.id.clone(),
        pod_sandbox_id: record.pod.clone(),
        metadata: record.config.metadata.clone(),
        image: image(record),
        image_ref: record.image_ref.clone(),
        state: record.state().into(),
        created_at: record.created_at,
        labels: record.config.labels.clone(),
        annotations: record.config.annotations.clone(),
        image_id: record.image_id.clone(),
    }
}

/// Whether labels hold all that is selected.
pub(crate) fn selected(
    labels: &std::collections::BTreeMap<String, String>,
    selector: &std::collections::BTreeMap<String, String>,
) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// The number of a signal of the CRI; `None`: the image's, or SIGTERM. Real-time signals count from 34 here as everywhere on
/// Linux with glibc or musl (`SIGRTMIN`), up to 64.
pub(crate) fn signal_number(signal: v1::Signal) -> Option<i32> {
    let name = signal.as_str_name();
    if let Some(above) = name.strip_prefix("SIGRTMINPLUS") {
        return above.parse::<i32>().ok().map(|n| 34 + n);
    }
    if let Some(below) = name.strip_prefix("SIGRTMAXMINUS") {
        return below.parse::<i32>().ok().map(|n| 64 - n);
    }
    signal_by_name(name)
}

/// The number of `SIGTERM`, `TERM` or `15`.
pub(crate) fn signal_by_name(name: &str) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    let number = match bare {
        "RTMIN" => Some(34),
        "RTMAX" => Some(64),
        "IOT" => Some(6),
        "CLD" => Some(17),
        "POLL" => Some(29),
        _ => None,
    };
    let real_time = bare.strip_prefix("RTMIN+").and_then(|n| n.parse::<i32>().ok()).map(|n| 34 + n);
    let listed = NAMES.iter().position(|n| *n == bare).and_then(|n| i32::try_from(n + 1).ok());
    let given = bare.parse::<i32>().ok();
    number.or(real_time).or(listed).or(given).filter(|n| (1..=64).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_numbers() {
        for (signal, number) in [
            (v1::Signal::RuntimeDefault, None),
            (v1::Signal::Sigterm, Some(15)),
            (v1::Signal::Sigkill, Some(9)),
            (v1::Signal::Sigsys, Some(31)),
            (v1::Signal::Sigrtmin, Some(34)),
            (v1::Signal::Sigrtminplus3, Some(37)),
            (v1::Signal::Sigrtmaxminus1, Some(63)),
            (v1::Signal::Sigrtmax, Some(64)),
        ] {
            assert_eq!(signal_number(signal), number, "{signal:?}");
        }
        for (name, number) in [
            ("SIGTERM", Some(15)),
            ("QUIT", Some(3)),
            ("9", Some(9)),
            ("SIGRTMIN+3", Some(37)),
            ("99", None),
            ("", None),
        ] {
            assert_eq!(signal_by_name(name), number, "{name}");
        }
    }
}
