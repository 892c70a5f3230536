//! A folder of the disk in memory as a test uses it: short words, and what fails panics.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ports::host::{FileStat, HostFs, Mounter};

use super::{Errno, FileTrouble, MemFs};

/// A folder, which is not there before something is made in it. Paths are those below it, or absolute ones of the same disk.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The disk.
    pub disk: MemFs,
    root: PathBuf,
}

#[allow(clippy::missing_panics_doc, reason = "each panics where the disk fails")]
impl Folder {
    /// A folder of an empty disk.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::of(&MemFs::default(), root)
    }

    /// A folder of this disk.
    #[must_use]
    pub fn of(disk: &MemFs, root: impl Into<PathBuf>) -> Self {
        Self { disk: disk.clone(), root: root.into() }
    }

    /// The whole path.
    #[must_use]
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// The disk, as a port.
    #[must_use]
    pub fn fs(&self) -> Arc<MemFs> {
        Arc::new(self.disk.clone())
    }

    /// Makes a directory, and those above it.
    pub fn dir(&self, below: impl AsRef<Path>) {
        self.disk.create_dir(&self.path(below), 0o755).expect("the disk takes a directory");
    }

    /// Writes a file anew, and makes the directories that it needs.
    pub fn write(&self, below: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let file = self.path(below);
        self.dir(file.parent().expect("a file is in a directory"));
        self.disk.write_file(&file, content.as_ref(), 0o644).expect("the disk takes a file");
    }

    /// Adds to a file, as a program does that has it open.
    pub fn append(&self, below: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        self.disk.append(&self.path(below), content.as_ref()).expect("the disk takes more");
    }

    /// Text of a file, links followed; empty: there is none.
    #[must_use]
    pub fn read(&self, below: impl AsRef<Path>) -> String {
        let content = self.disk.read_file(&self.path(below), u64::MAX).unwrap_or_default();
        String::from_utf8(content).expect("a text")
    }

    /// What is in a directory, sorted; nothing where there is none.
    #[must_use]
    pub fn names(&self, below: impl AsRef<Path>) -> Vec<String> {
        let entries = self.disk.list_dir(&self.path(below)).unwrap_or_default();
        entries.into_iter().map(|e| e.name).collect()
    }

    /// Makes a link.
    pub fn link(&self, target: impl AsRef<Path>, below: impl AsRef<Path>) {
        self.disk.symlink(target.as_ref(), &self.path(below)).expect("the disk takes a link");
    }

    /// Where a link leads.
    #[must_use]
    pub fn link_of(&self, below: impl AsRef<Path>) -> String {
        self.disk.read_link(&self.path(below)).expect("a link").to_string_lossy().into_owned()
    }

    /// Gives it another name.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        self.disk.rename(&self.path(from), &self.path(to)).expect("the disk takes another name");
    }

    /// Removes a file, or a directory with all that is in it.
    pub fn remove(&self, below: impl AsRef<Path>) {
        self.disk.remove_tree(&self.path(below)).expect("the disk lets it go");
    }

    /// Whether something is there, links followed.
    #[must_use]
    pub fn exists(&self, below: impl AsRef<Path>) -> bool {
        self.disk.stat(&self.path(below)).expect("the disk tells").is_some()
    }

    /// Its figures, links not followed.
    #[must_use]
    pub fn stat(&self, below: impl AsRef<Path>) -> FileStat {
        self.disk.stat_link(&self.path(below)).expect("the disk tells").expect("it is there")
    }

    /// Its permissions.
    #[must_use]
    pub fn mode(&self, below: impl AsRef<Path>) -> u32 {
        self.stat(below).mode
    }

    /// Makes a directory with something mounted on it, of which `statfs` says this.
    pub fn mount(&self, below: impl AsRef<Path>, magic: i64) {
        self.dir(&below);
        self.disk.mount_as(&self.path(below), magic);
    }

    /// Whether something is mounted on it.
    #[must_use]
    pub fn is_mounted(&self, below: impl AsRef<Path>) -> bool {
        self.disk.is_mount_point(&self.path(below)).expect("the disk tells")
    }

    /// From now on calls of an operation fail at this path and below it.
    pub fn fail(&self, operation: &'static str, below: impl AsRef<Path>) {
        self.disk.trouble(&self.path(below), FileTrouble::FailCalls(operation, Errno::Access));
    }
}
