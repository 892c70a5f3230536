//! The kernel's word that memory runs short, without anybody looking.

use std::io;

use futures::stream::LocalBoxStream;

/// A word per occurrence; ends with an error.
pub type Alarms = LocalBoxStream<'static, io::Result<()>>;

/// What the kernel tells of memory. Both need a reactor of tokio where they are called.
pub trait MemoryAlarm: Send + Sync + 'static {
    /// Tells when tasks of this machine waited for memory for a noticeable part of a second (PSI).
    ///
    /// # Errors
    /// This kernel does not measure it, or not for us.
    fn stalls(&self) -> io::Result<Alarms>;

    /// Tells when the memory that a cgroup of v1 uses, page cache included, crosses so many bytes, in either direction.
    /// `cgroup` as for [`crate::host::CgroupFs`].
    ///
    /// # Errors
    /// There is no such cgroup, or this is not v1.
    fn usage_crosses(&self, cgroup: &str, bytes: u64) -> io::Result<Alarms>;
}
