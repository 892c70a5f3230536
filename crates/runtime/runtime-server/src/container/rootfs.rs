//! The root file system of a container: layers of its image below, a writable one on top, by overlayfs; or a copy of what the layers show.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use host_linux::LinuxMounts;
use pod_supervisor::IdRange;
use ports::host::Mounter;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount as mount_fs, mount_bind, mount_remount};
use rustix::thread::UnshareFlags;

use super::owners;
use crate::error::{At, Done, RuntimeError};
use crate::options::Snapshotter;

/// Name of the root file system in a bundle.
pub(crate) const NAME: &str = "rootfs";
/// Bytes of options that `mount(2)` takes: a page, less its end.
const MAX_OPTIONS: usize = 4095;
/// Who owns a file is changed without a copy of its data; the copies need not be on the disk, as no container outlives the machine.
const METACOPY: &str = ",metacopy=on,volatile";

/// What helps where overlayfs does not.
const OTHER_WAY: &str = "`snapshotter = \"native\"` copies images instead";

/// How an image is mounted as a volume (node-and-resources 6.14: read-only, nothing of it is run).
const DATA: MountFlags =
    MountFlags::RDONLY.union(MountFlags::NOEXEC).union(MountFlags::NOSUID).union(MountFlags::NODEV);

/// How a mount of overlayfs went.
enum Overlay {
    Mounted,
    /// The kernel has none.
    Missing,
}

/// Mounts `lowers` (the topmost first) under `folder/upper` on `bundle/rootfs`; its files are given to the `users` of the pod, where it
/// has some of its own. Where overlayfs is not had or not wanted, `folder/upper` is a copy of all of them.
pub(crate) fn mount(
    how: Snapshotter,
    lowers: &[PathBuf],
    users: Option<IdRange>,
    folder: &Path,
    bundle: &Path,
) -> Done<()> {
    let (upper, work, target) = (folder.join("upper"), folder.join("work"), bundle.join(NAME));
    crate::options::private_dir(bundle)?;
    for dir in [&upper, &work, &target] {
        fs::create_dir_all(dir).at("mkdir", dir)?;
    }
    let more = if users.is_some() { METACOPY } else { "" };
    if is_to_be_copied(how, || overlay(lowers, Some((&upper, &work)), more, &target))? {
        copy(lowers, &upper, MountFlags::empty(), &target)?;
    }
    users.map_or(Ok(()), |range| owners::give(&target, range))
}

/// Mounts `lowers` (the topmost first) on an empty folder, to be read only: it is data, of which nothing is run. Who may mount cannot make it
/// writable, either: there is no layer to be written. A copy, which is made in the folder `to`, they can make writable: it is this container's alone.
pub(crate) fn mount_read_only(how: Snapshotter, lowers: &[PathBuf], to: &Path, target: &Path) -> Done<()> {
    let mounted = || match lowers {
        // overlayfs wants two at least.
        [only] => overlay(&[only.clone(), target.to_owned()], None, "", target),
        _ => overlay(lowers, None, "", target),
    };
    if is_to_be_copied(how, mounted)? {
        fs::create_dir_all(to).at("mkdir", to)?;
        copy(lowers, to, DATA, target)?;
    }
    Ok(())
}

/// Mounts a copy that is made in an empty folder. Not with the flags that the folder's disk is mounted with: overlayfs has none of them either.
fn copy(lowers: &[PathBuf], to: &Path, flags: MountFlags, target: &Path) -> Done<()> {
    // As the root of a layer, whatever the umask is.
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).at("chmod", to)?;
    image_store::copy_merged(lowers, to).at("copy the image to", to)?;
    mount_bind(to, target).at("mount the copy on", target)?;
    mount_remount(target, MountFlags::BIND | flags, c"").at("remount", target)
}

/// Whether layers have to be copied, as overlayfs is not to show them or is not there.
fn is_to_be_copied(how: Snapshotter, mounted: impl FnOnce() -> Done<Overlay>) -> Done<bool> {
    static TOLD: Once = Once::new();
    if how == Snapshotter::Native {
        return Ok(true);
    }
    match mounted()? {
        Overlay::Mounted => Ok(false),
        Overlay::Missing => {
            TOLD.call_once(|| tracing::warn!("this kernel has no overlayfs: images are copied for each container"));
            Ok(true)
        }
    }
}

