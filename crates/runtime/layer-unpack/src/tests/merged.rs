//! Copies of layers against what overlayfs shows of the same.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::*;
use crate::copy_merged;

const SEEDS: u64 = 40;
/// So few that layers have them in common.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Of whom and how, by chance: what is copied of an entry has to be that of the right layer.
fn odd(rng: &mut fastrand::Rng, kind: EntryType, path: &str, link: &str, data: &[u8]) -> Header {
    let mut header = header(kind, path, link, data.len() as u64);
    header.set_mode([0o755, 0o4711, 0o1777, 0o2640][rng.usize(..4)]);
    header.set_uid(rng.u64(..3));
    header.set_gid(rng.u64(..3));
    header.set_mtime(1_000_000_000 + rng.u64(..1000));
    header.set_cksum();
    header
}

/// `system.posix_acl_default` as the kernel has it: user 1000 may do all, the group nothing.
fn default_acl() -> Vec<u8> {
    let entry = |tag: u16, may: u16, id: u32| [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat();
    let nobody = u32::MAX;
    let entries = [(1, 7, nobody), (2, 7, 1000), (4, 0, nobody), (0x10, 7, nobody), (0x20, 0, nobody)];
    let entries: Vec<u8> = entries.into_iter().flat_map(|(tag, may, id)| entry(tag, may, id)).collect();
    [&2_u32.to_le_bytes()[..], &entries].concat()
}

const ATTRIBUTES: [&str; 3] = ["user.k", "system.posix_acl_default", "system.posix_acl_access"];

/// A layer of what layers have: files, folders, links of both kinds, whiteouts of names and of all that a folder has.
fn random_layer(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut tar = Tar::new();
    let mut files: Vec<String> = Vec::new();
    for number in 0..rng.usize(3..12) {
        let depth = rng.usize(1..4);
        let path: Vec<&str> = (0..depth).map(|_| NAMES[rng.usize(..NAMES.len())]).collect();
        let (path, last) = (path.join("/"), path[depth - 1]);
        let hidden = format!("{}.wh.{last}", path.strip_suffix(last).unwrap_or_default());
        tar = match rng.u8(..8) {
            0 => tar
                .pax(&[("SCHILY.xattr.system.posix_acl_default", &default_acl())])
                .raw(&odd(rng, EntryType::Directory, &path, "", b""), b""),
            1 => tar.raw(&odd(rng, EntryType::Directory, &path, "", b""), b""),
            2 => tar.file(&hidden, b""),
            // Of the root overlayfs does not take it.
            3 if depth > 1 => tar.file(&format!("{}.wh..wh..opq", path.strip_suffix(last).unwrap_or_default()), b""),
            4 => tar.raw(&odd(rng, EntryType::Symlink, &path, "/a/b", b""), b""),
            5 if !files.is_empty() => tar.hard_link(&path, &files[rng.usize(..files.len())]),
            6 => tar.raw(&odd(rng, EntryType::Fifo, &path, "", b""), b""),
            _ => {
                files.push(path.clone());
                let content = format!("{number}");
                let header = odd(rng, EntryType::Regular, &path, "", content.as_bytes());
                tar.pax(&[("SCHILY.xattr.user.k", &[b'x'; 3])]).raw(&header, content.as_bytes())
            }
        };
    }
    tar.end()
}

/// All that is below a folder: by its path its properties, content, attribute, and the first path with the same inode.
fn shown(root: &Path) -> BTreeMap<PathBuf, String> {
    let (mut all, mut first) = (BTreeMap::new(), HashMap::new());
    let mut left = vec![root.to_owned()];
    while let Some(folder) = left.pop() {
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            // In a folder of one layer alone overlayfs lists whiteouts, too, of which there is nothing.
            let Ok(meta) = path.symlink_metadata() else { continue };
            let inside = path.strip_prefix(root).unwrap().to_owned();
            let content = match () {
                () if meta.is_file() => std::fs::read(&path).unwrap(),
                () if meta.is_symlink() => std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
                () => Vec::new(),
            };
            let same = first.entry((meta.dev(), meta.ino())).or_insert_with(|| inside.clone()).clone();
            let same = if meta.is_dir() { PathBuf::new() } else { same };
            let facts = (meta.mode(), meta.uid(), meta.gid(), meta.rdev(), meta.mtime());
            let attributes = ATTRIBUTES.map(|name| if meta.is_symlink() { None } else { xattr(&path, name) });
            all.insert(inside, format!("{facts:?} {content:?} {attributes:?} {same:?}"));
            if meta.is_dir() {
                left.push(path);
            }
        }
    }
    all
}

