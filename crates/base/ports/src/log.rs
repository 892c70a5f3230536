//! Files of container logs.

use std::path::Path;

use crate::host::HostResult;

/// Compresses rotated logs.
pub trait Compress: Send + Sync + 'static {
    /// Writes `from` compressed to `to`, piece by piece, replacing what is there, with the permission bits of `from`. Blocks
    /// for as long as it takes. After a failure `to` may be there in part.
    fn compress(&self, from: &Path, to: &Path) -> HostResult<()>;
}
