//! Stores in folders, images made by hand.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use crate::oci::{Descriptor, ImageConfig, Manifest, Platform};
use crate::{Digest, Draft, Image, ImageStore, LayerOf, Limits, NewLayer, StoreError, Writing};

mod archives;
mod crash;
pub(crate) mod death;
mod holding;
mod ingesting;

const NO_WAIT: Duration = Duration::ZERO;

/// A layer: files with their contents.
fn layer(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An image that could be pulled.
#[derive(Clone)]
struct Made {
    config: Vec<u8>,
    manifest: Vec<u8>,
    /// As they are sent, lowest first.
    layers: Vec<Vec<u8>>,
}

fn platform() -> Platform {
    "linux/amd64".parse().unwrap()
}

impl Made {
    fn new(mark: &str, layers: &[Vec<u8>]) -> Self {
        let diff_ids: Vec<String> = layers.iter().map(|l| format!("\"{}\"", Digest::of(l))).collect();
        let config = format!(
            r#"{{"os":"linux","architecture":"amd64","config":{{"Env":["MARK={mark}"]}},"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
            diff_ids.join(",")
        );
        let sent: Vec<Vec<u8>> = layers.iter().map(|l| gzip(l)).collect();
        let one = |kind: &str, bytes: &[u8]| {
            let digest = Digest::of(bytes);
            format!(r#"{{"mediaType":"application/vnd.oci.image.{kind}","digest":"{digest}","size":{}}}"#, bytes.len())
        };
        let described: Vec<String> = sent.iter().map(|l| one("layer.v1.tar+gzip", l)).collect();
        let described = (one("config.v1+json", config.as_bytes()), described.join(","));
        let manifest = format!(r#"{{"schemaVersion":2,"config":{},"layers":[{}]}}"#, described.0, described.1);
        Self { config: config.into_bytes(), manifest: manifest.into_bytes(), layers: sent }
    }

    fn id(&self) -> Digest {
        Digest::of(&self.config)
    }

    fn draft(&self, name: &str) -> Result<Draft, StoreError> {
        let describe = |bytes: &[u8]| Descriptor {
            media_type: String::new(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            platform: None,
            annotations: Default::default(),
        };
        let layers = self.layers.iter().map(|l| describe(l)).collect();
        let manifest = Manifest { config: describe(&self.config), layers };
        let mut draft = Draft::new(&manifest, &ImageConfig::parse(&self.config)?, &platform())?;
        let digest = Digest::of(&self.manifest);
        draft.documents.push(digest);
        draft.names.push(format!("docker.io/library/{name}"));
        let repository = name.split(':').next().unwrap_or(name);
        draft.digests.push(format!("docker.io/library/{repository}@{digest}"));
        Ok(draft)
    }

    /// As who pulls does it.
    fn put(&self, store: &ImageStore, name: &str) -> Result<Image, StoreError> {
        let writing = store.writing("pull", Duration::from_secs(20))?;
        let draft = self.draft(name)?;
        writing.keep(draft.layers.iter().map(|l| l.chain_id));
        writing.put_document(&draft.id, &self.config)?;
        writing.put_document(&draft.documents[0], &self.manifest)?;
        let new = self.unpack(&writing, &draft)?;
        writing.commit(draft, new)
    }

    fn unpack(&self, writing: &Writing, draft: &Draft) -> Result<Vec<NewLayer>, StoreError> {
        let mut new = Vec::new();
        for (layer, bytes) in draft.layers.iter().zip(&self.layers) {
            if writing.store().has_layer(&layer.chain_id)? {
                continue;
            }
            let mut ingest = writing.ingest(&layer.digest, layer.size)?;
            let have = usize::try_from(ingest.have()).unwrap();
            ingest.write(&bytes[have..])?;
            let of = LayerOf { digest: layer.digest, diff_id: layer.diff_id, chain_id: layer.chain_id };
            new.push(writing.unpack(ingest.verified()?, of, &Limits::default(), &AtomicBool::new(false))?);
        }
        Ok(new)
    }
}

fn base() -> Vec<u8> {
    layer(&[("etc/os", "base"), ("bin/sh", "sh")])
}

fn one() -> Made {
    Made::new("one", &[base(), layer(&[("app", "one")])])
}

fn two() -> Made {
    Made::new("two", &[base(), layer(&[("app", "two"), ("etc/more", "more")])])
}

fn store() -> (TempDir, ImageStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    (folder, store)
}

/// The file of an image, as a container would see it.
fn seen(store: &ImageStore, image: &Image, path: &str) -> Option<String> {
    store.lowers(image).iter().find_map(|lower| std::fs::read_to_string(lower.join(path)).ok())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_image_is_found_by_its_names_and_ids() {
    let (_folder, store) = store();
    let made = one();
    let image = made.put(&store, "app:1").unwrap();
    assert_eq!(image.id, made.id());
    assert_eq!(image.config.config.env, ["MARK=one"]);
    let hex = image.id.hex();
    let by_digest = format!("app@{}", Digest::of(&made.manifest));
    let both = format!("app:other@{}", Digest::of(&made.manifest));
    for name in ["app:1", "docker.io/library/app:1", &image.id.to_string(), &hex, &hex[..12], &by_digest, &both] {
        assert_eq!(store.resolve(name).unwrap().as_ref(), Some(&image), "{name}");
    }
    for name in ["app", "app:2", "ap", &hex[..3], "no name at all", ""] {
        assert_eq!(store.resolve(name).unwrap(), None, "{name}");
    }
    assert_eq!(store.list().unwrap(), std::slice::from_ref(&image));
    assert_eq!(seen(&store, &image, "app").as_deref(), Some("one"));
    assert!(store.lowers(&image)[0].join("app").exists(), "the topmost first");
    for _ in 0..2 {
        let short = store.short_lowers(&image).unwrap();
        let long: Vec<_> = short.names.iter().map(|n| short.folder.join(n).canonicalize().unwrap()).collect();
        assert_eq!(long, store.lowers(&image));
    }
    assert_eq!(names(&store.root().join("ingest")), Vec::<String>::new(), "compressed layers are not kept");
}

#[test]
fn a_name_moves_to_the_image_that_was_pulled_last() {
    let (_folder, store) = store();
    let (first, second) = (one().put(&store, "app:1").unwrap(), two().put(&store, "app:1").unwrap());
    assert_eq!(first.chain[0], second.chain[0], "they share what they have in common");
    assert_eq!(store.resolve("app:1").unwrap().unwrap().id, second.id);
    let old = store.resolve(&first.id.to_string()).unwrap().unwrap();
    assert_eq!((old.repo_tags.len(), old.repo_digests.len()), (0, 1));
    one().put(&store, "app:1").unwrap();
    assert_eq!(store.resolve("app:1").unwrap().unwrap().id, first.id, "and back");
    one().put(&store, "app:2").unwrap();
    assert_eq!(store.resolve("app:1").unwrap().unwrap().repo_tags.len(), 2, "a new name does not take the old one");
}

#[test]
fn what_is_removed_takes_only_its_own_layers() {
    let (_folder, store) = store();
    let (first, second) = (one().put(&store, "one:1").unwrap(), two().put(&store, "two:1").unwrap());
    store.short_lowers(&first).unwrap();
    let before = store.usage().unwrap();
    let removed = store.remove("one:1", NO_WAIT).unwrap();
    assert_eq!((removed.image, removed.layers), (Some(first.id), 1));
    assert_eq!(store.resolve("one:1").unwrap(), None);
    assert_eq!(seen(&store, &second, "etc/os").as_deref(), Some("base"));
    let after = store.usage().unwrap();
    assert!(after.bytes < before.bytes && after.inodes < before.inodes);
    store.remove(&second.id.hex()[..8], NO_WAIT).unwrap();
    let empty = store.usage().unwrap();
    assert_eq!((empty.bytes, empty.inodes), (0, 0));
    for folder in ["layers", "blobs/sha256", "images", "ingest", "l"] {
        assert_eq!(names(&store.root().join(folder)), Vec::<String>::new(), "{folder}");
    }
    assert!(matches!(store.remove("one:1", NO_WAIT), Err(StoreError::NoImage(_))));
}

#[test]
fn the_last_name_takes_the_image_with_it() {
    let (_folder, store) = store();
    one().put(&store, "app:1").unwrap();
    one().put(&store, "app:2").unwrap();
    assert_eq!(store.untag("app:1", NO_WAIT).unwrap().image, None);
    assert_eq!(store.resolve("app:2").unwrap().unwrap().repo_tags, ["docker.io/library/app:2"]);
    assert!(store.untag("app:2", NO_WAIT).unwrap().image.is_some());
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn a_lease_holds_layers_though_the_image_goes() {
    let (folder, store) = store();
    let image = one().put(&store, "app:1").unwrap();
    let lease = store.lease(&image, "c0ffee").unwrap();
    assert_eq!(store.lease(&image, "c0ffee").unwrap(), lease, "again is the same");
    store.remove("app:1", NO_WAIT).unwrap();
    drop(store);
    let store = ImageStore::open(folder.path()).unwrap();
    assert_eq!(store.leases().unwrap(), [lease]);
    assert_eq!(seen(&store, &image, "app").as_deref(), Some("one"));
    assert_eq!((store.release("c0ffee").unwrap(), store.release("c0ffee").unwrap()), (true, false));
    assert_eq!(store.writing("collect", NO_WAIT).unwrap().collect().unwrap().layers, 2);
    assert!(matches!(store.lease(&image, "c0ffee"), Err(StoreError::Incomplete { .. })), "gone is gone");
    for bad in ["", "../x", "a/b", ".hidden", &"x".repeat(300)] {
        assert!(matches!(store.lease(&image, bad), Err(StoreError::Holder(_))), "{bad}");
    }
}

#[test]
fn a_lease_holds_layers_of_volumes_too() {
    let (_folder, store) = store();
    let image = one().put(&store, "app:1").unwrap();
    let volume = Made::new("data", &[layer(&[("data", "x")])]).put(&store, "data:1").unwrap();
    let lease = store.lease_with_volumes(&image, &[volume.clone(), volume.clone()], "c0ffee").unwrap();
    assert_eq!((lease.image, lease.chain.len()), (image.id, 3));
    store.remove("data:1", NO_WAIT).unwrap();
    assert_eq!(seen(&store, &volume, "data").as_deref(), Some("x"));
    store.release("c0ffee").unwrap();
    assert_eq!(store.writing("collect", NO_WAIT).unwrap().collect().unwrap().layers, 1);
}

#[test]
fn a_lease_that_cannot_be_read_stops_the_garbage_collector() {
    let (_folder, store) = store();
    one().put(&store, "app:1").unwrap();
    std::fs::write(store.root().join("leases/torn.json"), "{").unwrap();
    let error = store.remove("app:1", NO_WAIT).unwrap_err().to_string();
    assert!(error.contains("torn.json"), "{error}");
    assert_eq!(names(&store.root().join("layers")).len(), 2);
}

#[test]
fn a_pinned_image_stays_pinned() {
    let (folder, store) = store();
    one().put(&store, "pause:1").unwrap();
    store.pin("pause:1", true, NO_WAIT).unwrap();
    one().put(&store, "pause:2").unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    assert!(store.resolve("pause:2").unwrap().unwrap().pinned);
    store.pin("pause:1", false, NO_WAIT).unwrap();
    assert!(!store.resolve("pause:1").unwrap().unwrap().pinned);
}

#[test]
fn another_process_sees_what_changed() {
    let (folder, store) = store();
    let other = ImageStore::open(folder.path()).unwrap();
    for n in 0..20 {
        let image = Made::new(&n.to_string(), &[base()]).put(&store, "app:1").unwrap();
        assert_eq!(other.resolve("app:1").unwrap().unwrap().id, image.id);
    }
    store.remove("app:1", NO_WAIT).unwrap();
    assert_eq!(other.resolve("app:1").unwrap(), None);
}

#[test]
fn layers_that_do_not_list_their_directories_take_them_from_below() {
    use std::os::unix::fs::PermissionsExt;
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(0o1777);
    header.set_size(0);
    tar.append_data(&mut header, "tmp/", &[][..]).unwrap();
    let (lower, upper) = (tar.into_inner().unwrap(), layer(&[("tmp/x", "x")]));
    let (_folder, store) = store();
    let check = |image: &Image| {
        let top = store.lowers(image)[0].join("tmp");
        assert_eq!(top.metadata().unwrap().permissions().mode() & 0o7777, 0o1777);
    };
    check(&Made::new("both new", &[lower.clone(), upper]).put(&store, "a:1").unwrap());
    check(&Made::new("one known", &[lower, layer(&[("tmp/y", "y")])]).put(&store, "a:2").unwrap());
}
