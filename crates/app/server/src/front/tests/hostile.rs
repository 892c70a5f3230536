//! Callers who mean harm.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bed::{Bed, Client};
use crate::front::{Front, Limits, ReadOnly, open_read_only};
use crate::listener::Accepting;
use actor::testing::spin_until;

async fn ends(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut got = Vec::new();
    let reading = async {
        let _reset_is_an_end_too = stream.read_to_end(&mut got).await;
    };
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the server ends the connection");
    got
}

#[tokio::test]
async fn slow_handshakes_and_slow_heads_are_ended() {
    let settings = |front: &mut Front| {
        front.limits.handshake = Duration::from_millis(200);
        front.limits.head = Duration::from_millis(200);
    };
    let bed = Bed::with(settings, Router::new()).await;
    let mut silent = TcpStream::connect(bed.address).await.unwrap();
    let mut begun = TcpStream::connect(bed.address).await.unwrap();
    begun.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
    let alice = bed.alice();
    let mut head = bed.tls(b"http/1.1", Some(&alice)).await.unwrap();
    head.write_all(b"GET /pods HTTP/1.1\r\nHost:").await.unwrap();
    let mut drops = bed.tls(b"http/1.1", None).await.unwrap();
    let dripping = async {
        // A byte now and then does not help: one each 20 ms that the server has not ended it.
        let (mut server, mut drops) = tokio::io::split(&mut drops);
        let mut ended = std::pin::pin!(ends(&mut server));
        drops.write_all(b"GET /pods HTTP/1.1\r\nHost: ").await.unwrap();
        while tokio::time::timeout(Duration::from_millis(20), &mut ended).await.is_err() {
            let _ended_meanwhile = drops.write_all(b"a").await.and(drops.flush().await);
        }
    };
    let began = Instant::now();
    tokio::join!(ends(&mut silent), ends(&mut begun), ends(&mut head), dripping);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(bed.counted().expired, 4);
    // Who only rests between requests is not slow, for longer than one that is has its time.
    let mut client = bed.h1(Some(&alice)).await;
    assert_eq!(client.get("/pods").await.0, 200);
    let mut slow = bed.tls(b"http/1.1", Some(&alice)).await.unwrap();
    slow.write_all(b"GET /pods").await.unwrap();
    ends(&mut slow).await;
    assert_eq!(client.get("/pods").await.0, 200);
}

#[tokio::test]
async fn heads_are_bounded_and_those_of_strangers_more_so() {
    let bed = Bed::new().await;
    let alice = bed.alice();
    let ask = |size: usize| {
        let request = axum::http::Request::get("/pods").header("x", "a".repeat(size));
        request.body(axum::body::Body::empty()).unwrap()
    };
    let mut known = bed.h1(Some(&alice)).await;
    assert_eq!(known.send(ask(900 << 10)).await.unwrap().code, 200);
    let code = |answer: hyper::Result<super::bed::Answer>| answer.map_or(0, |a| a.code);
    assert!(matches!(code(bed.h1(Some(&alice)).await.send(ask(1100 << 10)).await), 0 | 431));
    assert_eq!(code(bed.h1(None).await.send(ask(20 << 10)).await), 401);
    assert!(matches!(code(bed.h1(None).await.send(ask(70 << 10)).await), 0 | 431));
    let mut known = bed.h2(Some(&alice)).await;
    assert_eq!(code(known.send(ask(500 << 10)).await), 200);
    assert_eq!(code(bed.h2(None).await.send(ask(20 << 10)).await), 401);
    assert!(matches!(code(bed.h2(None).await.send(ask(200 << 10)).await), 0 | 431));
    assert_eq!(bed.h1(Some(&alice)).await.get("/pods").await.0, 200);
}

