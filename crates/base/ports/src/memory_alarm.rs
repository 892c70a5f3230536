//! The kernel's word that memory runs short, without anybody looking.

use std::io;

use futures::stream::LocalBoxStream;

/// A word per occurrence; ends with an error.
pub type Alarms = LocalBoxStream<'static, io::Result<()>>;

/// An alarm that is set: the kernel keeps its word until somebody listens. Listening needs a reactor of tokio where it begins.
pub type Armed = Box<dyn FnOnce() -> io::Result<Alarms> + Send>;

/// What the kernel tells of memory. Both open and write files, and so may wait for a disk or the kernel.
pub trait MemoryAlarm: Send + Sync + 'static {
    /// Tells when tasks of this machine waited for memory for a noticeable part of a second (PSI).
    ///
    /// # Errors
    /// This kernel does not measure it, or not for us.
    fn stalls(&self) -> io::Result<Armed>;

    /// Tells when the memory that a cgroup of v1 uses, page cache included, crosses so many bytes, in either direction.
    /// `cgroup` as for [`crate::host::CgroupFs`].
    ///
    /// # Errors
    /// There is no such cgroup, or this is not v1.
    fn usage_crosses(&self, cgroup: &str, bytes: u64) -> io::Result<Armed>;
}
