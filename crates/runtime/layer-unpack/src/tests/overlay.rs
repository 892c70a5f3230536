//! Whiteouts, and what a layer leaves to those below.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::settle;

#[test]
fn whiteouts_become_what_overlayfs_knows() {
    let archive = Tar::new()
        .file("etc/.wh.gone", b"")
        .file("cache/.wh..wh..opq", b"")
        .file("cache/new", b"new")
        .file(".wh..wh.plnk", b"")
        .file("both", b"stays")
        .file(".wh.both", b"")
        .dir("tree")
        .file("tree/own", b"own")
        .file(".wh.tree", b"")
        .file(".wh.late", b"")
        .dir("late")
        .file(".wh.late-file", b"")
        .file("late-file", b"file")
        .end();
    let place = Place::new();
    place.unpack(&archive).unwrap();
    assert!(is_whiteout(&place.at("etc/gone")));
    assert!(is_opaque(&place.at("cache")) && read(&place.at("cache/new")) == "new");
    assert_eq!(read(&place.at("both")), "stays", "a whiteout means the layers below");
    assert!(is_opaque(&place.at("tree")) && read(&place.at("tree/own")) == "own");
    assert!(is_opaque(&place.at("late")), "what was whited out and is made anew hides what was");
    assert_eq!(read(&place.at("late-file")), "file");
    let left: Vec<_> = std::fs::read_dir(place.layer()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.as_encoded_bytes().starts_with(b".wh.")), "{left:?}");
}

#[test]
fn directories_that_are_not_listed_are_as_in_the_layers_below() {
    let place = Place::new();
    let made = place.unpack(&Tar::new().file("tmp/a/x", b"x").file("new/y", b"y").file("was/z", b"z").end()).unwrap();
    assert_eq!(made.implied, [&b"new"[..], b"tmp", b"tmp/a", b"was"]);
    let lowers: Vec<PathBuf> = ["top", "bottom"].map(|l| place.folder.path().join(l)).into();
    std::fs::create_dir_all(lowers[0].join("tmp")).unwrap();
    std::fs::write(lowers[0].join("was"), "").unwrap();
    std::fs::create_dir_all(lowers[1].join("tmp/a")).unwrap();
    std::fs::create_dir_all(lowers[1].join("was")).unwrap();
    std::fs::set_permissions(lowers[0].join("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
    std::os::unix::fs::chown(lowers[1].join("tmp/a"), Some(5), Some(6)).unwrap();
    rustix::fs::setxattr(lowers[0].join("tmp"), "user.k", b"v", rustix::fs::XattrFlags::empty()).unwrap();
    for _ in 0..2 {
        settle(&place.layer(), &made.implied, &lowers).unwrap();
        let tmp = place.at("tmp").metadata().unwrap();
        assert_eq!(tmp.mode() & 0o7777, 0o1777);
        assert_eq!(tmp.mtime(), lowers[0].join("tmp").metadata().unwrap().mtime());
        assert_eq!(xattr(&place.at("tmp"), "user.k").as_deref(), Some(&b"v"[..]));
        assert_eq!(place.at("tmp/a").metadata().unwrap().uid(), 5);
        let rest = ["new", "was"].map(|p| place.at(p).metadata().unwrap().mode() & 0o7777);
        assert_eq!(rest, [0o755; 2], "a file above says that there is no such directory");
    }
}

#[test]
fn settling_never_leaves_the_layer() {
    let place = Place::new();
    std::os::unix::fs::symlink("../outside", place.at("link")).unwrap();
    let before = place.surroundings();
    let lower = place.folder.path().join("lower");
    let implied = [b"link".to_vec(), b"link/x".to_vec(), b"../outside".to_vec(), b"gone".to_vec()];
    let other = Place::new();
    std::fs::create_dir(other.at("link")).unwrap();
    let result = settle(&place.layer(), &implied, &[other.layer()]);
    assert!(result.is_err(), "a path that leads out is no path of a layer");
    assert_eq!(place.surroundings(), before);
    assert!(settle(&place.layer(), &implied[..1], &[lower]).is_err(), "a layer that is missing is told");
}
