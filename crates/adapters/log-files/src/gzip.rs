//! Compression of rotated logs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use ports::host::{HostError, HostResult};
use ports::log::Compress;

/// Opens a regular file that is no link, and waits for no pipe.
pub type Open = fn(&Path) -> io::Result<File>;

/// Compresses files with gzip, a few KiB at a time.
#[derive(Clone, Copy, Debug)]
pub struct Gzip {
    open: Open,
}

impl Gzip {
    /// `open` decides what may be compressed.
    #[must_use]
    pub const fn new(open: Open) -> Self {
        Self { open }
    }
}

impl Compress for Gzip {
    fn compress(&self, from: &Path, to: &Path) -> HostResult<()> {
        let mut source = (self.open)(from).map_err(|e| HostError::new("open", from, e))?;
        let facts = source.metadata().map_err(|e| HostError::new("stat", from, e))?;
        write(&mut source, to, facts.permissions().mode()).map_err(|e| HostError::new("compress", to, e))
    }
}

fn write(source: &mut File, to: &Path, mode: u32) -> io::Result<()> {
    // A log may be private: its compressed form must never have been less so.
    // Made anew: a link that somebody put there is not written through.
    if let Err(e) = fs::remove_file(to)
        && e.kind() != io::ErrorKind::NotFound
    {
        return Err(e);
    }
    let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    target.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
    let mut encoder = GzEncoder::new(BufWriter::new(target), Compression::default());
    io::copy(source, &mut encoder)?;
    encoder.finish()?.flush()
}
