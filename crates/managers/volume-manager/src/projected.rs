//! Volumes that hold API objects (node-and-resources 6.9): an emptyDir, filled by the atomic writer.

use std::path::{Path, PathBuf};

use actor::chain;
use container_config::env::{container_resource, object_field};
use model::Timestamp;
use model::core::{Pod, Volume};
use model::pod;
use ports::host::{HostError, HostFs};
use projection::atomic::{self, Current, DATA, Step};
use projection::{DownwardApi, Fetched, Payload, PayloadInput};

use crate::deps::{Config, Deps};
use crate::empty_dir::{Wrapper, make_wrapper};
use crate::layout::PodLayout;
use crate::listing::volume_root;
use crate::ownership::{Grant, give_to_group};
use crate::placed::Outcomes;
use crate::spec::{self, Medium};
use crate::tear_down::{self, Proof};

/// The same fields and resources as in variables.
const DOWNWARD_API: DownwardApi = DownwardApi {
    field: |path, pod| object_field(path, pod).map_err(|e| e.to_string()),
    resource: |selector, pod, allocatable| {
        container_resource(selector, pod, None, allocatable).map_err(|e| e.to_string())
    },
};

/// Longer than any object of the API.
const FILE_MAX_BYTES: u64 = 16 << 20;

/// What a try works with, besides the host.
#[derive(Debug)]
pub(crate) struct Content {
    /// What was fetched for the pod.
    pub fetched: Fetched,
    /// What became of its persistent volumes.
    pub persistent: Outcomes,
    /// Names the new directories.
    pub now: Timestamp,
    /// Tells directories of the same second apart.
    pub random: u32,
}

/// A volume that is not as it should be.
pub(crate) enum Trouble {
    /// There is nothing that a container could use.
    Absent(String),
    /// What is there is complete, but of an earlier try.
    Stale(PathBuf, String),
}

/// Sets a volume up, or brings its files in line.
pub(crate) fn set_up(
    (deps, config): (&Deps, &Config),
    pod: &Pod,
    volume: &Volume,
    (plugin, medium): (&'static str, &Medium),
    content: &Content,
) -> Result<PathBuf, Trouble> {
    let refused = |e: contract::volume::VolumeError| Trouble::Absent(e.message);
    let layout = PodLayout::new(&config.root_dir, &pod::uid(pod)).map_err(refused)?;
    let dir = layout.volume(plugin, &volume.name).map_err(refused)?;
    let whole = is_whole(deps, &dir, *medium == Medium::Memory);
    let made = fill((deps, config), pod, volume, &Place { dir: &dir, medium, whole }, content);
    made.map(|()| dir.clone()).map_err(|error| {
        if whole {
            return Trouble::Stale(dir, error);
        }
        // Nobody has used it yet: nothing half made stays behind.
        if deps.fs.stat_link(&dir).is_ok_and(|s| s.is_some())
            && let Err(e) = tear_down::one(deps, &layout, (plugin, &volume.name), Proof::Ended)
        {
            tracing::warn!(volume = %volume.name, error = %e, "a volume that could not be set up cannot be removed");
        }
        Trouble::Absent(error)
    })
}

/// Whether an earlier try ended well. The link to the files is made after all else.
fn is_whole(deps: &Deps, dir: &Path, memory: bool) -> bool {
    deps.fs.stat_link(&dir.join(DATA)).is_ok_and(|s| s.is_some())
        && (!memory || deps.mounts.is_mount_point(dir).is_ok_and(|mounted| mounted))
}

struct Place<'a> {
    dir: &'a Path,
    medium: &'a Medium,
    whole: bool,
}

fn fill(
    (deps, config): (&Deps, &Config),
    pod: &Pod,
    volume: &Volume,
    place: &Place<'_>,
    content: &Content,
) -> Result<(), String> {
    let fs_group = spec::fs_group(pod);
    // Before anything is made: a pod that waits for an object leaves nothing behind.
    let payload = projection::payload(
        volume,
        &PayloadInput {
            pod,
            fetched: &content.fetched,
            downward_api: DOWNWARD_API,
            allocatable: &config.allocatable,
            fs_user: projection::fs_user(pod),
            fs_group,
        },
    )?;
    if !place.whole {
        let size_bytes = spec::tmpfs_size(pod, volume, config.memory_allocatable_bytes);
        make_wrapper(deps, &Wrapper { dir: place.dir, fs_group, size_bytes }, place.medium).map_err(|e| chain(&e))?;
    }
    for inner in projection::nested_mount_points(pod, &volume.name) {
        deps.fs.create_dir_within(place.dir, Path::new(&inner), 0o755).map_err(|e| chain(&e))?;
    }
    write(&*deps.fs, place.dir, &payload, fs_group, &atomic::dir_name(content.now, content.random))
}

/// Makes the files of a directory these.
fn write(fs: &dyn HostFs, dir: &Path, payload: &Payload, fs_group: Option<u32>, name: &str) -> Result<(), String> {
    let now = read(fs, dir).map_err(|e| chain(&e))?;
    for step in atomic::plan(payload, &now, name).map_err(|e| e.to_string())? {
        carry_out(fs, dir, step, fs_group).map_err(|e| chain(&e))?;
    }
    Ok(())
}

fn read(fs: &dyn HostFs, dir: &Path) -> Result<Current, HostError> {
    let mut now = Current { entries: volume_root(fs, dir)?, ..Current::default() };
    if let Some(data) = now.data_dir().map(str::to_owned) {
        read_files(fs, &dir.join(data), "", &mut now)?;
    }
    Ok(now)
}

fn read_files(fs: &dyn HostFs, dir: &Path, prefix: &str, now: &mut Current) -> Result<(), HostError> {
    for entry in fs.list_dir(dir)? {
        let (path, name) = (dir.join(&entry.name), format!("{prefix}{}", entry.name));
        if entry.is_dir {
            read_files(fs, &path, &format!("{name}/"), now)?;
        } else {
            // A file that cannot be read is none of ours: the new content replaces it.
            now.files.insert(name, fs.read_file(&path, FILE_MAX_BYTES).unwrap_or_default());
        }
    }
    Ok(())
}

fn carry_out(fs: &dyn HostFs, dir: &Path, step: Step, fs_group: Option<u32>) -> Result<(), HostError> {
    match step {
        Step::MakeDir { path, mode } => fs.create_dir(&dir.join(path), mode),
        Step::Write { path, file } => {
            let path = dir.join(path);
            fs.write_file(&path, &file.data, file.mode)?;
            file.owner.map_or(Ok(()), |uid| fs.set_owner(&path, Some(uid), None))
        }
        Step::GiveToGroup { path } => {
            if let Some(gid) = fs_group {
                give_to_group(fs, &dir.join(path), gid, Grant::Read)?;
            }
            Ok(())
        }
        Step::Link { path, target } => fs.symlink(Path::new(&target), &dir.join(path)),
        Step::Rename { from, to } => fs.rename(&dir.join(from), &dir.join(to)),
        Step::Remove { path } => fs.remove_file(&dir.join(path)),
        Step::RemoveDir { path } => fs.remove_tree(&dir.join(path)),
    }
}
