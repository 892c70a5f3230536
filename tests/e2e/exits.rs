//! How the daemon ends when it cannot go on: with a code of its own, in time, and whatever its log does. Pods run on.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use testbed::{Bosun, BosunOptions, Options, TestBed};

use crate::node::{Node, shell};

/// A turn may hold its thread this long before the daemon exits.
const LIMIT: Duration = Duration::from_secs(30);

fn faulty() -> BosunOptions {
    BosunOptions { faults: true, ..BosunOptions::default() }
}

fn with_pod(node: &Node) {
    node.put(
        "a",
        &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", "")),
    );
    node.wait_running("a");
}

fn still_runs(node: &Node) {
    let states: Vec<i32> = node.runtime().iter().map(|c| c.3).collect();
    // What bosun's own runtime said that was asked in the daemon's place, what it knows of ends, and what supervisors said.
    let find = "cat meanwhile.log runtime/pods/*/containers/*/*.json run/*/supervisor.log 2> /dev/null";
    let said = std::process::Command::new("sh").args(["-c", find]).current_dir(node.bed.dir()).output().expect("sh");
    assert_eq!(states, [1], "the pod runs on\n{}", String::from_utf8_lossy(&said.stdout));
}

#[test]
fn managers_that_crash_without_end_end_the_daemon_with_code_2() {
    let mut node = Node::with(faulty());
    with_pod(&node);
    node.bosun.fault("*: panic").expect("a rule");
    let status = node.bosun.ended(Duration::from_secs(120)).expect("ends by itself");
    assert_eq!(status.code(), Some(2), "{}", node.bosun.log());
    assert!(node.bosun.log().contains("leaving the rest to systemd"), "{}", node.bosun.log());
    still_runs(&node);
}

#[test]
fn a_blocked_thread_ends_the_daemon_with_code_3_and_the_service_watchdog_is_not_fed_before() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let path = bed.dir().join("notify.sock");
    let systemd = UnixDatagram::bind(&path).expect("bound");
    systemd.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let env = [("NOTIFY_SOCKET", path.display().to_string()), ("WATCHDOG_USEC", "2000000".to_owned())];
    let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let bosun = Bosun::start(&mut bed, BosunOptions { env, ..faulty() }).expect("starts");
    let mut node = Node { bosun, bed };
    let word = || {
        let mut bytes = [0; 200];
        let n = systemd.recv(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes[..n]).into_owned())
    };
    assert!(word().expect("a word").contains("READY=1"));
    assert!(word().expect("fed while all is well").contains("WATCHDOG=1"));
    with_pod(&node);
    node.bosun.fault("pod-manager: block(100s)@housekeeping#1").expect("a rule");
    let began = Instant::now();
    systemd.set_read_timeout(Some(Duration::from_secs(6))).expect("set");
    let mut fed = began;
    while word().is_ok() {
        fed = Instant::now();
        assert!(began.elapsed() < LIMIT, "fed all the time");
    }
    assert!(fed - began < LIMIT * 3 / 4, "fed until {:?} after the thread was blocked", fed - began);
    let status = node.bosun.ended(LIMIT).expect("ends by itself");
    assert!(began.elapsed() < LIMIT * 5 / 4, "{:?}", began.elapsed());
    assert_eq!(status.code(), Some(3), "{}", node.bosun.log());
    assert!(node.bosun.log().contains("pod-manager"), "{}", node.bosun.log());
    still_runs(&node);
}

#[test]
fn code_3_comes_also_when_nobody_reads_the_log() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    // Standard error is a pipe that nobody reads; open here, so that nobody waits for a reader either.
    let log = bed.dir().join("bosun.log");
    let made = std::process::Command::new("mkfifo").arg(&log).status().expect("starts");
    assert!(made.success());
    let held = std::fs::OpenOptions::new().read(true).write(true).open(&log).expect("opened");
    let bosun = Bosun::start(&mut bed, BosunOptions { log: "trace".into(), ..faulty() }).expect("starts");
    let mut node = Node { bosun, bed };
    // Far more than the pipe holds is logged by now; everybody works all the same.
    with_pod(&node);
    node.bosun.fault("pod-manager: block(100s)@housekeeping#1").expect("a rule");
    let status = node.bosun.ended(LIMIT * 3 / 2).expect("ends by itself, log or not");
    assert_eq!(status.code(), Some(3));
    still_runs(&node);
    drop(held);
}
