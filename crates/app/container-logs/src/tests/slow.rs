//! Clients that do not read.

use actor::testing;
use futures::FutureExt;
use log_files::FolderWatch;

use super::rig::{Follower, Rig, line};
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

/// 40 clients ask for 8 MiB each and read nothing: what the node holds for each is bounded, whatever it asked for.
#[test]
fn clients_that_do_not_read_cost_little() {
    const LINES: usize = 8 * 1024 * 1024 / 230;
    const PIPE: usize = 16 * 1024;
    testing::run(1, async |kernel| {
        let rig = Rig::on(&kernel, FolderWatch::blind());
        rig.write(&big(LINES));
        let mut clients = Vec::new();
        for _ in 0..40 {
            clients.push(rig.ask_here("", PIPE).await);
        }
        // Everybody waits for everybody.
        testing::settle().await;
        let text = Follower::new(clients.pop().unwrap()).into_whole().await;
        assert_eq!(text.len(), LINES * 201, "one that reads late gets all of it");
        // What comes without the file was read before.
        std::fs::write(rig.log(), "").unwrap();
        for client in clients {
            let held = Follower::new(client).into_whole().await.len();
            assert!((PIPE..=2 * 36 * 1024 + 2 * PIPE).contains(&held), "{held}");
        }
    });
}
