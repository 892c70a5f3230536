//! The SELinux context that a volume is mounted with, instead of a label on each of its files (node-and-resources 6.13). The texts
//! are a kubelet's.

use std::collections::BTreeSet;

use model::core::{Container, Pod, SELinuxOptions};
use model::pod;

use crate::source::{Resolved, Source};

/// SELinux of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeLinux {
    /// Context of containers' files by the host's policy, `system_u:object_r:container_file_t:s0`.
    pub files: String,
    /// Volumes of every access mode are mounted with a context (gate `SELinuxMount`), not only those for one pod.
    pub every_mode: bool,
}

/// The context of containers' files in the text of the host's policy (`lxc_contexts`); `None`: it names none.
#[must_use]
pub fn files_context(policy: &str) -> Option<String> {
    let lines = policy.lines().map(str::trim).filter(|line| !line.starts_with([';', '#']));
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
    let value = |key: &str| {
        let (_, value) = fields.iter().rfind(|(k, _)| k.trim() == key)?;
        Some(value.trim().trim_matches('"').to_owned()).filter(|v| v.split(':').count() >= 3)
    };
    value("process").and_then(|_| value("file"))
}

impl SeLinux {
    /// Whether volumes of this access mode are mounted with a context. One that stands in a pod never is.
    #[must_use]
    pub fn mounts(&self, volume: &Resolved) -> bool {
        !is_inline(volume) && (self.every_mode || volume.access_modes == ["ReadWriteOncePod"])
    }

    /// The context that a pod's volume of this name would be mounted with; empty: with none. `supported`: by what it is made of.
    ///
    /// # Errors
    /// The containers that mount it have several labels.
    pub fn label(&self, of: &Pod, volume: &str, supported: bool) -> Result<String, String> {
        let options = options(of, volume);
        let labels: BTreeSet<String> = options.iter().map(|o| self.files_label(o)).collect();
        if labels.len() > 1 {
            let labels: Vec<String> = labels.into_iter().collect();
            return Err(format!("multiple SELinux labels found: {}", labels.join(",")));
        }
        let context = of.spec.as_ref().and_then(|s| s.security_context.as_ref());
        let is_recursive = context.and_then(|c| c.se_linux_change_policy.as_deref()) == Some("Recursive");
        let label = labels.into_iter().next().filter(|_| supported && !is_recursive);
        Ok(label.unwrap_or_default())
    }

    /// Label of the files of a container with these options; empty: the runtime alone knows it, as it chooses the level.
    fn files_label(&self, options: &SELinuxOptions) -> String {
        let given = |value: &Option<String>| value.clone().filter(|v| !v.is_empty());
        let Some(level) = given(&options.level) else { return String::new() };
        let mut parts = self.files.splitn(4, ':');
        let mut part = || parts.next().unwrap_or_default();
        let (user, role, kind) = (part(), part(), part());
        let user = given(&options.user).unwrap_or_else(|| user.to_owned());
        format!("{user}:{role}:{kind}:{level}")
    }
}

/// SELinux options of each container that mounts the volume, its own or the pod's.
fn options(of: &Pod, volume: &str) -> Vec<SELinuxOptions> {
    let of_pod = of.spec.as_ref().and_then(|s| s.security_context.as_ref()?.se_linux_options.clone());
    let ephemeral: Vec<Container> = pod::ephemeral_containers(of).map(|(c, _)| c).collect();
    let all = pod::init_containers(of).iter().chain(pod::regular_containers(of)).chain(&ephemeral);
    let mounting = all.filter(|c| c.volume_mounts.iter().flatten().any(|m| m.name == volume));
    let own = |c: &Container| c.security_context.as_ref().and_then(|s| s.se_linux_options.clone());
    mounting.filter_map(|c| own(c).or_else(|| of_pod.clone())).collect()
}

/// These mount options, and the one for a context.
#[must_use]
pub fn with_context(options: &[String], context: &str) -> Vec<String> {
    // Quoted, as a level has commas.
    let option = (!context.is_empty()).then(|| format!("context=\"{context}\""));
    options.iter().cloned().chain(option).collect()
}

/// The widest access mode, as the metrics of a kubelet name it.
#[must_use]
pub fn access_mode(volume: &Resolved) -> &'static str {
    let modes =
        [("ReadWriteMany", "RWX"), ("ReadOnlyMany", "ROX"), ("ReadWriteOnce", "RWO"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| volume.access_modes.iter().any(|m| m == mode);
    match modes.into_iter().find(|(mode, _)| has(mode)) {
        _ if is_inline(volume) => "inline",
        Some((_, short)) => short,
        None => "",
    }
}

/// Another pod here has the volume with another label.
#[must_use]
pub fn conflict(volume: &Resolved, has: &str, wants: &str) -> String {
    format!("conflicting SELinux labels of volume {}: {has:?} and {wants:?}", volume.name)
}

/// The volume is still mounted with another context.
#[must_use]
pub fn mismatch(unique_name: &str) -> String {
    format!(
        "waiting for unmount of volume {unique_name:?}, because it is already mounted to a different pod with a different SELinux label"
    )
}

/// The context among the options of a file system that is mounted; empty: there is none.
#[must_use]
pub fn mounted_context(options: &str) -> String {
    let options = format!(",{options}");
    let Some((_, text)) = options.split_once(",context=") else { return String::new() };
    let context = match text.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => text.split(',').next(),
    };
    context.unwrap_or_default().to_owned()
}

/// Whether it stands in a pod. A PersistentVolume has an access mode.
fn is_inline(volume: &Resolved) -> bool {
    match &volume.source {
        Source::Csi(csi) => csi.is_inline,
        Source::Lun(_) => volume.access_modes.is_empty(),
        Source::HostPath { .. } | Source::Nfs { .. } | Source::Local { .. } => false,
    }
}
