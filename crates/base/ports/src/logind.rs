//! The login manager of systemd: who asks to hold a shutdown back, and who is told of one.

use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::LocalBoxStream;

/// Whether the machine is going down: how it is now, then each change. Ends with an error when there is nobody who would tell.
pub type ShutdownNews = LocalBoxStream<'static, io::Result<bool>>;

/// A shutdown is held back until this is dropped, or until the longest delay is over.
pub struct DelayLock(#[expect(dead_code, reason = "it is dropped, nobody looks at it")] Box<dyn Any + Send>);

impl DelayLock {
    /// Held for as long as `held` is.
    pub fn new(held: impl Any + Send) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for DelayLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DelayLock")
    }
}

/// The login manager. An error of any call: it, or the way to it, is not there, or it refuses.
#[async_trait(?Send)]
pub trait Logind: Send + Sync + 'static {
    /// The longest that it lets anybody hold a shutdown back (`InhibitDelayMaxUSec`).
    ///
    /// # Errors
    /// See the trait.
    async fn longest_delay(&self) -> io::Result<Duration>;

    /// Has it read its configuration again. It does so in its own time, after the answer.
    ///
    /// # Errors
    /// See the trait.
    async fn reload(&self) -> io::Result<()>;

    /// Holds shutdowns back, as a kubelet does.
    ///
    /// # Errors
    /// See the trait; also when the machine is going down already.
    async fn hold_back(&self) -> io::Result<DelayLock>;

    /// Whether the machine is going down, from now on. A change between this and the first item is not lost.
    ///
    /// # Errors
    /// See the trait.
    async fn follow(&self) -> io::Result<ShutdownNews>;
}
