//! Reads what configurations need from the host and writes the files that they point to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use container_config::{
    ContainerInput, DnsInput, DnsSource, DnsWarning, EnvInput, ImageUser, MountInput, RawVolume, ResolvConf,
    ResolvedVolume, SandboxInput, VolumeSource, claims, container_config, dns_config, environment, sandbox_config,
    sub_paths,
};
use contract::image::EnsuredImage;
use contract::runtime::{RuntimeHandler, RuntimeInfo};
use contract::volume::{AssignUserNamespace, MappedDevice, MountedVolumes, PrepareSubPath};
use cri_api::v1::{ContainerConfig, ImageSpec, PodSandboxConfig};
use model::core::Container;
use model::event::EventType;
use model::runtime::PodObservation;
use model::userns::{UserNamespace, has_own_users};

use crate::files::{ContainerFiles, Written};
use crate::job::{Job, text};

/// Longest resolver file that is read.
const RESOLV_CONF_MAX: u64 = 10 << 20;

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

    fn raw(&self) -> BTreeMap<String, RawVolume> {
        let raw = |d: &MappedDevice| RawVolume { host_path: text(&d.host_path), read_only: d.read_only };
        self.mounted.devices.iter().map(|(name, d)| (name.clone(), raw(d))).collect()
    }
}

/// One container about to be created.
pub(crate) struct NewContainer<'a> {
    pub(crate) container: &'a Container,
    /// Its restart count; `None`: the logs of earlier instances tell.
    pub(crate) attempt: Option<u32>,
    pub(crate) image: &'a EnsuredImage,
    pub(crate) pod_ips: &'a [IpAddr],
    pub(crate) volumes: &'a PodVolumes,
    /// Users of the pod's sandbox, where these are its own.
    pub(crate) userns: Option<UserNamespace>,
    pub(crate) observed: &'a PodObservation,
    /// Container that an ephemeral one targets.
    pub(crate) target: Option<&'a str>,
}

