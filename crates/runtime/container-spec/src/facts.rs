//! What a spec is made of beside the CRI's own messages.

use std::path::PathBuf;

use cri_api::v1;

use crate::CapabilityNames;
use crate::cdi::Edits;

/// All that a container's spec is made of.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The container's id, which its cgroup is named after.
    pub container_id: &'a str,
    /// Its pod sandbox's id.
    pub sandbox_id: &'a str,
    /// What is asked for.
    pub config: &'a v1::ContainerConfig,
    /// The pod's config.
    pub sandbox: &'a v1::PodSandboxConfig,
    /// How the image wants its process started.
    pub image: &'a ImageProcess,
    /// Users and groups of the image.
    pub users: &'a UserFiles,
    /// The pod's namespaces.
    pub namespaces: &'a PodNamespaces,
    /// The process whose PID namespace is joined in mode TARGET.
    pub target_pid: Option<u32>,
    /// Files that every container of the pod gets.
    pub files: &'a PodFiles,
    /// One per mount of the config, in its order.
    pub sources: &'a [MountSource],
    /// One list per device of the config, in its order: a folder stands for all devices in it.
    pub devices: &'a [Vec<DeviceNode>],
    /// What its devices of the Container Device Interface bring.
    pub cdi: &'a Brought,
    /// The text of the seccomp profile that [`crate::seccomp_choice`] names a file for.
    pub seccomp_file: Option<&'a str>,
    /// The node.
    pub node: &'a NodeFacts,
}

/// The part of an image's configuration that says how to start it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageProcess {
    /// First words of the command line.
    pub entrypoint: Vec<String>,
    /// The rest, which a container's arguments replace.
    pub cmd: Vec<String>,
    /// `NAME=value`.
    pub env: Vec<String>,
    /// Working directory; empty: `/`.
    pub working_dir: String,
    /// `user[:group]`, names or numbers; empty: root.
    pub user: String,
}

/// `/etc/passwd` and `/etc/group` of an image as text; empty where it has none.
#[derive(Clone, Debug, Default)]
pub struct UserFiles {
    /// `/etc/passwd`.
    pub passwd: String,
    /// `/etc/group`.
    pub group: String,
}

/// Files that hold the pod's namespaces; `None`: the node's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNamespaces {
    /// Network.
    pub network: Option<PathBuf>,
    /// System V IPC and message queues.
    pub ipc: Option<PathBuf>,
    /// Host name.
    pub uts: Option<PathBuf>,
    /// Process ids, where containers of the pod share one.
    pub pid: Option<PathBuf>,
    /// Users and groups.
    pub user: Option<PathBuf>,
}

/// Files of the node that become `/etc/hostname`, `/etc/hosts`, `/etc/resolv.conf` and `/dev/shm` of containers; `None`: the
/// image's own, or none.
#[derive(Clone, Debug, Default)]
pub struct PodFiles {
    /// `/etc/hostname`.
    pub hostname: Option<PathBuf>,
    /// `/etc/hosts`.
    pub hosts: Option<PathBuf>,
    /// `/etc/resolv.conf`.
    pub resolv_conf: Option<PathBuf>,
    /// `/dev/shm`.
    pub shm: Option<PathBuf>,
}

/// How the mount under a path of the node takes part in propagation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourcePropagation {
    /// Neither gives nor takes.
    #[default]
    Private,
    /// Takes only.
    Slave,
    /// Gives and takes.
    Shared,
}

/// Where a mount's path on the node leads.
#[derive(Clone, Debug, Default)]
pub struct MountSource {
    /// The path without symbolic links. For an image, the folder where its root file system is mounted.
    pub path: PathBuf,
    /// Of the mount that the path lies on.
    pub propagation: SourcePropagation,
}

/// Which kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Characters.
    Char,
    /// Blocks.
    Block,
    /// A named pipe.
    Fifo,
}

/// A device node of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNode {
    /// Its path in the container.
    pub path: PathBuf,
    /// Its kind.
    pub kind: DeviceKind,
    /// Major number.
    pub major: i64,
    /// Minor number.
    pub minor: i64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What a container's devices of the Container Device Interface bring.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    /// By their files.
    pub edits: Edits,
    /// What is found on the node, one per device node of the edits, in their order; `None`: nobody had to look
    /// ([`crate::cdi::NodeEdit::is_complete`]), or nothing is there.
    pub found: Vec<Option<DeviceNode>>,
}

/// Whether the kernel holds processes to AppArmor profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AppArmor {
    /// It does not.
    #[default]
    Off,
    /// It does.
    On {
        /// The name of the loaded profile that stands for `RuntimeDefault`, if there is one.
        default_profile: Option<String>,
    },
}

/// What the machine and its OCI runtime can do.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// One hierarchy for all controllers.
    pub cgroup_v2: bool,
    /// Options of the mount of `/sys/fs/cgroup` that a mount without a cgroup namespace would otherwise undo: `nsdelegate`,
    /// `memory_recursiveprot`.
    pub cgroup_mount_options: Vec<String>,
    /// Swap can be limited.
    pub swap_controller: bool,
    /// Huge pages can be limited.
    pub hugetlb_controller: bool,
    /// The kernel has seccomp filters.
    pub seccomp: bool,
    /// AppArmor.
    pub apparmor: AppArmor,
    /// SELinux holds processes to labels.
    pub selinux: bool,
    /// The OCI runtime makes recursive read-only mounts.
    pub recursive_read_only: bool,
    /// The OCI runtime makes mounts with mapped ids.
    pub idmap_mounts: bool,
    /// All capabilities that may be given here.
    pub capabilities: CapabilityNames,
    /// The lowest `oom_score_adj` that may be set here; `None`: any.
    pub lowest_oom_score_adj: Option<i32>,
    /// `x86_64`, `aarch64`, ...
    pub architecture: String,
    /// All devices of the node, for privileged containers.
    pub host_devices: Vec<DeviceNode>,
    /// The node's host name, for pods that have none.
    pub hostname: String,
    /// Soft and hard limits that every container gets, such as `("RLIMIT_NOFILE", 1024, 4096)`; empty: those of the runtime.
    pub rlimits: Vec<(oci_spec::runtime::PosixRlimitType, u64, u64)>,
}
