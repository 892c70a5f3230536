//! Against a registry in this process that misbehaves as it is told.

use std::io::Write;
use std::time::Duration;

use image_store::{Digest, Image, ImageStore};
use tempfile::TempDir;

use crate::{Credentials, Deadlines, Progress, PullError, Puller, Request, Settings};

mod auth;
mod fake;
mod faults;
mod flow;
mod mirrors;

use fake::{Act, Fake};

const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A layer with one file, of that many bytes that do not compress well.
fn layer(name: &str, length: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(0x1234_5678_9abc_def1u64, |s, b| s.wrapping_mul(31).wrapping_add(u64::from(b)));
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    });
    let content: Vec<u8> = noise.take(length).collect();
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(length as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, content.as_slice()).unwrap();
    tar.into_inner().unwrap()
}

/// An image that a registry may have.
#[derive(Clone)]
struct Made {
    config: Vec<u8>,
    manifest: Vec<u8>,
    layers: Vec<Vec<u8>>,
}

impl Made {
    fn new(machine: &str, layers: &[Vec<u8>]) -> Self {
        let diff_ids: Vec<String> = layers.iter().map(|l| format!("\"{}\"", Digest::of(l))).collect();
        let config = format!(
            r#"{{"os":"linux","architecture":"{machine}","config":{{"Cmd":["/x"]}},"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
            diff_ids.join(",")
        );
        let layers: Vec<Vec<u8>> = layers.iter().map(|l| gzip(l)).collect();
        let one = |kind: &str, bytes: &[u8]| {
            let digest = Digest::of(bytes);
            format!(r#"{{"mediaType":"application/vnd.oci.image.{kind}","digest":"{digest}","size":{}}}"#, bytes.len())
        };
        let all: Vec<String> = layers.iter().map(|l| one("layer.v1.tar+gzip", l)).collect();
        let (config_of, all) = (one("config.v1+json", config.as_bytes()), all.join(","));
        let manifest = format!(r#"{{"schemaVersion":2,"config":{config_of},"layers":[{all}]}}"#);
        Self { config: config.into_bytes(), manifest: manifest.into_bytes(), layers }
    }

    /// Three layers, of which the first is the largest.
    fn usual() -> Self {
        Self::new("amd64", &[layer("large", 600_000), layer("b", 200_000), layer("c", 1000)])
    }

    fn id(&self) -> Digest {
        Digest::of(&self.config)
    }

    fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }

    fn layer(&self, at: usize) -> Digest {
        Digest::of(&self.layers[at])
    }
}

fn settings() -> Settings {
    Settings {
        platform: "linux/amd64".parse().unwrap(),
        first_wait: Duration::from_millis(2),
        deadlines: Deadlines::default(),
        ..Settings::default()
    }
}

/// A store of its own, and who pulls into it.
struct Node {
    _folder: TempDir,
    puller: Puller,
}

impl Node {
    fn new() -> Self {
        Self::with(settings())
    }

    fn with(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::open(folder.path()).unwrap();
        Self { _folder: folder, puller: Puller::new(store, settings) }
    }

    async fn pull(&self, image: &str) -> Result<Image, PullError> {
        self.pull_as(image, None).await
    }

    async fn pull_as(&self, image: &str, credentials: Option<Credentials>) -> Result<Image, PullError> {
        let request = Request { image: image.to_owned(), credentials, pinned: false };
        self.puller.pull(&request, &Progress::default()).await
    }

    /// What keeps a pull from succeeding; nothing of it is in the store then.
    async fn refusal(&self, image: &str) -> String {
        let error = self.pull(image).await.unwrap_err().to_string();
        assert!(self.puller.store().list().unwrap().is_empty());
        // Threads that unpack other layers end by themselves.
        let layers = self.puller.store().root().join("layers");
        let left = || std::fs::read_dir(&layers).unwrap().count();
        until(|| left() == 0).await;
        error
    }

    fn parts(&self) -> usize {
        std::fs::read_dir(self.puller.store().root().join("ingest")).unwrap().count()
    }

    fn must_have(&self, image: &Image, made: &Made) {
        assert_eq!(image.id, made.id());
        let lowers = self.puller.store().lowers(image);
        assert_eq!(lowers.len(), made.layers.len());
        assert!(lowers.iter().all(|l| std::fs::read_dir(l).unwrap().count() > 0));
        assert_eq!(self.parts(), 0, "compressed layers are not kept");
    }
}

/// Waits for something that comes by itself; 20 s at most.
async fn until(there: impl Fn() -> bool) {
    let wait = async {
        while !there() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it did not come");
}

fn password(username: &str, password: &str) -> Option<Credentials> {
    Some(Credentials::Password { username: username.to_owned(), password: password.to_owned() })
}
