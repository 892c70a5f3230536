//! Files: what a supervisor is started with, what it leaves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroups::Hierarchy;

/// Bytes of a record, written or read: more than what a call of 16 MiB can make of one, unless it is made for that.
pub const MAX_RECORD: usize = 64 << 20;

/// A range of user or group ids of a namespace and where it lies on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    /// First id in the namespace.
    pub container_id: u32,
    /// First id on the node.
    pub host_id: u32,
    /// How many.
    pub length: u32,
}

/// Which namespaces a pod has of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacePlan {
    /// Network.
    pub network: bool,
    /// System V IPC and message queues.
    pub ipc: bool,
    /// Host name.
    pub uts: bool,
    /// Process ids that containers share; process 1 is then `bosun-pod init`.
    pub pid: bool,
    /// Users and groups; empty: the node's.
    pub uids: Vec<IdRange>,
    /// As `uids`.
    pub gids: Vec<IdRange>,
    /// What the UTS namespace says; empty: the node's name.
    pub hostname: String,
    /// Kernel parameters of these namespaces, in dotted form.
    pub sysctls: Vec<(String, String)>,
}

impl NamespacePlan {
    /// Whether there is anything to make.
    #[must_use]
    pub fn any(&self) -> bool {
        self.network || self.ipc || self.uts || self.pid || self.users()
    }

    /// Who the root of a pod with users of its own is on the node: user and group.
    #[must_use]
    pub fn root(&self) -> Option<(u32, u32)> {
        let of = |ranges: &[IdRange]| ranges.iter().find(|r| r.container_id == 0 && r.length > 0).map(|r| r.host_id);
        of(&self.uids).zip(of(&self.gids))
    }

    /// Whether the pod has users of its own.
    #[must_use]
    pub fn users(&self) -> bool {
        !self.uids.is_empty()
    }
}

/// What a supervisor is started with (`pod.json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodPlan {
    /// The pod sandbox's id.
    pub id: String,
    /// The OCI runtime's program.
    pub runtime: PathBuf,
    /// Its `--root`.
    pub runtime_root: PathBuf,
    /// `--systemd-cgroup`.
    pub systemd_cgroup: bool,
    /// Where containers' exit records go: `STATE/<container>/exit.json`.
    pub state: PathBuf,
    /// Namespaces to make.
    pub namespaces: NamespacePlan,
    /// `cgroup.procs` of the cgroup that supervisor and process 1 are in, which the supervisor enters; with systemd whoever started it has it moved there.
    pub cgroup_procs: Vec<PathBuf>,
    /// `memory.events` of the pod's cgroup, where those of its containers go with their last process; `None`: they stay until they were read.
    #[serde(default)]
    pub oom_file: Option<PathBuf>,
    /// Hierarchies of cgroups that the node has; none: the supervisor looks for them. A server that knows nothing of this has none.
    #[serde(default)]
    pub hierarchies: Vec<Hierarchy>,
    /// The supervisor's own `oom_score_adj`; `None`: as it is.
    pub oom_score_adj: Option<i32>,
}

/// A container to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerPlan {
    /// Its id, which is also the OCI runtime's name of it.
    pub id: String,
    /// Folder with `config.json` and the root file system.
    pub bundle: PathBuf,
    /// CRI log; empty: none.
    pub log: PathBuf,
    /// Keep standard input open for who attaches.
    pub stdin: bool,
    /// Close it after the first who did.
    pub stdin_once: bool,
    /// One terminal instead of three streams.
    pub tty: bool,
    /// `memory.events` or `memory.oom_control` of its cgroup: whether the kernel killed in it.
    pub oom_file: Option<PathBuf>,
    /// Nothing of it takes the OCI runtime (`container_spec::is_plain_container`): the supervisor makes this cgroup and starts it itself. A
    /// server that knows nothing of this has none.
    #[serde(default)]
    pub cgroup: Option<String>,
}