/// Unmounts the root file system of a bundle, if it is mounted.
pub(crate) fn unmount(bundle: &Path) -> Done<()> {
    LinuxMounts.unmount(&bundle.join(NAME)).map_err(RuntimeError::from)
}

/// Layers that lie in one folder are named from there: the options of a mount have one page, which some 75 whole paths fill.
fn overlay(lowers: &[PathBuf], upper: Option<(&Path, &Path)>, more: &str, target: &Path) -> Done<Overlay> {
    let folder = common_folder(lowers);
    let options = options(lowers, folder, upper, more).map_err(RuntimeError::Refused)?;
    let options = std::ffi::CString::new(options).map_err(io::Error::from).at("mount", target)?;
    let flags = if upper.is_none() { DATA } else { MountFlags::empty() };
    let mounted = || mount_fs("overlay", target, "overlay", flags, options.as_c_str()).map_err(io::Error::from);
    let done = match folder {
        // The folder of a process is that of all its threads; one that has left the others has its own, and ends with it.
        Some(folder) => std::thread::scope(|scope| {
            let there = || leave_threads().and_then(|()| std::env::set_current_dir(folder)).and_then(|()| mounted());
            let thread = std::thread::Builder::new().name("overlay".into()).spawn_scoped(scope, there)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread has ended")))
        }),
        None => mounted(),
    };
    match done {
        Ok(()) => Ok(Overlay::Mounted),
        Err(e) => failed(e, target),
    }
}

/// Of a kernel without overlayfs all images are copied. What else it objects to is told: somebody has to choose.
fn failed(e: io::Error, target: &Path) -> Done<Overlay> {
    match Errno::from_io_error(&e) {
        Some(Errno::NODEV) => Ok(Overlay::Missing),
        Some(Errno::INVAL | Errno::OPNOTSUPP) => {
            let at = target.display();
            Err(RuntimeError::Refused(format!("overlayfs does not take this image or disk for {at}: {e}; {OTHER_WAY}")))
        }
        _ => Err(e).at("mount overlay on", target),
    }
}

/// rustix deprecates its safe call, as leaving a shared table of files is unsound; that flag is not the one here.
#[allow(deprecated)]
fn leave_threads() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::FS)?)
}

/// The folder that all of several layers lie in.
fn common_folder(lowers: &[PathBuf]) -> Option<&Path> {
    let first = lowers.first()?.parent()?;
    let all = first.is_absolute() && lowers.len() > 1 && lowers.iter().all(|l| l.parent() == Some(first));
    all.then_some(first)
}

