use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::bed::Bed;

/// A route whose answer goes on for as long as somebody feeds it.
fn endless() -> (Router, mpsc::Sender<Bytes>) {
    let (feed, food) = mpsc::channel::<Bytes>(4);
    let food = std::sync::Arc::new(std::sync::Mutex::new(Some(food)));
    let route = get(move || async move {
        let food = food.lock().unwrap().take().unwrap();
        let parts = futures::stream::unfold(food, |mut food| async {
            food.recv().await.map(|part| (Ok::<_, std::io::Error>(part), food))
        });
        Body::from_stream(parts)
    });
    (Router::new().route("/logs/endless", route), feed)
}

/// So many requests have arrived.
async fn begun(bed: &Bed, requests: u64) {
    while bed.counted().requests < requests {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_under_way_ends_in_peace_and_nobody_new_gets_in() {
    let (routes, feed) = endless();
    let mut bed = Bed::with(|_| {}, routes).await;
    let mut idle = bed.h1(Some(&bed.alice())).await;
    assert_eq!(idle.get("/pods").await.0, 200);
    let mut idle2 = bed.h2(Some(&bed.alice())).await;
    assert_eq!(idle2.get("/pods").await.0, 200);
    let silent = TcpStream::connect(bed.address).await.unwrap();
    let mut reader = bed.h1(Some(&bed.alice())).await;
    let reading = tokio::spawn(async move { reader.get("/logs/endless").await });
    feed.send(Bytes::from_static(b"a")).await.unwrap();
    begun(&bed, 3).await;
    bed.stop.take().unwrap().send(()).unwrap();
    let refused = async {
        while TcpStream::connect(bed.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), refused).await.expect("the port is closed");
    feed.send(Bytes::from_static(b"b")).await.unwrap();
    drop(feed);
    assert_eq!(reading.await.unwrap(), (200, "ab".to_owned()));
    tokio::time::timeout(Duration::from_secs(4), bed.server).await.expect("it ends before its grace does").unwrap();
    drop(silent);
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let (routes, feed) = endless();
    let mut bed = Bed::with(|front| front.limits.grace = Duration::from_millis(100), routes).await;
    let mut reader = bed.h1(Some(&bed.alice())).await;
    let reading = tokio::spawn(async move {
        let request = axum::http::Request::get("/logs/endless").body(Body::empty()).unwrap();
        reader.send(request).await
    });
    feed.send(Bytes::from_static(b"a")).await.unwrap();
    let mut silent = TcpStream::connect(bed.address).await.unwrap();
    begun(&bed, 1).await;
    while bed.counted().accepted < 2 {
        tokio::task::yield_now().await;
    }
    bed.stop.take().unwrap().send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), bed.server).await.expect("it ends").unwrap();
    assert!(reading.await.unwrap().is_err());
    let mut left = Vec::new();
    let _reset_is_an_end_too = silent.read_to_end(&mut left).await;
    assert!(left.is_empty());
    drop(feed);
}

#[tokio::test]
async fn an_open_stream_holds_up_the_end_for_no_longer_than_the_grace() {
    let routes = Router::new().route("/exec/ns/pod/c", get(super::stream::twice));
    let mut bed = Bed::with(|front| front.limits.grace = Duration::from_millis(200), routes).await;
    let mut stream = bed.tls(b"http/1.1", Some(&bed.alice())).await.unwrap();
    let head = b"GET /exec/ns/pod/c HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: twice\r\n\r\na";
    stream.write_all(head).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"aa") {
        assert!(stream.read_buf(&mut got).await.unwrap() > 0);
    }
    bed.stop.take().unwrap().send(()).unwrap();
    // It works until its time is over.
    stream.write_all(b"b").await.unwrap();
    let mut more = [0; 2];
    stream.read_exact(&mut more).await.unwrap();
    assert_eq!(&more, b"bb");
    tokio::time::timeout(Duration::from_secs(5), bed.server).await.expect("it ends").unwrap();
    let mut rest = Vec::new();
    let _reset_is_an_end_too = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
}
