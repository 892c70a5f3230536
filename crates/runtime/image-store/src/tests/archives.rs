//! Archives of images, as several programs write them.

use std::path::PathBuf;

use super::*;
use crate::ImportOptions;

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        match name.split_once(" -> ") {
            Some((name, to)) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                tar.append_link(&mut header, name, to).unwrap();
            }
            None => {
                header.set_size(text.len() as u64);
                tar.append_data(&mut header, name, *text).unwrap();
            }
        }
    }
    tar.into_inner().unwrap()
}

fn blob(text: &[u8]) -> String {
    format!("blobs/sha256/{}", Digest::of(text).hex())
}

/// With the layers plain, as Docker saves them, the second one by a link.
fn docker(tags: &str) -> Vec<u8> {
    let made = one();
    let config = format!("{}.json", made.id().hex());
    let list = format!(r#"[{{"Config":"{config}","RepoTags":{tags},"Layers":["a/layer.tar","b/layer.tar"]}}]"#);
    archive(&[
        ("a/layer.tar", &base()),
        ("c/layer.tar", &layer(&[("app", "one")])),
        ("b/layer.tar -> ../c/layer.tar", b""),
        (&config, &made.config),
        ("manifest.json", list.as_bytes()),
    ])
}

fn index(manifest: &[u8], more: &str) -> String {
    let digest = Digest::of(manifest);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{kind}","digest":"{digest}","size":{}{more}}}]}}"#,
        manifest.len()
    )
}

