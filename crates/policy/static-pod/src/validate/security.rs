//! Security contexts of the pod and of its containers.

use std::collections::BTreeSet;

use model::core::{AppArmorProfile, Container, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, Sysctl};

use super::faults::{Context, Faults};
use super::names::Rule;
use super::paths::no_backsteps;

/// Highest user or group id that the API takes.
const MAX_ID: i64 = i32::MAX as i64;
const POD: &str = "spec.securityContext";

pub(super) fn pod(spec: &PodSpec, faults: &mut Faults) {
    let Some(sc) = &spec.security_context else { return };
    ids(POD, &[("runAsUser", sc.run_as_user), ("runAsGroup", sc.run_as_group), ("fsGroup", sc.fs_group)], faults);
    for (i, group) in sc.supplemental_groups.iter().flatten().enumerate() {
        faults.in_range(format!("{POD}.supplementalGroups[{i}]"), *group, 0, MAX_ID);
    }
    let policies: [(&str, &Option<String>, &[&str]); 3] = [
        ("fsGroupChangePolicy", &sc.fs_group_change_policy, &["OnRootMismatch", "Always"]),
        ("supplementalGroupsPolicy", &sc.supplemental_groups_policy, &["Merge", "Strict"]),
        ("seLinuxChangePolicy", &sc.se_linux_change_policy, &["MountOption", "Recursive"]),
    ];
    for (field, value, allowed) in policies {
        faults.one_of_if_set(format!("{POD}.{field}"), value.as_deref(), allowed);
    }
    sysctls(spec, sc.sysctls.as_deref().unwrap_or_default(), faults);
    seccomp(POD, sc.seccomp_profile.as_ref(), faults);
    app_armor(POD, sc.app_armor_profile.as_ref(), faults);
    operating_system(spec, sc, faults);
}

fn ids(path: &str, ids: &[(&str, Option<i64>)], faults: &mut Faults) {
    for (field, id) in ids {
        if let Some(id) = id {
            faults.in_range(format!("{path}.{field}"), *id, 0, MAX_ID);
        }
    }
}

fn sysctls(spec: &PodSpec, sysctls: &[Sysctl], faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (i, sysctl) in sysctls.iter().enumerate() {
        let path = format!("{POD}.sysctls[{i}].name");
        faults.name(path.as_str(), &sysctl.name, Rule::Sysctl);
        // `a/b.c` is the slashed form, in which a dot is an ordinary character.
        let first_separator = sysctl.name.find(['.', '/']).and_then(|at| sysctl.name.as_bytes().get(at));
        let name = if first_separator == Some(&b'/') {
            sysctl
                .name
                .chars()
                .map(|c| {
                    if c == '/' {
                        '.'
                    } else if c == '.' {
                        '/'
                    } else {
                        c
                    }
                })
                .collect()
        } else {
            sysctl.name.clone()
        };
        if spec.host_network == Some(true) && name.starts_with("net.") {
            faults.invalid(path.as_str(), sysctl.name.as_str(), "may not be set when hostNetwork is true");
        }
        let ipc = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."].iter().any(|p| name.starts_with(p));
        if spec.host_ipc == Some(true) && ipc {
            faults.invalid(path.as_str(), sysctl.name.as_str(), "may not be set when hostIPC is true");
        }
        if !seen.insert(name) {
            faults.duplicate(path, sysctl.name.as_str(), "set twice");
        }
    }
}

/// Fields that make no sense on the operating system that the pod asks for.
fn operating_system(spec: &PodSpec, sc: &PodSecurityContext, faults: &mut Faults) {
    let os = spec.os.as_ref().map(|os| os.name.as_str());
    let containers =
        [("spec.initContainers", spec.init_containers.as_deref()), ("spec.containers", Some(&*spec.containers))];
    let contexts: Vec<(String, &SecurityContext)> = containers
        .into_iter()
        .flat_map(|(list, cs)| {
            cs.unwrap_or_default()
                .iter()
                .enumerate()
                .filter_map(move |(i, c)| Some((format!("{list}[{i}].securityContext"), c.security_context.as_ref()?)))
        })
        .collect();
    match os {
        Some("linux") => {
            let windows = contexts.iter().map(|(p, s)| (p.as_str(), s.windows_options.is_some()));
            for (path, set) in [(POD, sc.windows_options.is_some())].into_iter().chain(windows) {
                if set {
                    faults.forbidden(format!("{path}.windowsOptions"), "cannot be set for a linux pod");
                }
            }
        }
        Some("windows") => {
            let set = [
                ("spec.hostPID", spec.host_pid == Some(true)),
                ("spec.hostIPC", spec.host_ipc == Some(true)),
                ("spec.hostUsers", spec.host_users.is_some()),
                ("spec.shareProcessNamespace", spec.share_process_namespace == Some(true)),
                ("spec.securityContext.seLinuxOptions", sc.se_linux_options.is_some()),
                ("spec.securityContext.seccompProfile", sc.seccomp_profile.is_some()),
                ("spec.securityContext.appArmorProfile", sc.app_armor_profile.is_some()),
                ("spec.securityContext.fsGroup", sc.fs_group.is_some()),
                ("spec.securityContext.sysctls", sc.sysctls.as_ref().is_some_and(|s| !s.is_empty())),
                ("spec.securityContext.runAsUser", sc.run_as_user.is_some()),
                ("spec.securityContext.runAsGroup", sc.run_as_group.is_some()),
            ];
            let container = contexts.iter().map(|(path, s)| (path.as_str(), linux_only(s)));
            for (path, set) in set.into_iter().chain(container) {
                if set {
                    faults.forbidden(path, "cannot be set for a windows pod");
                }
            }
        }
        _ => {}
    }
}

