//! The host's programs and what its kernel says of disks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, chain};
use model::PodUid;
use ports::host::{HostFs, HostResult, ProgramEnd};

use crate::deps::{Deps, Tools};
use crate::listing::{entries, names};
use crate::lun_dir::{self, FoundLun};
use crate::registry::Doing;
use crate::task::TaskContext;

/// How long a program may take. A login to a portal that does not answer takes two minutes by itself.
const LIMIT: Duration = Duration::from_secs(180);
/// Between two looks for a device.
const PAUSE: Duration = Duration::from_secs(1);
const BLOCK: &str = "/sys/block";
const MAX_BYTES: u64 = 4096;

/// The host, for what is done to one disk.
pub(super) struct Host<'a> {
    pub tools: &'a Tools,
    pub task: &'a TaskContext,
    /// Name of the disk in this process.
    pub key: &'a str,
}

impl Host<'_> {
    /// What may touch the disk, or wait for who has it, holds up no other volume.
    pub(super) async fn look<T: Send + 'static>(&self, work: impl FnOnce(&Deps) -> T + Send + 'static) -> T {
        let deps: Arc<Deps> = self.tools.deps.clone();
        self.task.blocking(Class::UserPaths, move || work(&deps)).await
    }

    /// As [`Host::look`], in the turn of a pod.
    pub(super) async fn of_pod<T: Send + 'static>(
        &self,
        uid: &PodUid,
        work: impl FnOnce(&Deps) -> T + Send + 'static,
    ) -> T {
        let deps = self.tools.deps.clone();
        self.task.serially((&self.tools.deps.serial, uid), Class::UserPaths, move || work(&deps)).await
    }

    pub(super) fn doing(&self, what: &'static str) -> Doing<'_> {
        self.tools.deps.persistent.doing(self.key, &None, what, self.task.clock.now())
    }

    /// Runs a program, whose exit code is the caller's to judge.
    pub(super) async fn run(&self, program: &'static str, arguments: Vec<String>) -> Result<ProgramEnd, String> {
        let _doing = self.doing(program);
        let done = self.look(move |deps| deps.mounts.run_program(program, &arguments, LIMIT)).await;
        done.map_err(|e| if e.is_not_found() { missing(program) } else { chain(&e) })
    }

    pub(super) async fn pause(&self) {
        self.task.clock.sleep(PAUSE).await;
    }

    pub(super) async fn found(&self) -> Result<Vec<FoundLun>, String> {
        let root = self.tools.config.root_dir.clone();
        self.look(move |deps| lun_dir::found(deps, &root)).await.map_err(|e| chain(&e))
    }

    /// Unmounts what is mounted for all pods. Answers what that was.
    pub(super) async fn unmount(&self, at: &Path) -> Result<Option<String>, String> {
        let (at, root) = (at.to_owned(), self.tools.config.root_dir.clone());
        let work = move |deps: &Deps| -> HostResult<Option<String>> {
            let table = deps.mounts.mount_table(&root)?;
            let source = table.into_iter().rfind(|line| line.at == at).map(|line| line.source);
            if source.is_some() {
                deps.mounts.unmount(&at)?;
            }
            Ok(source)
        };
        self.look(work).await.map_err(|e| chain(&e))
    }

    /// Writes to a file of the kernel's.
    pub(super) async fn write(&self, path: String, text: String) -> Result<(), String> {
        self.look(move |deps| deps.mounts.write_attribute(Path::new(&path), &text)).await.map_err(|e| chain(&e))
    }

    /// Has a multipath device let go of its paths.
    pub(super) async fn flush(&self, multipath: Option<String>) -> Result<(), String> {
        let Some(dm) = multipath else { return Ok(()) };
        let path = format!("/dev/{dm}");
        let end = self.run("multipath", vec!["-f".to_owned(), path.clone()]).await?;
        if end.code == Some(0) {
            return Ok(());
        }
        Err(format!("failed to flush multipath device {path}: {}", said(&end)))
    }

    /// Takes disks (`sda`) from the kernel.
    ///
    /// # Errors
    /// Somebody has one of them for himself: what is mounted elsewhere, or part of a RAID, is never taken away. Nor is it told to be
    /// free, as it may be what this node had mounted.
    pub(super) async fn delete(&self, disks: Vec<String>) -> Result<(), String> {
        for disk in &disks {
            let path = format!("/dev/{disk}");
            let at = path.clone();
            if self.look(move |deps| deps.mounts.is_held(Path::new(&at))).await.map_err(|e| chain(&e))? {
                return Err(format!("{path} is not taken from the kernel: somebody else on this node has it"));
            }
        }
        for disk in disks {
            let flushed = self.run("blockdev", vec!["--flushbufs".to_owned(), format!("/dev/{disk}")]).await;
            if let Err(error) = flushed {
                tracing::warn!(disk, error, "the disk is taken away without a flush");
            }
            self.take(&disk).await.map_err(|e| format!("the kernel keeps the disk {disk}: {e}"))?;
        }
        Ok(())
    }

    /// Takes a disk from the kernel. One that it does not have any more is gone already.
    async fn take(&self, disk: &str) -> Result<(), String> {
        let (of, path) = (format!("{BLOCK}/{disk}"), format!("{BLOCK}/{disk}/device/delete"));
        let work = move |deps: &Deps| match deps.mounts.write_attribute(Path::new(&path), "1") {
            // It went by itself, or with the write.
            Err(_) if matches!(deps.fs.stat(Path::new(&of)), Ok(None)) => Ok(()),
            done => done.map_err(|e| chain(&e)),
        };
        self.look(work).await
    }
}

