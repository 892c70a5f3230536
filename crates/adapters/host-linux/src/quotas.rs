//! Project quotas of ext4 and xfs: the file system itself counts what is below a directory (node-and-resources 6.7).
//!
//! Which directory has which project is kept where a kubelet keeps it, in `/etc/projects` and `/etc/projid`, so that either takes
//! over from the other. Nothing is limited here: the numbers are read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::reading::DiskUse;
use ports::host::{HostError, HostResult, ProjectQuotas};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};

use crate::At;

mod kernel;
mod table;

#[cfg(test)]
mod tests;

use table::Table;

/// Ids that are tried, for one that no file of the file system has.
const MOST_TRIES: usize = 128;
/// A node has some hundred volumes.
const MOST_BYTES: u64 = 16 << 20;

/// Project quotas, with their two files in one folder.
#[derive(Debug)]
pub struct LinuxQuotas {
    etc: PathBuf,
    /// Locks on files are for other processes: within this one each call would open its own.
    one_at_a_time: Mutex<()>,
}

impl LinuxQuotas {
    /// With the files in this folder: `/etc`.
    #[must_use]
    pub fn new(etc: impl Into<PathBuf>) -> Self {
        LinuxQuotas { etc: etc.into(), one_at_a_time: Mutex::new(()) }
    }

    /// The files as they are, made if they are missing, and nobody else's until this is dropped.
    fn lock(&self) -> HostResult<Files<'_>> {
        let order = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Files {
            projects: locked(&self.etc.join("projects"))?,
            projid: locked(&self.etc.join("projid"))?,
            _order: order,
        })
    }

    fn project_of(&self, dir: &Path) -> Option<u32> {
        let text = fs::read_to_string(self.etc.join("projects")).ok()?;
        Table::parse(&text, "").project_of(dir)
    }
}

impl ProjectQuotas for LinuxQuotas {
    fn assign(&self, dir: &Path) -> HostResult<bool> {
        let fd = open_dir(dir)?;
        if !kernel::counts(&fd) {
            return Ok(false);
        }
        let now = kernel::project(&fd).at("get project", dir)?;
        if self.project_of(dir) == Some(now) {
            return Ok(true);
        }
        if fs::read_dir(dir).at("read", dir)?.next().is_some() {
            // What is in it would not be counted, and is the pod's: nobody else opens it.
            return Ok(false);
        }
        let files = self.lock()?;
        let mut table = files.read()?;
        let known = table.project_of(dir);
        let Some(id) = known.or_else(|| free(&table, &fd)) else {
            return Err(HostError::new("find a free project", dir, io::ErrorKind::StorageFull));
        };
        if known.is_none() {
            table.add(dir, id);
            files.write(&table)?;
        }
        kernel::set_project(&fd, id).at("set project", dir)?;
        Ok(true)
    }

    fn release(&self, dir: &Path) -> HostResult<()> {
        // Without a lock first: on most nodes no directory has one.
        if self.project_of(dir).is_none() {
            return Ok(());
        }
        let files = self.lock()?;
        let mut table = files.read()?;
        let Some(id) = table.remove(dir) else { return Ok(()) };
        if let Ok(fd) = open_dir(dir)
            && kernel::project(&fd).is_ok_and(|now| now == id)
        {
            // A kubelet sets a limit that nobody reaches: one that stays does no harm, the line of a directory that is gone does.
            if let Err(error) = kernel::clear_limits(&fd, id) {
                tracing::warn!(dir = %dir.display(), %error, "limits of a directory's project stay");
            }
        }
        files.write(&table)
    }

    fn usage(&self, dir: &Path) -> Option<DiskUse> {
        let id = self.project_of(dir)?;
        let fd = open_dir(dir).ok()?;
        // Else it is another's number, as of an administrator who counts the whole disk.
        if kernel::project(&fd).ok()? != id {
            return None;
        }
        kernel::usage(&fd, id).ok()
    }
}

/// The first id that neither the files name nor the file system has in use.
fn free(table: &Table, fd: &OwnedFd) -> Option<u32> {
    let in_use = |id: &u32| kernel::usage(fd, *id).is_ok_and(|u| u.bytes > 0 || u.inodes > 0);
    table.free_ids().take(MOST_TRIES).find(|id| !in_use(id))
}

fn open_dir(dir: &Path) -> HostResult<OwnedFd> {
    openat(CWD, dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        .at("open", dir)
}

/// One of the two files, open and locked.
struct Locked {
    path: PathBuf,
    file: File,
}

/// Both, with the right to replace them.
struct Files<'a> {
    projects: Locked,
    projid: Locked,
    _order: MutexGuard<'a, ()>,
}

impl Files<'_> {
    fn read(&self) -> HostResult<Table> {
        Ok(Table::parse(&self.projects.text()?, &self.projid.text()?))
    }

    /// Names first: an id with a name and no directory is only a free one, in the other order it would be without a name.
    fn write(&self, table: &Table) -> HostResult<()> {
        self.projid.replace(&table.projid_text())?;
        self.projects.replace(&table.projects_text())
    }
}

impl Locked {
    fn text(&self) -> HostResult<String> {
        let mut text = String::new();
        let read = (&self.file).take(MOST_BYTES + 1).read_to_string(&mut text).at("read", &self.path)?;
        if u64::try_from(read).is_ok_and(|read| read <= MOST_BYTES) {
            return Ok(text);
        }
        // What is cut off here would be lost with the next write.
        let why = format!("it is larger than {MOST_BYTES} bytes");
        Err(HostError::new("read", &self.path, io::Error::new(io::ErrorKind::FileTooLarge, why)))
    }

    /// A new file with the old one's mode takes its place, so that readers see the old or the new text.
    fn replace(&self, text: &str) -> HostResult<()> {
        let fresh = self.path.with_extension("bosun");
        let write = || {
            let mut file = File::create(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(fs::Permissions::from_mode(self.file.metadata()?.mode() & 0o7777))?;
            file.sync_all()?;
            fs::rename(&fresh, &self.path)
        };
        write().at("write", &self.path)
    }
}

/// Opens a file, made if it is missing, and waits until nobody else has it.
fn locked(path: &Path) -> HostResult<Locked> {
    loop {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let open =
            || fs::OpenOptions::new().read(true).append(true).create(true).mode(0o644).custom_flags(flags).open(path);
        let file = open().at("open", path)?;
        if !file.metadata().at("stat", path)?.is_file() {
            return Err(HostError::new("open", path, io::ErrorKind::InvalidInput));
        }
        flock(&file, FlockOperation::LockExclusive).at("lock", path)?;
        // Whoever had it may have put another file in its place.
        let (mine, there) = (file.metadata().at("stat", path)?, fs::symlink_metadata(path).at("stat", path)?);
        if (mine.dev(), mine.ino()) == (there.dev(), there.ino()) {
            return Ok(Locked { path: path.to_owned(), file });
        }
    }
}