fn layout(more: &str) -> Vec<u8> {
    let made = one();
    archive(&[
        ("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#),
        (&blob(&made.layers[0]), &made.layers[0]),
        (&blob(&made.layers[1]), &made.layers[1]),
        (&format!("./{}", blob(&made.config)), &made.config),
        (&blob(&made.manifest), &made.manifest),
        ("index.json", index(&made.manifest, more).as_bytes()),
    ])
}

fn options() -> ImportOptions {
    let name = None;
    ImportOptions { name, platform: platform(), limits: Limits::default(), wait: NO_WAIT, pinned: false }
}

fn file(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("archive");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn import(store: &ImageStore, bytes: &[u8], options: &ImportOptions) -> Result<Vec<Image>, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    store.import(File::open(file(&folder, bytes)).unwrap(), options)
}

#[test]
fn archives_of_all_forms_give_the_same_image() {
    let whole = r#","annotations":{"io.containerd.image.name":"docker.io/library/app:1"}"#;
    let short = r#","annotations":{"org.opencontainers.image.ref.name":"app:1"}"#;
    let forms =
        [docker(r#"["app:1"]"#), layout(whole), layout(short), gzip(&docker(r#"["app:1"]"#)), gzip(&layout(whole))];
    for (n, bytes) in forms.iter().enumerate() {
        let (_folder, store) = store();
        let images = import(&store, bytes, &options()).unwrap();
        assert_eq!(images.len(), 1, "form {n}");
        assert_eq!(
            (images[0].id, images[0].repo_tags.as_slice()),
            (one().id(), &["docker.io/library/app:1".to_owned()][..])
        );
        assert_eq!(seen(&store, &images[0], "app").as_deref(), Some("one"));
        assert_eq!(seen(&store, &images[0], "etc/os").as_deref(), Some("base"));
        let digests = images[0].repo_digests.len();
        assert_eq!(digests, usize::from([1, 2, 4].contains(&n)), "only a layout knows the manifest's digest");
        assert_eq!(names(&store.root().join("ingest")), Vec::<String>::new());
        import(&store, bytes, &options()).unwrap();
    }
}

#[test]
fn a_name_may_be_given() {
    let (_folder, store) = store();
    let options = ImportOptions { name: Some("mine".to_owned()), pinned: true, ..options() };
    let images =
        import(&store, &layout(r#","annotations":{"org.opencontainers.image.ref.name":"1"}"#), &options).unwrap();
    assert_eq!(
        (images[0].repo_tags.as_slice(), images[0].pinned),
        (&["docker.io/library/mine:latest".to_owned()][..], true)
    );
    let none = import(&store, &docker("null"), &self::options()).unwrap();
    assert_eq!(none[0].repo_tags, ["docker.io/library/mine:latest"], "an image without names keeps those it has");
    let bad = ImportOptions { name: Some("A B".to_owned()), ..self::options() };
    assert!(matches!(import(&store, &docker("null"), &bad), Err(StoreError::Name(..))));
}

#[test]
fn an_archive_may_come_through_a_pipe() {
    let (_folder, store) = store();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = docker(r#"["app:1"]"#);
    let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    let images = store.import(File::from(std::os::fd::OwnedFd::from(reader)), &options()).unwrap();
    writing.join().unwrap();
    assert_eq!(seen(&store, &images[0], "app").as_deref(), Some("one"));
}

#[test]
fn of_several_machines_the_right_one_is_taken() {
    let (_folder, store) = store();
    let made = one();
    let inner = index(&made.manifest, r#","platform":{"os":"linux","architecture":"amd64"}"#);
    let kind = "application/vnd.oci.image.index.v1+json";
    let outer = index(inner.as_bytes(), "").replace("application/vnd.oci.image.manifest.v1+json", kind);
    let mut files: Vec<(String, Vec<u8>)> =
        [&made.config, &made.manifest, &made.layers[0], &made.layers[1]].map(|b| (blob(b), b.clone())).into();
    files.push((blob(inner.as_bytes()), inner.clone().into_bytes()));
    files.push(("index.json".to_owned(), outer.into_bytes()));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
    assert_eq!(import(&store, &archive(&files), &options()).unwrap()[0].id, made.id());
    let other = ImportOptions { platform: "linux/arm64".parse().unwrap(), ..options() };
    let error = import(&store, &archive(&files), &other).unwrap_err().to_string();
    assert_eq!(error, "no image for linux/arm64; there are: linux/amd64");
}

#[test]
fn archives_that_are_wrong_are_refused_and_leave_nothing() {
    let made = one();
    let good = layout("");
    let loops = archive(&[("manifest.json", br#"[{"Config":"a","Layers":[]}]"#), ("a -> b", b""), ("b -> a", b"")]);
    let without = |name: &str| archive(&[("index.json", index(&made.manifest, "").as_bytes()), (name, &made.manifest)]);
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (b"not a tar at all".repeat(100), "cannot read the archive"),
        (Vec::new(), "neither an index.json"),
        (archive(&[("x", b"x")]), "neither an index.json"),
        (archive(&[("manifest.json", b"[{]")]), "manifest.json"),
        (archive(&[("index.json", b"{}")]), "index.json"),
        (archive(&[("index.json", br#"{"schemaVersion":2,"manifests":[]}"#)]), "no image"),
        (archive(&[("manifest.json", br#"[{"Config":"gone.json","Layers":[]}]"#)]), "lacks its file gone.json"),
        (archive(&[("manifest.json", br#"[{"Config":"../../etc/passwd","Layers":[]}]"#)]), "lacks its file"),
        (loops, "round in a circle"),
        (without("other"), "lacks its file blobs/sha256/"),
        (without(&blob(&made.manifest)), "lacks its file blobs/sha256/"),
        (
            archive(&[("index.json", index(&made.manifest, "").as_bytes()), (&blob(&made.manifest), b"{}")]),
            "content has the digest",
        ),
        (good[..good.len() / 2].to_vec(), "cut off"),
        (gzip(&good)[..500].to_vec(), "cannot read the archive"),
    ];
    for (bytes, reason) in rows {
        let (_folder, store) = store();
        let error = import(&store, &bytes, &options()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}, not {reason}");
        assert_eq!(names(&store.root().join("layers")), Vec::<String>::new());
        assert!(store.list().unwrap().is_empty());
    }
    let (_folder, store) = store();
    let mut flipped = good;
    let at = flipped.windows(2).position(|w| w == [0x1f, 0x8b]).unwrap();
    flipped[at + 30] ^= 1;
    assert!(matches!(import(&store, &flipped, &options()), Err(StoreError::Digest { .. })));
}
