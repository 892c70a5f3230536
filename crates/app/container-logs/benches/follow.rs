//! 100 clients follow 100 logs that grow by 1 MB/s each, over loopback: how much arrives, and what the node's side costs.
//!
//! `cargo bench -p container-logs [-- <followers> <MB/s each> <seconds>]`. The CPU is that of the threads that serve, kernel
//! time for files, sockets and inotify included; writers and clients have threads of their own.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actor::{Kernel, KernelConfig};
use container_logs::{Deps, Settings, router};
use contract::Wiring;
use contract::config_sources::Source;
use contract::lookup::PodLookup;
use contract::pod_manager::DesiredPod;
use contract::runtime::Observed;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{PodUid, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

fn pool(name: &str) -> Runtime {
    Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build().unwrap()
}

/// Seconds of CPU that threads of this name have used.
fn cpu(name: &str) -> f64 {
    let ticks = procfs::process::Process::myself().unwrap().tasks().unwrap().flatten().filter_map(|t| t.stat().ok());
    let ours = ticks.filter(|s| s.comm == name).map(|s| s.utime + s.stime);
    ours.sum::<u64>() as f64 / procfs::ticks_per_second() as f64
}

fn rss_kib() -> u64 {
    procfs::process::Process::myself().unwrap().status().unwrap().vmrss.unwrap_or_default()
}

fn lookup(dir: &Path, followers: usize) -> PodLookup {
    let wiring = Wiring::default();
    for n in 0..followers {
        let text = format!(
            r#"{{"metadata":{{"name":"p{n}","namespace":"ns","uid":"u{n}"}},"spec":{{"containers":[{{"name":"c"}}]}},
            "status":{{"containerStatuses":[{{"name":"c","image":"","imageID":"","ready":true,"restartCount":0,
            "containerID":"x://c{n}","state":{{"running":{{}}}}}}]}}}}"#
        );
        let pod = Arc::new(serde_json::from_str(&text).unwrap());
        let uid = PodUid::from(format!("u{n}"));
        let row = DesiredPod::admitted(pod, Source::File);
        wiring.put(uid.clone(), row);
        let mut pod = PodObservation::empty(uid.clone(), "ns", &format!("p{n}"));
        pod.containers.push(ContainerObservation {
            created_at: Timestamp(1),
            started_at: Timestamp(1),
            log_path: log(dir, n).to_str().unwrap().to_owned(),
            ..ContainerObservation::new(format!("c{n}"), "c", "s", ContainerState::Running)
        });
        wiring.put(uid, Observed { pod: Arc::new(pod), observed_at: Timestamp(1) });
    }
    PodLookup::of(&wiring)
}

fn log(dir: &Path, n: usize) -> std::path::PathBuf {
    dir.join(format!("p{n}")).join("0.log")
}

/// Appends lines of 100 bytes, in the pieces that a pipe gives a runtime, `rate` bytes of content a second to each file.
fn write(files: &mut [File], rate: f64, stop: &AtomicBool, written: &AtomicU64) {
    let piece = format!("2026-01-01T00:00:00.123456789Z stdout F {}\n", "x".repeat(99)).repeat(40);
    let started = Instant::now();
    let mut done = 0.0;
    while !stop.load(Ordering::Relaxed) {
        let due = started.elapsed().as_secs_f64() * rate;
        if done > due {
            std::thread::park_timeout(Duration::from_millis(1));
            continue;
        }
        for file in files.iter_mut() {
            file.write_all(piece.as_bytes()).unwrap();
        }
        done += 4000.0;
        written.fetch_add(4000 * files.len() as u64, Ordering::Relaxed);
    }
}

