//! How long a pull takes: ten layers of 20 MB each from a registry in this process, into an empty store and into one that has all.
//! `PULL=HOST/NAME:TAG cargo bench -p registry` pulls that instead: from a real registry, to compare with other runtimes.

#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use image_store::{Digest, ImageStore};
use registry::{Progress, Puller, Settings};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const LAYERS: u64 = 10;
const FILES: u64 = 100;
/// Bytes of a file, of which two thirds compress well.
const FILE: usize = 550_000;

fn layer(number: u64) -> (Digest, Vec<u8>) {
    let mut rng = fastrand::Rng::with_seed(number);
    let mut tar = tar::Builder::new(Vec::new());
    for file in 0..FILES {
        let mut text = vec![b'x'; FILE];
        for byte in text.iter_mut().take(FILE / 3) {
            *byte = rng.u8(..);
        }
        let mut header = tar::Header::new_ustar();
        header.set_size(FILE as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("usr/{number}/{file}"), text.as_slice()).unwrap();
    }
    let plain = tar.into_inner().unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&plain).unwrap();
    (Digest::of(&plain), encoder.finish().unwrap())
}

/// What a registry answers, by path.
fn contents() -> BTreeMap<String, Bytes> {
    let layers: Vec<(Digest, Vec<u8>)> = (0..LAYERS).map(layer).collect();
    let diff_ids: Vec<String> = layers.iter().map(|(id, _)| format!("\"{id}\"")).collect();
    let platform = image_store::oci::Platform::own();
    let (machine, ids) = (platform.architecture, diff_ids.join(","));
    let config = format!(r#"{{"os":"linux","architecture":"{machine}","rootfs":{{"diff_ids":[{ids}]}}}}"#);
    let describe = |kind: &str, bytes: &[u8]| {
        let digest = Digest::of(bytes);
        format!(r#"{{"mediaType":"application/vnd.oci.image.{kind}","digest":"{digest}","size":{}}}"#, bytes.len())
    };
    let all: Vec<String> = layers.iter().map(|(_, sent)| describe("layer.v1.tar+gzip", sent)).collect();
    let of_config = describe("config.v1+json", config.as_bytes());
    let manifest = format!(r#"{{"schemaVersion":2,"config":{of_config},"layers":[{}]}}"#, all.join(","));
    let sent = layers.into_iter().map(|(_, sent)| sent).chain([config.into_bytes()]);
    let blobs = sent.map(|blob| (format!("/v2/bench/app/blobs/{}", Digest::of(&blob)), Bytes::from(blob)));
    let manifest = ("/v2/bench/app/manifests/1".to_owned(), Bytes::from(manifest));
    blobs.chain([manifest]).collect()
}

/// Serves on a thread of its own.
fn serve(contents: BTreeMap<String, Bytes>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let contents = Arc::new(contents);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let contents = contents.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request: Request<hyper::body::Incoming>| {
                        let found = contents.get(request.uri().path()).cloned();
                        async move {
                            let mut answer = Response::new(Full::new(found.clone().unwrap_or_default()));
                            *answer.status_mut() = if found.is_some() { 200 } else { 404 }.try_into().unwrap();
                            Ok::<_, Infallible>(answer)
                        }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    drop(connection.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
    });
    address
}

fn pull(runtime: &Runtime, store: &ImageStore, image: &str) {
    let puller = Puller::new(store.clone(), Settings::default());
    let request = registry::Request { image: image.to_owned(), credentials: None, pinned: false };
    runtime.block_on(puller.pull(&request, &Progress::default())).unwrap();
}

fn pulls(criterion: &mut Criterion) {
    let image = std::env::var("PULL").unwrap_or_else(|_| format!("{}/bench/app:1", serve(contents())));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut group = criterion.benchmark_group("pull");
    group.sample_size(10).measurement_time(Duration::from_secs(30));
    group.bench_function("into an empty store", |bencher| {
        bencher.iter_custom(|times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                let folder = tempfile::tempdir().unwrap();
                let store = ImageStore::open(folder.path()).unwrap();
                let begun = Instant::now();
                pull(&runtime, &store, &image);
                took += begun.elapsed();
            }
            took
        });
    });
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    pull(&runtime, &store, &image);
    group.bench_function("of what is here", |bencher| bencher.iter(|| pull(&runtime, &store, &image)));
    group.finish();
}

criterion_group!(benches, pulls);
criterion_main!(benches);
