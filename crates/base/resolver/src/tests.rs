//! Files and packets as tables; look-ups at servers on the loopback.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use crate::Resolver;
use crate::config::{Config, Order, in_hosts, is_domain_name};
use crate::packet::{Answer, Kind, answer, question};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_order_of_sources() {
    let rows = [
        ("", Order::FilesDns),
        ("passwd: files\n", Order::FilesDns),
        ("hosts:\n", Order::FilesDns),
        ("hosts: files dns # as always\n", Order::FilesDns),
        ("hosts: dns files\n", Order::DnsFiles),
        ("hosts: files\n", Order::Files),
        ("hosts: dns\n", Order::Dns),
        ("hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname\n", Order::FilesDns),
        ("hosts: files resolve\n", Order::FilesDns),
        ("hosts: myhostname files\n", Order::DnsFiles),
        ("#hosts: dns\nhosts: files\n", Order::Files),
    ];
    for (text, want) in rows {
        assert_eq!(Order::read(text), want, "{text}");
    }
}

#[test]
fn resolv_conf() {
    let plain = Config {
        servers: vec![ip("127.0.0.1"), ip("::1")],
        search: Vec::new(),
        ndots: 1,
        timeout: Duration::from_secs(5),
        attempts: 2,
        rotate: false,
        single_request: false,
        tcp: false,
    };
    assert_eq!(Config::read("", "node"), plain);
    assert_eq!(Config::read("", "node.a.b").search, ["a.b."]);
    let text = "# nameserver 9.9.9.9\nnameserver 10.0.0.1\nnameserver nonsense\nnameserver fd00::1\nnameserver 10.0.0.2\n\
        nameserver 10.0.0.3\ndomain first\nsearch x.y . z.\noptions ndots:99 timeout:0 attempts:x rotate edns0\n\
        options single-request use-vc attempts:3\n";
    let full = Config {
        servers: vec![ip("10.0.0.1"), ip("fd00::1"), ip("10.0.0.2")],
        search: vec!["x.y.".into(), "z.".into()],
        ndots: 15,
        timeout: Duration::from_secs(1),
        attempts: 3,
        rotate: true,
        single_request: true,
        tcp: true,
    };
    assert_eq!(Config::read(text, "node.a.b"), full);
}

#[test]
fn names_that_are_asked_for() {
    let config = Config::read("search a b.c\noptions ndots:2\n", "");
    let rows: [(&str, &[&str]); 6] = [
        ("web", &["web.a.", "web.b.c.", "web."]),
        ("web.ns", &["web.ns.a.", "web.ns.b.c.", "web.ns."]),
        ("web.ns.svc", &["web.ns.svc.", "web.ns.svc.a.", "web.ns.svc.b.c."]),
        ("web.", &["web."]),
        ("x.OnIon", &["x.OnIon.a.", "x.OnIon.b.c."]),
        ("x.onion.", &[]),
    ];
    for (name, want) in rows {
        assert_eq!(config.names(name), want, "{name}");
    }
    assert_eq!(config.names(&"long.".repeat(50)).len(), 1);
    assert_eq!(config.names(&format!("{}x", "long.".repeat(50))).len(), 2, "the longest no longer fits");
}

#[test]
fn what_can_be_a_name() {
    for good in ["a", "a.", "web-0.ns_x", "1a.2", &"a".repeat(63)] {
        assert!(is_domain_name(good), "{good}");
    }
    let long = format!("{}a", "a.".repeat(127));
    for bad in ["", ".", "..", "a..b", "-a", "a-", "a.-b", "1.2", "a b", "ä", &"a".repeat(64), &long] {
        assert!(!is_domain_name(bad), "{bad}");
    }
}

#[test]
fn hosts_file() {
    let text = "127.0.0.1 localhost Web.local # web2\n::1 localhost\nnonsense web2\n10.0.0.9\tweb2.\n";
    let rows: [(&str, &[&str]); 4] =
        [("LOCALHOST", &["127.0.0.1", "::1"]), ("web.local.", &["127.0.0.1"]), ("web2", &["10.0.0.9"]), ("web", &[])];
    for (name, want) in rows {
        assert_eq!(in_hosts(text, name), want.iter().map(|a| ip(a)).collect::<Vec<_>>(), "{name}");
    }
}

