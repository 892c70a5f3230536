//! A disk that fails on command, below redb: over a real file, so that locks and renames are real too.

use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::backends::FileBackend;
use redb::{BackendError, Builder, StorageBackend};

use crate::RedbJournal;
use crate::file::{DbFile, Opener};

/// What fails now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Mode {
    #[default]
    Works,
    /// Reads, writes and opens return EIO.
    Eio,
    /// Writes and growth return ENOSPC.
    Full,
    /// Of a file that is opened, what is read behind its head is not what was written.
    Garbles,
    /// Opens and writes return EROFS.
    ReadOnly,
    /// This many writes panic, then all is well.
    Panics(u32),
}

#[derive(Debug, Default)]
struct Inner {
    mode: Mode,
    /// Writes since the last sync, in order, with what stood there: a power cut may lose any of them.
    unsynced: Vec<(u64, Vec<u8>)>,
    opens: u32,
    /// Pause of its journals between attempts to open it.
    pause: Duration,
    /// How long they doubt what they read after an error.
    doubt: Duration,
    watched: Option<PathBuf>,
    pictures: Vec<Vec<u8>>,
}

/// The switch of a disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<Inner>>);

const SECTOR: usize = 512;

impl Disk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its journals do not try to open it again.
    pub(super) fn patient() -> Self {
        let disk = Self::default();
        disk.inner().pause = Duration::from_secs(3600);
        disk
    }

    /// What its journals read after an error is in doubt for ever.
    pub(super) fn doubted() -> Self {
        let disk = Self::default();
        disk.inner().doubt = Duration::from_secs(3600);
        disk
    }

    pub(super) fn set(&self, mode: Mode) {
        self.inner().mode = mode;
    }

    /// How often the file was opened.
    pub(super) fn opens(&self) -> u32 {
        self.inner().opens
    }

    pub(super) fn journal(&self, path: &Path) -> RedbJournal {
        self.try_journal(path).unwrap()
    }

    pub(super) fn try_journal(&self, path: &Path) -> Result<RedbJournal, ports::journal::JournalError> {
        let disk = self.clone();
        let opener: Opener = Box::new(move |path| {
            disk.inner().opens += 1;
            disk.check(true, true)?;
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            let garbled = disk.inner().mode == Mode::Garbles && file.metadata()?.len() > 0;
            Builder::new().create_with_backend(Backend { file: FileBackend::new(file)?, disk: disk.clone(), garbled })
        });
        let (pause, doubt) = {
            let inner = self.inner();
            (inner.pause, inner.doubt)
        };
        RedbJournal::on(DbFile::with_opener(path, opener, pause, doubt), path)
    }

    fn check(&self, writes: bool, opens: bool) -> io::Result<()> {
        let mut inner = self.inner();
        let errno = match inner.mode {
            Mode::Eio => 5,
            Mode::Full if writes && !opens => 28,
            Mode::ReadOnly if writes => 30,
            Mode::Panics(left) if writes && !opens && left > 0 => {
                inner.mode = Mode::Panics(left - 1);
                drop(inner);
                panic!("a write panics, by order");
            }
            _ => return Ok(()),
        };
        Err(io::Error::from_raw_os_error(errno))
    }

    /// From now on every sync leaves pictures of the file as a power cut just before it would.
    pub(super) fn watch(&self, path: &Path) {
        self.inner().watched = Some(path.to_owned());
    }

    /// The pictures since the last call.
    pub(super) fn pictures(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.inner().pictures)
    }
}

impl Inner {
    /// Of each sector written since the last sync, either the old or the new content, as `seed` says.
    fn cut_power(&self, path: &Path, seed: u64) -> Vec<u8> {
        let mut image = std::fs::read(path).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        // The oldest content of a sector is what the disk has.
        for (offset, old) in self.unsynced.iter().rev() {
            for (n, sector) in old.chunks(SECTOR).enumerate() {
                let at = usize::try_from(*offset).unwrap() + n * SECTOR;
                if rng.bool() {
                    image[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        image
    }
}

#[derive(Debug)]
struct Backend {
    file: FileBackend,
    disk: Disk,
    garbled: bool,
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.disk.check(false, false)?;
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.check(false, false)?;
        self.file.read(offset, out)?;
        if self.garbled && offset > 0 {
            out.fill(b'?');
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.check(true, false)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.check(true, false)?;
        let mut inner = self.disk.inner();
        if let Some(path) = inner.watched.clone() {
            let pictures: Vec<_> = (0..4).map(|seed| inner.cut_power(&path, seed)).collect();
            inner.pictures.extend(pictures);
        }
        inner.unsynced.clear();
        drop(inner);
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.check(true, false)?;
        let mut old = vec![0; data.len()];
        self.file.read(offset, &mut old)?;
        self.disk.inner().unsynced.push((offset, old));
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
