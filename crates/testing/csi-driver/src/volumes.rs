//! What each call does to a volume. Every one may be repeated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use csi_api::v1;
use v1::volume_capability::AccessType;

use crate::mounts::{self, Done};

/// Size of an image whose volume does not say.
const SIZE: u64 = 16 << 20;

/// Volumes below one folder.
#[derive(Clone, Debug)]
pub(crate) struct Volumes {
    folder: PathBuf,
    stages: bool,
}

/// How a volume is used.
enum Use {
    Directory,
    FileSystem { fs_type: String, flags: Vec<String> },
    Device,
}

fn refused(words: impl Into<String>) -> tonic::Status {
    tonic::Status::invalid_argument(words)
}

fn usage(capability: Option<v1::VolumeCapability>, context: &BTreeMap<String, String>) -> Done<Use> {
    let access = capability.and_then(|c| c.access_type).ok_or_else(|| refused("no volume capability"))?;
    let kind = context.get("kind").map_or("dir", String::as_str);
    Ok(match (access, kind) {
        (AccessType::Block(_), _) => Use::Device,
        (AccessType::Mount(_), "dir") => Use::Directory,
        (AccessType::Mount(m), "ext4") => {
            let fs_type = if m.fs_type.is_empty() { "ext4".to_owned() } else { m.fs_type };
            Use::FileSystem { fs_type, flags: m.mount_flags }
        }
        (AccessType::Mount(_), other) => return Err(refused(format!("kind {other:?}"))),
    })
}

/// The path of a request.
fn path(text: &str, what: &str) -> Done<PathBuf> {
    if text.starts_with('/') { Ok(PathBuf::from(text)) } else { Err(refused(format!("{what} {text:?}"))) }
}

impl Volumes {
    pub(crate) fn new(folder: &Path, stages: bool) -> Self {
        Self { folder: folder.join("volumes"), stages }
    }

    fn place(&self, id: &str) -> Done<PathBuf> {
        let fits = !id.is_empty() && !id.contains('/') && id != "." && id != "..";
        if fits { Ok(self.folder.join(id)) } else { Err(refused(format!("volume id {id:?}"))) }
    }

    fn image(&self, id: &str) -> Done<PathBuf> {
        Ok(self.place(id)?.join("image"))
    }

    /// The device of a volume, which has its size and its file system, if any, afterwards.
    fn device(&self, id: &str, context: &BTreeMap<String, String>, fs_type: Option<&str>) -> Done<PathBuf> {
        let size = context.get("size").map_or(Ok(SIZE), |s| s.parse()).map_err(|e| refused(format!("size: {e}")))?;
        mounts::make_dir(&self.place(id)?)?;
        let image = self.image(id)?;
        mounts::image(&image, size)?;
        let device = mounts::attach(&image)?;
        if let Some(fs_type) = fs_type {
            mounts::format(&device, fs_type)?;
        }
        Ok(device)
    }

    fn directory(&self, id: &str) -> Done<PathBuf> {
        let directory = self.place(id)?.join("data");
        mounts::make_dir(&directory)?;
        Ok(directory)
    }

    pub(crate) fn stage(&self, r: v1::NodeStageVolumeRequest) -> Done {
        let target = path(&r.staging_target_path, "staging target path")?;
        match usage(r.volume_capability, &r.volume_context)? {
            Use::Device => self.device(&r.volume_id, &r.volume_context, None).map(drop),
            _ if mounts::is_mounted(&target)? => Ok(()),
            Use::Directory => mounts::bind(&self.directory(&r.volume_id)?, &target, false),
            Use::FileSystem { fs_type, flags } => {
                let device = self.device(&r.volume_id, &r.volume_context, Some(&fs_type))?;
                mounts::mount(&device, &target, &fs_type, &flags, false)
            }
        }
    }

    pub(crate) fn unstage(&self, r: &v1::NodeUnstageVolumeRequest) -> Done {
        mounts::unmount(&path(&r.staging_target_path, "staging target path")?)?;
        mounts::detach(&self.image(&r.volume_id)?)
    }

