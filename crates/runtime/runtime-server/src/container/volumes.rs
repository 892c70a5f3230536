//! Image volumes: the root file system of an image, or a part of it, in a container, to be read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use container_spec::is_image;
use cri_api::v1;
use host_linux::LinuxMounts;
use ports::host::Mounter;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use super::rootfs;
use crate::error::{At, Done, RuntimeError};
use crate::images::{ImageError, ImageView, Images};
use crate::runtime::Runtime;

/// Folder of a bundle in which each is mounted, by its number among the mounts of the config.
pub(crate) const FOLDER: &str = "images";

/// Images that mounts of a config stand for, by number.
#[derive(Debug, Default)]
pub(crate) struct Volumes(BTreeMap<usize, ImageView>);

impl Volumes {
    /// Looks for them, and notes in each mount which image was meant (`image_ref`, KEP-5365).
    pub(crate) fn find(images: &dyn Images, mounts: &mut [v1::Mount], own_users: bool) -> Done<Self> {
        let mut found = BTreeMap::new();
        for (number, mount) in mounts.iter_mut().enumerate().filter(|(_, m)| is_image(m)) {
            let Some(spec) = mount.image.as_mut() else { continue };
            if !mount.readonly {
                return Err(refused(&mount.container_path, "an image can only be mounted read-only"));
            }
            if own_users {
                // Their ids cannot be mapped: overlayfs has no mounts with mapped ids.
                return Err(refused(&mount.container_path, "not in a pod with users of its own"));
            }
            let image = images.resolve(&spec.image)?.ok_or_else(|| ImageError::NotFound(spec.image.clone()))?;
            spec.image_ref.clone_from(&image.id);
            // Nothing is mounted below an image: read-only is recursive as it is.
            mount.recursive_read_only = false;
            found.insert(number, image);
        }
        Ok(Self(found))
    }

    /// The images.
    pub(crate) fn images(&self) -> Vec<&ImageView> {
        self.0.values().collect()
    }

    /// Mounts all of them below `bundle`; answers what of each the container gets. Copies, where there are any, are kept below `folder`.
    pub(crate) fn mount(
        &self,
        rt: &Runtime,
        mounts: &[v1::Mount],
        folder: &Path,
        bundle: &Path,
    ) -> Done<BTreeMap<usize, PathBuf>> {
        let mut places = BTreeMap::new();
        for (number, image) in &self.0 {
            let target = bundle.join(FOLDER).join(number.to_string());
            crate::options::private_dir(&target)?;
            let copy = folder.join(FOLDER).join(number.to_string());
            rootfs::mount_read_only(rt.options.snapshotter, &rt.images.lowers(image)?, &copy, &target)?;
            let part = mounts.get(*number).map_or("", |m| &m.image_sub_path);
            places.insert(*number, within(&target, part)?);
        }
        Ok(places)
    }
}

/// A path in an image, whose links lead nowhere else. Nobody can change it any more: what is found now is what is mounted later.
fn within(root: &Path, part: &str) -> Done<PathBuf> {
    if part.is_empty() {
        return Ok(root.to_owned());
    }
    if part.starts_with('/') || part.split('/').any(|p| p == "..") {
        return Err(refused(part, "a sub-path of an image is relative and has no `..`"));
    }
    let folder = File::open(root).at("open", root)?;
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found = openat2(&folder, part, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), how);
    let found = found.map_err(|e| refused(part, &format!("the image has no such path: {}", io::Error::from(e))))?;
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    fs::read_link(&link).at("read", Path::new(&link))
}

fn refused(what: &str, why: &str) -> RuntimeError {
    RuntimeError::Refused(format!("image volume {what:?}: {why}"))
}

/// Unmounts all of a bundle's.
pub(crate) fn unmount(bundle: &Path) -> Done<()> {
    let folder = bundle.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).at("readdir", &folder),
    };
    for entry in entries {
        LinuxMounts.unmount(&entry.at("readdir", &folder)?.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_part_of_an_image_is_found_in_it_whatever_its_links_say() {
        let dir = tempfile::tempdir().expect("folder");
        let root = dir.path().canonicalize().expect("real");
        fs::create_dir_all(root.join("etc/a")).expect("folder");
        symlink("/etc", root.join("link")).expect("link");
        symlink("../../../../etc/a", root.join("out")).expect("link");
        let at = |part: &str| within(&root, part).map_err(|e| e.to_string());
        assert_eq!(at(""), Ok(root.clone()));
        assert_eq!(at("etc"), Ok(root.join("etc")));
        assert_eq!(at("link/a"), Ok(root.join("etc/a")));
        assert_eq!(at("out"), Ok(root.join("etc/a")));
        for bad in ["none", "/etc", "etc/../../x", "etc/a/b"] {
            assert!(at(bad).is_err(), "{bad}");
        }
    }
}
