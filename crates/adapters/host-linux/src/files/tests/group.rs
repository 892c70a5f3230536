//! Whatever a tree holds, it is given to the group, and nothing beside it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Some group that nothing here has.
const GROUP: u32 = 4711;
const GRANT: GroupGrant = GroupGrant { gid: GROUP, dir_bits: 0o2770, file_bits: 0o660 };

fn is_root() -> bool {
    let is_root = rustix::process::getuid().is_root();
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

fn give(path: &Path) -> HostResult<bool> {
    LinuxFs.give_group(path, Links::Refuse, GRANT, &|why| {
        assert!(why.is_none(), "{why:?}");
        true
    })
}

fn has(path: &Path) -> (u32, u32) {
    let m = fs::symlink_metadata(path).unwrap();
    (m.gid(), m.mode() & 0o7777)
}

fn write(path: &Path, mode: u32) {
    fs::write(path, "of the user").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_names_are_given_and_no_link_is_followed() {
    if !is_root() {
        return;
    }
    let (_t, p) = tmp();
    let (volume, beside) = (p.join("volume"), p.join("beside"));
    LinuxFs.create_dir(&volume.join("dir"), 0o700).unwrap();
    LinuxFs.create_dir(&beside, 0o700).unwrap();
    let odd = volume.join(OsStr::from_bytes(b"\xe9"));
    LinuxFs.create_dir(&odd, 0o700).unwrap();
    write(&beside.join("file"), 0o600);
    write(&odd.join("file"), 0o600);
    write(&volume.join("dir/program"), 0o4755);
    LinuxFs.symlink(&beside, &volume.join("link")).unwrap();
    let pipe = volume.join("pipe");
    rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(give(&volume).unwrap());
    assert_eq!(has(&volume), (GROUP, 0o2777 & (0o2770 | mode(&volume))));
    assert_eq!((has(&odd), has(&odd.join("file"))), ((GROUP, 0o2770), (GROUP, 0o660)));
    assert_eq!((has(&volume.join("dir/program")), has(&pipe)), ((GROUP, 0o4775), (GROUP, 0o660)));
    assert_eq!((has(&volume.join("link")).0, has(&beside), has(&beside.join("file"))), (GROUP, (0, 0o700), (0, 0o600)));
    // What has it is not written again.
    let before = fs::metadata(odd.join("file")).unwrap();
    assert!(give(&volume).unwrap());
    let after = fs::metadata(odd.join("file")).unwrap();
    assert_eq!((before.ctime(), before.ctime_nsec()), (after.ctime(), after.ctime_nsec()));
    assert!(give(&p.join("none")).unwrap());
}

#[test]
fn the_path_itself_may_be_a_link_where_that_is_said() {
    if !is_root() {
        return;
    }
    let (_t, p) = tmp();
    LinuxFs.create_dir(&p.join("disk"), 0o700).unwrap();
    write(&p.join("disk/file"), 0o600);
    LinuxFs.symlink(&p.join("disk"), &p.join("link")).unwrap();
    assert!(give(&p.join("link")).unwrap());
    assert_eq!((has(&p.join("link")).0, has(&p.join("disk/file")).0), (GROUP, 0));
    assert!(LinuxFs.give_group(&p.join("link"), Links::Follow, GRANT, &|_| true).unwrap());
    assert_eq!((has(&p.join("disk")), has(&p.join("disk/file"))), ((GROUP, 0o2770), (GROUP, 0o660)));
}

#[test]
fn who_ends_it_leaves_the_root_as_it_was() {
    if !is_root() {
        return;
    }
    let (_t, p) = tmp();
    let left = RefCell::new(3);
    (0..5).for_each(|n| write(&p.join(format!("{n}")), 0o600));
    let ended = LinuxFs.give_group(&p, Links::Refuse, GRANT, &|_| {
        *left.borrow_mut() -= 1;
        *left.borrow() > 0
    });
    assert!(!ended.unwrap());
    let given = (0..5).filter(|n| has(&p.join(format!("{n}"))).0 == GROUP).count();
    assert_eq!((given, has(&p).0), (3, 0));
}

/// Deeper than any path may be long.
#[test]
fn a_volume_may_be_as_deep_as_its_user_likes() {
    if !is_root() {
        return;
    }
    with_few_files("files::tests::group::a_volume_may_be_as_deep_as_its_user_likes", 16, || {
        let (_t, p) = tmp();
        let lowest = chain(&p, "d", 10_000);
        assert!(give(&p).unwrap());
        let stat = rustix::fs::fstat(&lowest).unwrap();
        assert_eq!((stat.st_gid, stat.st_mode & 0o7777), (GROUP, 0o2770));
        drop(lowest);
        LinuxFs.remove_tree(&p.join("d")).unwrap();
    });
}

/// A container puts a link where a directory was, again and again.
#[test]
fn nothing_beside_a_volume_is_given_whatever_is_swapped_meanwhile() {
    if !is_root() {
        return;
    }
    let (_t, p) = tmp();
    let (volume, beside) = (p.join("volume"), p.join("beside"));
    for dir in [volume.join("a/b"), volume.join("other/b"), beside.join("b")] {
        LinuxFs.create_dir(&dir, 0o700).unwrap();
        write(&dir.join("file"), 0o600);
    }
    LinuxFs.symlink(&beside, &volume.join("link")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (from, to) in [("a", "x"), ("link", "a"), ("a", "link"), ("x", "a")] {
                    fs::rename(volume.join(from), volume.join(to)).unwrap();
                }
            }
        });
        for _ in 0..2_000 {
            fs::set_permissions(&volume, fs::Permissions::from_mode(0o700)).unwrap();
            // It may lose its way, but never goes another.
            let _ = LinuxFs.give_group(&volume, Links::Refuse, GRANT, &|_| true);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for (path, mode) in [("", 0o700), ("b", 0o700), ("b/file", 0o600)] {
        assert_eq!(has(&beside.join(path)), (0, mode), "{path}");
    }
}
