//! The sealed cache: what pods here use, kept encrypted on this node, for a reboot while the API server is away.
//!
//! Lines stand in the journal, each sealed with AES-256-GCM under a key that lies in a file of mode 0600 below the root
//! folder. This guards against a stray copy of the journal, not against root of this machine, who may read every secret of
//! its pods anyway.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use actor::{Class, Effects};
use ports::host::HostFs;
use ports::journal::Journal;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// All lines of this cache.
pub(crate) const TABLE: &str = "object/";
/// Length of the key file in bytes.
const KEY_LEN: usize = 32;

/// The cache. A clone is the same cache.
#[derive(Clone)]
pub struct SealedCache {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for SealedCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealedCache")
    }
}

struct Inner {
    journal: Arc<dyn Journal>,
    fs: Arc<dyn HostFs>,
    effects: Effects,
    key_file: PathBuf,
    key: OnceLock<LessSafeKey>,
    queue: Mutex<Queue>,
}

/// Writes that wait for the one under way. A later write to a line replaces an earlier one.
#[derive(Default)]
struct Queue {
    lines: BTreeMap<String, Option<Vec<u8>>>,
    writing: bool,
}

impl SealedCache {
    /// Lines in `journal`, under the key in `key_file`, which is made when it is not there.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>, fs: Arc<dyn HostFs>, effects: Effects, key_file: PathBuf) -> Self {
        let (key, queue) = (OnceLock::new(), Mutex::default());
        Self { inner: Arc::new(Inner { journal, fs, effects, key_file, key, queue }) }
    }

    /// Keeps a line from now on, or removes it. Written soon; a failure costs the line and is told.
    pub(crate) fn put(&self, line: String, content: Option<Vec<u8>>) {
        if let Some(writer) = self.queued(line, content) {
            self.inner.effects.start(Class::Journal, move || writer.write());
        }
    }

    /// `None`: the writer at work will come to it.
    fn queued(&self, line: String, content: Option<Vec<u8>>) -> Option<Writer> {
        let mut queue = self.inner.queue();
        queue.lines.insert(line, content);
        (!std::mem::replace(&mut queue.writing, true)).then(|| Writer { inner: self.inner.clone(), holds: true })
    }

    /// Reads a line; `None` when there is none that this key opens.
    pub(crate) async fn get(&self, line: &str) -> Option<Vec<u8>> {
        let (inner, line) = (self.inner.clone(), line.to_owned());
        self.inner.effects.attempt(Class::Journal, move || inner.read(&line)).await.ok().flatten()
    }

    /// Names of all lines.
    pub(crate) async fn lines(&self) -> Vec<String> {
        let inner = self.inner.clone();
        let listed = self.inner.effects.attempt(Class::Journal, move || inner.journal.keys(TABLE)).await;
        listed.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// The right to write, one at a time. However it ends, and be it before its work began, the next line finds nobody writing.
struct Writer {
    inner: Arc<Inner>,
    /// False: it has given its right back, and another one may have it by now.
    holds: bool,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.holds {
            self.inner.queue().writing = false;
        }
    }
}

impl Writer {
    /// Works the queue off. A write that panicked costs the lines it held, not the writers after it.
    fn write(mut self) {
        loop {
            let lines = {
                let mut queue = self.inner.queue();
                if queue.lines.is_empty() {
                    // Before the lock is let go: a line that comes later must find nobody writing.
                    queue.writing = false;
                    drop(queue);
                    self.holds = false;
                    return;
                }
                std::mem::take(&mut queue.lines)
            };
            for (line, content) in lines {
                if let Err(error) = self.inner.write_line(&line, content) {
                    tracing::warn!(line, error, "the sealed cache is not written");
                }
            }
        }
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_line(&self, line: &str, content: Option<Vec<u8>>) -> Result<(), String> {
        // Not waited for: a start of a pod would have the disk flushed for each line, beside the runtime that does the same.
        let Some(content) = content else {
            self.journal.put_soon(line, None);
            return Ok(());
        };
        // After each start of the daemon everything is said again.
        if self.read(line).is_some_and(|kept| kept == content) {
            return Ok(());
        }
        let sealed = self.seal(line, content)?;
        self.journal.put_soon(line, Some(sealed));
        Ok(())
    }

    fn read(&self, line: &str) -> Option<Vec<u8>> {
        let sealed = self.journal.load(line).ok().flatten()?;
        let opened = self.open(line, sealed);
        if let Err(error) = &opened {
            tracing::warn!(line, error, "a line of the sealed cache cannot be opened");
        }
        opened.ok()
    }

    /// Nonce, then the sealed content with its tag. The name of the line is sealed in: lines cannot be exchanged.
    fn seal(&self, line: &str, mut content: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| "no randomness")?;
        let key = self.key()?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(line.as_bytes()), &mut content)
            .map_err(|_| "cannot be sealed")?;
        Ok([nonce.as_slice(), &content].concat())
    }

    fn open(&self, line: &str, sealed: Vec<u8>) -> Result<Vec<u8>, String> {
        let (nonce, content) = sealed.split_at_checked(NONCE_LEN).ok_or("too short")?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| "too short")?;
        let mut content = content.to_vec();
        let key = self.key()?;
        let opened = key.open_in_place(nonce, Aad::from(line.as_bytes()), &mut content);
        Ok(opened.map_err(|_| "not sealed with this key")?.to_vec())
    }

    fn key(&self) -> Result<&LessSafeKey, String> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let bytes = self.key_bytes()?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| "unusable key")?;
        Ok(self.key.get_or_init(|| LessSafeKey::new(key)))
    }

    /// Reads the key file, or makes one. A damaged one is replaced: what it sealed is lost, and read again from the server.
    fn key_bytes(&self) -> Result<Vec<u8>, String> {
        let shown = |e: ports::host::HostError| actor::chain(&e);
        match self.fs.read_file(&self.key_file, KEY_LEN as u64) {
            Ok(bytes) if bytes.len() == KEY_LEN => {
                self.fs.set_mode(&self.key_file, 0o600).map_err(shown)?;
                return Ok(bytes);
            }
            Ok(_) => tracing::warn!(file = %self.key_file.display(), "damaged key file is replaced"),
            Err(e) if e.is_not_found() => {}
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                tracing::warn!(file = %self.key_file.display(), "damaged key file is replaced");
            }
            Err(e) => return Err(shown(e)),
        }
        let mut bytes = vec![0; KEY_LEN];
        SystemRandom::new().fill(&mut bytes).map_err(|_| "no randomness")?;
        if let Some(dir) = self.key_file.parent() {
            self.fs.create_dir(dir, 0o700).map_err(shown)?;
        }
        self.fs.write_file_synced(&self.key_file, &bytes, 0o600).map_err(shown)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