/// One client that reads a whole log of 200 MB.
fn bulk(clients: &Runtime, address: std::net::SocketAddr, path: &Path, query: &str) {
    let piece = format!("2026-01-01T00:00:00.123456789Z stdout F {}\n", "x".repeat(99)).repeat(7_000);
    let mut file = File::create(path).unwrap();
    (0..200).for_each(|_| file.write_all(piece.as_bytes()).unwrap());
    let (started, before) = (Instant::now(), cpu("server"));
    let head = format!("GET /containerLogs/ns/p0/c{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let got = clients.block_on(async move {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut got, mut buffer) = (0, vec![0; 64 * 1024]);
        while let Ok(n @ 1..) = stream.read(&mut buffer).await {
            got += n;
        }
        got
    });
    let (took, used) = (started.elapsed().as_secs_f64(), cpu("server") - before);
    let read = 200.0 * piece.len() as f64 / 1e6;
    println!(
        "whole log {query}: {read:.0} MB read, {:.0} MB sent at {:.0} MB/s of log; {used:.2} s CPU",
        got as f64 / 1e6,
        read / took
    );
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse::<f64>().ok());
    let followers = args.next().unwrap_or(100.0) as usize;
    let (rate, seconds) = (args.next().unwrap_or(1.0) * 1e6, args.next().unwrap_or(10.0));
    let dir = tempfile::tempdir().unwrap();
    for n in 0..followers {
        std::fs::create_dir(log(dir.path(), n).parent().unwrap()).unwrap();
        File::create(log(dir.path(), n)).unwrap();
    }
    let (server, clients) = (pool("server"), pool("clients"));
    let address = server.block_on(async {
        let fake = fakes::FakeRuntime::default();
        let kernel = Kernel::new(KernelConfig::default());
        let deps = Deps {
            lookup: lookup(dir.path(), followers),
            runtime: fake.client(),
            effects: kernel.effects("logs"),
            clock: kernel.clock().clone(),
            watch: log_files::FolderWatch::new(),
            settings: Settings::default(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, router(deps)).into_future());
        address
    });
    let received = Arc::new(AtomicU64::new(0));
    for n in 0..followers {
        let received = received.clone();
        clients.spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let head = format!("GET /containerLogs/ns/p{n}/c?follow=true HTTP/1.1\r\nhost: x\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(n @ 1..) = stream.read(&mut buffer).await {
                // The few bytes of chunk heads are counted too.
                received.fetch_add(n as u64, Ordering::Relaxed);
            }
        });
    }
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (stop, written, dir) = (stop.clone(), written.clone(), dir.path().to_owned());
        std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            let open = |n| File::options().append(true).open(log(&dir, n)).unwrap();
            write(&mut (0..followers).map(open).collect::<Vec<_>>(), rate, &stop, &written);
        })
    };
    // Everybody is connected and in his stride.
    std::thread::park_timeout(Duration::from_secs(1));
    let begin = (Instant::now(), cpu("server"), written.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
    std::thread::park_timeout(Duration::from_secs_f64(seconds));
    let took = begin.0.elapsed().as_secs_f64();
    let used = (cpu("server") - begin.1) / took * 100.0;
    let wrote = (written.load(Ordering::Relaxed) - begin.2) as f64 / took / 1e6;
    let got = (received.load(Ordering::Relaxed) - begin.3) as f64 / took / 1e6;
    let behind = written.load(Ordering::Relaxed).saturating_sub(received.load(Ordering::Relaxed)) as f64 / 1e6;
    println!("{followers} followers: written {wrote:.1} MB/s, received {got:.1} MB/s, {behind:.1} MB behind");
    println!(
        "serving threads: {used:.1} % of one CPU, {:.2} % for each MB/s; whole process {} KiB",
        used / got,
        rss_kib()
    );
    stop.store(true, Ordering::Relaxed);
    writer.unwrap().join().unwrap();
    bulk(&clients, address, &log(dir.path(), 0), "");
    bulk(&clients, address, &log(dir.path(), 0), "?timestamps=true&sinceTime=2000-01-01T00:00:00Z");
    clients.shutdown_background();
    server.shutdown_background();
}
