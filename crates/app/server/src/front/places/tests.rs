use std::time::Duration;

use super::super::connection_state::origin;
use super::*;

fn places(strangers: usize, connections: usize) -> Arc<Places> {
    Places::new(Limits { strangers, connections, ..Limits::default() }, Arc::default())
}

fn from(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), 4711)
}

#[tokio::test]
async fn the_busiest_origin_makes_room() {
    let places = places(4, 100);
    let lone = places.admit(from("10.0.0.1")).unwrap();
    let flood: Vec<_> = (0..3).map(|_| places.admit(from("10.0.0.2")).unwrap()).collect();
    let next = places.admit(from("10.0.0.3")).unwrap();
    assert_eq!(flood.iter().map(|p| p.conn.is_closed()).collect::<Vec<_>>(), [true, false, false]);
    assert!(!lone.conn.is_closed() && !next.conn.is_closed());
}

#[tokio::test]
async fn a_whole_network_of_ipv6_is_one_origin_and_mapped_ipv4_is_ipv4() {
    assert_eq!(origin(from("2001:db8::1")), origin(from("2001:db8::ffff:1")));
    assert_ne!(origin(from("2001:db8:0:1::1")), origin(from("2001:db8::1")));
    assert_eq!(origin(from("::ffff:10.0.0.1")), origin(from("10.0.0.1")));
}

#[tokio::test]
async fn who_never_spoke_goes_first_and_who_was_let_in_goes_last() {
    let places = places(4, 100);
    let all: Vec<_> = (0..4).map(|_| places.admit(from("10.0.0.1")).unwrap()).collect();
    let [granted, busy, spoke, silent] = [0, 1, 2, 3].map(|n: usize| all[n].conn.clone());
    for conn in [&granted, &busy, &spoke] {
        conn.enter(Phase::Http1);
        conn.heard();
    }
    granted.request_begins();
    granted.grant();
    busy.request_begins();
    let mut held = Vec::new();
    for gone in [&silent, &spoke, &busy, &granted] {
        assert!(!gone.is_closed());
        let place = places.admit(from("10.0.0.1")).unwrap();
        assert!(gone.is_closed());
        // Held, and worth more than all that are left.
        place.conn.enter(Phase::Upgraded);
        place.conn.heard();
        held.push(place);
    }
}

#[tokio::test]
async fn who_was_let_in_is_not_sent_away_by_others_unless_greedy() {
    let places = places(4, 100);
    let mut held = Vec::new();
    for address in ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2"] {
        let place = places.admit(from(address)).unwrap();
        place.conn.enter(Phase::Upgraded);
        held.push(place);
    }
    assert!(places.admit(from("10.0.0.3")).is_none());
    assert_eq!(places.counts.read().refused, 1);
    held.pop();
    assert!(places.admit(from("10.0.0.3")).is_some(), "a place that is free again");
}

#[tokio::test]
async fn among_origins_of_one_connection_each_the_silent_one_goes_whatever_its_address() {
    let places = places(3, 100);
    let [first, second, caller] = ["10.0.0.1", "10.0.0.2", "192.168.0.9"].map(|ip| places.admit(from(ip)).unwrap());
    caller.conn.heard();
    let next = places.admit(from("10.0.0.3")).unwrap();
    assert!(first.conn.is_closed() && !caller.conn.is_closed());
    let _another = places.admit(from("10.0.0.4")).unwrap();
    assert!(second.conn.is_closed() && !caller.conn.is_closed() && !next.conn.is_closed());
}

#[tokio::test]
async fn an_origin_with_many_who_were_let_in_does_not_shield_the_silent_ones() {
    let places = places(5, 100);
    let mut let_in = Vec::new();
    for _ in 0..2 {
        let place = places.admit(from("10.0.0.9")).unwrap();
        place.conn.enter(Phase::Upgraded);
        let_in.push(place);
    }
    let silent: Vec<_> = (1..4).map(|n| places.admit(from(&format!("10.0.0.{n}"))).unwrap()).collect();
    let next = places.admit(from("10.0.0.7"));
    assert!(next.is_some() && silent[0].conn.is_closed());
    assert!(let_in.iter().all(|p| !p.conn.is_closed()));
}

#[tokio::test]
async fn known_callers_are_no_strangers_and_the_one_idle_longest_makes_room() {
    let places = places(2, 3);
    let known: Vec<_> = (0..3)
        .map(|_| {
            let place = places.admit(from("10.0.0.1")).unwrap();
            place.conn.enter(Phase::Http2);
            places.trust(&place.conn);
            place
        })
        .collect();
    known[0].conn.request_begins();
    let stranger = places.admit(from("10.0.0.1")).unwrap();
    assert_eq!(known.iter().map(|p| p.conn.is_closed()).collect::<Vec<_>>(), [false, true, false]);
    let another = places.admit(from("10.0.0.2")).unwrap();
    assert!(stranger.conn.is_closed() && !another.conn.is_closed());
    assert_eq!(places.len(), 3);
    drop((known, stranger, another));
    places.emptied().await;
}

#[tokio::test(start_paused = true)]
async fn slow_and_idle_connections_are_found() {
    let places = places(100, 100);
    let [handshake, head, idle, resting, busy, streaming] = [(); 6].map(|()| places.admit(from("10.0.0.1")).unwrap());
    for place in [&head, &idle, &resting, &busy] {
        place.conn.enter(Phase::Http1);
    }
    streaming.conn.enter(Phase::Upgraded);
    head.conn.heard();
    busy.conn.request_begins();
    let closed = || [&handshake, &head, &idle, &busy, &streaming].map(|p| p.conn.is_closed());
    tokio::time::advance(Duration::from_millis(10_000)).await;
    places.sweep();
    assert_eq!(closed(), [false; 5]);
    tokio::time::advance(Duration::from_millis(2)).await;
    places.sweep();
    assert_eq!(closed(), [true, true, false, false, false]);
    tokio::time::advance(Duration::from_secs(60)).await;
    resting.conn.request_begins();
    resting.conn.request_ends();
    tokio::time::advance(Duration::from_secs(25)).await;
    places.sweep();
    // First in good order, then at once.
    tokio::time::timeout(Duration::from_millis(1), idle.conn.leave.notified()).await.expect("asked to leave");
    assert_eq!(closed(), [true, true, false, false, false]);
    tokio::time::advance(Duration::from_secs(6)).await;
    places.sweep();
    assert_eq!(closed(), [true, true, true, false, false]);
    assert!(!resting.conn.is_closed());
    assert_eq!(places.counts.read().expired, 3);
}

#[tokio::test(start_paused = true)]
async fn who_has_not_read_the_answer_yet_is_not_idle() {
    let places = places(100, 100);
    let place = places.admit(from("10.0.0.1")).unwrap();
    let left = async |within| tokio::time::timeout(within, place.conn.leave.notified()).await.is_ok();
    place.conn.enter(Phase::Http1);
    place.conn.sent(false);
    tokio::time::advance(Duration::from_secs(3600)).await;
    places.sweep();
    assert!(!left(Duration::from_millis(1)).await);
    place.conn.sent(true);
    tokio::time::advance(Duration::from_secs(89)).await;
    places.sweep();
    assert!(!left(Duration::from_millis(1)).await);
    tokio::time::advance(Duration::from_secs(2)).await;
    places.sweep();
    assert!(left(Duration::from_millis(1)).await);
    place.conn.sent(false);
    tokio::time::advance(Duration::from_secs(4 * 3600 + 1)).await;
    places.sweep();
    assert!(place.conn.is_closed());
}
