//! Reading and decoding files, off the actor's thread.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hasher};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use model::core::Pod;
use ports::host::{FileKind, HostFs, HostResult};
use static_pod::{MAX_MANIFEST_BYTES, Manifest, ManifestError, Origin, Source, read_manifest};

/// Length and hash of content: tells whether a file has to be decoded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    len: u64,
    hash: u64,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
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
pub(super) enum Listing {
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
pub(super) type Marks = BTreeMap<OsString, Mark>;

/// Reads everything.
pub(super) fn list(fs: &dyn HostFs, path: &Path, node_name: &str, known: &Marks) -> Listing {
    let kind = match fs.stat(path) {
        Ok(Some(stat)) => stat.kind,
        // What stands in the way of the path is another matter than nothing at its end.
        Ok(None) if path.parent().is_some_and(|above| is_no_folder(fs, above)) => {
            return Listing::Unreadable("what is above it is no folder".to_owned());
        }
        Ok(None) => return Listing::Missing,
        Err(e) => return Listing::Unreadable(e.source.to_string()),
    };
    match kind {
        FileKind::File => {
            let found = read(fs, path, node_name, known.get(OsStr::new("")));
            if found == Found::Gone { Listing::Missing } else { Listing::Single(found) }
        }
        FileKind::Dir => match names(fs, path) {
            Ok(names) => Listing::Folder(
                names
                    .into_iter()
                    .map(|name| (name.clone(), read(fs, &path.join(&name), node_name, known.get(&name))))
                    .collect(),
            ),
            Err(e) => Listing::Unreadable(e.source.to_string()),
        },
        _ => Listing::Unreadable("is neither a folder nor a regular file".to_owned()),
    }
}

fn is_no_folder(fs: &dyn HostFs, path: &Path) -> bool {
    matches!(fs.stat(path), Ok(Some(stat)) if stat.kind != FileKind::Dir)
}

fn names(fs: &dyn HostFs, folder: &Path) -> HostResult<Vec<OsString>> {
    let names = fs.list_dir(folder)?.into_iter().map(|entry| OsString::from(entry.name));
    Ok(names.filter(|name| may_be_manifest(name)).collect())
}

/// Files whose name starts with a dot are never manifests; nor are those whose name is no text.
pub(super) fn may_be_manifest(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| !name.starts_with('.'))
}

/// Whether a file that was just made has its content already: it is a link, hard or symbolic. Of any other there is another
/// event when its writer closes it.
pub(super) fn is_complete_when_created(fs: &dyn HostFs, path: &Path) -> bool {
    let stat = fs.stat_link(path).ok().flatten();
    stat.is_some_and(|s| s.kind == FileKind::Symlink || s.links > 1)
}

/// Reads one file.
pub(super) fn read(fs: &dyn HostFs, path: &Path, node_name: &str, known: Option<&Mark>) -> Found {
    let bad = |reason: String| Found::Bad { errors: vec![reason], mark: None };
    match fs.stat(path).map(|stat| stat.map(|s| s.kind)) {
        Ok(Some(FileKind::File)) => {}
        Ok(Some(FileKind::Dir)) => {
            return Found::Skipped { reason: "is a folder; folders in a folder are not searched".to_owned() };
        }
        Ok(Some(_)) => return Found::Skipped { reason: "is not a regular file".to_owned() },
        Ok(None) if matches!(fs.stat_link(path), Ok(None)) => return Found::Gone,
        Ok(None) => return bad("is a link to a file that is not there".to_owned()),
        Err(e) => return bad(format!("cannot be read: {}", e.source)),
    }
    let bytes = match fs.read_file(path, MAX_MANIFEST_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(e) if e.is_not_found() => return Found::Gone,
        Err(e) if e.kind() == ErrorKind::InvalidData => {
            return bad(ManifestError::TooLarge { size: MAX_MANIFEST_BYTES + 1 }.to_string());
        }
        Err(e) => return bad(format!("cannot be read: {}", e.source)),
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