fn linux_only(s: &SecurityContext) -> bool {
    s.privileged.is_some()
        || s.capabilities.is_some()
        || s.run_as_user.is_some()
        || s.run_as_group.is_some()
        || s.seccomp_profile.is_some()
        || s.se_linux_options.is_some()
        || s.allow_privilege_escalation.is_some()
        || s.proc_mount.is_some()
        || s.read_only_root_filesystem.is_some()
}

pub(super) fn container(path: &str, c: &Container, cx: &Context<'_>, faults: &mut Faults) {
    let Some(sc) = &c.security_context else { return };
    let path = format!("{path}.securityContext");
    ids(&path, &[("runAsUser", sc.run_as_user), ("runAsGroup", sc.run_as_group)], faults);
    let proc_mount = sc.proc_mount.as_deref();
    faults.one_of_if_set(format!("{path}.procMount"), proc_mount, &["Default", "Unmasked"]);
    if proc_mount == Some("Unmasked") && cx.host_users {
        faults.invalid(format!("{path}.procMount"), "Unmasked", "needs hostUsers to be false");
    }
    if sc.allow_privilege_escalation == Some(false) {
        let at = format!("{path}.allowPrivilegeEscalation");
        if sc.privileged == Some(true) {
            faults.invalid(at.as_str(), false, "cannot be false while privileged is true");
        }
        let added = sc.capabilities.iter().flat_map(|c| c.add.iter().flatten());
        if added.into_iter().any(|c| c == "CAP_SYS_ADMIN") {
            faults.invalid(at, false, "cannot be false while CAP_SYS_ADMIN is added");
        }
    }
    seccomp(&path, sc.seccomp_profile.as_ref(), faults);
    app_armor(&path, sc.app_armor_profile.as_ref(), faults);
}

const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(path: &str, profile: Option<&SeccompProfile>, faults: &mut Faults) {
    let Some(profile) = profile else { return };
    let path = format!("{path}.seccompProfile");
    if local_profile(&path, &profile.type_, profile.localhost_profile.as_deref(), faults)
        && let Some(file) = &profile.localhost_profile
    {
        let at = format!("{path}.localhostProfile");
        if file.starts_with('/') {
            faults.invalid(at.as_str(), file.as_str(), "must be a relative path");
        }
        no_backsteps(&at, file, faults);
    }
}

fn app_armor(path: &str, profile: Option<&AppArmorProfile>, faults: &mut Faults) {
    let Some(profile) = profile else { return };
    let path = format!("{path}.appArmorProfile");
    if local_profile(&path, &profile.type_, profile.localhost_profile.as_deref(), faults)
        && let Some(name) = &profile.localhost_profile
        && name.trim() != name
    {
        faults.invalid(format!("{path}.localhostProfile"), name.as_str(), "may not have white space at its ends");
    }
}

/// The type must be known, and a profile be named for `Localhost` and only there. Returns whether there is one to check.
fn local_profile(path: &str, kind: &str, profile: Option<&str>, faults: &mut Faults) -> bool {
    if kind.is_empty() {
        faults.required(format!("{path}.type"), "");
        return false;
    }
    faults.one_of(format!("{path}.type"), kind, PROFILES);
    let at = format!("{path}.localhostProfile");
    match (kind, profile.unwrap_or_default()) {
        ("Localhost", "") => {
            faults.required(at, "must be set when type is Localhost");
            false
        }
        ("Localhost", _) => true,
        (_, _) if profile.is_some() => {
            faults.invalid(at, profile.unwrap_or_default(), "may only be set when type is Localhost");
            false
        }
        _ => false,
    }
}