fn options(
    lowers: &[PathBuf],
    folder: Option<&Path>,
    upper: Option<(&Path, &Path)>,
    more: &str,
) -> Result<String, String> {
    if lowers.is_empty() {
        return Err("an image without layers".into());
    }
    let named = |l: &PathBuf| escape(folder.and_then(|f| l.strip_prefix(f).ok()).unwrap_or(l));
    let lower: Vec<String> = lowers.iter().map(named).collect::<Result<_, _>>()?;
    let mut options = format!("lowerdir={}", lower.join(":"));
    if let Some((upper, work)) = upper {
        options += &format!(",upperdir={},workdir={}", escape(upper)?, escape(work)?);
    }
    options += more;
    if options.len() > MAX_OPTIONS {
        return Err(format!("{} layers do not fit into one mount of overlayfs; {OTHER_WAY}", lowers.len()));
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

    const UPPER: Option<(&str, &str)> = Some(("/u", "/w"));

    fn made(lowers: &[PathBuf], upper: Option<(&str, &str)>) -> Result<String, String> {
        options(lowers, common_folder(lowers), upper.map(|(u, w)| (Path::new(u), Path::new(w))), "")
    }

    #[test]
    fn layers_are_named_so_that_the_kernel_takes_them_apart_again() {
        let lowers = [PathBuf::from("/l/sha256:b"), PathBuf::from("/k/a,b")];
        assert_eq!(made(&lowers, UPPER).as_deref(), Ok("lowerdir=/l/sha256\\:b:/k/a\\,b,upperdir=/u,workdir=/w"));
        let together = [PathBuf::from("/l/a:"), PathBuf::from("/l/b")];
        assert_eq!(made(&together, None).as_deref(), Ok("lowerdir=a\\::b"));
        assert!(made(&[], UPPER).is_err());
        let many = vec![PathBuf::from(format!("/l/{}", "x".repeat(100))); 50];
        assert!(made(&many, UPPER).is_err());
        let short = vec![PathBuf::from("/var/lib/bosun/runtime/images/l/0123456789abcdef"); 230];
        assert!(made(&short, UPPER).is_ok());
    }

    #[test]
    fn files_are_given_to_users_of_a_pod_and_none_of_their_data_is_copied() {
        use std::os::unix::fs::MetadataExt;
        assert!(host_linux::is_root(), "only root can mount");
        let dir = tempfile::tempdir().expect("folder");
        let (lower, folder, bundle) = (dir.path().join("l/a"), dir.path().join("c"), dir.path().join("b"));
        fs::create_dir_all(&lower).expect("layer");
        fs::write(lower.join("large"), vec![7; 1 << 20]).expect("file");
        let range = IdRange { container_id: 0, host_id: 700_000, length: 65_536 };
        mount(Snapshotter::Overlayfs, std::slice::from_ref(&lower), Some(range), &folder, &bundle).expect("mounted");
        let seen = fs::metadata(bundle.join(NAME).join("large")).map(|m| (m.uid(), m.len()));
        let content = fs::read(bundle.join(NAME).join("large"));
        unmount(&bundle).expect("unmounted");
        assert_eq!(seen.expect("there"), (700_000, 1 << 20));
        assert!(content.expect("readable").iter().all(|b| *b == 7));
        assert_eq!(fs::metadata(lower.join("large")).expect("there").uid(), 0, "the layer is as before");
        // Attributes that do not fit into an inode take a block.
        let blocks = fs::metadata(folder.join("upper/large")).expect("there").blocks();
        assert!(blocks <= 16, "{blocks} blocks of 512 bytes");
    }

    #[test]
    fn an_image_of_two_hundred_layers_is_mounted_and_this_process_stays_where_it_is() {
        assert!(host_linux::is_root(), "only root can mount");
        let dir = tempfile::tempdir().expect("folder");
        let lowers: Vec<PathBuf> = (0..200).map(|n| dir.path().join(format!("l/{n:016}"))).collect();
        for (n, lower) in lowers.iter().enumerate() {
            fs::create_dir_all(lower).expect("layer");
            fs::write(lower.join(format!("of-{n}")), "x").expect("file");
        }
        let (before, bundle) = (std::env::current_dir().expect("folder"), dir.path().join("b"));
        mount(Snapshotter::Overlayfs, &lowers, None, &dir.path().join("c"), &bundle).expect("mounted");
        let (seen, read_only) = (fs::read_dir(bundle.join(NAME)).expect("readable").count(), dir.path().join("r"));
        fs::create_dir(&read_only).expect("folder");
        mount_read_only(Snapshotter::Overlayfs, &lowers[..2], Path::new("/none"), &read_only).expect("mounted");
        let written = fs::write(read_only.join("of-0"), "y").map_err(|e| e.kind());
        let both = fs::read_dir(&read_only).expect("readable").count();
        unmount(&bundle).expect("unmounted");
        LinuxMounts.unmount(&read_only).expect("unmounted");
        assert_eq!((seen, both, written), (200, 2, Err(io::ErrorKind::ReadOnlyFilesystem)));
        assert_eq!(std::env::current_dir().expect("folder"), before);
    }

    #[test]
    fn without_overlayfs_a_container_has_a_copy_of_its_own() {
        use std::os::unix::fs::MetadataExt;
        assert!(host_linux::is_root(), "only root can mount");
        let dir = tempfile::tempdir().expect("folder");
        // More than the options of a mount have room for, each of them with a part of the image.
        let long = "x".repeat(64);
        let many: Vec<PathBuf> = (0..80).map(|n| dir.path().join(format!("l/{n:03}{long}"))).collect();
        for (n, lower) in many.iter().enumerate() {
            fs::create_dir_all(lower).expect("layer");
            fs::write(lower.join(format!("of-{n}")), "old").expect("file");
        }
        let range = IdRange { container_id: 0, host_id: 700_000, length: 65_536 };
        let too_many = mount(Snapshotter::Overlayfs, &many, None, &dir.path().join("c"), &dir.path().join("b"));
        let told = too_many.expect_err("a page of options").to_string();
        assert!(told.contains("80 layers do not fit") && told.contains(OTHER_WAY), "{told}");
        let how = Snapshotter::Native;
        for (n, (lowers, users)) in [(&many[..2], None), (&many, Some(range))].into_iter().enumerate() {
            let (folder, bundle) = (dir.path().join(format!("c{n}")), dir.path().join(format!("b{n}")));
            mount(how, lowers, users, &folder, &bundle).expect("mounted");
            let file = bundle.join(NAME).join("of-1");
            let written = fs::write(&file, "new");
            let owner = fs::metadata(&file).map(|m| m.uid());
            let seen = fs::read_dir(bundle.join(NAME)).expect("readable").count();
            let (copy, data) = (folder.join("volumes/0"), dir.path().join(format!("d{n}")));
            fs::create_dir(&data).expect("folder");
            mount_read_only(how, lowers, &copy, &data).expect("mounted");
            let refused = fs::write(data.join("of-1"), "new").map_err(|e| e.kind());
            let shown = fs::read_dir(&data).expect("readable").count();
            // Who may mount can write to the copy, and to nothing else.
            rustix::mount::mount_remount(&data, MountFlags::BIND, c"").expect("a mount that is theirs");
            fs::write(data.join("of-1"), "theirs").expect("writable");
            LinuxMounts.unmount(&data).expect("unmounted");
            unmount(&bundle).expect("unmounted");
            written.expect("writable");
            assert_eq!((seen, owner.expect("there")), (lowers.len(), users.map_or(0, |r| r.host_id)));
            assert_eq!((shown, refused), (lowers.len(), Err(io::ErrorKind::ReadOnlyFilesystem)));
            assert_eq!(fs::read_to_string(folder.join("upper/of-1")).expect("what was written stays"), "new");
            assert_eq!(fs::read_to_string(many[1].join("of-1")).expect("file"), "old", "the layer is as before");
        }
    }

    #[test]
    fn what_overlayfs_objects_to_is_told_and_only_where_there_is_none_are_images_copied() {
        let said = |errno: Errno| failed(errno.into(), Path::new("/t")).map(|o| matches!(o, Overlay::Missing));
        assert!(matches!(said(Errno::NODEV), Ok(true)));
        for errno in [Errno::INVAL, Errno::OPNOTSUPP] {
            assert!(said(errno).expect_err("told").to_string().ends_with(OTHER_WAY));
        }
        let full = said(Errno::NOSPC).expect_err("told").to_string();
        assert!(full.starts_with("mount overlay on /t: No space left"), "{full}");
    }

    #[test]
    fn nobody_makes_an_image_of_one_layer_or_of_two_writable() {
        assert!(host_linux::is_root(), "only root can mount");
        let dir = tempfile::tempdir().expect("folder");
        let lowers = ["l/a", "m/b"].map(|name| dir.path().join(name));
        for lower in &lowers {
            fs::create_dir_all(lower).expect("layer");
            fs::write(lower.join("file"), "old").expect("file");
        }
        for lowers in [&lowers[..1], &lowers] {
            let target = tempfile::tempdir_in(dir.path()).expect("folder");
            mount_read_only(Snapshotter::Overlayfs, lowers, Path::new("/none"), target.path()).expect("mounted");
            let all = fs::read_dir(target.path()).expect("readable").count();
            // As a container that may mount does it, with the file system and with the mount alone.
            let whole = rustix::mount::mount_remount(target.path(), MountFlags::empty(), c"");
            let alone = rustix::mount::mount_remount(target.path(), MountFlags::BIND, c"");
            let written = fs::write(target.path().join("file"), "new").map_err(|e| e.kind());
            LinuxMounts.unmount(target.path()).expect("unmounted");
            assert_eq!((all, whole), (1, Err(rustix::io::Errno::ROFS)), "{lowers:?}");
            assert_eq!((alone, written), (Ok(()), Err(io::ErrorKind::ReadOnlyFilesystem)), "{lowers:?}");
        }
        assert_eq!(fs::read_to_string(lowers[0].join("file")).expect("file"), "old");
    }
}
