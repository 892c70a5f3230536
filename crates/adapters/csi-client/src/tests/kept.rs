//! Connections are kept for who has more to ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csi_driver::{Driver, Effect};
use ports::csi::CsiNode;
use ports::grpc::Code;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::{LIMIT, config, rules};
use crate::CsiClient;

/// A way to a driver on which connections are counted: those made so far, and those open now.
#[derive(Clone, Default)]
struct Counted {
    made: Arc<AtomicUsize>,
    open: Arc<watch::Sender<usize>>,
}

impl Counted {
    fn before(driver: &Path, at: &Path) -> Self {
        let (counted, driver) = (Self::default(), driver.to_owned());
        let (listener, count) = (UnixListener::bind(at).unwrap(), counted.clone());
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                count.made.fetch_add(1, Ordering::SeqCst);
                count.open.send_modify(|open| *open += 1);
                let (driver, count) = (driver.clone(), count.clone());
                tokio::spawn(async move {
                    let mut server = UnixStream::connect(driver).await.unwrap();
                    // However it ends.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    count.open.send_modify(|open| *open -= 1);
                });
            }
        });
        counted
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    async fn none_is_open(&self) {
        let mut open = self.open.subscribe();
        let closed = tokio::time::timeout(LIMIT, open.wait_for(|open| *open == 0)).await;
        closed.expect("it is closed in time").expect("somebody counts");
    }
}

fn at(folder: &Path) -> PathBuf {
    folder.join("counted.sock")
}

#[tokio::test]
async fn calls_that_follow_each_other_have_one_connection_which_ends_soon() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    let counted = Counted::before(driver.socket(), &at(folder.path()));
    let client = CsiClient::new();
    for _ in 0..3 {
        client.get_capabilities(&at(folder.path()), LIMIT).await.unwrap();
    }
    assert_eq!(counted.made(), 1);
    counted.none_is_open().await;
    client.get_capabilities(&at(folder.path()), LIMIT).await.unwrap();
    assert_eq!(counted.made(), 2);
}

#[tokio::test]
async fn calls_at_the_same_time_and_after_a_failure_have_one_each() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    let (counted, client) = (Counted::before(driver.socket(), &at(folder.path())), CsiClient::new());
    let socket = at(folder.path());
    let call = || client.get_capabilities(&socket, LIMIT);
    let (one, other) = tokio::join!(call(), call());
    one.and(other).unwrap();
    assert_eq!(counted.made(), 2);
    rules(folder.path(), &[("NodeGetCapabilities", Effect::Code(14))]);
    assert_eq!(call().await.unwrap_err().code(), Some(Code::Unavailable));
    rules(folder.path(), &[]);
    call().await.unwrap();
    assert_eq!(counted.made(), 3, "the one that failed had the kept one, and it was kept no longer");
}

#[tokio::test]
async fn a_socket_that_was_made_anew_is_connected_to_anew() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    let (socket, client) = (at(folder.path()), CsiClient::new());
    let old = Counted::before(driver.socket(), &socket);
    client.get_capabilities(&socket, LIMIT).await.unwrap();
    std::fs::remove_file(&socket).unwrap();
    // The old one still listens, as one does that is being replaced.
    let new = Counted::before(driver.socket(), &socket);
    client.get_capabilities(&socket, LIMIT).await.unwrap();
    assert_eq!((old.made(), new.made()), (1, 1));
    old.none_is_open().await;
}

#[tokio::test]
async fn a_driver_that_ended_meanwhile_is_found_by_its_new_socket_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::start(config(folder.path())).unwrap();
    let (socket, client) = (driver.socket().to_owned(), CsiClient::new());
    client.get_capabilities(&socket, LIMIT).await.unwrap();
    drop(driver);
    let gone = client.get_capabilities(&socket, LIMIT).await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::Unavailable));
    let again = Driver::start(config(folder.path())).unwrap();
    client.get_capabilities(again.socket(), LIMIT).await.unwrap();
}