#[test]
fn a_copy_is_what_overlayfs_shows() {
    for seed in 0..SEEDS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let place = Place::new();
        let mut lowers = Vec::new();
        for number in 0..rng.usize(2..5) {
            // A hard link to what is no file any more is refused.
            let made = (0..20).any(|attempt| {
                let into = place.folder.path().join(format!("{number}-{attempt}"));
                std::fs::create_dir(&into).unwrap();
                let archive = random_layer(&mut rng);
                let unpacked = unpack(&*archive, &into, &sha256(&archive), &Limits::default(), &AtomicBool::new(false));
                unpacked.is_ok_and(|unpacked| {
                    crate::settle(&into, &unpacked.implied, &lowers).unwrap();
                    lowers.insert(0, into);
                    true
                })
            });
            assert!(made, "seed {seed}: no layer of twenty");
        }
        let (copy, mounted) = (place.folder.path().join("copy"), place.folder.path().join("mounted"));
        [&copy, &mounted].iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        copy_merged(&lowers, &copy).unwrap();
        let names: Vec<_> = lowers.iter().map(|l| l.to_str().unwrap()).collect();
        let options = std::ffi::CString::new(format!("lowerdir={}", names.join(":"))).unwrap();
        mount("overlay", &mounted, "overlay", MountFlags::RDONLY, options.as_c_str()).unwrap();
        let theirs = std::panic::catch_unwind(|| shown(&mounted));
        unmount(&mounted, UnmountFlags::empty()).unwrap();
        assert_eq!(shown(&copy), theirs.unwrap(), "seed {seed}");
    }
}

#[test]
fn special_bits_and_capabilities_are_kept_and_a_whole_layer_is_hidden() {
    let capability = [&[1, 0, 0, 2][..], &[0, 4, 0, 0], &[0; 12]].concat();
    let mut header = header(EntryType::Regular, "su", "", 1);
    header.set_mode(0o4755);
    header.set_uid(7);
    header.set_cksum();
    let layer = Tar::new().pax(&[("SCHILY.xattr.security.capability", &capability)]).raw(&header, b"x");
    let (top, bottom, into) = (Place::new(), Place::new(), Place::new());
    top.unpack(&layer.dir("d").file("d/.wh..wh..opq", b"").end()).unwrap();
    bottom.unpack(&Tar::new().file("d/old", b"old").file("su", b"old").end()).unwrap();
    let before = (top.surroundings(), bottom.surroundings());
    copy_merged(&[top.layer(), bottom.layer()], &into.layer()).unwrap();
    let meta = into.at("su").metadata().unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), read(&into.at("su"))), (0o4755, 7, "x".to_owned()));
    assert_eq!(xattr(&into.at("su"), "security.capability").as_deref(), Some(&*capability));
    assert_eq!(std::fs::read_dir(into.at("d")).unwrap().count(), 0);
    assert!(!is_opaque(&into.at("d")), "the copy is a layer of nothing");
    assert_eq!((top.surroundings(), bottom.surroundings()), before);
    let error = copy_merged(&[top.layer()], &into.layer()).unwrap_err();
    assert!(error.to_string().starts_with("cannot copy \""), "{error}: what is there is not overwritten");
}