    pub(crate) fn publish(&self, r: v1::NodePublishVolumeRequest) -> Done {
        let (id, target) = (r.volume_id, path(&r.target_path, "target path")?);
        let how = usage(r.volume_capability, &r.volume_context)?;
        if mounts::is_mounted(&target)? {
            return Ok(());
        }
        if self.stages && r.staging_target_path.is_empty() && !is_ephemeral(&r.volume_context) {
            return Err(tonic::Status::failed_precondition("it is not staged"));
        }
        let staged = Some(r.staging_target_path).filter(|p| !p.is_empty()).map(PathBuf::from);
        if matches!(how, Use::Device) {
            fs::write(&target, "").map_err(|e| tonic::Status::internal(format!("{}: {e}", target.display())))?;
            return mounts::bind(&self.device(&id, &r.volume_context, None)?, &target, r.readonly);
        }
        mounts::make_dir(&target)?;
        match (how, staged) {
            (_, Some(staged)) => mounts::bind(&staged, &target, r.readonly),
            (Use::FileSystem { fs_type, flags }, None) => {
                let device = self.device(&id, &r.volume_context, Some(&fs_type))?;
                mounts::mount(&device, &target, &fs_type, &flags, r.readonly)
            }
            (Use::Directory | Use::Device, None) => {
                let directory = self.directory(&id)?;
                if is_ephemeral(&r.volume_context) {
                    mounts::image(&self.place(&id)?.join("ephemeral"), 0)?;
                }
                mounts::bind(&directory, &target, r.readonly)
            }
        }
    }

    pub(crate) fn unpublish(&self, r: &v1::NodeUnpublishVolumeRequest) -> Done {
        let (target, place) = (path(&r.target_path, "target path")?, self.place(&r.volume_id)?);
        mounts::unmount(&target)?;
        mounts::remove_target(&target)?;
        if !self.stages {
            mounts::detach(&self.image(&r.volume_id)?)?;
        }
        if place.join("ephemeral").exists() {
            fs::remove_dir_all(&place).map_err(|e| tonic::Status::internal(format!("{}: {e}", place.display())))?;
        }
        Ok(())
    }

    pub(crate) fn expand(&self, r: &v1::NodeExpandVolumeRequest) -> Done<i64> {
        let wanted = r.capacity_range.map_or(0, |range| range.required_bytes);
        let size = u64::try_from(wanted).map_err(|_| tonic::Status::out_of_range("a negative size"))?;
        let image = self.image(&r.volume_id)?;
        if !self.place(&r.volume_id)?.exists() {
            return Err(tonic::Status::not_found(format!("no volume {}", r.volume_id)));
        }
        if let Some(device) = mounts::loop_of(&image)? {
            mounts::image(&image, size)?;
            let is_device =
                matches!(r.volume_capability.as_ref().and_then(|c| c.access_type.as_ref()), Some(AccessType::Block(_)));
            mounts::grow(&device, !is_device)?;
        }
        Ok(wanted)
    }

    pub(crate) fn stats(
        &self,
        r: &v1::NodeGetVolumeStatsRequest,
        condition: bool,
    ) -> Done<v1::NodeGetVolumeStatsResponse> {
        let target = path(&r.volume_path, "volume path")?;
        let place = self.place(&r.volume_id)?;
        if !place.exists() {
            return Err(tonic::Status::not_found(format!("no volume {}", r.volume_id)));
        }
        let internal = |e: rustix::io::Errno| tonic::Status::internal(format!("{}: {e}", target.display()));
        let found = rustix::fs::statvfs(&target).map_err(internal)?;
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let usage = |unit: v1::volume_usage::Unit, total: u64, free: u64, available: u64| v1::VolumeUsage {
            available: signed(available),
            total: signed(total),
            used: signed(total.saturating_sub(free)),
            unit: unit.into(),
        };
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let words = fs::read_to_string(place.join("data/abnormal"));
        Ok(v1::NodeGetVolumeStatsResponse {
            usage: vec![
                usage(
                    v1::volume_usage::Unit::Bytes,
                    bytes(found.f_blocks),
                    bytes(found.f_bfree),
                    bytes(found.f_bavail),
                ),
                usage(v1::volume_usage::Unit::Inodes, found.f_files, found.f_ffree, found.f_favail),
            ],
            volume_condition: condition.then(|| v1::VolumeCondition {
                abnormal: words.is_ok(),
                message: words.unwrap_or_else(|_| "the volume is well".to_owned()),
            }),
        })
    }
}

fn is_ephemeral(context: &BTreeMap<String, String>) -> bool {
    context.get("csi.storage.k8s.io/ephemeral").is_some_and(|v| v == "true")
}
