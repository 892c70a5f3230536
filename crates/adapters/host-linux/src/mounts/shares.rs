//! What servers share, mounted and unmounted by the host's programs: they know how to ask a server, and may be killed when it
//! does not answer.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;

use ports::host::{HostError, HostResult};

use super::programs::{MAX_STACKED, ended, run_within, words};
use crate::At;
use crate::files::make_dirs;

/// How long a mount may take. A mount of NFS itself tries for two minutes.
const MOUNT_LIMIT: Duration = Duration::from_secs(180);
/// After this an unmount is forced; that may take as long.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(60);
/// Where `mount` looks for the helper of a kind.
const HELPERS: [&str; 3] = ["/sbin", "/sbin/fs.d", "/sbin/fs"];

/// The programs, by their names or paths, and how long they may take.
pub(super) struct Programs<'a> {
    mount: &'a OsStr,
    umount: &'a OsStr,
    helpers: &'a [&'a str],
    mount_limit: Duration,
    unmount_limit: Duration,
}

impl Default for Programs<'_> {
    fn default() -> Self {
        Self {
            mount: OsStr::new("mount"),
            umount: OsStr::new("umount"),
            helpers: &HELPERS,
            mount_limit: MOUNT_LIMIT,
            unmount_limit: UNMOUNT_LIMIT,
        }
    }
}

impl Programs<'_> {
    /// Mounts what a server shares. `is_mounted` looks at the mount table.
    pub(super) fn mount(
        &self,
        (kind, source): (&str, &str),
        options: &[String],
        target: &Path,
        is_mounted: impl Fn() -> HostResult<bool>,
    ) -> HostResult<()> {
        if is_mounted()? {
            return Ok(());
        }
        make_dirs(target, 0o750)?;
        let mut arguments = vec![OsStr::new("-t"), OsStr::new(kind)];
        let options = options.join(",");
        if !options.is_empty() {
            arguments.extend([OsStr::new("-o"), OsStr::new(&options)]);
        }
        let what = [OsStr::new(source), target.as_os_str()];
        // A source may begin with a dash.
        let call = [&arguments[..], &[OsStr::new("--")], &what].concat();
        let why = match run_within(self.mount_limit, server(source), self.mount, &call) {
            Ok(out) if out.status.success() && is_mounted()? => return Ok(()),
            Ok(out) if out.status.success() => io::Error::other(format!("nothing is mounted: {}", words(&out))),
            Ok(out) => {
                let said = arguments.iter().chain(&what).map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
                let (name, missing) = (self.mount.display(), self.missing_helper(kind));
                let (status, words) = (ended(out.status), words(&out));
                io::Error::other(format!(
                    "mount failed: {status}\nMounting command: {name}\nMounting arguments: {said}\nOutput: {words}{missing}"
                ))
            }
            Err(e) => e,
        };
        // A program that was killed may have mounted it.
        if is_mounted()? {
            self.unmount(target, &is_mounted)?;
        }
        match std::fs::remove_dir(target) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e).at("rmdir", target),
            _ => Err(HostError::new("mount", target, why)),
        }
    }

    /// That the host cannot mount this kind at all, when it is so.
    fn missing_helper(&self, kind: &str) -> String {
        let name = format!("mount.{kind}");
        if self.helpers.iter().any(|dir| Path::new(dir).join(&name).exists()) {
            return String::new();
        }
        let packages = if kind == "nfs" { ", which is in the package nfs-common, nfs-utils or nfs-client" } else { "" };
        format!("\nThis node has no {name}{packages}")
    }

    /// Unmounts it, by force when that takes too long.
    pub(super) fn unmount(&self, target: &Path, is_mounted: impl Fn() -> HostResult<bool>) -> HostResult<()> {
        // Who was killed over a mount may have left a program behind that mounted it after all, below another one.
        for _ in 0..MAX_STACKED {
            if !is_mounted()? {
                return Ok(());
            }
            self.unmount_once(target, &is_mounted)?;
        }
        Err(HostError::new("umount", target, io::ErrorKind::ResourceBusy))
    }

    fn unmount_once(&self, target: &Path, is_mounted: impl Fn() -> HostResult<bool>) -> HostResult<()> {
        let about = target.to_string_lossy();
        let out = match run_within(self.unmount_limit, &about, self.umount, &[target]) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                run_within(self.unmount_limit, &about, self.umount, &[OsStr::new("-f"), target.as_os_str()])
            }
            other => other,
        };
        let out = out.at("umount", target)?;
        if out.status.success() || !is_mounted()? {
            return Ok(());
        }
        let (status, name) = (ended(out.status), target.display());
        let text = format!("unmount failed: {status}\nUnmounting arguments: {name}\nOutput: {}", words(&out));
        Err(HostError::new("umount", target, io::Error::other(text)))
    }
}

