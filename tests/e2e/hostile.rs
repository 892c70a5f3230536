//! Hostile callers from outside against the real daemon's port 10250: nobody gets in, nothing grows, good callers are served.

mod callers;
mod pki;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testbed::{Bosun, BosunOptions, Options, TestBed, wait_until};

use crate::node::{Node, SOON, block};
use callers::{Caller, Outcome};
use pki::{Authority, Wanted};

/// Connections that say nothing; fewer where the process may not open so many files.
const IDLE: usize = 10_000;
/// Places of the daemon for callers whom it does not know.
const PLACES: usize = 256;
/// Those, and some for callers that are about to end and its own needs.
const OPEN: usize = PLACES + 128;
/// Resident memory may grow by this much while all of it goes on: 256 strangers with their TLS and head buffers, and what an
/// allocator keeps of the garbage.
const GROWTH: u64 = 32 << 20;
/// And by this much for good.
const LEFT: u64 = 20 << 20;

/// Who it was and what became of it, counted.
type Tally = BTreeMap<(&'static str, String), usize>;

struct Scene {
    node: Node,
    authority: Authority,
    to: SocketAddr,
}

fn scene() -> Scene {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let authority = Authority::new("clients");
    let path = bed.write("clients.pem", &authority.pem).expect("written");
    let config = serde_json::json!({
        "authentication": {
            "x509": {"clientCAFile": path}, "anonymous": {"enabled": false}, "webhook": {"enabled": false},
        },
        "authorization": {"mode": "AlwaysAllow"},
    });
    let to = SocketAddr::new(bed.node_ip().parse().expect("an address"), 10250);
    let bosun = Bosun::start(&mut bed, BosunOptions { config, ..BosunOptions::default() }).expect("bosun starts");
    Scene { node: Node { bosun, bed }, authority, to }
}

/// Resident memory of a process, bytes.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").count()
}

/// How many files this process may open.
fn may_open() -> usize {
    let text = std::fs::read_to_string("/proc/self/limits").expect("limits");
    let line = text.lines().find_map(|l| l.strip_prefix("Max open files")).expect("a line");
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(1024)
}

fn restarts(node: &Node) -> u64 {
    node.bosun.actors().expect("actors").iter().map(|a| a["restarts"].as_u64().unwrap_or(99)).sum()
}

/// An address of its own for each, so that the daemon cannot know strangers by where they come from.
fn origin(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 66, u8::try_from(n / 50 % 4).unwrap_or(0), u8::try_from(n % 50 + 1).unwrap_or(1))
}

/// What the good caller met.
#[derive(Default)]
struct Good {
    served: AtomicU64,
    failed: std::sync::Mutex<Vec<String>>,
    slowest_ms: AtomicU64,
    over: AtomicBool,
}

