//! The files `allocated_pods_state` and `actuated_pods_state` in the form of a kubelet, so that either can go on after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::PodUid;
use model::allocation::Allocation;
use ports::host::{HostError, HostFs, HostResult};
use serde::{Deserialize, Serialize};

/// What pods were granted.
const ALLOCATED: &str = "allocated_pods_state";
/// What the runtime was told last, by pod. Workers have a more exact record; this one says whose resize was under way when a
/// daemon died, and serves a kubelet that takes over.
const ACTUATED: &str = "actuated_pods_state";
/// Longest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// What pods have.
pub(crate) type Entries = BTreeMap<PodUid, Allocation>;

#[derive(Debug, Serialize, Deserialize)]
struct File {
    /// JSON in a string.
    data: String,
    /// Of `data`, see [`checksum`].
    checksum: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Data {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries: Option<Entries>,
}

/// A kubelet's checksum of a text: FNV-1a with 32 bits over what Go prints of it with its type.
fn checksum(data: &str) -> u64 {
    model::fnv::fnv1a_32(format!("(string){data}").as_bytes()).into()
}

/// The text of a file.
fn print(entries: Entries) -> Result<Vec<u8>, serde_json::Error> {
    let data = serde_json::to_string(&Data { entries: Some(entries).filter(|e| !e.is_empty()) })?;
    serde_json::to_vec(&File { checksum: checksum(&data), data })
}

fn parse(bytes: &[u8]) -> Result<Entries, String> {
    let file: File = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let expected = checksum(&file.data);
    if file.checksum != expected {
        return Err(format!("checksum is {}, its data has {expected}", file.checksum));
    }
    let data: Data = serde_json::from_str(&file.data).map_err(|e| format!("data: {e}"))?;
    Ok(data.entries.unwrap_or_default())
}

/// Reads what pods were granted before this daemon began, and what their containers had. A file that cannot be understood is set
/// aside.
///
/// # Errors
/// A file cannot be read: nobody knows what is in it.
pub(crate) fn load(fs: &dyn HostFs, dir: &Path) -> HostResult<Before> {
    Ok(Before::new(read(fs, &dir.join(ALLOCATED))?, read(fs, &dir.join(ACTUATED))?))
}

/// See [`load`].
#[derive(Debug, Default)]
pub(crate) struct Before {
    pub(crate) allocated: Entries,
    pub(crate) actuated: Entries,
    /// There was a file of what pods were granted, and nobody can read it.
    pub(crate) lost: bool,
}

impl Before {
    fn new(allocated: Option<Entries>, actuated: Option<Entries>) -> Self {
        let lost = allocated.is_none();
        Self { allocated: allocated.unwrap_or_default(), actuated: actuated.unwrap_or_default(), lost }
    }
}

/// `None`: set aside.
fn read(fs: &dyn HostFs, path: &Path) -> HostResult<Option<Entries>> {
    let bytes = match fs.read_file(path, MAX_BYTES) {
        Err(e) if e.is_not_found() => return Ok(Some(Entries::new())),
        read => read?,
    };
    let why = match parse(&bytes) {
        Ok(entries) => return Ok(Some(entries)),
        Err(why) => why,
    };
    let set_aside = set_aside(fs, path);
    tracing::error!(
        path = %path.display(),
        error = why,
        set_aside,
        "what pods have cannot be read (expected: a checkpoint as this daemon or a kubelet writes it); of pods that run it is \
         taken from their status, what others ask for now is admitted anew"
    );
    Ok(None)
}

/// Whether the file lies beside its place now.
fn set_aside(fs: &dyn HostFs, path: &Path) -> bool {
    fs.rename(path, &PathBuf::from(format!("{}.damaged", path.display()))).is_ok()
}

/// Files that still cannot be read are set aside, so that the next words do not replace them; others count.
pub(crate) fn keep_unread(fs: &dyn HostFs, dir: &Path) -> Before {
    let of = |name| {
        let path = dir.join(name);
        read(fs, &path).unwrap_or_else(|error| {
            let set_aside = set_aside(fs, &path);
            tracing::error!(path = %path.display(), error = actor::chain(&error), set_aside, "not read");
            None
        })
    };
    Before::new(of(ALLOCATED), of(ACTUATED))
}

/// Writes both files; when this returns, they outlive a power cut.
pub(crate) fn save(fs: &dyn HostFs, dir: &Path, allocated: Entries, actuated: Entries) -> HostResult<()> {
    // The older truth first: who finds one of them only carries out a resize once more.
    for (name, entries) in [(ACTUATED, actuated), (ALLOCATED, allocated)] {
        let path = dir.join(name);
        let bytes = print(entries).map_err(|e| HostError::new("print", &path, std::io::Error::other(e)))?;
        if fs.read_file(&path, MAX_BYTES).is_ok_and(|known| known == bytes) {
            continue;
        }
        fs.write_file_synced(&path, &bytes, 0o600)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
