//! A pod with one container, to be changed by each row.

use std::path::PathBuf;

use cri_api::v1;
use oci_spec::runtime::Spec;

use crate::{
    AppArmor, Brought, DeviceNode, ImageProcess, MountSource, NodeFacts, PodFiles, PodNamespaces, Request, SpecError,
    UserFiles, container_spec,
};

#[derive(Clone)]
pub(super) struct Fixture {
    pub(super) config: v1::ContainerConfig,
    pub(super) sandbox: v1::PodSandboxConfig,
    pub(super) image: ImageProcess,
    pub(super) users: UserFiles,
    pub(super) namespaces: PodNamespaces,
    pub(super) target_pid: Option<u32>,
    pub(super) files: PodFiles,
    pub(super) sources: Vec<MountSource>,
    pub(super) devices: Vec<Vec<DeviceNode>>,
    pub(super) cdi: Brought,
    pub(super) seccomp_file: Option<String>,
    pub(super) node: NodeFacts,
}

impl Default for Fixture {
    fn default() -> Self {
        let ns = |name: &str| Some(PathBuf::from(format!("/run/ns/{name}")));
        let config = v1::ContainerConfig {
            metadata: Some(v1::ContainerMetadata { name: "main".into(), attempt: 0 }),
            command: vec!["/bin/sh".into()],
            linux: Some(v1::LinuxContainerConfig {
                resources: Some(v1::LinuxContainerResources::default()),
                security_context: Some(v1::LinuxContainerSecurityContext {
                    namespace_options: Some(v1::NamespaceOption {
                        pid: v1::NamespaceMode::Container.into(),
                        ..Default::default()
                    }),
                    ..Default::default()
                }),
            }),
            ..Default::default()
        };
        let sandbox = v1::PodSandboxConfig {
            linux: Some(v1::LinuxPodSandboxConfig {
                cgroup_parent: "/kubepods/pod1".into(),
                security_context: Some(v1::LinuxSandboxSecurityContext::default()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let namespaces =
            PodNamespaces { network: ns("net"), ipc: ns("ipc"), uts: ns("uts"), pid: ns("pid"), user: ns("user") };
        Self {
            config,
            sandbox,
            image: ImageProcess::default(),
            users: UserFiles::default(),
            namespaces,
            target_pid: None,
            files: PodFiles::default(),
            sources: Vec::new(),
            devices: Vec::new(),
            cdi: Brought::default(),
            seccomp_file: None,
            node: node(),
        }
    }
}

fn node() -> NodeFacts {
    NodeFacts {
        cgroup_v2: true,
        cgroup_mount_options: vec!["nsdelegate".into()],
        swap_controller: true,
        hugetlb_controller: true,
        seccomp: true,
        apparmor: AppArmor::Off,
        selinux: false,
        recursive_read_only: true,
        idmap_mounts: false,
        capabilities: ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"].map(str::to_owned).into(),
        lowest_oom_score_adj: None,
        architecture: "x86_64".into(),
        host_devices: Vec::new(),
        hostname: "node-1".into(),
        rlimits: Vec::new(),
    }
}

impl Fixture {
    pub(super) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut fixture = Self::default();
        change(&mut fixture);
        fixture
    }

    pub(super) fn security(&mut self) -> &mut v1::LinuxContainerSecurityContext {
        self.config.linux.get_or_insert_default().security_context.get_or_insert_default()
    }

    pub(super) fn resources(&mut self) -> &mut v1::LinuxContainerResources {
        self.config.linux.get_or_insert_default().resources.get_or_insert_default()
    }

    pub(super) fn pod_security(&mut self) -> &mut v1::LinuxSandboxSecurityContext {
        self.sandbox.linux.get_or_insert_default().security_context.get_or_insert_default()
    }

    pub(super) fn options(&mut self) -> &mut v1::NamespaceOption {
        self.security().namespace_options.get_or_insert_default()
    }

    pub(super) fn privileged(&mut self) {
        self.security().privileged = true;
        self.pod_security().privileged = true;
    }

    pub(super) fn spec(&self) -> Result<Spec, SpecError> {
        container_spec(&Request {
            container_id: "c1",
            sandbox_id: "s1",
            config: &self.config,
            sandbox: &self.sandbox,
            image: &self.image,
            users: &self.users,
            namespaces: &self.namespaces,
            target_pid: self.target_pid,
            files: &self.files,
            sources: &self.sources,
            devices: &self.devices,
            cdi: &self.cdi,
            seccomp_file: self.seccomp_file.as_deref(),
            node: &self.node,
        })
    }

    /// The spec as its readers see it.
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::to_value(self.spec().expect("a spec")).expect("json")
    }

    pub(super) fn error(&self) -> String {
        self.spec().expect_err("refused").to_string()
    }
}
