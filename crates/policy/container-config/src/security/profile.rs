//! Seccomp and AppArmor profiles.

use cri_api::v1::{SecurityProfile, security_profile::ProfileType};
use model::core::{Container, Pod, PodSecurityContext, SeccompProfile};
use model::pod;

use super::error::SecurityError;
use crate::NodeSettings;

/// Annotation prefix of the time before the AppArmor field; the container's name follows.
const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn pod_context(pod: &Pod) -> Option<&PodSecurityContext> {
    pod.spec.as_ref().and_then(|s| s.security_context.as_ref())
}

fn of_type(kind: ProfileType) -> SecurityProfile {
    SecurityProfile { profile_type: kind.into(), ..Default::default() }
}

fn localhost(reference: String) -> SecurityProfile {
    SecurityProfile { profile_type: ProfileType::Localhost.into(), localhost_ref: reference }
}

fn seccomp_field(field: &SeccompProfile, node: &NodeSettings) -> Result<SecurityProfile, SecurityError> {
    match field.type_.as_str() {
        "Localhost" => match field.localhost_profile.as_deref() {
            None | Some("") => Err(SecurityError::NoSeccompName),
            Some(name) => Ok(localhost(format!("{}/seccomp/{name}", node.root_dir.trim_end_matches('/')))),
        },
        "RuntimeDefault" => Ok(of_type(ProfileType::RuntimeDefault)),
        _ => Ok(of_type(ProfileType::Unconfined)),
    }
}

/// The container's profile, else the pod's, else the node's default.
pub(super) fn seccomp(pod: &Pod, container: &Container, node: &NodeSettings) -> Result<SecurityProfile, SecurityError> {
    let own = container.security_context.as_ref().and_then(|s| s.seccomp_profile.as_ref());
    match own.or_else(|| pod_context(pod).and_then(|s| s.seccomp_profile.as_ref())) {
        Some(field) => seccomp_field(field, node),
        None if node.seccomp_default => Ok(of_type(ProfileType::RuntimeDefault)),
        None => Ok(of_type(ProfileType::Unconfined)),
    }
}

/// An AppArmor profile in both of the CRI's forms.
#[derive(Debug, PartialEq)]
pub(super) struct AppArmor {
    pub(super) profile: SecurityProfile,
    pub(super) legacy: String,
}

fn app_armor_of(kind: &str, name: Option<&str>) -> Result<Option<AppArmor>, SecurityError> {
    let made = |profile, legacy: &str| Ok(Some(AppArmor { profile, legacy: legacy.to_owned() }));
    match kind {
        "RuntimeDefault" => made(of_type(ProfileType::RuntimeDefault), "runtime/default"),
        "Unconfined" => made(of_type(ProfileType::Unconfined), "unconfined"),
        "Localhost" => match name {
            None | Some("") => Err(SecurityError::NoAppArmorName),
            Some(name) => made(localhost(name.to_owned()), &format!("localhost/{name}")),
        },
        _ => Ok(None),
    }
}

/// The container's field, else the legacy annotation, else the pod's field, else nothing.
pub(super) fn app_armor(pod: &Pod, container: &Container) -> Result<Option<AppArmor>, SecurityError> {
    if let Some(field) = container.security_context.as_ref().and_then(|s| s.app_armor_profile.as_ref()) {
        return app_armor_of(&field.type_, field.localhost_profile.as_deref());
    }
    let key = format!("{APPARMOR_ANNOTATION}{}", container.name);
    match pod::annotation(pod, &key) {
        Some("runtime/default") => return app_armor_of("RuntimeDefault", None),
        Some("unconfined") => return app_armor_of("Unconfined", None),
        Some(text) => {
            if let Some(name) = text.strip_prefix("localhost/") {
                return app_armor_of("Localhost", Some(name));
            }
        }
        None => {}
    }
    match pod_context(pod).and_then(|s| s.app_armor_profile.as_ref()) {
        Some(field) => app_armor_of(&field.type_, field.localhost_profile.as_deref()),
        None => Ok(None),
    }
}
