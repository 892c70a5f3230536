//! Whatever shape a tree has, it goes: wide, deep, made to lead elsewhere.

use super::*;

#[test]
fn a_tree_goes_without_following_links() {
    let (_t, p) = tmp();
    fs::create_dir_all(p.join("keep")).unwrap();
    fs::write(p.join("keep/precious"), "x").unwrap();
    fs::create_dir_all(p.join("gone/a/b/c")).unwrap();
    fs::write(p.join("gone/a/file"), "x").unwrap();
    LinuxFs.symlink(&p.join("keep"), &p.join("gone/a/link")).unwrap();
    LinuxFs.remove_tree(&p.join("gone")).unwrap();
    assert!(!p.join("gone").exists());
    assert!(p.join("keep/precious").exists());
    LinuxFs.remove_tree(&p.join("gone")).unwrap();
    LinuxFs.symlink(&p.join("keep"), &p.join("link")).unwrap();
    LinuxFs.remove_tree(&p.join("link")).unwrap();
    assert!(p.join("keep/precious").exists() && !p.join("link").exists());
}

#[test]
fn a_chain_of_ten_thousand_directories_needs_a_handful_of_descriptors() {
    with_few_files(
        "files::tests::remove::a_chain_of_ten_thousand_directories_needs_a_handful_of_descriptors",
        16,
        || {
            let (_t, p) = tmp();
            let lowest = chain(&p, "d", 10_000);
            rustix::fs::mkdirat(&lowest, "beside", Mode::RWXU).unwrap();
            drop(lowest);
            fs::write(p.join("d/d/d/file"), "").unwrap();
            LinuxFs.remove_tree(&p.join("d")).unwrap();
            assert!(LinuxFs.list_dir(&p).unwrap().is_empty());
        },
    );
}

#[test]
fn a_wide_folder_goes_whatever_is_in_it() {
    let (_t, p) = tmp();
    let wide = p.join("wide");
    fs::create_dir(&wide).unwrap();
    for n in 0..20_000 {
        fs::write(wide.join(format!("file-{n}")), "").unwrap();
    }
    // More than are held at once.
    for n in 0..3_000 {
        fs::create_dir_all(wide.join(format!("dir-{n}/below"))).unwrap();
    }
    LinuxFs.remove_tree(&wide).unwrap();
    assert!(LinuxFs.list_dir(&p).unwrap().is_empty());
}

#[test]
fn what_cannot_go_stays_and_the_rest_goes() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let (_t, p) = tmp();
    let mounts = ["a/kept", "z/deep/kept"].map(|m| p.join("tree").join(m));
    for mount in &mounts {
        fs::create_dir_all(mount).unwrap();
        if rustix::mount::mount("tmpfs", mount, "tmpfs", rustix::mount::MountFlags::empty(), None).is_err() {
            eprintln!("skipped: may not mount here");
            return;
        }
        fs::write(mount.join("precious"), "x").unwrap();
    }
    // As a kernel is asked that cannot say it at once.
    for (dir, is_mounted) in [("a", false), ("a/kept", true), ("z/deep", false), ("z/deep/kept", true)] {
        let fd = rustix::fs::open(p.join("tree").join(dir), DIR, Mode::empty()).unwrap();
        assert_eq!(descend::is_mounted_by_id(&fd).unwrap(), is_mounted, "{dir}");
        assert_eq!(descend::place_and_mount(&fd).unwrap().1, is_mounted, "{dir}");
    }
    for n in 0..1_500 {
        fs::create_dir_all(p.join(format!("tree/a/dir-{n}"))).unwrap();
    }
    fs::write(p.join("tree/z/file"), "").unwrap();
    let refused = LinuxFs.remove_tree(&p.join("tree"));
    let left = |dir: &str| LinuxFs.list_dir(&p.join("tree").join(dir)).unwrap().into_iter().map(|e| e.name);
    let names: Vec<String> = ["", "a", "z", "z/deep"].into_iter().flat_map(left).collect();
    let kept = mounts.iter().all(|m| m.join("precious").exists());
    for mount in &mounts {
        rustix::mount::unmount(mount, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    assert!(kept);
    assert_eq!(names, ["a", "z", "kept", "deep", "kept"]);
}
