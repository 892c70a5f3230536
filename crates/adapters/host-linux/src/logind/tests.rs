//! A private message bus with stand-ins for logind and systemd on it.

use std::io::Read as _;
use std::os::fd::OwnedFd as StdFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::StreamExt as _;
use tokio::runtime::Runtime;
use zbus::interface;

use super::*;
use testbed::BusDaemon;

#[derive(Default)]
struct State {
    calls: Mutex<Vec<String>>,
    delay_us: AtomicU64,
    going_down: AtomicBool,
    /// The other ends of the locks.
    locks: Mutex<Vec<std::io::PipeReader>>,
}

impl State {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

struct Login(Arc<State>);

#[interface(name = "org.freedesktop.login1.Manager")]
impl Login {
    #[zbus(property, name = "InhibitDelayMaxUSec")]
    fn inhibit_delay_max_usec(&self) -> u64 {
        self.0.delay_us.load(Ordering::SeqCst)
    }

    #[zbus(property)]
    fn preparing_for_shutdown(&self) -> bool {
        self.0.going_down.load(Ordering::SeqCst)
    }

    fn inhibit(&self, what: String, who: String, why: String, mode: String) -> zbus::fdo::Result<OwnedFd> {
        self.0.note(format!("Inhibit {what} {who} '{why}' {mode}"));
        if self.0.going_down.load(Ordering::SeqCst) {
            return Err(zbus::fdo::Error::AccessDenied("The operation is already running".to_owned()));
        }
        let (ours, theirs) = std::io::pipe().unwrap();
        self.0.locks.lock().unwrap().push(ours);
        Ok(StdFd::from(theirs).into())
    }
}

struct Systemd(Arc<State>);

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Systemd {
    fn kill_unit(&self, name: String, who: String, signal: i32) {
        self.0.note(format!("KillUnit {name} {who} {signal}"));
        self.0.delay_us.store(30_000_000, Ordering::SeqCst);
    }
}

struct Bed {
    logind: SystemdLogind,
    service: Option<Connection>,
    state: Arc<State>,
    daemon: BusDaemon,
    runtime: Runtime,
}

impl Bed {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let daemon = BusDaemon::start();
        let logind = SystemdLogind::at(runtime.handle().clone(), Some(daemon.address()));
        let mut bed = Self { logind, service: None, state: Arc::default(), daemon, runtime };
        bed.state.delay_us.store(5_000_000, Ordering::SeqCst);
        bed.serve();
        bed
    }

    fn serve(&mut self) {
        let (login, systemd) = (Login(self.state.clone()), Systemd(self.state.clone()));
        let address = self.daemon.address();
        let serving = async {
            let builder = connection::Builder::address(address.as_str()).name(SERVICE).name("org.freedesktop.systemd1");
            builder.serve_at(PATH, login).serve_at("/org/freedesktop/systemd1", systemd).build().await
        };
        self.service = Some(self.runtime.block_on(serving).unwrap());
    }

    /// logind tells all.
    fn say(&self, going_down: bool) {
        self.state.going_down.store(going_down, Ordering::SeqCst);
        let service = self.service.as_ref().unwrap();
        let told = service.emit_signal(None::<&str>, PATH, MANAGER, "PrepareForShutdown", &going_down);
        self.runtime.block_on(told).unwrap();
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.calls.lock().unwrap())
    }

    fn next(&self, news: &mut ShutdownNews) -> io::Result<bool> {
        let next = async { tokio::time::timeout(Duration::from_secs(20), news.next()).await };
        self.runtime.block_on(next).expect("in time").expect("an item")
    }
}

#[test]
fn the_delay_is_read_and_a_reload_makes_logind_read_its_files() {
    let bed = Bed::new();
    let longest = || bed.runtime.block_on(bed.logind.longest_delay()).unwrap();
    assert_eq!(longest(), Duration::from_secs(5));
    bed.runtime.block_on(bed.logind.reload()).unwrap();
    assert_eq!(bed.calls(), ["KillUnit systemd-logind.service all 1"]);
    assert_eq!(longest(), Duration::from_secs(30));
}

#[test]
fn a_lock_is_held_until_it_is_dropped() {
    let bed = Bed::new();
    let lock = bed.runtime.block_on(bed.logind.hold_back()).unwrap();
    assert_eq!(bed.calls(), ["Inhibit shutdown kubelet 'Kubelet needs time to handle node shutdown' delay"]);
    let mut theirs = bed.state.locks.lock().unwrap().pop().unwrap();
    let (told, ended) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        // Ends when nobody has the other end any more.
        let end = theirs.read(&mut [0]).unwrap();
        told.send(end).unwrap();
    });
    assert!(ended.try_recv().is_err());
    drop(lock);
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)).unwrap(), 0);
    reader.join().unwrap();
}

#[test]
fn a_shutdown_is_told_by_logind_alone() {
    let bed = Bed::new();
    let mut news = bed.runtime.block_on(bed.logind.follow()).unwrap();
    assert!(!bed.next(&mut news).unwrap());
    // Somebody else on the bus.
    let address = bed.daemon.address();
    bed.runtime.block_on(async {
        let liar = connection::Builder::address(address.as_str()).build().await.unwrap();
        liar.emit_signal(None::<&str>, PATH, MANAGER, "PrepareForShutdown", &true).await.unwrap();
        liar.emit_signal(None::<&str>, PATH, MANAGER, "PrepareForSleep", &true).await.unwrap();
    });
    for going_down in [true, false, true] {
        bed.say(going_down);
        assert_eq!(bed.next(&mut news).unwrap(), going_down);
    }
    // Who comes in the middle of it is told, and gets no lock.
    let mut late = bed.runtime.block_on(bed.logind.follow()).unwrap();
    assert!(bed.next(&mut late).unwrap());
    let refused = bed.runtime.block_on(bed.logind.hold_back()).unwrap_err();
    assert!(refused.to_string().ends_with("The operation is already running"), "{refused}");
}

#[test]
fn a_bus_that_goes_ends_the_news_and_the_next_one_is_found() {
    let mut bed = Bed::new();
    let mut news = bed.runtime.block_on(bed.logind.follow()).unwrap();
    assert!(!bed.next(&mut news).unwrap());
    bed.service = None;
    bed.daemon.restart(|| ());
    assert!(bed.next(&mut news).is_err());
    // Nobody has logind's name there yet.
    assert!(bed.runtime.block_on(bed.logind.follow()).is_err());
    bed.serve();
    let mut news = bed.runtime.block_on(bed.logind.follow()).unwrap();
    assert!(!bed.next(&mut news).unwrap());
    bed.say(true);
    assert!(bed.next(&mut news).unwrap());
}
