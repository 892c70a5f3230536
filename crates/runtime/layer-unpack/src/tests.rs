//! Archives made by hand, unpacked into folders that a snapshot of their surroundings is taken of.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ring::digest::{SHA256, digest};
use tar::{EntryType, Header};
use tempfile::TempDir;

use crate::{Limits, UnpackError, Unpacked, unpack};

mod forms;
mod hostile;
mod limits;
mod merged;
mod overlay;

/// An archive that grows.
#[derive(Default, Clone)]
struct Tar(Vec<u8>);

impl Tar {
    fn new() -> Self {
        Self::default()
    }

    fn raw(mut self, header: &Header, data: &[u8]) -> Self {
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn entry(self, kind: EntryType, name: &str, link: &str, data: &[u8]) -> Self {
        let header = header(kind, name, link, data.len() as u64);
        self.raw(&header, data)
    }

    fn file(self, name: &str, data: &[u8]) -> Self {
        self.entry(EntryType::Regular, name, "", data)
    }

    fn dir(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name, "", b"")
    }

    fn symlink(self, name: &str, to: &str) -> Self {
        self.entry(EntryType::Symlink, name, to, b"")
    }

    fn hard_link(self, name: &str, to: &str) -> Self {
        self.entry(EntryType::Link, name, to, b"")
    }

    fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let text: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.entry(EntryType::XHeader, "pax", "", &text)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let body = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
    let length = (1..).find(|n: &usize| n.to_string().len() + body.len() == *n).unwrap();
    [length.to_string().as_bytes(), &body].concat()
}

/// With names as they are, whatever they lead to.
fn header(kind: EntryType, name: &str, link: &str, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_000_000_000);
    header.set_size(size);
    header.set_cksum();
    header
}

/// A folder with a layer's place in it, and things that must stay as they are.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("layer")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::write(folder.path().join("outside/secret"), "untouched").unwrap();
        std::fs::write(folder.path().join("victim"), "untouched").unwrap();
        Self { folder }
    }

    fn layer(&self) -> PathBuf {
        self.folder.path().join("layer")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.layer().join(path)
    }

    fn unpack(&self, archive: &[u8]) -> Result<Unpacked, UnpackError> {
        self.unpack_with(archive, archive, &Limits::default())
    }

    /// `layer`: what `archive` is compressed to.
    fn unpack_with(&self, layer: &[u8], archive: &[u8], limits: &Limits) -> Result<Unpacked, UnpackError> {
        unpack(layer, &self.layer(), &sha256(archive), limits, &AtomicBool::new(false))
    }

    /// All that lies beside the layer: path, kind, owner, times, contents.
    fn surroundings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path == self.layer() {
                    continue;
                }
                let meta = path.symlink_metadata().unwrap();
                let text = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
                let facts = (meta.mode(), meta.uid(), meta.nlink(), meta.mtime(), meta.mtime_nsec());
                lines.push(format!("{} {facts:?} {text:?}", path.display()));
                if meta.is_dir() {
                    folders.push(path);
                }
            }
        }
        lines.sort();
        lines
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn read(path: &Path) -> String {
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

fn is_whiteout(path: &Path) -> bool {
    let meta = path.symlink_metadata().unwrap();
    meta.file_type().is_char_device() && meta.rdev() == 0
}

fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::lgetxattr(path, name, &mut value).ok()?;
    value.truncate(length);
    Some(value)
}

fn is_opaque(path: &Path) -> bool {
    xattr(path, "trusted.overlay.opaque").as_deref() == Some(b"y")
}
