//! A name server that never answers, and pods whose probes want names of it.

use std::path::Path;
use std::time::{Duration, Instant};

use actor::testing::spin_until;
use futures::future::{join_all, select_all};
use model::probe::ProbeOutcome;
use ports::probe::{NetProber, NetTarget};
use resolver::Resolver;
use tokio::net::{TcpListener, UdpSocket};

use super::server::{Canned, status};
use crate::Prober;

const SECOND: Duration = Duration::from_secs(1);

fn entries(folder: &str) -> usize {
    std::fs::read_dir(Path::new(folder)).unwrap().count()
}

fn http(host: &str, port: u16) -> NetTarget {
    NetTarget::Http { tls: false, host: host.into(), port, path: "/".into(), headers: Vec::new(), host_header: None }
}

fn tcp(host: &str, port: u16) -> NetTarget {
    NetTarget::Tcp { host: host.into(), port }
}

/// Swallows questions; in `etc` the files that point to it.
async fn swallower() -> (UdpSocket, tempfile::TempDir, Prober) {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let etc = tempfile::tempdir().unwrap();
    std::fs::write(etc.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
    let prober = Prober::with_resolver(Resolver::with_etc(etc.path().to_owned(), server.local_addr().unwrap().port()));
    (server, etc, prober)
}

#[tokio::test]
async fn names_that_nobody_answers_delay_no_probe_by_address() {
    let (_server, _etc, prober) = swallower().await;
    let web = Canned::start(|_| status(200, "well")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (threads, files) = (entries("/proc/self/task"), entries("/proc/self/fd"));

    let by_name = join_all((0..40).map(|i| {
        let (prober, name) = (prober.clone(), format!("pod-{i}.example"));
        async move {
            let by_http = prober.probe(http(&name, 80), SECOND);
            let by_tcp = prober.probe(tcp(&name, 80), SECOND);
            (name.clone(), futures::future::join(by_http, by_tcp).await)
        }
    }));
    let by_address = async {
        spin_until("two questions for each of 80 probes", || entries("/proc/self/fd") >= files + 160).await;
        let begun = Instant::now();
        let all = (0..40).flat_map(|_| {
            [prober.probe(http("127.0.0.1", web.port), SECOND), prober.probe(tcp("127.0.0.1", port), SECOND)]
        });
        for done in join_all(all).await {
            assert_eq!(done.outcome, ProbeOutcome::Success, "{}", done.output);
        }
        assert_eq!(entries("/proc/self/task"), threads, "a look-up has no thread");
        begun.elapsed()
    };
    let (failed, took) = futures::future::join(by_name, by_address).await;
    assert!(took < SECOND / 2, "{took:?}");
    for (name, (by_http, by_tcp)) in failed {
        assert_eq!((by_http.outcome, by_tcp.outcome), (ProbeOutcome::Failure, ProbeOutcome::Failure));
        let awaited = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        assert_eq!(by_http.output, format!("Get \"http://{name}:80/\": {awaited}"));
        assert_eq!(by_tcp.output, format!("dial tcp: lookup {name}: i/o timeout"));
    }
    assert!(entries("/proc/self/fd") <= files + 2, "sockets of look-ups stay");
}

#[tokio::test]
async fn a_probe_that_is_dropped_takes_its_look_up_along() {
    let (server, _etc, prober) = swallower().await;
    let files = entries("/proc/self/fd");
    let probe = prober.probe(tcp("pod.example", 80), Duration::from_secs(60));
    let mut question = [0; 512];
    let asked = Box::pin(async { server.recv(&mut question).await.map(drop).unwrap() });
    let probe = Box::pin(async { drop(probe.await) });
    let (_, which, rest) = select_all([probe as std::pin::Pin<Box<dyn Future<Output = ()>>>, asked]).await;
    assert_eq!(which, 1, "the question came first");
    assert_eq!(entries("/proc/self/fd"), files + 2);
    drop(rest);
    assert_eq!(entries("/proc/self/fd"), files);
}
