//! What a host's files promise, held by the machine's own and by those in memory; then what only those in memory can do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actor::{Class, testing};
use fakes::files::{Errno, FileTrouble};
use fakes::{LinuxFs, MemFs};
use ports::host::{DirEntry, FileKind, HostFs, Links, MemoryMount, Mounter, TMPFS_MAGIC};
use ports::log::Compress;

/// Runs a test on both, in an empty folder.
fn on_both(test: impl Fn(&dyn HostFs, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    test(&LinuxFs, dir.path());
    test(&MemFs::with_dirs(["/some/where"]), Path::new("/some/where"));
}

fn mode(fs: &dyn HostFs, path: PathBuf) -> u32 {
    fs.stat_link(&path).unwrap().unwrap().mode
}

fn kind(fs: &dyn HostFs, path: PathBuf) -> Option<FileKind> {
    fs.stat(&path).unwrap().map(|s| s.kind)
}

#[test]
fn directories_get_exactly_the_mode_and_old_ones_keep_theirs() {
    on_both(|fs, p| {
        fs.create_dir(&p.join("a/b"), 0o777).unwrap();
        assert_eq!((mode(fs, p.join("a")), mode(fs, p.join("a/b"))), (0o777, 0o777));
        fs.create_dir(&p.join("a/b"), 0o700).unwrap();
        assert_eq!(mode(fs, p.join("a/b")), 0o777);
        fs.create_file(&p.join("file"), 0o600).unwrap();
        assert!(fs.create_dir(&p.join("file"), 0o700).is_err());
        assert!(fs.create_dir(&p.join("file/below"), 0o700).is_err());
        fs.symlink(Path::new("a"), &p.join("l")).unwrap();
        fs.create_dir(&p.join("l/c"), 0o711).unwrap();
        assert_eq!(mode(fs, p.join("a/c")), 0o711);
    });
}

#[test]
fn files_are_replaced_whole_and_read_up_to_a_bound() {
    on_both(|fs, p| {
        let file = p.join("hosts");
        fs.write_file(&file, b"one", 0o644).unwrap();
        let first = fs.stat(&file).unwrap().unwrap();
        fs.write_file(&file, b"two!", 0o666).unwrap();
        let second = fs.stat(&file).unwrap().unwrap();
        assert_ne!(first.ino, second.ino);
        assert_eq!((second.mode, second.size, second.links, second.kind), (0o666, 4, 1, FileKind::File));
        assert_eq!(fs.read_file(&file, 4).unwrap(), b"two!");
        assert_eq!(fs.read_file(&file, 3).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(fs.read_file(p, 10).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(fs.read_file(&p.join("none"), 10).unwrap_err().is_not_found());
        assert!(fs.write_file(&p.join("no/dir"), b"x", 0o644).unwrap_err().is_not_found());
        assert_eq!(fs.list_dir(p).unwrap(), [DirEntry { name: "hosts".into(), is_dir: false }]);
        assert_eq!(fs.create_file(&file, 0o600).unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs.set_mode(&file, 0o4755).unwrap();
        assert_eq!(mode(fs, file.clone()), 0o4755);
        fs.write_file_synced(&p.join("sure"), b"x", 0o600).unwrap();
        fs.sync_dir(p).unwrap();
        assert_eq!((fs.read_file(&p.join("sure"), 1).unwrap(), mode(fs, p.join("sure"))), (b"x".to_vec(), 0o600));
        assert!(fs.sync_dir(&p.join("none")).unwrap_err().is_not_found());
        assert!(fs.set_mode(&p.join("none"), 0o600).unwrap_err().is_not_found());
        let end = fs.read_end(&file, 2, Links::Refuse).unwrap();
        assert_eq!((end.bytes.as_slice(), end.cut), (b"o!".as_slice(), true));
        let end = fs.read_end(&file, 4, Links::Refuse).unwrap();
        assert_eq!((end.bytes.as_slice(), end.cut), (b"two!".as_slice(), false));
        assert_eq!(fs.read_end(p, 4, Links::Follow).unwrap_err().kind(), ErrorKind::InvalidInput);
        // A link is replaced itself, not what it points at.
        fs.symlink(Path::new("hosts"), &p.join("l")).unwrap();
        fs.write_file(&p.join("l"), b"x", 0o644).unwrap();
        assert_eq!(fs.read_file(&file, 9).unwrap(), b"two!");
    });
}

#[test]
fn links_lead_on_and_are_told_from_what_they_point_at() {
    on_both(|fs, p| {
        fs.create_dir(&p.join("d"), 0o755).unwrap();
        fs.write_file(&p.join("d/f"), b"x", 0o644).unwrap();
        for (target, link) in [("d", "l"), ("nowhere", "dangling"), ("b", "a"), ("a", "b"), ("../d/f", "d/up")] {
            fs.symlink(Path::new(target), &p.join(link)).unwrap();
        }
        fs.symlink(&p.join("l"), &p.join("absolute")).unwrap();
        assert_eq!(kind(fs, p.join("l")), Some(FileKind::Dir));
        assert_eq!(fs.stat_link(&p.join("l")).unwrap().unwrap().kind, FileKind::Symlink);
        assert_eq!((kind(fs, p.join("dangling")), kind(fs, p.join("d/f/below"))), (None, None));
        assert_eq!(fs.read_file(&p.join("absolute/up"), 1).unwrap(), b"x");
        assert_eq!(fs.read_file(&p.join("l/../d/./f"), 1).unwrap(), b"x");
        assert!(fs.read_file(&p.join("a"), 1).is_err() && fs.stat(&p.join("a")).is_err(), "a ring");
        assert_eq!(fs.read_end(&p.join("absolute/up"), 1, Links::Follow).unwrap().bytes, b"x");
        let refused = fs.read_end(&p.join("l/up"), 1, Links::Refuse).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        let refused = fs.set_mode(&p.join("l"), 0o600).unwrap_err();
        assert_eq!((refused.op, refused.kind()), ("chmod", ErrorKind::Unsupported));
        assert_eq!(mode(fs, p.join("d")), 0o755, "what it points at keeps its mode");
        let refused = fs.read_end(&p.join("dangling"), 1, Links::Refuse).unwrap_err();
        assert_eq!((refused.op, refused.kind()), ("open", ErrorKind::InvalidInput));
        assert!(fs.read_end(&p.join("dangling"), 1, Links::Follow).unwrap_err().is_not_found());
        assert_eq!(fs.read_link(&p.join("l")).unwrap(), Path::new("d"));
        assert_eq!(fs.read_link(&p.join("d")).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(fs.symlink(Path::new("d"), &p.join("l")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(fs.list_dir(&p.join("l")).is_ok());
        assert!(fs.list_dir(&p.join("d/f")).is_err());
    });
}

#[test]
fn paths_are_walked_part_by_part() {
    on_both(|fs, p| {
        fs.create_dir(&p.join("d/e"), 0o755).unwrap();
        fs.write_file(&p.join("d/e/f"), b"x", 0o644).unwrap();
        for (target, link) in [(".", "here"), ("..", "d/up"), ("d/e", "in"), ("d//./e/", "odd")] {
            fs.symlink(Path::new(target), &p.join(link)).unwrap();
        }
        fs.symlink(&p.join("d"), &p.join("absolute")).unwrap();
        for good in [
            "d//e/f",
            "./d/./e/./f",
            "d/e/../e/f",
            "d/../d/e/f",
            "here/d/e/f",
            "d/up/d/e/f",
            "in/f",
            "in/../e/f",
            "odd/f",
            "absolute/e/f",
            "absolute/up/in/f",
        ] {
            assert_eq!(fs.read_file(&p.join(good), 1).unwrap(), b"x", "{good}");
        }
        for dir in ["d/e/", "d/e/.", "d/e/..", "in/", "in/.", "here", "here/", "d/up"] {
            assert_eq!(kind(fs, p.join(dir)), Some(FileKind::Dir), "{dir}");
        }
        for gone in ["d/x/f", "d/e/f/g", "d/e/f/../f", "in/x"] {
            assert_eq!(kind(fs, p.join(gone)), None, "{gone}");
        }
        let above: std::path::PathBuf = std::iter::repeat_n("..", 30).collect();
        let way = p.join(above).join(p.strip_prefix("/").unwrap()).join("d/e/f");
        assert_eq!(fs.read_file(&way, 1).unwrap(), b"x", "above the root is the root");
        fs.symlink(Path::new("d/e/f"), &p.join("1")).unwrap();
        for n in 2..=41 {
            fs.symlink(Path::new(&format!("{}", n - 1)), &p.join(n.to_string())).unwrap();
        }
        assert_eq!(fs.read_file(&p.join("40"), 1).unwrap(), b"x");
        assert!(fs.read_file(&p.join("41"), 1).is_err(), "too many links");
        assert!(fs.symlink(Path::new(""), &p.join("empty")).unwrap_err().is_not_found());
    });
}

#[test]
fn a_socket_is_not_opened() {
    let check = |fs: &dyn HostFs, socket: &Path| {
        for refused in [fs.read_file(socket, 9).map(drop), fs.read_end(socket, 9, Links::Refuse).map(drop)] {
            let e = refused.unwrap_err();
            assert_eq!((e.op, e.source.raw_os_error()), ("open", Some(6)));
        }
        fs.set_mode(socket, 0o600).unwrap();
        assert_eq!(mode(fs, socket.to_owned()), 0o600);
    };
    let dir = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
    check(&LinuxFs, &dir.path().join("s"));
    let fs = MemFs::with_dirs(["/d"]);
    fs.special(Path::new("/d/s"), FileKind::Socket);
    check(&fs, Path::new("/d/s"));
}

/// What a rotated log goes through. The content is checked where it is really compressed.
#[test]
fn compression_keeps_the_mode_and_follows_no_link() {
    let check = |fs: &dyn HostFs, zip: &dyn Compress, p: &Path| {
        let (from, to) = (p.join("0.log.1"), p.join("0.log.1.gz"));
        fs.write_file(&from, b"text", 0o640).unwrap();
        fs.write_file(&p.join("secret"), b"of the host", 0o600).unwrap();
        fs.symlink(&p.join("secret"), &to).unwrap();
        zip.compress(&from, &to).unwrap();
        let made = fs.stat_link(&to).unwrap().unwrap();
        assert_eq!((made.kind, made.mode), (FileKind::File, 0o640));
        assert_eq!(fs.read_file(&p.join("secret"), 99).unwrap(), b"of the host", "no link is written through");
        fs.symlink(&p.join("secret"), &p.join("0.log.2")).unwrap();
        let e = zip.compress(&p.join("0.log.2"), &to).unwrap_err();
        assert_eq!((e.op, e.kind()), ("open", ErrorKind::InvalidInput), "nor read through");
        assert!(zip.compress(&p.join("none"), &to).unwrap_err().is_not_found());
    };
    let dir = tempfile::tempdir().unwrap();
    check(&LinuxFs, &log_files::Gzip::new(|path| host_linux::open_regular(path, Links::Refuse)), dir.path());
    let fs = MemFs::with_dirs(["/some/where"]);
    check(&fs, &fs, Path::new("/some/where"));
}

#[test]
fn what_is_absent_is_removed_and_what_is_full_is_not() {
    on_both(|fs, p| {
        fs.remove_file(&p.join("none")).unwrap();
        fs.remove_empty_dir(&p.join("none")).unwrap();
        fs.remove_tree(&p.join("none")).unwrap();
        fs.create_dir(&p.join("keep"), 0o755).unwrap();
        fs.create_file(&p.join("keep/precious"), 0o644).unwrap();
        assert!(fs.remove_file(&p.join("keep")).is_err());
        assert!(fs.remove_empty_dir(&p.join("keep")).is_err());
        fs.create_dir(&p.join("gone/a/b"), 0o755).unwrap();
        fs.create_file(&p.join("gone/a/f"), 0o644).unwrap();
        fs.symlink(&p.join("keep"), &p.join("gone/a/link")).unwrap();
        fs.remove_tree(&p.join("gone")).unwrap();
        assert_eq!(fs.stat_link(&p.join("gone")).unwrap(), None);
        fs.symlink(&p.join("keep"), &p.join("link")).unwrap();
        fs.remove_tree(&p.join("link")).unwrap();
        assert_eq!(fs.stat_link(&p.join("link")).unwrap(), None);
        assert!(fs.stat(&p.join("keep/precious")).unwrap().is_some());
        fs.remove_tree(&p.join("keep/precious")).unwrap();
        fs.remove_empty_dir(&p.join("keep")).unwrap();
        assert_eq!(fs.list_dir(p).unwrap(), []);
    });
}

#[test]
fn renames_replace_what_may_be_replaced() {
    on_both(|fs, p| {
        fs.write_file(&p.join("a"), b"a", 0o644).unwrap();
        fs.write_file(&p.join("b"), b"b", 0o644).unwrap();
        fs.rename(&p.join("a"), &p.join("b")).unwrap();
        assert_eq!(fs.read_file(&p.join("b"), 1).unwrap(), b"a");
        assert!(fs.rename(&p.join("a"), &p.join("c")).unwrap_err().is_not_found());
        fs.create_dir(&p.join("d"), 0o755).unwrap();
        fs.create_dir(&p.join("full/x"), 0o755).unwrap();
        assert!(fs.rename(&p.join("b"), &p.join("d")).is_err());
        assert!(fs.rename(&p.join("d"), &p.join("b")).is_err());
        assert!(fs.rename(&p.join("d"), &p.join("full")).is_err());
        fs.rename(&p.join("full"), &p.join("d")).unwrap();
        assert!(fs.stat(&p.join("d/x")).unwrap().is_some());
        fs.symlink(Path::new("d"), &p.join("l")).unwrap();
        fs.rename(&p.join("b"), &p.join("l")).unwrap();
        assert_eq!(fs.read_file(&p.join("l"), 1).unwrap(), b"a");
    });
}

#[test]
fn nothing_is_made_outside_of_the_base() {
    on_both(|fs, p| {
        let base = p.join("vol");
        fs.create_dir(&base.join("real"), 0o755).unwrap();
        fs.create_dir(&p.join("outside"), 0o755).unwrap();
        fs.symlink(Path::new("real"), &base.join("sibling")).unwrap();
        fs.symlink(&p.join("outside"), &base.join("absolute")).unwrap();
        fs.symlink(Path::new("../outside"), &base.join("up")).unwrap();
        fs.create_file(&base.join("file"), 0o644).unwrap();
        for (relative, ok) in [
            ("new/deep/dir", true),
            ("real", true),
            ("sibling/x", true),
            (".", true),
            ("absolute/x", false),
            ("up/x", false),
            ("absolute", false),
            ("../outside/x", false),
            ("real/../../outside", false),
            ("/etc", false),
            ("file", false),
            ("file/x", false),
        ] {
            assert_eq!(fs.create_dir_within(&base, Path::new(relative), 0o2770).is_ok(), ok, "{relative}");
        }
        assert_eq!(mode(fs, base.join("new/deep/dir")), 0o2770);
        assert_eq!(kind(fs, base.join("real/x")), Some(FileKind::Dir));
        assert_eq!(fs.list_dir(&p.join("outside")).unwrap(), []);
    });
}

#[test]
fn the_size_of_what_holds_a_path_is_told() {
    on_both(|fs, p| {
        let s = fs.stat_fs(p).unwrap();
        assert!(s.total_bytes >= s.available_bytes && s.available_bytes > 0);
        assert!(fs.stat_fs(&p.join("none")).unwrap_err().is_not_found());
    });
}

#[test]
fn a_mount_point_stays_with_all_that_is_in_it() {
    let fs = MemFs::with_dirs(["/pod/volume/data", "/pod/other"]);
    fs.mount(Path::new("/pod/volume"));
    assert_eq!(fs.remove_tree(Path::new("/pod")).unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert!(fs.stat(Path::new("/pod/volume/data")).unwrap().is_some());
    assert_eq!(fs.stat(Path::new("/pod/other")).unwrap(), None, "the rest goes");
    fs.create_file(Path::new("/f"), 0o644).unwrap();
    let moved = fs.rename(Path::new("/f"), Path::new("/pod/volume/f"));
    assert_eq!(moved.unwrap_err().kind(), ErrorKind::CrossesDevices);
}

#[test]
fn memory_that_is_mounted_goes_with_what_is_in_it_and_a_bind_does_not() {
    let fs = MemFs::with_dirs(["/pod/volume/data", "/pod/memory"]);
    let [volume, memory, bound] = ["/pod/volume", "/pod/memory", "/pod/bound"].map(Path::new);
    let magic = |path: &Path| fs.stat_fs(path).unwrap().magic;
    fs.mount_memory(memory, &MemoryMount::Tmpfs { size_bytes: Some(4096) }).unwrap();
    fs.write_file(&memory.join("f"), b"x", 0o644).unwrap();
    assert_eq!((magic(&memory.join("f")), magic(volume)), (TMPFS_MAGIC, 0xef53));
    assert_eq!((fs.tmpfs_size(memory), fs.tmpfs_size(volume)), (Some(Some(4096)), None));
    for _ in 0..2 {
        fs.bind_within(volume, Path::new("data"), bound).unwrap();
    }
    assert!(fs.bind_within(volume, Path::new("none"), &volume.join("x")).unwrap_err().is_not_found());
    assert_eq!(fs.mounts_below(Path::new("/pod")).unwrap(), [memory, bound], "mounted once");
    assert!(fs.mounts_below(memory).unwrap().is_empty() && fs.mounts_below(Path::new("/po")).unwrap().is_empty());
    assert!(fs.is_mount_point(bound).unwrap() && !fs.is_mount_point(&memory.join("f")).unwrap());
    for point in [memory, bound, bound] {
        fs.unmount(point).unwrap();
    }
    assert_eq!((fs.stat(&memory.join("f")).unwrap(), magic(memory)), (None, 0xef53));
    fs.remove_tree(Path::new("/pod")).unwrap();
}

#[test]
fn one_operation_may_fail_and_the_others_go_on() {
    let fs = MemFs::with_dirs(["/a"]);
    fs.trouble(Path::new("/a"), FileTrouble::FailCalls("mkdir", Errno::Access));
    assert_eq!(fs.create_dir(Path::new("/a/b"), 0o755).unwrap_err().kind(), ErrorKind::PermissionDenied);
    fs.write_file(Path::new("/a/f"), b"x", 0o644).unwrap();
    fs.calm_at(Path::new("/a"));
    fs.create_dir(Path::new("/a/b"), 0o755).unwrap();
}

#[test]
fn trouble_holds_for_what_is_below_and_ends() {
    let fs = MemFs::with_dirs(["/a", "/b"]);
    fs.write_file(Path::new("/a/f"), b"old", 0o644).unwrap();
    fs.trouble(Path::new("/a"), FileTrouble::FailWrites(Errno::NoSpc));
    let full = fs.write_file(Path::new("/a/f"), b"new", 0o644).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    assert_eq!(fs.compress(Path::new("/a/f"), Path::new("/a/g")).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(fs.read_file(Path::new("/a/f"), 9).unwrap(), b"old");
    fs.trouble(Path::new("/a"), FileTrouble::Fail(Errno::Io));
    assert_eq!(fs.read_file(Path::new("/a/f"), 9).unwrap_err().source.raw_os_error(), Some(5));
    fs.write_file(Path::new("/b/f"), b"fine", 0o644).unwrap();
    fs.calm();
    fs.compress(Path::new("/a/f"), Path::new("/a/g")).unwrap();
    assert_eq!(fs.read_file(Path::new("/a/g"), 9).unwrap(), b"old");
}

#[test]
fn links_and_sockets_are_told_from_files() {
    let fs = MemFs::with_dirs(["/d"]);
    fs.special(Path::new("/d/s"), FileKind::Fifo);
    assert_eq!(kind(&fs, "/d/s".into()), Some(FileKind::Fifo));
    assert_eq!(fs.read_file(Path::new("/d/s"), 9).unwrap_err().kind(), ErrorKind::InvalidInput);
    fs.append(Path::new("/d/f"), b"a").unwrap();
    fs.hard_link(Path::new("/d/f"), Path::new("/d/g"));
    fs.append(Path::new("/d/g"), b"b").unwrap();
    assert_eq!(fs.read_file(Path::new("/d/f"), 9).unwrap(), b"ab");
    fs.remove_file(Path::new("/d/f")).unwrap();
    assert_eq!(fs.stat(Path::new("/d/g")).unwrap().unwrap().links, 1);
}

#[test]
fn a_disk_that_hangs_stops_who_waits_for_it_and_nobody_else() {
    testing::run(1, async |kernel| {
        let fs = MemFs::with_dirs(["/nfs", "/local"]);
        fs.trouble(Path::new("/nfs"), FileTrouble::Hang);
        let look = async |path: &'static str| {
            let (fs, effects) = (fs.clone(), kernel.effects("looker"));
            let call = effects.blocking(Class::UserPaths, move || fs.stat(Path::new(path)).unwrap().is_some());
            tokio::time::timeout(Duration::from_secs(3600), call).await.ok()
        };
        assert_eq!(look("/nfs/x").await, None);
        assert_eq!(look("/local").await, Some(true));
        fs.calm();
        assert_eq!(look("/nfs").await, Some(true));
    });
}

#[test]
fn a_power_failure_takes_what_was_not_on_the_disk_yet() {
    testing::run(1, async |_| {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..40 {
            let fs = MemFs::with_dirs(["/d"]);
            fs.write_file(Path::new("/d/old"), b"0123456789", 0o644).unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
            fs.write_file(Path::new("/d/new"), b"0123456789", 0o644).unwrap();
            fs.write_file_synced(Path::new("/d/sure"), b"0123456789", 0o644).unwrap();
            fs.lose_power(seed);
            assert_eq!(fs.read_file(Path::new("/d/sure"), 10).unwrap(), b"0123456789");
            assert_eq!(fs.read_file(Path::new("/d/old"), 10).unwrap(), b"0123456789");
            lengths.insert(fs.read_file(Path::new("/d/new"), 10).unwrap().len());
        }
        assert!(lengths.contains(&0) && lengths.contains(&10) && lengths.len() > 4, "{lengths:?}");
    });
}
