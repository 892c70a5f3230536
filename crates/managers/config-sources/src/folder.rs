//! Reading and decoding files, off the actor's thread.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use model::core::Pod;
use static_pod::{MAX_MANIFEST_BYTES, Manifest, ManifestError, Origin, Source, read_manifest};

/// Length and hash of content: tells whether a file has to be decoded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    len: u64,
    hash: u64,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// The same content as before.
    Unchanged,
    /// A good manifest.
    Pod { pod: Arc<Pod>, warnings: Vec<String>, mark: Mark },
    /// A manifest that is refused, one line per mistake.
    Bad { errors: Vec<String>, mark: Option<Mark> },
    /// No manifest at all, e.g. a folder.
    Skipped { reason: String },
    /// Not there.
    Gone,
}

/// What the path is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Listing {
    /// Nothing there.
    Missing,
    /// A folder, with its entries in the order of their names.
    Folder(Vec<(OsString, Found)>),
    /// A single file. Its name here is empty: the path says it all.
    Single(Found),
    /// It cannot be read.
    Unreadable(String),
}

/// Content known so far, by file name.
pub(crate) type Marks = BTreeMap<OsString, Mark>;

/// Reads everything.
pub(crate) fn list(path: &Path, node_name: &str, known: &Marks) -> Listing {
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound => return Listing::Missing,
        Err(e) => return Listing::Unreadable(e.to_string()),
    };
    if meta.is_file() {
        let found = read(path, node_name, known.get(OsStr::new("")));
        return if found == Found::Gone { Listing::Missing } else { Listing::Single(found) };
    }
    if !meta.is_dir() {
        return Listing::Unreadable("is neither a folder nor a regular file".to_owned());
    }
    match names(path) {
        Ok(names) => Listing::Folder(
            names
                .into_iter()
                .map(|name| (name.clone(), read(&path.join(&name), node_name, known.get(&name))))
                .collect(),
        ),
        Err(e) => Listing::Unreadable(e.to_string()),
    }
}

fn names(folder: &Path) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        names.push(entry?.file_name());
    }
    names.retain(|name| !is_hidden(name));
    names.sort();
    Ok(names)
}

/// Files whose name starts with a dot are never manifests.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().first() == Some(&b'.')
}

/// Whether a file that was just made has its content already: it is a link, of either kind. Any other will be told of again
/// when its writer closes it.
pub(crate) fn is_complete_when_created(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_symlink() || m.nlink() > 1)
}

/// Reads one file.
pub(crate) fn read(path: &Path, node_name: &str, known: Option<&Mark>) -> Found {
    let bad = |reason: String| Found::Bad { errors: vec![reason], mark: None };
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => return Found::Gone,
        Err(e) if e.kind() == ErrorKind::NotFound => return bad("is a link to a file that is not there".to_owned()),
        Err(e) => return bad(format!("cannot be read: {e}")),
    };
    if meta.is_dir() {
        return Found::Skipped { reason: "is a folder; folders in a folder are not searched".to_owned() };
    }
    if !meta.is_file() {
        return Found::Skipped { reason: "is not a regular file".to_owned() };
    }
    let bytes = match content(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Found::Gone,
        Err(e) => return bad(format!("cannot be read: {e}")),
    };
    let mark = mark(&bytes);
    if known == Some(&mark) {
        return Found::Unchanged;
    }
    let source = path.to_string_lossy();
    match read_manifest(&bytes, &Origin { node_name, source: Source::File(&source) }) {
        Ok(Manifest { pod, warnings }) => {
            Found::Pod { pod: Arc::new(pod), warnings: warnings.iter().map(ToString::to_string).collect(), mark }
        }
        Err(error) => Found::Bad { errors: lines(&error), mark: Some(mark) },
    }
}

/// One byte more than is allowed at most, so that decoding sees what is too large.
fn content(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_MANIFEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn mark(bytes: &[u8]) -> Mark {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    Mark { len: bytes.len() as u64, hash: hasher.finish() }
}

/// One line per mistake.
fn lines(error: &ManifestError) -> Vec<String> {
    match error.fields() {
        [] => vec![error.to_string()],
        fields => fields.iter().map(ToString::to_string).collect(),
    }
}
