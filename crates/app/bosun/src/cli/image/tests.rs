use std::time::Duration;

use clap::Parser;
use image_store::Digest;
use registry::{LayerProgress, Phase};

use super::list::{Line, rows};
use super::*;

#[derive(Parser)]
struct Words {
    #[command(subcommand)]
    command: ImageCommand,
}

fn parsed(words: &[&str]) -> Result<ImageCommand, String> {
    let words = ["image"].iter().chain(words);
    Words::try_parse_from(words).map(|w| w.command).map_err(|e| e.to_string())
}

#[test]
fn what_is_wrong_on_the_command_line_is_told() {
    for (words, want) in [
        (&["pull"][..], "<IMAGE>"),
        (&["pull", "a", "--platform", "windows/amd64"], "only images for linux run here"),
        (&["pull", "a", "--creds", "a:b", "--creds-stdin"], "cannot be used with"),
        (&["rm"], "<IMAGES>"),
        (&["import"], "<FILE>"),
        (&["ls", "-o", "xml"], "possible values: wide, json, yaml"),
    ] {
        let error = parsed(words).unwrap_err();
        assert!(error.contains(want), "{error}, not {want}");
    }
    for fine in [&["pull", "a", "--pin", "-q"][..], &["list"], &["rm", "-f", "a", "b"], &["import", "-", "--name", "x"]]
    {
        parsed(fine).unwrap();
    }
}

fn image() -> Line {
    let digest = |repository: &str| format!("{repository}@{}", Digest::of(b"manifest"));
    Line {
        id: Digest::of(b"config").to_string(),
        repo_tags: vec!["docker.io/library/app:1".to_owned(), "r.example:5000/app:2".to_owned()],
        repo_digests: vec![digest("docker.io/library/app")],
        platform: "linux/amd64".to_owned(),
        size_bytes: 12 << 20,
        layers: 3,
        pinned: false,
        used_by: vec!["c1".to_owned(), "c2".to_owned()],
        pulled_at_ns: 0,
    }
}

#[test]
fn each_name_of_an_image_has_its_row() {
    let narrow = rows(&image(), 3_600_000_000_000, false);
    let id = &Digest::of(b"config").hex()[..13];
    assert_eq!(narrow[0], ["docker.io/library/app", "1", id, "12.0Mi", "60m"]);
    assert_eq!(narrow[1][..2], ["r.example:5000/app", "2"]);
    let wide = rows(&image(), 0, true);
    assert_eq!(wide[0][5..9], ["3", "linux/amd64", "no", "c1,c2"]);
    assert_eq!((wide[0][9].as_str(), wide[1][9].as_str()), (Digest::of(b"manifest").to_string().as_str(), "<none>"));
    let unnamed = rows(&Line { repo_tags: Vec::new(), ..image() }, 0, false);
    assert_eq!(unnamed[0][..2], ["docker.io/library/app", "<none>"]);
    let nothing = rows(&Line { repo_tags: Vec::new(), repo_digests: Vec::new(), ..image() }, 0, false);
    assert_eq!(nothing[0][..2], ["<none>", "<none>"]);
}

#[test]
fn how_far_a_pull_is_stands_in_one_line() {
    let layer = |have, phase| LayerProgress { digest: Digest::of(b"x"), size: 10 << 20, have, phase };
    let seconds = Duration::from_secs;
    let rows: [(&[LayerProgress], &str); 4] = [
        (&[], "asking the registry, 2 s"),
        (
            &[layer(10 << 20, Phase::Done), layer(10 << 20, Phase::Unpacking), layer(0, Phase::Waiting)],
            "1 of 3 layers, 20.0Mi of 30.0Mi, 10.0Mi/s, unpacking 1",
        ),
        (&[layer(2 << 20, Phase::Downloading)], "0 of 1 layers, 2.0Mi of 10.0Mi, 1.0Mi/s"),
        (&[layer(10 << 20, Phase::Done)], "1 of 1 layers, 10.0Mi of 10.0Mi, bringing it to disk"),
    ];
    for (layers, want) in rows {
        assert_eq!(super::pull::line(layers, seconds(2)), want);
    }
}

