//! Setting volumes up. Every function blocks and may be repeated.

use std::path::PathBuf;

use actor::chain;
use contract::volume::{MappedDevice, MountedVolume, MountedVolumes, VolumeError};
use model::core::{Pod, Volume};
use volume_plan::claim::Mode;

use crate::deps::{Config, Deps};
use crate::empty_dir;
use crate::failed::Failed;
use crate::host_path;
use crate::layout::{EMPTY_DIR, PRIVATE, PodLayout};
use crate::measure::{MOUNT, counted};
use crate::placed::Placed;
use crate::projected::{self, Content, Trouble};
use crate::spec::{self, Kind, Medium};

/// The directories that a pod has before anything else.
pub(crate) fn pod_dirs(deps: &Deps, layout: &PodLayout) -> Result<(), VolumeError> {
    for dir in [layout.dir().to_owned(), layout.volumes(), layout.plugins()] {
        deps.fs.create_dir(&dir, PRIVATE).map_err(|e| VolumeError::new(chain(&e)))?;
    }
    Ok(())
}

/// How a try on all volumes of a pod went.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What can be mounted.
    pub done: MountedVolumes,
    /// What cannot.
    pub failed: Vec<Failed>,
    /// What can, with content of an earlier try.
    pub stale: Vec<Failed>,
}

impl Outcome {
    /// Volumes that are not as they should be.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &Failed> {
        self.failed.iter().chain(&self.stale)
    }

    /// This one and that of the pod's other volumes, which is told of in the order of the specification.
    pub(crate) fn join(mut self, other: Self, pod: &Pod) -> Self {
        let MountedVolumes { volumes, devices, supplemental_groups } = other.done;
        self.done.volumes.extend(volumes);
        self.done.devices.extend(devices);
        self.done.supplemental_groups.extend(supplemental_groups);
        self.done.supplemental_groups.sort_unstable();
        self.done.supplemental_groups.dedup();
        let used = spec::used_volumes(pod);
        let place = |failed: &Failed| used.iter().position(|(volume, _)| volume.name == failed.volume);
        for (mine, others) in [(&mut self.failed, other.failed), (&mut self.stale, other.stale)] {
            mine.extend(others);
            mine.sort_by_key(place);
        }
        self
    }
}

/// Sets up these volumes; one that fails does not hold up the others.
pub(crate) fn all((deps, config): (&Deps, &Config), pod: &Pod, volumes: &[String], content: &Content) -> Outcome {
    let mut out = Outcome::default();
    for (volume, kind) in spec::used_volumes(pod).into_iter().filter(|(volume, _)| volumes.contains(&volume.name)) {
        let name = || volume.name.clone();
        if kind == Kind::Persistent {
            match content.persistent.get(&volume.name).cloned() {
                Some(Ok(placed)) => {
                    out.done.supplemental_groups.extend(placed.group);
                    place(&mut out.done, name(), placed);
                }
                Some(Err(failed)) => out.failed.push(failed),
                None => out.failed.push(Failed::own(&volume.name, "it was not looked at".to_owned(), false)),
            }
            continue;
        }
        let plugin = plugin(&kind);
        match counted(MOUNT, plugin, || one((deps, config), pod, volume, &kind, content)) {
            Ok(Some(mounted)) => {
                out.done.volumes.insert(name(), mounted);
            }
            Ok(None) => {}
            Err(Trouble::Absent(error)) => {
                let hopeless = matches!(kind, Kind::Unsupported(_) | Kind::EmptyDir(Medium::Refused(_)));
                out.failed.push(Failed::own(&volume.name, error, hopeless));
            }
            Err(Trouble::Stale(path, error)) => {
                out.done.volumes.insert(name(), holding_objects(path));
                out.stale.push(Failed::own(&volume.name, error, false));
            }
        }
    }
    out.done.supplemental_groups.sort_unstable();
    out.done.supplemental_groups.dedup();
    out
}

fn place(done: &mut MountedVolumes, name: String, placed: Placed) {
    let Placed { mounted, of, .. } = placed;
    match of.mode {
        Mode::Filesystem => drop(done.volumes.insert(name, mounted)),
        Mode::Block => {
            let device = MappedDevice { host_path: mounted.host_path, read_only: mounted.read_only };
            done.devices.insert(name, device);
        }
    }
}

/// Directory name of the kind; `None`: nothing is mounted for it here.
fn plugin(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::EmptyDir(_) => Some(EMPTY_DIR),
        Kind::HostPath { .. } => Some("kubernetes.io~host-path"),
        Kind::Projected { plugin, .. } => Some(plugin),
        Kind::Image | Kind::Persistent | Kind::Unsupported(_) => None,
    }
}

/// Nothing that a container writes there would last.
fn holding_objects(host_path: PathBuf) -> MountedVolume {
    MountedVolume { host_path, read_only: true, selinux_relabel: true }
}

fn one(
    (deps, config): (&Deps, &Config),
    pod: &Pod,
    volume: &Volume,
    kind: &Kind,
    content: &Content,
) -> Result<Option<MountedVolume>, Trouble> {
    match kind {
        Kind::Image | Kind::Persistent => Ok(None),
        Kind::Unsupported(name) => {
            Err(Trouble::Absent(format!("volume {:?}: {name} volumes are not supported", volume.name)))
        }
        Kind::HostPath { path, check } => {
            host_path::check(&*deps.fs, path, check).map_err(Trouble::Absent)?;
            Ok(Some(MountedVolume { host_path: path.into(), read_only: false, selinux_relabel: false }))
        }
        Kind::EmptyDir(medium) => {
            let host_path = empty_dir::set_up(deps, config, pod, volume, medium).map_err(Trouble::Absent)?;
            Ok(Some(MountedVolume { host_path, read_only: false, selinux_relabel: true }))
        }
        Kind::Projected { plugin, medium } => {
            let path = projected::set_up((deps, config), pod, volume, (plugin, medium), content)?;
            Ok(Some(holding_objects(path)))
        }
    }
}
