//! Many followers at once.

use actor::testing::spin_until;
use actor::{Kernel, KernelConfig};
use futures::future::join_all;
use log_files::FolderWatch;

use super::rig::{append, container, line, soon};
use crate::liveness::Liveness;
use crate::reader::{Log, Reader};

fn threads_and_rss() -> (u64, u64) {
    let status = procfs::process::Process::myself().unwrap().status().unwrap();
    (status.threads, status.vmrss.unwrap_or_default())
}

/// 1,000 clients of 10 logs in one folder: the worst case for a watch, as each write tells all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_need_no_threads_and_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let watch = FolderWatch::new();
    let wiring = contract::Wiring::default();
    let board = wiring.board::<contract::runtime::Observed>();
    let effects = Kernel::new(KernelConfig::default()).effects("logs");
    let fake = fakes::FakeRuntime::default();
    let paths: Vec<_> = (0..10).map(|n| dir.path().join(format!("{n}.log"))).collect();
    let mut files: Vec<_> = paths.iter().map(|p| std::fs::File::create(p).unwrap()).collect();
    let containers: Vec<_> =
        (0..10).map(|n| container(&format!("c{n}"), model::runtime::ContainerState::Running, String::new())).collect();
    let observe = |containers| {
        let mut pod = model::runtime::PodObservation::empty("u".into(), "shop", "web");
        pod.containers = containers;
        let row = contract::runtime::Observed { pod: std::sync::Arc::new(pod), observed_at: model::Timestamp(1) };
        wiring.put("u".into(), row);
    };
    observe(containers.clone());
    let before = threads_and_rss();
    let client = fake.client();
    let received = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let readers = (0..1000).map(|n| {
        let id = format!("c{}", n % 10).as_str().into();
        let follow = Liveness::new(board.subscribe("u".into()), id, client.clone());
        let received = received.clone();
        let log = Log {
            path: paths[n % 10].clone(),
            since: None,
            options: container_log::LogOptions::default(),
            follow: Some(follow),
        };
        let (watch, effects) = (watch.clone(), effects.clone());
        tokio::spawn(async move {
            let mut reader = Reader::open(log, &watch, effects).await.unwrap();
            let mut text = Vec::new();
            while let Some(bytes) = reader.next().await {
                received.fetch_add(bytes.len(), std::sync::atomic::Ordering::Relaxed);
                text.extend_from_slice(&bytes);
            }
            text
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut expected = vec![String::new(); 10];
    for round in 0..20 {
        for (n, file) in files.iter_mut().enumerate() {
            let text = format!("{n} in round {round}");
            append(file, &line(&text));
            expected[n] += &(text + "\n");
        }
        let all = 100 * expected.iter().map(String::len).sum::<usize>();
        spin_until("all is received", || received.load(std::sync::atomic::Ordering::Relaxed) == all).await;
    }
    let during = threads_and_rss();
    assert_eq!(watch.load().0, 1, "one folder, however many follow it");
    let ended = containers.into_iter().map(|mut c| {
        c.state = model::runtime::ContainerState::Exited;
        c
    });
    observe(ended.collect());
    for (n, text) in soon(join_all(readers)).await.into_iter().enumerate() {
        assert_eq!(String::from_utf8(text.unwrap()).unwrap(), expected[n % 10]);
    }
    let (threads, kib) = (during.0 - before.0, during.1.saturating_sub(before.1));
    println!("{threads} threads and {kib} KiB more");
    // Those of the pool that opens the files. None of them belongs to a follower.
    assert!(threads < 30, "{threads} threads more");
    assert!(kib < 12 * 1024, "{kib} KiB more");
    assert_eq!(watch.load(), (0, 0));
}