/// The server of what is shared.
fn server(source: &str) -> &str {
    source.rsplit_once(":/").map_or(source, |(server, _)| server)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A program of the host that a test plays.
    fn program(dir: &Path, body: &str) -> PathBuf {
        let path = dir.join("program");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn programs<'a>(path: &'a Path, helpers: &'a [&'a str]) -> Programs<'a> {
        let limit = Duration::from_millis(300);
        let (mount, umount) = (path.as_os_str(), path.as_os_str());
        Programs { mount, umount, helpers, mount_limit: limit, unmount_limit: limit }
    }

    /// Mounted at so many looks, then not any more.
    fn mounted_for(looks: usize) -> impl Fn() -> HostResult<bool> {
        let left = Cell::new(looks);
        move || Ok(left.replace(left.get().saturating_sub(1)) > 0)
    }

    #[test]
    fn a_share_is_mounted_by_the_hosts_program() {
        let tmp = tempfile::tempdir().unwrap();
        let target = tmp.path().join("volumes/kubernetes.io~nfs/v");
        let words = tmp.path().join("words");
        let options = ["ro".to_owned(), "soft".to_owned()];
        for (options, wanted) in [(&options[..], "-t nfs -o ro,soft -- srv:/a"), (&[], "-t nfs -- srv:/a")] {
            let mounts = program(tmp.path(), &format!("echo \"$@\" > {}", words.display()));
            let looks = Cell::new(0);
            let is_mounted = || Ok(looks.replace(looks.get() + 1) > 0);
            programs(&mounts, &[]).mount(("nfs", "srv:/a"), options, &target, is_mounted).unwrap();
            assert_eq!(fs::read_to_string(&words).unwrap(), format!("{wanted} {}\n", target.display()));
        }
        let lies = program(tmp.path(), "echo 'mount.nfs is asleep'");
        let e = programs(&lies, &[]).mount(("nfs", "srv:/a"), &[], &target, || Ok(false)).unwrap_err();
        assert_eq!(e.source.to_string(), "nothing is mounted: mount.nfs is asleep");
        let nowhere = tmp.path().join("none");
        let e = programs(&nowhere, &[]).mount(("nfs", "srv:/a"), &[], &target, || Ok(false)).unwrap_err();
        assert!(e.is_not_found());
        programs(&nowhere, &[]).mount(("nfs", "srv:/a"), &[], &target, || Ok(true)).unwrap();
    }

    #[test]
    fn a_mount_that_fails_is_told_in_its_words_with_the_package_that_is_missing() {
        let tmp = tempfile::tempdir().unwrap();
        let target = tmp.path().join("v");
        let refuses = program(tmp.path(), "echo 'mount: bad option.' >&2; exit 32");
        let has = tmp.path().join("sbin");
        fs::create_dir(&has).unwrap();
        fs::write(has.join("mount.nfs"), "").unwrap();
        let has = has.to_str().unwrap();
        let package = "\nThis node has no mount.nfs, which is in the package nfs-common, nfs-utils or nfs-client";
        for (helpers, more) in [([has], ""), (["/nowhere"], package)] {
            let on = programs(&refuses, &helpers);
            let e = on.mount(("nfs", "srv:/a"), &["ro".to_owned()], &target, || Ok(false)).unwrap_err();
            let text = format!(
                "mount failed: exit status 32\nMounting command: {}\nMounting arguments: -t nfs -o ro srv:/a {}\n\
                 Output: mount: bad option.{more}",
                refuses.display(),
                target.display()
            );
            assert_eq!((e.op, e.source.to_string()), ("mount", text));
            assert!(!target.exists(), "no empty directory stays");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_holds_no_thread_for_ever_and_what_it_mounted_late_goes() {
        let tmp = tempfile::tempdir().unwrap();
        let target = tmp.path().join("v");
        let unmounted = tmp.path().join("unmounted");
        let body = format!("[ $# = 1 ] && touch {} && exit 0; exec sleep 100", unmounted.display());
        let dead = program(tmp.path(), &body);
        let at = unmounted.clone();
        // Not mounted at first, and then until it is unmounted.
        let (begun, looks) = (std::time::Instant::now(), Cell::new(0));
        let is_mounted = || Ok(looks.replace(looks.get() + 1) > 0 && !at.exists());
        let e = programs(&dead, &[]).mount(("nfs", "srv:/a"), &[], &target, is_mounted).unwrap_err();
        assert_eq!((e.op, e.kind()), ("mount", io::ErrorKind::TimedOut));
        assert!(begun.elapsed() < Duration::from_secs(50));
        assert!(unmounted.exists() && !target.exists());
    }

    #[test]
    fn a_server_that_is_gone_cannot_keep_its_mount() {
        let tmp = tempfile::tempdir().unwrap();
        let forced = program(tmp.path(), "[ \"$1\" = -f ] && exit 0; exec sleep 100");
        programs(&forced, &[]).unmount(tmp.path(), mounted_for(1)).unwrap();
        let dead = program(tmp.path(), "exec sleep 100");
        let e = programs(&dead, &[]).unmount(tmp.path(), || Ok(true)).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::TimedOut);
        let busy = program(tmp.path(), "echo 'target is busy.' >&2; exit 32");
        let e = programs(&busy, &[]).unmount(tmp.path(), || Ok(true)).unwrap_err();
        let arguments = tmp.path().display();
        let text =
            format!("unmount failed: exit status 32\nUnmounting arguments: {arguments}\nOutput: target is busy.");
        assert_eq!(e.source.to_string(), text);
        programs(&busy, &[]).unmount(tmp.path(), mounted_for(1)).unwrap();
        // One below another.
        let count = tmp.path().join("count");
        let counts = program(tmp.path(), &format!("echo x >> {}", count.display()));
        programs(&counts, &[]).unmount(tmp.path(), mounted_for(2)).unwrap();
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n");
    }
}
