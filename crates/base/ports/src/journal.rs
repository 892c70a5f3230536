//! The journal: the few facts that cannot be observed again, kept over a death of the daemon.

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("journal: {message}")]
pub struct JournalError {
    /// Text for people; names the file.
    pub message: String,
}

/// A small durable map. All calls but [`Journal::put_soon`] block (callers go through the kernel: `Ctx::blocking`); a write is on disk
/// when it returns. Keys are `<table>/<id>`.
pub trait Journal: Send + Sync + 'static {
    /// The value of `key`, if there is one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError>;

    /// Replaces the value of `key`.
    ///
    /// # Errors
    /// The store cannot be written; the old value is still there.
    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError>;

    /// Removes `key`; absent is success.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remove(&self, key: &str) -> Result<(), JournalError>;

    /// Replaces the value of `key`, or removes it, and returns at once: it is read back from now on, and on disk within a second.
    /// For lines whose loss costs nothing much: what can be found out again, or is looked for anyway. A journal that cannot be
    /// written keeps trying, and says so in the log.
    fn put_soon(&self, key: &str, value: Option<Vec<u8>>);

    /// Keys that begin with `prefix`, in order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError>;
}
