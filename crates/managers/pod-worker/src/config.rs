//! Reads what configurations need from the host and writes the files that they point to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use container_config::{
    ContainerInput, DnsInput, DnsSource, DnsWarning, EnvInput, HostsInput, ImageUser, MountInput, ResolvConf,
    ResolvedVolume, SandboxInput, VolumeSource, claims, container_config, dns_config, environment, etc_hosts,
    host_name, sandbox_config, sub_paths,
};
use contract::image::EnsuredImage;
use contract::volume::{MountedVolumes, PrepareSubPath};
use cri_api::v1::{ContainerConfig, ImageSpec, PodSandboxConfig};
use model::core::Container;
use model::event::EventType;
use model::runtime::PodObservation;

use crate::job::{Job, text};

/// Longest resolver file that is read.
const RESOLV_CONF_MAX: u64 = 10 << 20;
/// Longest hosts file that is read.
const HOSTS_MAX: u64 = 10 << 20;

/// Volumes of the pod as configurations need them, images included.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodVolumes {
    pub(crate) mounted: std::sync::Arc<MountedVolumes>,
    /// Image volumes: resolved image, or why it is not there (reason, message).
    pub(crate) images: BTreeMap<String, Result<ImageSpec, (String, String)>>,
}

impl PodVolumes {
    fn resolved(&self) -> BTreeMap<String, ResolvedVolume> {
        let mut out: BTreeMap<String, ResolvedVolume> = BTreeMap::new();
        for (name, v) in &self.mounted.volumes {
            let source = VolumeSource::Path {
                host_path: text(&v.host_path),
                read_only: v.read_only,
                selinux_relabel: v.selinux_relabel,
            };
            out.insert(name.clone(), source);
        }
        for (name, image) in &self.images {
            if let Ok(spec) = image {
                out.insert(name.clone(), VolumeSource::Image(spec.clone()));
            }
        }
        out
    }
}

/// One container about to be created.
pub(crate) struct NewContainer<'a> {
    pub(crate) container: &'a Container,
    pub(crate) restart_count: u32,
    pub(crate) image: &'a EnsuredImage,
    pub(crate) pod_ips: &'a [IpAddr],
    pub(crate) volumes: &'a PodVolumes,
    pub(crate) observed: &'a PodObservation,
    /// Container that an ephemeral one targets.
    pub(crate) target: Option<&'a str>,
}

impl Job {
    /// Configuration of the sandbox; the same one is sent again with every container.
    pub(crate) async fn sandbox_config(
        &self,
        attempt: u32,
        cgroup_parent: &str,
        volume_groups: &[i64],
    ) -> Result<PodSandboxConfig, String> {
        let pod = &self.pod;
        if pod.spec.as_ref().is_some_and(|s| s.host_users == Some(false)) {
            return Err("hostUsers: false is not supported by this node yet".to_owned());
        }
        let config = &self.deps.config;
        let source = self.dns_source().await?;
        let (dns, warnings) = dns_config(&DnsInput {
            pod,
            cluster_domain: &config.node.cluster_domain,
            cluster_dns: &config.cluster_dns,
            source: &source,
        });
        for warning in warnings {
            if warning == DnsWarning::MissingClusterDns {
                self.node_event(EventType::Warning, warning.reason(), DnsWarning::NODE_MESSAGE);
            }
            self.event(EventType::Warning, warning.reason(), warning.message(pod));
        }
        sandbox_config(&SandboxInput {
            pod,
            node: &config.node,
            attempt,
            dns,
            cgroup_parent: cgroup_parent.to_owned(),
            resources: Some(cgroup_values::cri::sandbox_resources(pod, &config.facts, &config.rules)),
            overhead: Some(cgroup_values::cri::sandbox_overhead(pod, &config.facts, &config.rules)),
            userns: None,
            volume_groups,
        })
        .map_err(|e| e.to_string())
    }

