use std::time::Duration;

use http_body_util::BodyExt;

use super::*;
use crate::front::Limits;
use crate::front::places::Places;

fn body_of(parts: Vec<Vec<u8>>, ends: Duration) -> ResponseBody {
    let places = Places::new(Limits::default(), Arc::default());
    let place = places.admit(([127, 0, 0, 1], 1).into()).unwrap();
    let underway = Underway::begin(place.conn.clone(), node_access::labels("GET", "/pods"), "test");
    let parts = parts.into_iter().map(Ok::<_, std::io::Error>);
    ResponseBody::new(Body::from_stream(futures::stream::iter(parts)), underway, Instant::now() + ends)
}

#[tokio::test]
async fn an_answer_comes_whole_and_in_small_pieces() {
    let parts = vec![vec![1; 10], vec![2; PIECE], vec![], vec![3; 3 * PIECE + 1], vec![4]];
    let mut body = body_of(parts.clone(), Duration::from_secs(10));
    let mut got = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= PIECE);
        got.extend_from_slice(&data);
    }
    assert_eq!(got, parts.concat());
    assert!(body.underway.is_none(), "the request is over");
}

#[tokio::test]
async fn what_is_left_counts_for_the_length() {
    let mut body = body_of(vec![], Duration::from_secs(10));
    body.body = Body::from(vec![7; 2 * PIECE + 5]);
    assert_eq!(body.size_hint().exact(), Some(2 * PIECE as u64 + 5));
    let _first = body.frame().await.unwrap().unwrap();
    assert_eq!(body.size_hint().exact(), Some(PIECE as u64 + 5));
    assert!(!body.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_too_long_fails() {
    let mut body = body_of(vec![], Duration::from_secs(10));
    body.body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let began = Instant::now();
    assert!(body.frame().await.unwrap().is_err());
    assert!(began.elapsed() >= Duration::from_secs(10));
}