/// What a server of these tests answers to a question.
fn reply(asked: &[u8], flags: u16, records: &[(u16, &[u8])]) -> Vec<u8> {
    let mut packet = asked[..asked.len() - 11].to_vec();
    packet[2..4].copy_from_slice(&flags.to_be_bytes());
    packet[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
    packet[10..12].fill(0);
    for (of, data) in records {
        packet.extend([0xc0, 12]);
        packet.extend(of.to_be_bytes());
        packet.extend([0, 1, 0, 0, 0, 60]);
        packet.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        packet.extend(*data);
    }
    packet
}

const OK: u16 = 0x8180;
const A: u16 = 1;

#[test]
fn answers() {
    let asked = question(7, "web.a.", Kind::V4);
    assert_eq!(&asked[..12], [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!(&asked[12..23], b"\x03web\x01a\0\0\x01\0\x01");
    let alias: (u16, &[u8]) = (5, b"\x01x\xc0\x0c");
    let rows = [
        (
            reply(&asked, OK, &[alias, (A, &[10, 0, 0, 1]), (A, &[10, 0, 0, 2])]),
            Some(Answer::Addresses(vec![ip("10.0.0.1"), ip("10.0.0.2")])),
        ),
        (reply(&asked, OK, &[alias]), Some(Answer::NoSuchHost)),
        (reply(&asked, OK | 3, &[]), Some(Answer::NoSuchHost)),
        (reply(&asked, OK | 2, &[]), Some(Answer::Useless("server misbehaving"))),
        (reply(&asked, OK | 5, &[]), Some(Answer::Useless("server misbehaving"))),
        (reply(&asked, 0x8100, &[]), Some(Answer::Useless("lame referral"))),
        (reply(&asked, OK | 0x200, &[]), Some(Answer::Truncated)),
        (reply(&asked, OK, &[(A, &[10, 0, 0])]), Some(Answer::Useless("cannot unmarshal DNS message"))),
        (reply(&asked, 0x0100, &[]), None),
        (reply(&question(8, "web.a.", Kind::V4), OK, &[]), None),
        (reply(&question(7, "web.b.", Kind::V4), OK, &[]), None),
        (reply(&question(7, "web.a.", Kind::V6), OK, &[]), None),
    ];
    for (packet, want) in rows {
        assert_eq!(answer(&asked, &packet, Kind::V4), want, "{packet:?}");
    }
    assert!(answer(&asked, &reply(&question(7, "WEB.a.", Kind::V4), OK, &[]), Kind::V4).is_some());
}

#[test]
fn no_packet_breaks_the_reader() {
    let asked = question(7, "web.a.", Kind::V4);
    let whole = reply(&asked, OK, &[(5, b"\x01x\xc0\x0c"), (A, &[10, 0, 0, 1])]);
    for end in 0..whole.len() {
        let cut = answer(&asked, &whole[..end], Kind::V4);
        assert!(cut.is_none() || cut == Some(Answer::Useless("cannot unmarshal DNS message")), "{end}: {cut:?}");
        for byte in 0..=u8::MAX {
            let mut bent = whole.clone();
            bent[end] = byte;
            answer(&asked, &bent, Kind::V4);
        }
    }
}

type Zone = BTreeMap<&'static str, Vec<(u16, Vec<u8>)>>;

/// A name server on the loopback; what it was asked for.
struct Server {
    etc: TempDir,
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

fn name_in(asked: &[u8]) -> String {
    let mut name = String::new();
    let mut at = 12;
    while asked[at] > 0 {
        let end = at + 1 + usize::from(asked[at]);
        name.push_str(std::str::from_utf8(&asked[at + 1..end]).unwrap());
        name.push('.');
        at = end;
    }
    name
}

impl Server {
    /// Knows a zone; over UDP, where `whole`, and else over TCP alone.
    async fn start(zone: Zone, whole: bool, resolv: &str) -> Self {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = udp.local_addr().unwrap().port();
        let tcp = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = asked.clone();
        let about = Arc::new(move |question: &[u8]| {
            let name = name_in(question);
            let of = u16::from_be_bytes([question[question.len() - 15], question[question.len() - 14]]);
            let known = zone.get(name.as_str());
            seen.lock().unwrap().push(name);
            let records: Vec<_> = known.into_iter().flatten().filter(|r| r.0 == of).map(|r| (r.0, &*r.1)).collect();
            reply(question, if known.is_some() { OK } else { OK | 3 }, &records)
        });
        let over_tcp = about.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = udp.recv_from(&mut buffer).await {
                let stray = reply(&question(0, "stray.", Kind::V4), OK, &[(A, &[6, 6, 6, 6])]);
                udp.send_to(&stray, from).await.unwrap();
                let question = &buffer[..length];
                let answer = if whole { about(question) } else { reply(question, OK | 0x200, &[]) };
                udp.send_to(&answer, from).await.unwrap();
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let mut question = vec![0; usize::from(stream.read_u16().await.unwrap())];
                stream.read_exact(&mut question).await.unwrap();
                let answer = over_tcp(&question);
                stream.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
                stream.write_all(&answer).await.unwrap();
            }
        });
        let etc = tempfile::tempdir().unwrap();
        std::fs::write(etc.path().join("resolv.conf"), format!("nameserver 127.0.0.1\n{resolv}")).unwrap();
        std::fs::write(etc.path().join("hosts"), "10.9.9.9 here\n").unwrap();
        Server { etc, port, asked }
    }

    fn resolver(&self) -> Resolver {
        Resolver::with_etc(self.etc.path().to_owned(), self.port)
    }

    fn asked(&self) -> Vec<String> {
        let mut names = std::mem::take(&mut *self.asked.lock().unwrap());
        names.dedup();
        names
    }
}

fn zone() -> Zone {
    Zone::from([
        ("web.a.", vec![(A, vec![10, 0, 0, 1])]),
        ("web.b.", vec![(A, vec![10, 0, 0, 2]), (28, vec![0xfd; 16])]),
    ])
}

#[tokio::test]
async fn a_name_is_found_where_the_files_say() {
    for whole in [true, false] {
        let server = Server::start(zone(), whole, "search none a b\noptions single-request\n").await;
        let resolver = server.resolver();
        assert_eq!(resolver.places("web", 80).await.unwrap(), ["10.0.0.1:80".parse().unwrap()]);
        assert_eq!(server.asked(), ["web.none.", "web.a."]);
        let both = resolver.places("web.b.", 80).await.unwrap();
        assert_eq!(both.len(), 2, "{both:?}");
        assert_eq!(resolver.places("here", 80).await.unwrap(), ["10.9.9.9:80".parse().unwrap()]);
        std::fs::write(server.etc.path().join("nsswitch.conf"), "hosts: dns files\n").unwrap();
        server.asked();
        assert_eq!(resolver.places("here", 80).await.unwrap(), ["10.9.9.9:80".parse().unwrap()]);
        assert_eq!(server.asked(), ["here.none.", "here.a.", "here.b.", "here."]);
        // A change of the file counts for the next look-up.
        std::fs::write(server.etc.path().join("resolv.conf"), "nameserver 127.0.0.1\nsearch b\n").unwrap();
        assert!(resolver.places("web", 80).await.unwrap().contains(&"10.0.0.2:80".parse().unwrap()));
    }
}

#[tokio::test]
async fn what_is_not_found_reads_as_from_go() {
    let server = Server::start(zone(), true, "search a\n").await;
    let port = server.port;
    let why = |host: &'static str| {
        let resolver = server.resolver();
        async move { resolver.places(host, 80).await.unwrap_err() }
    };
    assert_eq!(why("nobody").await, format!("lookup nobody on 127.0.0.1:{port}: no such host"));
    assert_eq!(why("no body").await, "lookup no body: no such host");
    assert_eq!(why("127.1").await, "lookup 127.1: no such host");
    std::fs::write(server.etc.path().join("nsswitch.conf"), "hosts: files\n").unwrap();
    assert_eq!(why("web").await, "lookup web: no such host");
    let nobody_listens = Resolver::with_etc(server.etc.path().to_owned(), 1);
    std::fs::write(server.etc.path().join("nsswitch.conf"), "hosts: dns\n").unwrap();
    let refused = nobody_listens.places("web", 80).await.unwrap_err();
    assert!(refused.starts_with("lookup web on 127.0.0.1:1: read udp 127.0.0.1:"), "{refused}");
    assert!(refused.ends_with("->127.0.0.1:1: read: connection refused"), "{refused}");
}

#[tokio::test]
async fn a_silent_server_is_left_for_the_next_after_its_time() {
    let silent = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let etc = tempfile::tempdir().unwrap();
    std::fs::write(etc.path().join("resolv.conf"), "nameserver 127.0.0.2\noptions timeout:1 attempts:1\n").unwrap();
    let why = Resolver::with_etc(etc.path().to_owned(), port).places("web.", 80).await.unwrap_err();
    assert!(why.starts_with(&format!("lookup web. on 127.0.0.2:{port}: read udp 127.0.0.1:")), "{why}");
    assert!(why.ends_with(&format!("->127.0.0.2:{port}: i/o timeout")), "{why}");
}

#[tokio::test]
async fn addresses_are_no_names() {
    let nowhere = Resolver::with_etc("/nonexistent".into(), 1);
    let rows = [("10.0.0.1", "10.0.0.1:80"), ("fd00::1", "[fd00::1]:80"), ("fe80::1%7", "[fe80::1%7]:80")];
    for (host, want) in rows {
        assert_eq!(nowhere.places(host, 80).await.unwrap(), [want.parse().unwrap()]);
    }
    let lo: u32 = std::fs::read_to_string("/sys/class/net/lo/ifindex").unwrap().trim().parse().unwrap();
    assert_eq!(nowhere.places("fe80::1%lo", 80).await.unwrap(), [format!("[fe80::1%{lo}]:80").parse().unwrap()]);
}
