//! Profiles and labels that the kernel holds a container to.

use cri_api::v1;
use oci_spec::runtime::LinuxSeccomp;

use crate::facts::{AppArmor, Request};
use crate::{CapabilityNames, SpecError, context, profile};

use v1::security_profile::ProfileType;

/// What filters system calls of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeccompChoice {
    /// Nothing.
    Unconfined,
    /// The default profile of this crate.
    Default,
    /// A file of the node.
    File(String),
}

/// Which seccomp profile is asked for: the field, else the older form (`runtime/default`, `docker/default`, `unconfined`,
/// `localhost/PATH`). Privileged containers have none, as with containerd.
///
/// # Errors
/// A name of no known form.
pub fn seccomp_choice(context: Option<&v1::LinuxContainerSecurityContext>) -> Result<SeccompChoice, SpecError> {
    let Some(context) = context.filter(|c| !c.privileged) else { return Ok(SeccompChoice::Unconfined) };
    if let Some(profile) = &context.seccomp {
        return Ok(match profile.profile_type() {
            ProfileType::RuntimeDefault => SeccompChoice::Default,
            ProfileType::Unconfined => SeccompChoice::Unconfined,
            ProfileType::Localhost => SeccompChoice::File(local(&profile.localhost_ref, "seccomp")?),
        });
    }
    #[allow(deprecated)]
    let old = context.seccomp_profile_path.as_str();
    match old {
        "" | "unconfined" => Ok(SeccompChoice::Unconfined),
        "runtime/default" | "docker/default" => Ok(SeccompChoice::Default),
        path if path.starts_with("localhost/") => Ok(SeccompChoice::File(local(path, "seccomp")?)),
        other => Err(SpecError::BadProfile { kind: "seccomp", name: other.to_owned() }),
    }
}

/// The part after `localhost/`, which may be left out.
fn local(name: &str, kind: &'static str) -> Result<String, SpecError> {
    let bare = name.strip_prefix("localhost/").unwrap_or(name);
    if bare.is_empty() {
        return Err(SpecError::BadProfile { kind, name: name.to_owned() });
    }
    Ok(bare.to_owned())
}

/// The filter of a container that has these capabilities.
///
/// # Errors
/// The kernel has no filters, or the file is no profile.
pub(crate) fn seccomp(request: &Request<'_>, names: &CapabilityNames) -> Result<Option<LinuxSeccomp>, SpecError> {
    let choice = seccomp_choice(context::security(request.config))?;
    if choice != SeccompChoice::Unconfined && !request.node.seccomp {
        return Err(SpecError::ProfileUnsupported("seccomp"));
    }
    match choice {
        SeccompChoice::Unconfined => Ok(None),
        SeccompChoice::Default => Ok(Some(profile::default_profile(names, &request.node.architecture)?)),
        SeccompChoice::File(name) => {
            let failed = |reason: String| SpecError::SeccompFile { name: name.clone(), reason };
            let text = request.seccomp_file.ok_or_else(|| failed("not read".to_owned()))?;
            serde_json::from_str(text).map(Some).map_err(|e| failed(e.to_string()))
        }
    }
}

/// The AppArmor profile of a process; `None`: none.
///
/// # Errors
/// A profile is asked for by name, and AppArmor is off; or `RuntimeDefault` is, and no profile stands for it.
pub(crate) fn apparmor(
    context: Option<&v1::LinuxContainerSecurityContext>,
    node: &AppArmor,
) -> Result<Option<String>, SpecError> {
    let Some(context) = context.filter(|c| !c.privileged) else { return Ok(None) };
    let asked = asked_apparmor(context)?;
    let AppArmor::On { default_profile } = node else {
        return match asked {
            None | Some((ProfileType::Unconfined, _)) => Ok(None),
            Some(_) => Err(SpecError::ProfileUnsupported("AppArmor")),
        };
    };
    match asked {
        // Who asks for nothing gets the default where there is one.
        None => Ok(default_profile.clone()),
        Some((ProfileType::Unconfined, _)) => Ok(Some("unconfined".to_owned())),
        Some((ProfileType::Localhost, name)) => Ok(Some(name)),
        Some((ProfileType::RuntimeDefault, _)) => match default_profile {
            Some(profile) => Ok(Some(profile.clone())),
            None => Err(SpecError::ProfileUnsupported("AppArmor profile RuntimeDefault")),
        },
    }
}

fn asked_apparmor(context: &v1::LinuxContainerSecurityContext) -> Result<Option<(ProfileType, String)>, SpecError> {
    if let Some(profile) = &context.apparmor {
        let name = match profile.profile_type() {
            ProfileType::Localhost => local(&profile.localhost_ref, "AppArmor")?,
            _ => String::new(),
        };
        return Ok(Some((profile.profile_type(), name)));
    }
    #[allow(deprecated)]
    let old = context.apparmor_profile.as_str();
    match old {
        "" => Ok(None),
        "runtime/default" => Ok(Some((ProfileType::RuntimeDefault, String::new()))),
        "unconfined" => Ok(Some((ProfileType::Unconfined, String::new()))),
        name if name.starts_with("localhost/") => Ok(Some((ProfileType::Localhost, local(name, "AppArmor")?))),
        other => Err(SpecError::BadProfile { kind: "AppArmor", name: other.to_owned() }),
    }
}

/// The container's SELinux options, else the pod's.
fn selinux<'a>(request: &Request<'a>) -> Option<&'a v1::SeLinuxOption> {
    let own = context::security(request.config).and_then(|s| s.selinux_options.as_ref());
    let pod = request.sandbox.linux.as_ref().and_then(|l| l.security_context.as_ref());
    own.or_else(|| pod.and_then(|s| s.selinux_options.as_ref())).filter(|_| request.node.selinux)
}

/// `user:role:type:level` of the process. Where nothing is asked for the process keeps the runtime's: no level is drawn here, unlike
/// containerd.
pub(crate) fn process_label(request: &Request<'_>) -> Option<String> {
    if context::is_privileged(request.config) {
        return None;
    }
    let o = selinux(request)?;
    let or = |s: &str, default: &str| if s.is_empty() { default.to_owned() } else { s.to_owned() };
    let [user, role, kind, level] =
        [or(&o.user, "system_u"), or(&o.role, "system_r"), or(&o.r#type, "container_t"), or(&o.level, "s0")];
    Some(format!("{user}:{role}:{kind}:{level}"))
}

/// The label of files in the container's mounts, of the process's level.
pub(crate) fn mount_label(request: &Request<'_>) -> Option<String> {
    if context::is_privileged(request.config) {
        return None;
    }
    let level = match selinux(request)?.level.as_str() {
        "" => "s0",
        level => level,
    };
    Some(format!("system_u:object_r:container_file_t:{level}"))
}
