//! Images of this node: what was pulled, unpacked and is used.
//!
//! **Owns** the folder of images (`/var/lib/bosun/runtime/images`), which a person can read:
//! `images/ID.json` one record per image, `blobs/sha256/HEX` its documents, `layers/CHAIN-ID/{diff,info.json}` unpacked layers, `ingest/HEX.part`
//! what is on its way, `leases/HOLDER.json` who needs which layers, `l/` short names of layers for mounts, `lock` who writes. Compressed layers are not kept: unpacked they are of use.
//! **Never** speaks to a registry (crate `registry`), never mounts anything.
//! **Holds** that what has its final name is whole and on disk: layers are synced before they are renamed, records are written last.
//! **Lost on a crash**: what is under way. Names that begin with `.new-` or `.gone-` mean nothing and go when the next writer comes.
//! **Read next** `commit.rs`, `check.rs`, `tests/crash.rs`.
//!
//! Everything here blocks: not for threads of actors.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod catalogue;
mod check;
mod commit;
mod digest;
mod error;
mod files;
mod folder;
mod garbage;
mod held;
mod images;
mod import;
mod ingest;
mod leases;
mod lock;
pub mod oci;
mod record;
mod short;
mod store;
mod usage;

#[cfg(test)]
mod tests;

pub use catalogue::Image;
pub use check::Checked;
pub use commit::{Draft, LayerOf, NewLayer};
pub use digest::{BadDigest, ChainId, Digest, Hasher, chain_ids};
pub use error::{StoreError, chain};
pub use held::{Held, Holder};
pub use images::Removed;
pub use import::ImportOptions;
pub use ingest::Ingest;
pub use layer_unpack::{CopyError, Limits, UnpackError, copy_merged};
pub use leases::Lease;

pub use record::LayerRecord;
pub use short::ShortLowers;
pub use store::{ImageStore, Writing};
pub use usage::Usage;