/// How a program ended, with its words.
pub(super) fn said(end: &ProgramEnd) -> String {
    let code = end.code.map_or("a signal ended it".to_owned(), |code| format!("exit status {code}"));
    format!("{} ({code})", end.words.trim())
}

fn missing(program: &str) -> String {
    let packages = match program {
        "iscsiadm" => ": it is in the package open-iscsi or iscsi-initiator-utils",
        "multipath" => ": it is in the package multipath-tools or device-mapper-multipath",
        _ => "",
    };
    format!("this node has no {program}{packages}")
}

/// Names of the links in a directory below `/dev/disk`.
pub(super) fn links(deps: &Deps, dir: &str) -> Result<Vec<String>, String> {
    names(&*deps.fs, Path::new(dir)).map_err(|e| chain(&e))
}

/// The disk (`sda`, `dm-0`) that a path below `/dev` leads to.
pub(super) fn disk_of(fs: &dyn HostFs, path: &str) -> Result<String, String> {
    let mut path = path.to_owned();
    if fs.stat_link(Path::new(&path)).map_err(|e| chain(&e))?.is_some_and(|s| s.kind == ports::host::FileKind::Symlink)
    {
        path = fs.read_link(Path::new(&path)).map_err(|e| chain(&e))?.to_string_lossy().into_owned();
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name == ".." { Err(format!("{path} is no device")) } else { Ok(name.to_owned()) }
}

/// The device that has a disk as one of its paths; a disk that is such a device itself.
pub(super) fn multipath_of(fs: &dyn HostFs, disk: &str) -> Result<Option<String>, String> {
    if disk.starts_with("dm-") {
        return Ok(Some(disk.to_owned()));
    }
    let found = || -> HostResult<Option<String>> {
        for device in names(fs, Path::new(BLOCK))?.into_iter().filter(|name| name.starts_with("dm-")) {
            if fs.stat_link(&Path::new(BLOCK).join(&device).join("slaves").join(disk))?.is_some() {
                return Ok(Some(device));
            }
        }
        Ok(None)
    };
    found().map_err(|e| chain(&e))
}

/// The paths of a multipath device.
pub(super) fn paths_of(fs: &dyn HostFs, device: &str) -> Result<Vec<String>, String> {
    names(fs, &Path::new(BLOCK).join(device).join("slaves")).map_err(|e| chain(&e))
}

/// What a file of the kernel's says; `None`: it is gone.
pub(super) fn attribute(fs: &dyn HostFs, path: &Path) -> Option<String> {
    let text = fs.read_file(path, MAX_BYTES).ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Names in a directory of the kernel's that begin so.
pub(super) fn named(fs: &dyn HostFs, path: &Path, prefix: &str) -> HostResult<Vec<String>> {
    Ok(entries(fs, path)?.into_iter().map(|e| e.name).filter(|name| name.starts_with(prefix)).collect())
}
