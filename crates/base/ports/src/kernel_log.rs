//! What the kernel says of itself, line by line.

use std::io;

use futures::stream::LocalBoxStream;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLine {
    /// Its number; grows by one from line to line, begins anew with each boot.
    pub number: u64,
    /// What it says, without level and time.
    pub text: String,
}

/// Lines, those first that the kernel still has, then new ones as they come; ends with an error.
pub type KernelLines = LocalBoxStream<'static, io::Result<KernelLine>>;

/// The kernel's log. Lines that programs wrote into it are left out.
pub trait KernelLog: Send + Sync + 'static {
    /// Begins to read. Lines that were overwritten before they were read are missing.
    ///
    /// # Errors
    /// There is no such log here, or it may not be read.
    fn open(&self) -> io::Result<KernelLines>;
}
