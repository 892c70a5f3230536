//! The redb file: opened, opened anew after an error, set aside when it is damaged.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Builder, Database, DatabaseError, ReadableDatabase, TableDefinition};
use rustix::fs::Advice;

pub(crate) const LINES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("lines");
/// Page cache; the journal is small and rarely read.
const CACHE_BYTES: usize = 256 << 10;
/// Pause between two attempts at a file that cannot be opened.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// For this long after an I/O error a file that cannot be right is not taken for damaged: pages that were not written, and a file
/// system that has lost some, show what is not on the disk.
const DOUBT: Duration = Duration::from_secs(60);
/// Damaged files that are kept. Later ones are removed: the first tell most, and a disk that damages one after the other
/// must not be filled with them.
const KEPT: usize = 10;

/// A line to write; `None` removes it.
pub(crate) type Change = (String, Option<Vec<u8>>);

/// Opens the database at a path, or makes it.
pub(crate) type Opener = Box<dyn Fn(&Path) -> Result<Database, DatabaseError> + Send + Sync>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// Nothing is known about the file but that it cannot be reached now.
    #[error("{0}")]
    Io(String),
    /// What it holds cannot be right, and the disk has failed a moment ago.
    #[error("{0}; not taken for damaged so soon after an error of the disk")]
    Unsure(String),
    /// Its folder is not there.
    #[error("{0}")]
    NoFolder(String),
    /// Somebody else holds it.
    #[error("another process has it open (is a second bosun running on this root dir?)")]
    Busy,
    /// What it holds cannot be right.
    #[error("{0}")]
    Damaged(String),
    /// redb panicked: a bug, or a page that cannot be right.
    #[error("redb panicked: {0}")]
    Panicked(String),
}

impl Fault {
    pub(crate) fn ends_the_daemon(&self) -> bool {
        matches!(self, Fault::Busy | Fault::NoFolder(_))
    }

    fn is_doubtful(&self) -> bool {
        matches!(self, Fault::Damaged(_) | Fault::Panicked(_))
    }
}

impl From<redb::Error> for Fault {
    fn from(e: redb::Error) -> Self {
        use redb::Error as E;
        match &e {
            E::DatabaseAlreadyOpen => Fault::Busy,
            // No errno in it: redb says so of a file that is none of its own, or that is shorter than it must be.
            E::Io(io) if matches!(io.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                Fault::Damaged(e.to_string())
            }
            E::Corrupted(_)
            | E::UpgradeRequired(_)
            | E::RepairAborted
            | E::TableTypeMismatch { .. }
            | E::TableIsMultimap(_)
            | E::TypeDefinitionChanged { .. }
            | E::TableDoesNotExist(_) => Fault::Damaged(e.to_string()),
            _ => Fault::Io(e.to_string()),
        }
    }
}

/// The file and its open database.
pub(crate) struct DbFile {
    path: PathBuf,
    opener: Opener,
    /// A file that could not be opened is tried again after this long; calls until then fail at once.
    pause: Duration,
    /// As [`DOUBT`].
    doubt: Duration,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    db: Option<Database>,
    /// Why and when it could not be opened last.
    failed: Option<(String, Instant)>,
    /// When the disk failed last.
    troubled: Option<Instant>,
    /// Counts openings, so that of many calls that failed together one opens anew.
    opened: u64,
}

impl std::fmt::Debug for DbFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// How much is done before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mend {
    Reopen,
    /// Look through the whole file too, and set it aside when it is damaged.
    Check,
}

impl DbFile {
    pub(crate) fn new(path: &Path) -> Self {
        let opener = |path: &Path| Builder::new().set_cache_size(CACHE_BYTES).create(path);
        Self::with_opener(path, Box::new(opener), TRY_AGAIN, DOUBT)
    }

    pub(crate) fn with_opener(path: &Path, opener: Opener, pause: Duration, doubt: Duration) -> Self {
        Self { path: path.to_owned(), opener, pause, doubt, state: RwLock::default() }
    }

