//! Layers of images: a tar, plain or compressed, to a directory that overlayfs takes as a lower one.
//!
//! **Owns** the form of a layer (OCI image-spec, layer.md), of whiteouts in overlayfs, and the bounds of what a stranger's
//! archive may cost. **Never** writes outside of the directory it is given: every name is resolved by the kernel beneath that
//! directory (`openat2`, Linux 5.6), never by a path. **Never** keeps a file in memory.
//! **Lost on a crash**: a half-written directory; who calls writes to a name that nobody takes for a layer yet.
//! **Read next** `archive.rs` (what is read), `place.rs` (what is made of it), `tests/hostile.rs`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

mod archive;
mod compression;
mod error;
mod limits;
mod members;
mod merged;
mod name;
mod pax;
mod place;
mod settle;
mod stream;
mod tree;

#[cfg(test)]
mod tests;

pub use error::UnpackError;
pub use limits::Limits;
pub use members::{Member, Plain, members};
pub use merged::{CopyError, copy_merged};
pub use place::Unpacked;
pub use settle::{SettleError, settle};

/// Unpacks a layer into an empty directory. Compression is known by its first bytes, as containerd does.
///
/// `diff_id`: what the image's configuration says that the archive without compression has as SHA-256. It is known only at the end:
/// on any error the caller throws the directory away. `stop` ends it early with [`UnpackError::Stopped`].
///
/// # Errors
/// The archive breaks a rule or a limit, is not the one that was promised, or the disk refuses.
pub fn unpack(
    layer: impl Read,
    into: &Path,
    diff_id: &[u8; 32],
    limits: &Limits,
    stop: &AtomicBool,
) -> Result<Unpacked, UnpackError> {
    let mut archive = archive::Archive::new(stream::Stream::new(layer, *limits, stop)?);
    let mut layer = place::Layer::new(into, limits)?;
    while let Some(entry) = archive.next()? {
        layer.place(&entry, &mut archive)?;
    }
    let (found, archive_bytes) = archive.finish()?;
    if found != *diff_id {
        return Err(UnpackError::DiffId { promised: hex(diff_id), found: hex(&found) });
    }
    let made = layer.finish()?;
    Ok(Unpacked { diff_id: found, archive_bytes, ..made })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