/// Opens connections that say nothing; those that were ended by the server are dropped on the way.
async fn flood(address: SocketAddr, many: usize) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..many {
        if let Ok(stream) = TcpStream::connect(address).await {
            held.push(stream);
        }
    }
    held
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// As many as file descriptors allow, both ends being in this process.
fn affordable(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|l| l.starts_with("Max open files")).unwrap();
    let most: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    wanted.min(most.saturating_sub(700))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_silent_connections_take_little_and_starve_nobody() {
    let many = affordable(10_000);
    assert!(many >= 100, "too few file descriptors to show anything");
    let bed = Bed::new().await;
    let alice = bed.alice();
    let mut before = bed.h1(Some(&alice)).await;
    assert_eq!(before.get("/pods").await.0, 200);
    let resident = resident_kib();
    let held = flood(bed.address, many).await;
    spin_until("all are accepted", || bed.counted().accepted >= many as u64).await;
    let grown = resident_kib().saturating_sub(resident);
    let began = Instant::now();
    assert_eq!(before.get("/pods").await.0, 200, "who was there is served");
    for _ in 0..10 {
        assert_eq!(bed.h1(Some(&alice)).await.get("/pods").await.0, 200, "who comes is served");
        assert_eq!(bed.h2(None).await.get("/pods").await.0, 401);
    }
    let took = began.elapsed() / 21;
    let counted = bed.counted();
    println!("{many} silent connections: {grown} KiB more, {took:?} a request with its connection, {counted:?}");
    assert!(counted.evicted >= (many - Limits::default().strangers) as u64);
    // The ends of the clients are in this process as well.
    assert!(grown < 40 << 10, "{grown} KiB");
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_tls_connections_take_little_each() {
    let bed = Bed::new().await;
    let mut held = Vec::new();
    let mut resident = 0;
    for n in 0..240 {
        if n == 40 {
            // What allocators take in advance is taken.
            resident = resident_kib();
        }
        let mut client = bed.h1(None).await;
        assert_eq!(client.get("/pods").await.0, 401);
        held.push(client);
    }
    let grown = resident_kib().saturating_sub(resident);
    println!("200 idle TLS connections after a request, both ends: {grown} KiB more");
    // Both ends are in this process: the client's is the larger one.
    assert!(grown / 200 < 100, "{grown} KiB");
    assert_eq!(bed.h1(Some(&bed.alice())).await.get("/pods").await.0, 200);
}

#[tokio::test]
async fn a_flood_evicts_itself_and_never_the_known() {
    let bed = Bed::with(|front| front.limits.strangers = 8, Router::new()).await;
    let alice = bed.alice();
    let mut known = Vec::new();
    for _ in 0..12 {
        let mut client = bed.h2(Some(&alice)).await;
        assert_eq!(client.get("/pods").await.0, 200);
        known.push(client);
    }
    let mut bob = bed.h1(None).await;
    assert_eq!(bob.token("/pods", "good-bob").await.0, 200);
    let held = flood(bed.address, 300).await;
    spin_until("all are accepted", || bed.counted().accepted >= 313).await;
    for client in &mut known {
        assert_eq!(client.get("/pods").await.0, 200);
    }
    assert_eq!(bob.token("/pods", "good-bob").await.0, 200, "who was authorised with a token keeps the place");
    let counted = bed.counted();
    assert_eq!((counted.evicted, counted.refused), (292, 0));
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_flood_keeps_nobody_out() {
    let bed = Bed::new().await;
    let alice = bed.alice();
    let address = bed.address;
    let running = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let running = running.clone();
            tokio::spawn(async move {
                let mut held = std::collections::VecDeque::new();
                while running.load(std::sync::atomic::Ordering::Relaxed) {
                    held.extend(TcpStream::connect(address).await.ok());
                    if held.len() > 100 {
                        held.pop_front();
                    }
                }
            })
        })
        .collect();
    spin_until("the flood is there", || bed.counted().evicted >= 100).await;
    let mut served = 0;
    for _ in 0..20 {
        if let Ok(stream) = bed.tls(b"h2", Some(&alice)).await {
            served += u32::from(Client::h2(stream).await.get("/pods").await.0 == 200);
        }
    }
    running.store(false, std::sync::atomic::Ordering::Relaxed);
    for flood in floods {
        flood.await.unwrap();
    }
    println!("{served} of 20 got in at the first try, beside {:?}", bed.counted());
    assert!(served >= 10, "{served} of 20");
}

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let len = usize::try_from(self.next()).unwrap_or(0) % most + 1;
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