    /// Opens it, and writes to it once.
    pub(crate) fn open(&self) -> Result<(), Fault> {
        if self.path.parent().is_some_and(|folder| !folder.exists()) {
            return Err(Fault::NoFolder("its folder does not exist".to_owned()));
        }
        self.run(&|db| commit(db, &[]))
    }

    /// Runs `op`; after an error once more on the file opened anew, and after doubts about the file a last time when it
    /// has been looked through. Never unwinds.
    pub(crate) fn run<T>(&self, op: &impl Fn(&Database) -> Result<T, redb::Error>) -> Result<T, Fault> {
        let (mut opened, first) = self.attempt(op);
        let mut outcome = first;
        for mend in [Mend::Reopen, Mend::Check] {
            match &outcome {
                // The first opening of all is no failure.
                Err(_) if mend == Mend::Reopen && opened == 0 => {}
                Err(fault) if mend == Mend::Reopen || fault.is_doubtful() => {
                    tracing::warn!(path = %self.path.display(), error = %fault, ?mend, "journal failed, opening it anew");
                }
                _ => break,
            }
            let disk_failed = opened > 0 && matches!(outcome, Err(Fault::Io(_)));
            match self.reopen(opened, mend, disk_failed) {
                Ok(()) => (opened, outcome) = self.attempt(op),
                Err(fault) => outcome = Err(fault),
            }
        }
        outcome
    }