/// A new connection for each request, one after the other, until it is over.
async fn be_good(caller: Caller, good: Arc<Good>) {
    while !good.over.load(Ordering::Relaxed) {
        let began = Instant::now();
        match caller.get("/healthz").await {
            Outcome::Code(200) => drop(good.served.fetch_add(1, Ordering::Relaxed)),
            other => good.failed.lock().expect("no panic").push(other.to_string()),
        }
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        good.slowest_ms.fetch_max(took, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The largest resident memory and number of open files until it is over.
async fn watch(pid: u32, good: Arc<Good>) -> (u64, usize) {
    let mut most = (0, 0);
    while !good.over.load(Ordering::Relaxed) {
        most = (most.0.max(resident(pid)), most.1.max(open_files(pid)));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    most
}

/// Nobody of these may get in, whatever they ask for.
async fn strangers(to: SocketAddr, authority: &Authority) -> Tally {
    let other = Authority::new("clients");
    let now = Wanted::default;
    let shown = [
        ("no certificate", None),
        ("another authority of the same name", Some(other.client(now()))),
        ("expired", Some(authority.client(Wanted { years: (2001, 2002), ..now() }))),
        ("not yet valid", Some(authority.client(Wanted { years: (2110, 2120), ..now() }))),
        ("for servers only", Some(authority.client(Wanted { server: true, ..now() }))),
        ("without a name", Some(authority.client(Wanted { name: "", ..now() }))),
    ];
    let mut tally = Tally::new();
    for (n, (what, issued)) in shown.into_iter().enumerate() {
        let caller = Caller::new(to, origin(n), issued.as_ref());
        for head in callers::REQUESTS {
            *tally.entry((what, caller.raw(head.as_bytes()).await.to_string())).or_default() += 1;
        }
    }
    let caller = Caller::new(to, origin(9), None);
    for head in callers::tokens() {
        *tally.entry(("bad tokens", caller.raw(head.as_bytes()).await.to_string())).or_default() += 1;
    }
    for head in callers::oversized(40 << 10) {
        *tally.entry(("oversized head", caller.raw(&head).await.to_string())).or_default() += 1;
    }
    tally
}

/// Somebody who may everything does not get behind the paths either.
async fn tricks(caller: Caller) -> Tally {
    let mut tally = Tally::new();
    for path in callers::TRICKS {
        let head = format!("GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n");
        *tally.entry(("path tricks", caller.raw(head.as_bytes()).await.to_string())).or_default() += 1;
    }
    for head in callers::oversized(2 << 20) {
        *tally.entry(("oversized head of a friend", caller.raw(&head).await.to_string())).or_default() += 1;
    }
    tally
}

/// Many at once of those who only want to hold on to something; all of them are to be ended by the daemon.
async fn crowd(what: &'static str, to: SocketAddr, many: usize, how: callers::Manner) -> Tally {
    let mut all = tokio::task::JoinSet::new();
    for n in 0..many {
        all.spawn(callers::linger(to, origin(n), how, n));
    }
    let mut tally = Tally::new();
    let began = Instant::now();
    while let Some(outcome) = all.join_next().await {
        *tally.entry((what, outcome.expect("no panic").to_string())).or_default() += 1;
    }
    println!("{:>6.1} s until the last of: {what}", began.elapsed().as_secs_f64());
    tally
}

/// Opens as many connections as asked for and keeps them all until the end.
async fn idle(to: SocketAddr, many: usize) -> Tally {
    let mut kept = Vec::with_capacity(many);
    let mut tally = Tally::new();
    for n in 0..many {
        match callers::dial(to, origin(n)).await {
            Ok(socket) => kept.push(socket),
            Err(e) => *tally.entry(("idle", format!("not connected: {}", e.kind()))).or_default() += 1,
        }
    }
    let open = |kept: &[_]| kept.iter().filter(|socket| !callers::is_ended(socket)).count();
    let began = Instant::now();
    while open(&kept) > PLACES && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for socket in &kept {
        let told = if callers::is_ended(socket) { "ended by the daemon" } else { "open still" };
        *tally.entry(("idle", told.to_owned())).or_default() += 1;
    }
    tally
}

async fn attack(scene: &Scene, good: &Arc<Good>) -> (Tally, (u64, usize)) {
    let pid = scene.node.bosun.pid().expect("it runs");
    let to = scene.to;
    let friend = scene.authority.client(Wanted::default());
    let near = scene.node.bed.node_ip().parse().expect("an address");
    let served = tokio::spawn(be_good(Caller::new(to, near, Some(&friend)), good.clone()));
    let watched = tokio::spawn(watch(pid, good.clone()));
    let many = IDLE.min(may_open().saturating_sub(600));
    // Together fewer than there are places: what ends the slow ones is their slowness.
    let (mut tally, tricks, noise, slow, heads) = tokio::join!(
        strangers(to, &scene.authority),
        tricks(Caller::new(to, near, Some(&friend))),
        crowd("garbage", to, 80, callers::Manner::Garbage),
        crowd("slow handshake", to, 80, callers::Manner::SlowHandshake),
        crowd("slow head", to, 60, callers::Manner::SlowHead),
    );
    tally.extend(tricks.into_iter().chain(noise).chain(slow).chain(heads));
    tally.extend(crowd("a crowd with garbage", to, 600, callers::Manner::Hurried).await);
    tally.extend(idle(to, many).await);
    good.over.store(true, Ordering::Relaxed);
    served.await.expect("no panic");
    (tally, watched.await.expect("no panic"))
}

#[test]
fn hostile_callers_get_nothing_and_cost_nothing() {
    let scene = scene();
    let pid = scene.node.bosun.pid().expect("it runs");
    let friend = scene.authority.client(Wanted::default());
    let near = scene.node.bed.node_ip().parse().expect("an address");
    wait_until("the port to answer", SOON, || {
        match block(Caller::new(scene.to, near, Some(&friend)).get("/healthz")) {
            Outcome::Code(200) => Ok(()),
            other => Err(format!("{other}\n{}", scene.node.bosun.log())),
        }
    })
    .expect("it serves");
    let (before, files, crashed) = (resident(pid), open_files(pid), restarts(&scene.node));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (began, good) = (Instant::now(), Arc::new(Good::default()));
    let (tally, (peak, most_files)) = runtime.block_on(attack(&scene, &good));
    drop(runtime);

    println!("{:.1} s; callers and what became of them:", began.elapsed().as_secs_f64());
    for ((what, outcome), n) in &tally {
        println!("{n:>6}  {what}: {outcome}");
    }
    let (served, slowest) = (good.served.load(Ordering::Relaxed), good.slowest_ms.load(Ordering::Relaxed));
    println!("good caller: {served} served, slowest {slowest} ms");
    let grown = peak.saturating_sub(before);
    println!(
        "resident: {} KiB before, grown by {} KiB at most; files: {files}, {most_files} at most",
        before >> 10,
        grown >> 10
    );

    for (what, outcome) in tally.keys() {
        let refused = match *what {
            "path tricks" => ["400", "404", "301"].contains(&outcome.as_str()),
            "idle" => ["ended by the daemon", "open still"].contains(&outcome.as_str()),
            _ => ["400", "401", "431", "closed"].contains(&outcome.as_str()),
        };
        assert!(refused, "{what}: {outcome}");
    }
    let still = tally.get(&("idle", "open still".to_owned())).copied().unwrap_or(0);
    assert!(still <= PLACES, "{still} strangers hold a place");
    assert!(good.failed.lock().expect("no panic").is_empty(), "{:?}", good.failed);
    assert!(served > 20 && slowest < 5000, "{served} in all, the slowest took {slowest} ms");
    assert!(grown < GROWTH && most_files < files + OPEN, "{grown} bytes, {most_files} files");
    wait_until("memory and files to fall back", SOON, || {
        let (now, open) = (resident(pid).saturating_sub(before), open_files(pid));
        let fine = now < LEFT && open <= files + 8;
        if !fine {
            return Err(format!("{now} bytes, {open} files"));
        }
        println!("left: {} KiB, {open} files", now >> 10);
        Ok(())
    })
    .expect("nothing is left");
    assert_eq!(scene.node.bosun.pid(), Some(pid));
    assert_eq!(restarts(&scene.node), crashed, "actors were restarted");
    assert!(!scene.node.bosun.log().contains("panicked"), "{}", scene.node.bosun.log());
}
