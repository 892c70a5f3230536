//! An archive that files are picked from.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

use layer_unpack::{Limits, Member, Plain, members};

use crate::digest::Digest;
use crate::error::{StoreError, chain};
use crate::files::{self, NEW};
use crate::oci::Manifest;
use crate::store::Writing;

/// Most bytes of a document in an archive.
const DOCUMENT: u64 = 4 << 20;
/// Most links that stand for one file.
const LINKS: usize = 8;

/// An image that was found in an archive.
pub(super) struct Found {
    pub(super) manifest: Manifest,
    pub(super) config: Vec<u8>,
    /// Documents beside the configuration.
    pub(super) documents: Vec<(Digest, Vec<u8>)>,
    pub(super) names: Vec<String>,
    /// The manifest's digest, where the archive has one.
    pub(super) digest: Option<Digest>,
    /// Members of its layers, lowest first.
    pub(super) layers: Vec<Member>,
}

/// An archive without compression, with a list of what is in it.
pub(super) struct Archive {
    file: File,
    members: BTreeMap<String, Member>,
}

impl Archive {
    pub(super) fn open(writing: &Writing, file: File, limits: &Limits) -> Result<Self, StoreError> {
        let unusable =
            |e: &dyn std::error::Error| StoreError::Archive(format!("cannot read the archive: {}", chain(e)));
        let go_on = AtomicBool::new(false);
        let seekable = file.metadata().is_ok_and(|m| m.is_file());
        let again = file.try_clone().map_err(|e| unusable(&e))?;
        let mut plain = Plain::new(again, limits, &go_on).map_err(|e| unusable(&e))?;
        let file = match seekable && !plain.is_compressed() {
            true => file,
            false => spooled(writing, &mut plain)?,
        };
        let whole = Section { file: &file, offset: 0, left: u64::MAX };
        let all = members(whole, limits).map_err(|e| unusable(&e))?;
        let members = all.into_iter().map(|m| (m.name.trim_start_matches("./").to_owned(), m)).collect();
        Ok(Self { file, members })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// A file, through links: old archives of Docker have a link for a layer that is in them twice.
    pub(super) fn member(&self, name: &str) -> Result<Member, StoreError> {
        let mut name = name.trim_start_matches("./").to_owned();
        for _ in 0..LINKS {
            let member = self.members.get(&name);
            let member = member.ok_or_else(|| StoreError::Archive(format!("the archive lacks its file {name}")))?;
            if member.link.is_empty() {
                return Ok(member.clone());
            }
            name = followed(&name, &member.link);
        }
        Err(StoreError::Archive(format!("the links of {name} in the archive go round in a circle")))
    }

    pub(super) fn section(&self, member: &Member) -> Section<'_> {
        Section { file: &self.file, offset: member.offset, left: member.size }
    }

    pub(super) fn document(&self, member: &Member) -> Result<Vec<u8>, StoreError> {
        if member.size > DOCUMENT {
            return Err(StoreError::Archive(format!("{} is larger than {DOCUMENT} bytes", member.name)));
        }
        let mut text = Vec::new();
        let read = self.section(member).read_to_end(&mut text);
        read.map_err(|e| StoreError::Archive(format!("cannot read {} of the archive: {e}", member.name)))?;
        Ok(text)
    }

    /// A document that is what its name says.
    pub(super) fn blob(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let text = self.document(&self.member(&blob_name(digest))?)?;
        match Digest::of(&text) {
            found if found == *digest => Ok(text),
            found => Err(StoreError::Digest { promised: *digest, found }),
        }
    }

    pub(super) fn digest(&self, member: &Member) -> Result<Digest, StoreError> {
        let read = Digest::of_reader(self.section(member));
        Ok(read.map_err(|e| StoreError::Archive(format!("cannot read {} of the archive: {e}", member.name)))?.0)
    }

    pub(super) fn verified(&self, member: &Member, promised: &Digest) -> Result<(), StoreError> {
        match self.digest(member)? {
            found if found == *promised => Ok(()),
            found => Err(StoreError::Digest { promised: *promised, found }),
        }
    }
}

pub(super) fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// Where a link in an archive leads.
fn followed(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A copy without compression that can be read at any place; without a name, so that it goes with this process.
fn spooled(writing: &Writing, from: &mut impl Read) -> Result<File, StoreError> {
    let path = files::beside(&writing.store.root().join("ingest").join("import"), NEW);
    let fail = |what| StoreError::disk(what, &path);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(fail("make"))?;
    files::remove_file(&path)?;
    io::copy(from, &mut &file).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidData => StoreError::Archive(format!("cannot read the archive: {e}")),
        _ => fail("copy the archive to")(e),
    })?;
    Ok(file)
}

/// A piece of a file, read at its place whatever else is read of it.
pub(super) struct Section<'a> {
    file: &'a File,
    offset: u64,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let read = self.file.read_at(&mut buf[..most], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