/// An archive as `docker save` writes it, of an image with one file.
fn archive(folder: &std::path::Path) -> PathBuf {
    let mut layer = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(5);
    header.set_mode(0o644);
    layer.append_data(&mut header, "hello", &b"hello"[..]).unwrap();
    let layer = layer.into_inner().unwrap();
    let platform = Platform::own();
    let config = format!(
        r#"{{"os":"linux","architecture":"{}","rootfs":{{"diff_ids":["{}"]}}}}"#,
        platform.architecture,
        Digest::of(&layer)
    );
    let list = r#"[{"Config":"c.json","RepoTags":["app:1"],"Layers":["l.tar"]}]"#;
    let path = folder.join("app.tar");
    let mut outer = tar::Builder::new(File::create(&path).unwrap());
    for (name, text) in [("l.tar", layer.as_slice()), ("c.json", config.as_bytes()), ("manifest.json", list.as_bytes())]
    {
        header.set_size(text.len() as u64);
        outer.append_data(&mut header, name, text).unwrap();
    }
    outer.finish().unwrap();
    path
}

#[test]
fn an_archive_is_imported_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let store = StoreArg { root: folder.path().to_owned(), wait: 5 };
    import(&store, &archive, None, Platform::own()).unwrap();
    import(&store, &archive, Some("other:2".to_owned()), Platform::own()).unwrap();
    let opened = store.open().unwrap();
    let listed = list::lines(&opened).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].repo_tags, ["docker.io/library/other:2", "docker.io/library/app:1"]);
    let image = opened.resolve("app:1").unwrap().unwrap();
    opened.lease(&image, "box").unwrap();
    let all = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let error = rm(&store, &all(&["app:1"]), false).unwrap_err().to_string();
    assert!(error.contains("in use by box"), "{error}");
    rm(&store, &all(&["app:1"]), true).unwrap();
    assert_eq!(list::lines(&opened).unwrap()[0].repo_tags, ["docker.io/library/other:2"]);
    opened.release("box").unwrap();
    let like_its_id = image.id.hex()[20..24].to_owned();
    import(&store, &archive, Some(like_its_id.clone()), Platform::own()).unwrap();
    rm(&store, &[like_its_id], false).unwrap();
    assert_eq!(list::lines(&opened).unwrap()[0].repo_tags, ["docker.io/library/other:2"], "a name, no id");
    opened.pin("other:2", true, Duration::ZERO).unwrap();
    assert!(rm(&store, &all(&["other:2"]), false).unwrap_err().to_string().contains("is pinned"));
    rm(&store, &all(&[&image.id.hex()[..12]]), true).unwrap();
    assert!(list::lines(&opened).unwrap().is_empty());
    assert!(rm(&store, &all(&["other:2"]), true).unwrap_err().to_string().contains("no image"));
    let error = ls(&StoreArg { root: store.images(), wait: 0 }, None).unwrap_err().to_string();
    assert!(error.contains("/images: is a folder of images; allowed:"), "{error}");
    ls(&StoreArg { root: folder.path().join("nowhere"), wait: 0 }, None).unwrap();
    assert!(!folder.path().join("nowhere").exists(), "looking makes nothing");
}

#[test]
fn a_store_in_use_is_told_with_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let store = StoreArg { root: folder.path().to_owned(), wait: 0 };
    let other = store.open().unwrap();
    let _writing = other.writing("pull busybox", Duration::ZERO).unwrap();
    let error = import(&store, &archive, None, Platform::own()).unwrap_err().to_string();
    assert!(error.contains(&format!("in use by process {} (pull busybox)", std::process::id())), "{error}");
}