    /// One attempt, and on which opening of the file it was.
    fn attempt<T>(&self, op: &impl Fn(&Database) -> Result<T, redb::Error>) -> (u64, Result<T, Fault>) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let outcome = match &state.db {
            Some(db) => caught(|| Ok(op(db)?)),
            None => Err(Fault::Io("not open".to_owned())),
        };
        (state.opened, outcome)
    }

    /// Opens the file anew unless somebody else did since opening number `opened`, which `disk_failed` under.
    fn reopen(&self, opened: u64, mend: Mend, disk_failed: bool) -> Result<(), Fault> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.opened != opened && state.db.is_some() {
            return Ok(());
        }
        if let Some((why, when)) = &state.failed
            && mend == Mend::Reopen
            && when.elapsed() < self.pause
        {
            return Err(Fault::Io(why.clone()));
        }
        // First: it holds the lock on the file.
        let old = state.db.take();
        let _reported = caught(move || {
            drop(old);
            Ok(())
        });
        if disk_failed {
            state.troubled = Some(Instant::now());
        }
        let in_doubt = state.troubled.is_some_and(|when| when.elapsed() < self.doubt);
        if in_doubt {
            self.forget_pages();
        }
        match self.open_now(mend, in_doubt) {
            Ok(db) => {
                *state = State { db: Some(db), failed: None, troubled: state.troubled, opened: state.opened + 1 };
                Ok(())
            }
            Err(fault) => {
                if matches!(fault, Fault::Io(_)) {
                    state.troubled = Some(Instant::now());
                }
                state.failed = Some((fault.to_string(), Instant::now()));
                Err(fault)
            }
        }
    }

    /// What is in memory of the file may never have come to disk: the next reader is to see the disk.
    fn forget_pages(&self) {
        let forgotten =
            File::open(&self.path).and_then(|file| Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?));
        if let Err(error) = forgotten {
            tracing::debug!(path = %self.path.display(), %error, "pages of the journal stay in memory");
        }
    }

    fn open_now(&self, mend: Mend, in_doubt: bool) -> Result<Database, Fault> {
        self.clear_unfinished();
        let fresh = !self.path.exists();
        let mut opened = self.open_once();
        if mend == Mend::Check && matches!(opened, Err(Fault::Panicked(_))) {
            opened = self.open_once();
        }
        if mend == Mend::Check
            && let Ok(db) = &mut opened
        {
            let checked = caught(|| match db.check_integrity() {
                // False: it was damaged and has been repaired.
                Ok(_) => Ok(()),
                Err(e) => Err(redb::Error::from(e).into()),
            });
            if let Err(fault) = checked {
                opened = Err(fault);
            }
        }
        match opened {
            Err(fault) if in_doubt && fault.is_doubtful() => Err(Fault::Unsure(fault.to_string())),
            // One panic proves nothing about the file: it is opened again with the next mend.
            Err(fault) if matches!(fault, Fault::Damaged(_)) || mend == Mend::Check && fault.is_doubtful() => {
                self.set_aside(&fault).map_err(|e| Fault::Io(format!("damaged and cannot be set aside: {e}")))?;
                let db = self.open_once()?;
                self.sync_folder();
                Ok(db)
            }
            Ok(db) => {
                if fresh {
                    self.sync_folder();
                }
                Ok(db)
            }
            Err(fault) => Err(fault),
        }
    }

    fn open_once(&self) -> Result<Database, Fault> {
        caught(|| {
            let db = (self.opener)(&self.path).map_err(redb::Error::from)?;
            ensure_table(&db)?;
            Ok(db)
        })
    }

    /// A file whose making was interrupted (by a full disk, say) is no damaged one: redb writes the first bytes last.
    fn clear_unfinished(&self) {
        let mut head = [0; 9];
        let Ok(mut file) = File::open(&self.path) else { return };
        let begun = file.metadata().is_ok_and(|m| m.len() > 0);
        let blank = match file.read_exact(&mut head) {
            Ok(()) => head == [0; 9],
            Err(e) => e.kind() == ErrorKind::UnexpectedEof,
        };
        if begun && blank {
            tracing::warn!(path = %self.path.display(), "journal was never finished, beginning it again");
            if let Err(error) = std::fs::remove_file(&self.path) {
                tracing::warn!(path = %self.path.display(), %error, "unfinished journal cannot be removed");
            }
        }
    }

    /// Moves a damaged file away, never over an earlier one.
    fn set_aside(&self, fault: &Fault) -> io::Result<()> {
        let name = |n: usize| match n {
            0 => self.path.with_extension("damaged"),
            n => self.path.with_extension(format!("damaged.{n}")),
        };
        let Some(aside) = (0..KEPT).map(name).find(|p| p.symlink_metadata().is_err()) else {
            tracing::error!(path = %self.path.display(), error = %fault, kept = KEPT,
                "journal is damaged again and removed: enough damaged ones are kept");
            return std::fs::remove_file(&self.path);
        };
        tracing::error!(path = %self.path.display(), error = %fault, aside = %aside.display(),
            "journal is damaged, set aside");
        std::fs::rename(&self.path, &aside)
    }

    /// A new file outlives a power cut only when its folder was synced too.
    fn sync_folder(&self) {
        let Some(folder) = self.path.parent() else { return };
        if let Err(error) = File::open(folder).and_then(|f| f.sync_all()) {
            tracing::warn!(folder = %folder.display(), %error, "folder of the journal cannot be synced");
        }
    }
}

fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            Err(Fault::Panicked(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()))
        }
    }
}

fn ensure_table(db: &Database) -> Result<(), redb::Error> {
    match db.begin_read()?.open_table(LINES) {
        Ok(_) => Ok(()),
        Err(redb::TableError::TableDoesNotExist(_)) => commit(db, &[]),
        Err(e) => Err(e.into()),
    }
}

pub(crate) fn commit(db: &Database, changes: &[Change]) -> Result<(), redb::Error> {
    let tx = db.begin_write()?;
    {
        let mut table = tx.open_table(LINES)?;
        for (key, value) in changes {
            match value {
                Some(value) => drop(table.insert(key.as_str(), value.as_slice())?),
                None => drop(table.remove(key.as_str())?),
            }
        }
    }
    Ok(tx.commit()?)
}