/// How a container ended (`exit.json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Exit code; 128 and the signal's number after a signal.
    pub exit_code: i32,
    /// When it was started, nanoseconds since 1970; 0: it was not.
    #[serde(default)]
    pub started_at: i64,
    /// Nanoseconds since 1970.
    pub finished_at: i64,
    /// The kernel killed in its cgroup for lack of memory.
    pub oom: bool,
}

/// What a supervisor holds of one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its id.
    pub id: String,
    /// Its first process; 0 before it is there.
    pub pid: i32,
    /// Nanoseconds since 1970; 0 before it runs.
    pub started_at: i64,
    /// How it ended.
    pub exit: Option<ExitRecord>,
}

/// Writes a file so that after any crash it is either as before or whole: a temporary file beside it, flushed, renamed, and the
/// folder flushed.
///
/// # Errors
/// Of the file system; the temporary file is then removed if it can be.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    write(path, content, true)
}

fn write(path: &Path, content: &[u8], synced: bool) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
    let temporary = temporary(path)?;
    let written = (|| {
        // For root alone: records hold what containers are given, secrets among it.
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        if synced {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(&temporary, path)?;
        if synced { File::open(folder)?.sync_all() } else { Ok(()) }
    })();
    if written.is_err() {
        // The first error is the one that tells; a leftover is overwritten by the next attempt.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The temporary file of [`write_atomically`].
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().ok_or_else(|| io::Error::other("a file without a name"))?.to_owned();
    name.push(".tmp");
    Ok(path.with_file_name(name))
}

/// Removes a file, and what a crash left of a [`write_atomically`] of it. One that is not there is fine.
///
/// # Errors
/// Of the file system.
pub fn remove_written(path: &Path) -> io::Result<()> {
    for file in [temporary(path)?.as_path(), path] {
        match fs::remove_file(file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Writes a record as JSON that a person can read, atomically.
///
/// # Errors
/// As [`write_atomically`], and it would be longer than [`MAX_RECORD`], which nobody could read.
pub fn write_record<T: Serialize>(path: &Path, record: &T) -> io::Result<()> {
    write(path, &text(path, record)?, true)
}

/// Writes a record that does not outlive the machine: readers see it whole, and after a power cut it may be empty.
///
/// # Errors
/// As [`write_record`].
pub fn write_passing_record<T: Serialize>(path: &Path, record: &T) -> io::Result<()> {
    write(path, &text(path, record)?, false)
}

fn text<T: Serialize>(path: &Path, record: &T) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    if text.len() > MAX_RECORD {
        return Err(too_long(path));
    }
    Ok(text)
}

/// Reads a record.
///
/// # Errors
/// It cannot be read, is too long or is no such record.
pub fn read_record<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let mut text = Vec::new();
    let most = u64::try_from(MAX_RECORD).unwrap_or(u64::MAX);
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut text)?;
    if text.len() > MAX_RECORD {
        return Err(too_long(path));
    }
    serde_json::from_slice(&text)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", path.display())))
}

fn too_long(path: &Path) -> io::Error {
    let text = format!("{}: a record of more than {MAX_RECORD} bytes", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_and_what_is_too_long_is_not_written() {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("record.json");
        let long = "x".repeat(MAX_RECORD - 3);
        write_record(&path, &long).expect("two quotes and a line's end are the rest");
        assert_eq!(read_record::<String>(&path).expect("read").len(), long.len());
        let refused = write_record(&path, &(long + "x")).expect_err("too long");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_record::<String>(&path).expect("as before").len(), MAX_RECORD - 3);
        File::options().append(true).open(&path).and_then(|mut f| f.write_all(b"   ")).expect("longer");
        assert!(read_record::<String>(&path).is_err());
    }

    #[test]
    fn what_a_crash_left_of_a_write_goes_with_the_file() {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("result");
        for (whole, half) in [(true, true), (false, true), (true, false), (false, false)] {
            for (there, name) in [(whole, "result"), (half, "result.tmp")] {
                if there {
                    fs::write(dir.path().join(name), "x").expect("written");
                }
            }
            remove_written(&path).expect("removed");
            assert_eq!(fs::read_dir(dir.path()).expect("folder").count(), 0);
        }
    }
}
