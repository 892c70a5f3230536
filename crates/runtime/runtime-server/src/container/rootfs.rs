//! The root file system of a container: layers of its image below, a writable one on top, by overlayfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host_linux::LinuxMounts;
use ports::host::Mounter;
use rustix::mount::{MountFlags, mount as mount_fs};

use crate::error::{At, Done, RuntimeError};

/// Name of the root file system in a bundle.
pub(crate) const NAME: &str = "rootfs";
/// Bytes of options that `mount(2)` takes: a page, less its end.
const MAX_OPTIONS: usize = 4095;

/// Mounts `lowers` (the topmost first) under `folder/upper` on `bundle/rootfs`.
pub(crate) fn mount(lowers: &[PathBuf], folder: &Path, bundle: &Path) -> Done<()> {
    let (upper, work, target) = (folder.join("upper"), folder.join("work"), bundle.join(NAME));
    crate::options::private_dir(bundle)?;
    for dir in [&upper, &work, &target] {
        fs::create_dir_all(dir).at("mkdir", dir)?;
    }
    let options = options(lowers, &upper, &work).map_err(RuntimeError::Refused)?;
    let options = std::ffi::CString::new(options).map_err(io::Error::from).at("mount", &target)?;
    mount_fs("overlay", &target, "overlay", MountFlags::empty(), options.as_c_str()).at("mount overlay on", &target)
}

/// Unmounts the root file system of a bundle, if it is mounted.
pub(crate) fn unmount(bundle: &Path) -> Done<()> {
    LinuxMounts.unmount(&bundle.join(NAME)).map_err(RuntimeError::from)
}

fn options(lowers: &[PathBuf], upper: &Path, work: &Path) -> Result<String, String> {
    if lowers.is_empty() {
        return Err("an image without layers".into());
    }
    let lower: Vec<String> = lowers.iter().map(|l| escape(l)).collect::<Result<_, _>>()?;
    let options = format!("lowerdir={},upperdir={},workdir={}", lower.join(":"), escape(upper)?, escape(work)?);
    if options.len() > MAX_OPTIONS {
        return Err(format!("{} layers do not fit into one mount of this runtime", lowers.len()));
    }
    Ok(options)
}

/// overlayfs takes `:` as the end of a layer and `,` as that of an option, unless a backslash is before them.
fn escape(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{}: not UTF-8", path.display()))?;
    Ok(text.replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_named_so_that_the_kernel_takes_them_apart_again() {
        let lowers = [PathBuf::from("/l/sha256:b"), PathBuf::from("/l/a,b")];
        let made = options(&lowers, Path::new("/u"), Path::new("/w"));
        assert_eq!(made.as_deref(), Ok("lowerdir=/l/sha256\\:b:/l/a\\,b,upperdir=/u,workdir=/w"));
        assert!(options(&[], Path::new("/u"), Path::new("/w")).is_err());
        let many = vec![PathBuf::from("/".repeat(100)); 50];
        assert!(options(&many, Path::new("/u"), Path::new("/w")).is_err());
    }
}