#[tokio::test]
async fn garbage_breaks_nothing_and_opens_nothing() {
    let settings = |front: &mut Front| {
        front.limits.handshake = Duration::from_millis(500);
        front.limits.head = Duration::from_millis(300);
        front.limits.idle = Duration::from_millis(300);
    };
    let bed = Bed::with(settings, Router::new()).await;
    let mut dice = Dice(0x00b0_5c0d_e5ee_d001);
    let pipelined =
        b"GET /pods HTTP/1.1\r\nHost: n\r\n\r\nGET /exec HTTP/1.1\r\nHost: n\r\n\r\n\x00\xff\x01garbage\r\n\r\n";
    let smuggled = b"POST /pods HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /exec HTTP/1.1\r\nHost: n\r\n\r\n";
    let fixed: &[&[u8]] = &[
        pipelined,
        smuggled,
        b"GET * HTTP/1.1\r\nHost: n\r\n\r\n",
        b"CONNECT n:443 HTTP/1.1\r\nHost: n\r\n\r\n",
        b"GET http://evil/pods HTTP/1.1\r\nHost: n\r\n\r\n",
        b"GET /pods HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n\r\n\r\n",
    ];
    let mut work: Vec<Vec<u8>> = fixed.iter().map(|f| f.to_vec()).collect();
    for _ in 0..40 {
        let noise = dice.bytes(3000);
        work.push(noise.clone());
        // A good beginning with a byte turned.
        let mut almost = pipelined.to_vec();
        let at = usize::try_from(dice.next()).unwrap_or(0) % almost.len();
        almost[at] ^= 1 << (dice.next() % 8);
        work.push(almost);
        // HTTP/2 frames that are frames by their length only.
        let mut frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00".to_vec();
        for _ in 0..20 {
            let payload = dice.bytes(60);
            frames.extend([0, 0, u8::try_from(payload.len()).unwrap()]);
            let [kind, flags, stream, ..] = dice.next().to_le_bytes();
            frames.extend([kind % 11, flags, 0, 0, 0, stream % 8]);
            frames.extend(payload);
        }
        work.push(frames);
    }
    let all = work.iter().enumerate().map(|(n, bytes)| {
        let bed = &bed;
        async move {
            // Into the handshake, into HTTP/1, into HTTP/2.
            let mut plain = TcpStream::connect(bed.address).await.unwrap();
            let _refused_is_fine = plain.write_all(bytes).await;
            ends(&mut plain).await;
            let two = bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM") || n % 5 == 0;
            let alpn: &[u8] = if two { b"h2" } else { b"http/1.1" };
            if let Ok(mut tls) = bed.tls(alpn, None).await {
                let _refused_is_fine = tls.write_all(bytes).await;
                let _refused_is_fine = tls.flush().await;
                let got = ends(&mut tls).await;
                assert!(!got.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(bytes));
            }
        }
    });
    for some in futures::future::join_all(all).await {
        let () = some;
    }
    assert_eq!(bed.handled.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(bed.counted().panics, 0);
    assert_eq!(bed.h1(Some(&bed.alice())).await.get("/pods").await.0, 200);
    println!("{} kinds of garbage, {:?}", work.len() * 2, bed.counted());
}

#[tokio::test]
async fn resets_without_end_end_the_connection() {
    let bed = Bed::new().await;
    let mut stream = bed.tls(b"h2", None).await.unwrap();
    // The frames are good ones: the first request is answered.
    let first = bed.h2(None).await.get("/pods").await;
    assert_eq!(first.0, 401);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await.unwrap();
    // `GET /pods` over https with an authority, from the static table and literals; then RST_STREAM.
    let block = [&[0x82, 0x87, 0x04, 0x05][..], b"/pods", &[0x01, 0x01], b"n"].concat();
    let mut sent = 0_u32;
    let flood = async {
        for n in 0..20_000_u32 {
            let id = (2 * n + 1).to_be_bytes();
            let mut frames = vec![0, 0, u8::try_from(block.len()).unwrap(), 1, 5];
            frames.extend(id);
            frames.extend(&block);
            frames.extend([0, 0, 4, 3, 0]);
            frames.extend(id);
            frames.extend([0, 0, 0, 8]);
            if stream.write_all(&frames).await.is_err() || stream.flush().await.is_err() {
                break;
            }
            sent += 1;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), flood).await.expect("the flood ends");
    ends(&mut stream).await;
    println!("the connection took {sent} resets, {:?}", bed.counted());
    assert!(sent < 20_000);
    assert_eq!(bed.h1(Some(&bed.alice())).await.get("/pods").await.0, 200);
}

#[tokio::test]
async fn the_read_only_port_serves_everybody_within_limits() {
    let limits = Limits { strangers: 16, head: Duration::from_millis(300), ..Limits::default() };
    let settings = ReadOnly { address: "127.0.0.1".parse().unwrap(), port: 0, limits, accepting: Accepting::default() };
    let listening = open_read_only(settings).await.unwrap();
    let (address, counts) = (listening.address().unwrap(), listening.counts());
    let router = Router::new().route("/pods", axum::routing::get(|| async { "pods" }));
    let server = tokio::spawn(listening.serve(router, std::future::pending()));
    let ask = |head: &'static str| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&ends(&mut stream).await).into_owned()
    };
    let held = flood(address, 100).await;
    let answer = ask("GET /%70ods HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("pods"), "{answer}");
    let answer = ask("GET /exec/ns/p/c HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let answer = ask("GET /pods/../pods HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(ask("GET /pods HT").await, "");
    assert!(counts.read().evicted >= 84);
    drop(held);
    server.abort();
}

#[tokio::test]
async fn who_is_ended_while_nobody_listens_is_ended_all_the_same() {
    let bed = Bed::with(|front| front.limits.strangers = 1, Router::new()).await;
    let first = bed.tls(b"http/1.1", None).await.unwrap();
    let mut first = Client::h1(first).await;
    assert_eq!(first.get("/pods").await.0, 401);
    let mut second = bed.h1(None).await;
    assert_eq!(second.get("/pods").await.0, 401);
    let request = axum::http::Request::get("/pods").body(axum::body::Body::empty()).unwrap();
    assert!(first.send(request).await.is_err());
}