impl Job {
    /// Configuration of the sandbox; the same one is sent again with every container. With `creates`, the folder of its logs is
    /// made.
    pub(crate) async fn sandbox_config(
        &self,
        attempt: u32,
        creates: bool,
        cgroup_parent: &str,
        volume_groups: &[i64],
    ) -> Result<PodSandboxConfig, String> {
        let pod = &self.pod;
        let userns = self.user_namespace(creates).await?;
        let config = &self.deps.config;
        let source = self.dns_source(creates.then(|| self.pod_log_dir())).await?;
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
            userns,
            volume_groups,
        })
        .map_err(|e| e.to_string())
    }

    /// Users of the pod's own, if it is to have such.
    async fn user_namespace(&self, creates: bool) -> Result<Option<UserNamespace>, String> {
        if !has_own_users(&self.pod) {
            return Ok(None);
        }
        if creates {
            let handler = self.runtime_handler().await.map_err(|e| e.to_string())?;
            user_namespaces_offered(&self.crew.value::<RuntimeInfo>().get().handlers, &handler)?;
        }
        self.call(AssignUserNamespace { uid: self.uid.clone() }).await.map(Some).map_err(|e| e.to_string())
    }

    /// What the host says of DNS; makes the folder too, on the same way.
    async fn dns_source(&self, log_dir: Option<PathBuf>) -> Result<DnsSource, String> {
        let path = self.deps.config.resolv_conf.clone();
        if path.is_none() && log_dir.is_none() {
            return Ok(DnsSource::Disabled { node_ips: self.host_ips() });
        }
        let read = self.on_host(move |fs| {
            log_dir.map_or(Ok(()), |dir| fs.create_dir(&dir, 0o755))?;
            path.map(|path| Ok((fs.read_file(&path, RESOLV_CONF_MAX)?, path))).transpose()
        });
        let Some((bytes, path)) = read.await? else {
            return Ok(DnsSource::Disabled { node_ips: self.host_ips() });
        };
        let shown = path.display().to_string();
        let conf = ResolvConf::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| format!("{shown}: {e}"))?;
        Ok(DnsSource::File(conf))
    }

    /// Configuration of a container and its restart count, with the files that it mounts written. The text of a failure is the
    /// container's waiting message.
    pub(crate) async fn container_config(&self, new: &NewContainer<'_>) -> Result<(ContainerConfig, u32), String> {
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
        let files = self.files_of(new);
        let Written { restart_count, termination_log } = self.on_host(move |fs| files.write(fs)).await?;
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
                userns: new.userns,
            },
            restart_count,
            hash: pod_plan::hash::spec_hash(new.container),
            image_ref: &new.image.image_ref,
            image_user: &image_user,
            volume_groups: &new.volumes.mounted.supplemental_groups,
            target: target.as_deref(),
            raw_volumes: &new.volumes.raw(),
            devices: Vec::new(),
            cdi_devices: Vec::new(),
            annotations: &BTreeMap::new(),
            resources: Some(cgroup_values::cri::container_resources(pod, new.container, &config.facts, &config.rules)),
        })
        .map(|config| (config, restart_count))
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

    fn files_of(&self, new: &NewContainer<'_>) -> ContainerFiles {
        let (pod, name) = (&*self.pod, &new.container.name);
        let root = &self.deps.config.node.root_dir;
        let mounts_hosts = container_config::mounts::mounts_etc_hosts(pod, new.container, !new.pod_ips.is_empty());
        let message_path = new.container.termination_message_path.as_deref().unwrap_or_default();
        let salt = format!("{name}/{:?}/{}", new.attempt, self.seed);
        ContainerFiles {
            hosts: mounts_hosts.then(|| (self.pod.clone(), self.node(), new.pod_ips.to_vec())),
            log_dir: self.container_log_dir(name),
            attempt: new.attempt,
            termination_log: (!message_path.is_empty()).then(|| {
                let dir = PathBuf::from(container_config::mounts::container_dir(root, pod, name));
                let file = format!("{:08x}", model::fnv::fnv1a_32(salt.as_bytes()));
                (dir, file)
            }),
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

/// Whether this handler of the runtime (empty: the default one) runs pods with users of their own. A runtime that names no handlers
/// has none that does.
fn user_namespaces_offered(handlers: &[RuntimeHandler], handler: &str) -> Result<(), String> {
    let known = handlers.iter().find(|h| h.name == handler);
    if known.is_some_and(|h| h.user_namespaces) {
        return Ok(());
    }
    let who = if handler.is_empty() { "runtime".to_owned() } else { format!("RuntimeClass handler {handler:?}") };
    let unknown = if known.is_none() && !handlers.is_empty() {
        format!(": the handler {handler:?} is not known")
    } else {
        String::new()
    };
    Err(format!("can't set `spec.hostUsers: false`, {who} does not support user namespaces{unknown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_users_need_a_handler_that_can() {
        let handler = |name: &str, user_namespaces| RuntimeHandler {
            name: name.to_owned(),
            recursive_read_only_mounts: false,
            user_namespaces,
        };
        let some = [handler("", false), handler("crun", true), handler("kata", false)];
        let not = |who: &str| Err(format!("can't set `spec.hostUsers: false`, {who} does not support user namespaces"));
        for (handlers, name, expected) in [
            (&some[..], "crun", Ok(())),
            (&some, "", not("runtime")),
            (&some, "kata", not("RuntimeClass handler \"kata\"")),
            (&[handler("", true)], "", Ok(())),
            (&[], "", not("runtime")),
            (&[], "crun", not("RuntimeClass handler \"crun\"")),
        ] {
            assert_eq!(user_namespaces_offered(handlers, name), expected, "{name:?} of {handlers:?}");
        }
        let unknown = user_namespaces_offered(&some, "runsc").unwrap_err();
        assert!(unknown.ends_with("does not support user namespaces: the handler \"runsc\" is not known"), "{unknown}");
    }
}
