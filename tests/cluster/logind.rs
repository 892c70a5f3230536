//! logind and its place on a private bus: the test says when the machine goes down, and sees when it may.

use std::io::Read as _;
use std::os::fd::OwnedFd as StdFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use testbed::{BusDaemon, wait_until};
use zbus::{Connection, OwnedFd, connection, interface};

const SERVICE: &str = "org.freedesktop.login1";
const PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
/// Longest time that anybody may hold a shutdown back.
const DELAY: Duration = Duration::from_secs(300);

/// Our ends of the locks that were taken.
type Locks = Arc<Mutex<Vec<std::io::PipeReader>>>;

struct Manager(Locks);

#[interface(name = "org.freedesktop.login1.Manager")]
impl Manager {
    #[zbus(property, name = "InhibitDelayMaxUSec")]
    fn inhibit_delay_max_usec(&self) -> u64 {
        u64::try_from(DELAY.as_micros()).unwrap_or(u64::MAX)
    }

    #[zbus(property)]
    fn preparing_for_shutdown(&self) -> bool {
        false
    }

    fn inhibit(&self, _what: String, _who: String, _why: String, _mode: String) -> zbus::fdo::Result<OwnedFd> {
        let (ours, theirs) = std::io::pipe().map_err(|e| zbus::fdo::Error::Failed(e.to_string()))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ours);
        Ok(StdFd::from(theirs).into())
    }
}

/// See the module. Field order is drop order.
pub(crate) struct Logind {
    service: Connection,
    runtime: tokio::runtime::Runtime,
    locks: Locks,
    bus: BusDaemon,
}

impl Logind {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (bus, locks) = (BusDaemon::start(), Locks::default());
        let (address, manager) = (bus.address(), Manager(locks.clone()));
        let serving = async {
            let builder = connection::Builder::address(address.as_str()).name(SERVICE);
            builder.serve_at(PATH, manager).build().await
        };
        let service = runtime.block_on(serving).expect("a service on the bus");
        Self { service, runtime, locks, bus }
    }

    /// What tells a daemon of this bus.
    pub(crate) fn env(&self) -> (String, String) {
        ("DBUS_SYSTEM_BUS_ADDRESS".to_owned(), self.bus.address())
    }

    /// The lock of whoever took one last.
    pub(crate) fn lock(&self, limit: Duration) -> Lock {
        let taken = || self.locks.lock().unwrap_or_else(PoisonError::into_inner).pop().ok_or_else(|| "none".to_owned());
        Lock(wait_until("a lock on shutdowns", limit, taken).unwrap_or_else(|e| panic!("{e}")))
    }

    /// The machine goes down.
    pub(crate) fn go_down(&self) {
        let told = self.service.emit_signal(None::<&str>, PATH, MANAGER, "PrepareForShutdown", &true);
        self.runtime.block_on(told).expect("a signal");
    }
}

/// One that somebody holds.
pub(crate) struct Lock(std::io::PipeReader);

impl Lock {
    /// Waits until nobody holds it any more.
    pub(crate) fn wait_released(mut self) {
        // The read ends when the other end has been closed by all.
        assert_eq!(self.0.read(&mut [0]).expect("an end"), 0);
    }
}