    async fn dns_source(&self) -> Result<DnsSource, String> {
        let Some(path) = self.deps.config.resolv_conf.clone() else {
            return Ok(DnsSource::Disabled { node_ips: self.host_ips() });
        };
        let shown = path.display().to_string();
        let bytes = self.on_host(move |fs| fs.read_file(&path, RESOLV_CONF_MAX)).await?;
        let conf = ResolvConf::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| format!("{shown}: {e}"))?;
        Ok(DnsSource::File(conf))
    }

    /// Configuration of a container, with the files that it mounts written. The text of a failure is the container's
    /// waiting message.
    pub(crate) async fn container_config(&self, new: &NewContainer<'_>) -> Result<ContainerConfig, String> {
        let (pod, config) = (&*self.pod, &self.deps.config);
        if let Some(claim) = claims::container_claims(pod, new.container).first() {
            return Err(no_driver(claim));
        }
        let node = self.node();
        let (services, mut objects) = (self.services().await, self.env_objects(new.container).await);
        objects.files = self.env_files(new.container, &new.volumes.mounted).await;
        let env = environment(&EnvInput {
            pod,
            container: new.container,
            node: &node,
            services: services.as_deref(),
            objects: &objects,
            pod_ips: new.pod_ips,
        })
        .map_err(|e| e.to_string())?;
        let prepared = self.prepare_sub_paths(new, &sub_paths(new.container, &env).map_err(|e| e.to_string())?).await?;
        if container_config::mounts::mounts_etc_hosts(pod, new.container, !new.pod_ips.is_empty()) {
            self.write_etc_hosts(new.pod_ips).await?;
        }
        let log_dir = self.container_log_dir(&new.container.name);
        self.on_host(move |fs| fs.create_dir(&log_dir, 0o755)).await?;
        let termination_log = self.termination_log(new).await;
        let target = match new.target {
            Some(name) => Some(target_id(new.observed, name)?),
            None => None,
        };
        let image_user = ImageUser { uid: new.image.uid, username: new.image.username.clone() };
        container_config(&ContainerInput {
            mounts: MountInput {
                pod,
                container: new.container,
                node: &node,
                env: &env,
                volumes: &new.volumes.resolved(),
                sub_paths: &prepared,
                has_pod_ip: !new.pod_ips.is_empty(),
                termination_log: termination_log.as_deref(),
                recursive_read_only: self.recursive_read_only(new.observed),
                userns: None,
            },
            restart_count: new.restart_count,
            hash: pod_plan::hash::spec_hash(new.container),
            image_ref: &new.image.image_ref,
            image_user: &image_user,
            volume_groups: &new.volumes.mounted.supplemental_groups,
            target: target.as_deref(),
            devices: Vec::new(),
            cdi_devices: Vec::new(),
            annotations: &BTreeMap::new(),
            resources: Some(cgroup_values::cri::container_resources(pod, new.container, &config.facts, &config.rules)),
        })
        .map_err(|e| e.to_string())
    }

    async fn prepare_sub_paths(
        &self,
        new: &NewContainer<'_>,
        sub_paths: &[container_config::mounts::SubPath],
    ) -> Result<BTreeMap<usize, String>, String> {
        let mut out = BTreeMap::new();
        for sub in sub_paths {
            let Some(volume) = new.volumes.mounted.volumes.get(&sub.volume) else { continue };
            let ask = PrepareSubPath {
                uid: self.uid.clone(),
                container: new.container.name.clone(),
                volume: sub.volume.clone(),
                volume_path: volume.host_path.clone(),
                sub_path: sub.path.clone(),
                mount_index: sub.index,
            };
            let path = self.call(ask).await.map_err(|e| e.to_string())?;
            out.insert(sub.index, text(&path));
        }
        Ok(out)
    }

    async fn write_etc_hosts(&self, pod_ips: &[IpAddr]) -> Result<(), String> {
        let pod = self.pod.clone();
        let node = self.node();
        let ips = pod_ips.to_vec();
        self.on_host(move |fs| {
            let node_hosts = if model::pod::is_host_network(&pod) {
                fs.read_file(Path::new("/etc/hosts"), HOSTS_MAX)?
            } else {
                Vec::new()
            };
            // A host name that cannot be made has already failed the sandbox.
            let Ok(host_name) = host_name(&pod, &node.cluster_domain) else { return Ok(()) };
            let content = etc_hosts(&HostsInput {
                pod: &pod,
                pod_ips: &ips,
                host_name: &host_name,
                node_hosts: &String::from_utf8_lossy(&node_hosts),
            });
            let path = PathBuf::from(container_config::mounts::etc_hosts_path(&node.root_dir, &pod));
            fs.write_file(&path, content.as_bytes(), 0o644)
        })
        .await
    }

    /// A fresh file for the termination message; a host that cannot make one costs only the message.
    async fn termination_log(&self, new: &NewContainer<'_>) -> Option<String> {
        let path = new.container.termination_message_path.as_deref().unwrap_or_default();
        if path.is_empty() {
            return None;
        }
        let root = &self.deps.config.node.root_dir;
        let dir = PathBuf::from(container_config::mounts::container_dir(root, &self.pod, &new.container.name));
        let salt = format!("{}/{}/{}", new.container.name, new.restart_count, self.seed);
        let file = dir.join(format!("{:08x}", pod_plan::hash::fnv1a_32(salt.as_bytes())));
        let shown = text(&file);
        let made = self
            .on_host(move |fs| {
                fs.create_dir(&dir, 0o750)?;
                fs.create_file(&file, 0o666)
            })
            .await;
        match made {
            Ok(()) => Some(shown),
            Err(e) => {
                tracing::warn!(uid = %self.uid, container = new.container.name, error = e, "no termination log");
                None
            }
        }
    }
}

/// There is nobody here who could prepare devices of a claim; a container that was promised them does not start without.
pub(crate) fn no_driver(claim: &str) -> String {
    format!("ResourceClaim {claim}: this node prepares no dynamic resources")
}

fn target_id(observed: &PodObservation, name: &str) -> Result<String, String> {
    let found = observed.container(name).map(|c| c.id.to_string());
    found.ok_or_else(|| format!("unable to find target container {name}"))
}
