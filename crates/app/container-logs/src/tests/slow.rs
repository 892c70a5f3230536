//! Clients that do not read.

use std::time::Duration;

use futures::FutureExt;
use log_files::FolderWatch;

use super::rig::{Follower, Rig, line, until};
use crate::reader::{Log, Reader};

fn big(lines: usize) -> String {
    line(&"x".repeat(200)).repeat(lines)
}

#[tokio::test]
async fn no_more_is_read_than_the_client_takes() {
    let rig = Rig::new().await;
    rig.write(&big(2000));
    let log = Log { path: rig.log(), since: None, options: container_log::LogOptions::default(), follow: None };
    let mut reader = Reader::open(log, &FolderWatch::blind(), rig.deps.effects.clone()).await.unwrap();
    let first = reader.next().await.unwrap();
    let second = reader.next().await.unwrap();
    assert!(first.len() + second.len() <= 2 * 36 * 1024);
    assert!(reader.next().now_or_never().is_none(), "two chunks are not taken yet");
    drop(first);
    let third = reader.next().await.unwrap();
    let mut all = second.len() + third.len();
    drop((second, third));
    while let Some(bytes) = reader.next().await {
        all += bytes.len();
    }
    assert!(all > 300_000, "{all}");
}

/// 40 clients ask for 8 MiB each and read nothing: what the node holds for them is bounded, whatever they asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_cost_little() {
    let rig = Rig::new().await;
    rig.write(&big(8 * 1024 * 1024 / 230));
    let process = || procfs::process::Process::myself().unwrap();
    let rss = || process().status().unwrap().vmrss.unwrap_or_default();
    let read = || process().io().unwrap().rchar;
    let (before, began) = (rss(), read());
    let mut clients = Vec::new();
    for _ in 0..40 {
        clients.push(rig.ask("").await);
    }
    // Each reader has read all that it may before its client takes any; and more, if it did not stop there.
    until(|| read() - began >= 40 * 2 * 32 * 1024).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let kib = rss().saturating_sub(before);
    println!("{} KiB for each client that does not read (both ends of its connection)", kib / 40);
    assert!(kib < 40 * 512, "{kib} KiB");
    let text = Follower::new(clients.pop().unwrap()).into_whole().await;
    assert_eq!(text.len(), 8 * 1024 * 1024 / 230 * 201, "one that reads late gets all of it");
}
