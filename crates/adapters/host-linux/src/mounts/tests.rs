use super::*;
use crate::files::LinuxFs;
use ports::host::{HostFs, TMPFS_MAGIC};
use std::path::PathBuf;

#[test]
fn paths_of_the_table_are_what_they_are() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("self")).unwrap();
    let line = "36 35 98:0 /a\\040b /mnt/x\\134y\\011z rw - ext4 my\\040disk rw\n";
    fs::write(tmp.path().join("self/mountinfo"), line).unwrap();
    let [mount] = &mount_table(tmp.path()).unwrap()[..] else { panic!("one mount") };
    assert_eq!(mount.mount_point, Path::new("/mnt/x\\y\tz"));
    assert_eq!((mount.root.as_str(), mount.mount_source.as_deref()), ("/a b", Some("my disk")));
}

#[test]
fn a_line_of_the_table_keeps_options_with_commas_in_them() {
    let text =
        "36 35 98:0 /a\\040b /mnt/x\\134y rw,noatime shared:1 - ext4 /dev/my\\040disk rw,context=\"u:r:t:s0:c1,c2\",x";
    let wanted = MountLine {
        at: "/mnt/x\\y".into(),
        part: "/a b".into(),
        source: "/dev/my disk".to_owned(),
        device: "98:0".to_owned(),
        fs_type: "ext4".to_owned(),
        options: "rw,context=\"u:r:t:s0:c1,c2\",x".to_owned(),
    };
    assert_eq!(line(text), Some(wanted));
    assert_eq!((line(""), line("36 35 98:0 / - ext4 d rw")), (None, None));
}

/// A folder for mounts, or `None` where this process may not mount. What is mounted goes at the end.
struct Place {
    dir: tempfile::TempDir,
    mounted: std::cell::RefCell<Vec<PathBuf>>,
}

impl Place {
    fn new() -> Option<Self> {
        let place = Self { dir: tempfile::tempdir().unwrap(), mounted: Vec::new().into() };
        let probe = place.target("probe");
        std::fs::create_dir(&probe).unwrap();
        if let Err(e) = LinuxMounts.mount_memory(&probe, &MemoryMount::Tmpfs { size_bytes: Some(4096) }) {
            assert!(std::env::var_os("CI").is_none(), "where it counts these tests must run: {e}");
            eprintln!("skipped: may not mount here: {e}");
            return None;
        }
        Some(place)
    }

    fn target(&self, name: &str) -> PathBuf {
        let p = self.dir.path().canonicalize().unwrap().join(name);
        self.mounted.borrow_mut().push(p.clone());
        p
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for p in self.mounted.borrow().iter().rev() {
            let _ = LinuxMounts.unmount(p);
        }
    }
}

#[test]
fn memory_is_mounted_with_its_size_and_goes_again() {
    let Some(place) = Place::new() else { return };
    // A blank is escaped in the table.
    let dir = place.target("some mem");
    std::fs::create_dir(&dir).unwrap();
    assert!(!LinuxMounts.is_mount_point(&dir).unwrap());
    LinuxMounts.mount_memory(&dir, &MemoryMount::Tmpfs { size_bytes: Some(1 << 20) }).unwrap();
    assert!(LinuxMounts.is_mount_point(&dir).unwrap());
    let stat = LinuxFs.stat_fs(&dir).unwrap();
    assert_eq!((stat.magic, stat.total_bytes), (TMPFS_MAGIC, 1 << 20));
    let parent = dir.parent().unwrap();
    assert!(LinuxMounts.mounts_below(parent).unwrap().contains(&dir));
    assert!(LinuxMounts.mounts_below(&dir).unwrap().is_empty(), "not itself");
    LinuxMounts.mount_memory(&dir, &MemoryMount::Tmpfs { size_bytes: None }).unwrap();
    LinuxMounts.unmount(&dir).unwrap();
    assert!(!LinuxMounts.is_mount_point(&dir).unwrap(), "both of the stacked mounts are gone");
    LinuxMounts.unmount(&dir).unwrap();
    LinuxMounts.unmount(&dir.join("absent")).unwrap();
}

#[test]
fn a_sub_path_is_bound_once_and_follows_a_new_source() {
    let Some(place) = Place::new() else { return };
    let base = place.target("vol");
    let target = place.target("subpaths/vol/app/0");
    std::fs::create_dir_all(base.join("a")).unwrap();
    std::fs::write(base.join("a/seen"), "").unwrap();
    for _ in 0..2 {
        LinuxMounts.bind_within(&base, Path::new("a"), &target).unwrap();
        assert!(target.join("seen").exists());
    }
    std::fs::rename(base.join("a"), base.join("old")).unwrap();
    std::fs::create_dir(base.join("a")).unwrap();
    LinuxMounts.bind_within(&base, Path::new("a"), &target).unwrap();
    assert!(!target.join("seen").exists());
    LinuxMounts.unmount(&target).unwrap();
    assert!(!LinuxMounts.is_mount_point(&target).unwrap());
}

#[test]
fn a_file_is_bound_on_a_file_and_a_link_out_of_the_volume_never() {
    let Some(place) = Place::new() else { return };
    let base = place.target("vol");
    std::fs::create_dir_all(&base).unwrap();
    std::fs::write(base.join("f"), "content").unwrap();
    std::os::unix::fs::symlink("/etc", base.join("out")).unwrap();
    let target = place.target("sub/0");
    LinuxMounts.bind_within(&base, Path::new("f"), &target).unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "content");
    let target = place.target("sub/1");
    assert!(LinuxMounts.bind_within(&base, Path::new("out"), &target).is_err());
    assert!(LinuxMounts.bind_within(&base, Path::new("../sub"), &target).is_err());
    assert!(!target.exists());
    // A link that stays in the volume is one of its user's own.
    std::fs::create_dir_all(base.join("releases/2")).unwrap();
    std::fs::write(base.join("releases/2/page"), "new").unwrap();
    std::os::unix::fs::symlink("releases/2", base.join("current")).unwrap();
    std::os::unix::fs::symlink("../current", base.join("releases/newest")).unwrap();
    for (at, link) in ["current", "releases/newest"].into_iter().enumerate() {
        let target = place.target(&format!("sub/link{at}"));
        LinuxMounts.bind_within(&base, Path::new(link), &target).unwrap();
        assert_eq!(std::fs::read_to_string(target.join("page")).unwrap(), "new", "{link}");
        LinuxMounts.unmount(&target).unwrap();
    }
}

#[test]
fn a_tree_with_a_mount_inside_keeps_the_mount_and_what_is_in_it() {
    let Some(place) = Place::new() else { return };
    let root = place.target("pod");
    let (memory, bound, source) = (place.target("pod/mem"), place.target("pod/bound"), place.target("source"));
    for d in [&memory, &bound, &source] {
        std::fs::create_dir_all(d).unwrap();
    }
    std::fs::write(root.join("file"), "").unwrap();
    std::fs::write(source.join("precious"), "").unwrap();
    LinuxMounts.mount_memory(&memory, &MemoryMount::Tmpfs { size_bytes: Some(1 << 20) }).unwrap();
    std::fs::write(memory.join("precious"), "").unwrap();
    // The same file system: only the mount itself tells it apart.
    mount_bind(&source, &bound).unwrap();
    assert!(LinuxFs.remove_tree(&root).is_err());
    assert!(LinuxFs.remove_tree(&memory).is_err());
    assert!(memory.join("precious").exists() && bound.join("precious").exists());
    assert!(!root.join("file").exists(), "the rest goes");
    LinuxMounts.unmount(&memory).unwrap();
    LinuxMounts.unmount(&bound).unwrap();
    LinuxFs.remove_tree(&root).unwrap();
    assert!(!root.exists() && source.join("precious").exists());
}

/// A disk of 16 MiB, which goes at the end.
struct Disk(PathBuf);

impl Disk {
    fn in_place(place: &Place) -> Self {
        let image = place.dir.path().join("image");
        fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let out = std::process::Command::new("losetup").args(["-f", "--show"]).arg(image).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self(String::from_utf8(out.stdout).unwrap().trim().into())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

#[test]
fn a_device_that_somebody_has_for_himself_is_held_and_never_formatted() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::in_place(&place);
    assert!(!LinuxMounts.is_held(&disk.0).unwrap());
    assert!(!LinuxMounts.is_held(Path::new("/dev/no-such-disk")).unwrap());
    let (target, other) = (place.target("disk"), place.target("other"));
    let alone = devices::open_alone(&disk.0).unwrap();
    assert!(LinuxMounts.is_held(&disk.0).unwrap());
    let e = LinuxMounts.mount_device(&disk.0, &other, "ext4", &[]).unwrap_err();
    assert_eq!(e.source.to_string(), "it is not formatted: somebody else on this node has it");
    drop(alone);
    LinuxMounts.mount_device(&disk.0, &target, "ext4", &[]).unwrap();
    assert!(LinuxMounts.is_held(&disk.0).unwrap(), "it is mounted");
    LinuxMounts.unmount(&target).unwrap();
    assert!(!LinuxMounts.is_held(&disk.0).unwrap());
}

#[test]
fn a_root_folder_that_a_link_leads_to_is_the_root_folder() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::in_place(&place);
    let link = place.dir.path().join("root");
    std::os::unix::fs::symlink(place.target("real"), &link).unwrap();
    let (held, mounted) = (link.join("maps/held"), link.join("volumes/memory"));
    fs::create_dir_all(place.target("real")).unwrap();
    fs::create_dir_all(&mounted).unwrap();
    LinuxMounts.bind_device(&disk.0, &held).unwrap();
    LinuxMounts.hold_device(&held).unwrap();
    assert_eq!(devices::loops_over(&held).unwrap().len(), 1);
    LinuxMounts.mount_memory(&mounted, &MemoryMount::Tmpfs { size_bytes: Some(1 << 20) }).unwrap();
    let table = LinuxMounts.mount_table(&link).unwrap();
    let named = |path: &Path| table.iter().any(|line| line.at == path);
    assert!(named(&held) && named(&mounted) && named(Path::new("/proc")), "{table:?}");
    assert_eq!(LinuxMounts.mounts_below(&link.join("volumes")).unwrap(), std::slice::from_ref(&mounted));
    assert!(has_share("tmpfs", &mounted).unwrap());
    LinuxMounts.release_device(&held).unwrap();
    LinuxMounts.unmount(&held).unwrap();
    LinuxMounts.unmount(&mounted).unwrap();
}

#[test]
fn a_device_is_bound_and_held_open_until_it_is_released() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::in_place(&place);
    let (link, target) = (place.dir.path().join("link"), place.target("maps/pod 1"));
    std::os::unix::fs::symlink(&disk.0, &link).unwrap();
    for _ in 0..2 {
        LinuxMounts.bind_device(&link, &target).unwrap();
        LinuxMounts.hold_device(&target).unwrap();
    }
    let number = |path: &Path| rustix::fs::stat(path).unwrap().st_rdev;
    assert_eq!(number(&target), number(&disk.0));
    assert_eq!(devices::loops_over(&target).unwrap().len(), 1, "one loop device holds it");
    assert!(LinuxMounts.unmount(&target).is_err(), "it is open");
    for _ in 0..2 {
        LinuxMounts.release_device(&target).unwrap();
    }
    LinuxMounts.unmount(&target).unwrap();
    assert!(fs::read(&target).unwrap().is_empty(), "what is left is the file that was made for it");
    LinuxMounts.release_device(&place.dir.path().join("absent")).unwrap();
    let other = Disk::in_place(&place);
    LinuxMounts.bind_device(&disk.0, &target).unwrap();
    LinuxMounts.hold_device(&target).unwrap();
    LinuxMounts.bind_device(&other.0, &target).unwrap();
    assert_eq!(number(&target), number(&other.0), "another device takes its place");
    assert!(LinuxMounts.bind_device(&place.dir.path().join("image"), &target).is_err(), "a file is no device");
}

#[test]
fn a_blank_disk_is_formatted_and_one_with_content_never() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::in_place(&place);
    let target = place.target("mounted");
    let mount = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        LinuxMounts.mount_device(&disk.0, &target, "ext4", &options)
    };
    let e = mount(&["ro"]).unwrap_err();
    assert!(e.source.to_string().contains("unformatted"), "{e:?}");
    for _ in 0..2 {
        mount(&["noatime"]).unwrap();
    }
    fs::write(target.join("word"), "kept").unwrap();
    let table = mount_table(Path::new(PROC)).unwrap();
    let mine: Vec<_> = table.iter().filter(|m| m.mount_point == target).collect();
    assert_eq!(mine.len(), 1, "mounted once");
    assert!(mine[0].fs_type == "ext4" && mine[0].mount_options.contains_key("noatime"), "{:?}", mine[0]);
    LinuxMounts.unmount(&target).unwrap();
    mount(&[]).unwrap();
    assert_eq!(fs::read_to_string(target.join("word")).unwrap(), "kept");
    LinuxMounts.unmount(&target).unwrap();
    // A table of partitions: it is not formatted, so the mount fails.
    let mut head = vec![0_u8; 2 << 20];
    head[446 + 4] = 0x83;
    head[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    head[446 + 12..446 + 16].copy_from_slice(&2048_u32.to_le_bytes());
    head[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::OpenOptions::new().write(true).open(&disk.0).and_then(|mut d| io::Write::write_all(&mut d, &head)).unwrap();
    assert!(mount(&[]).is_err());
    let e = LinuxMounts.mount_device(&disk.0, &target, "../sh", &[]).unwrap_err();
    assert!(e.source.to_string().contains("no type of a file system"), "{e:?}");
}

/// A container that exchanges a directory for a link out of its volume all the time, while the node binds what is there: whatever
/// the node answers, nothing outside is ever bound and nothing is made there. `SUB_PATH_FLIPS` says how many exchanges.
#[test]
fn a_writer_that_flips_links_never_leads_out_of_the_volume() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::sync::atomic::{AtomicU64, Ordering};

    let Some(place) = Place::new() else { return };
    let wanted: u64 = std::env::var("SUB_PATH_FLIPS").map_or(3000, |n| n.parse().unwrap());
    let (base, outside, target) = (place.target("vol"), place.target("outside"), place.target("sub/0"));
    for dir in [base.join("a/deep"), outside.join("deep")] {
        std::fs::create_dir_all(&dir).unwrap();
    }
    std::fs::write(outside.join("deep/secret"), "").unwrap();
    std::fs::write(base.join("a/deep/own"), "").unwrap();
    std::os::unix::fs::symlink(&outside, base.join("b")).unwrap();
    let flips = AtomicU64::new(0);
    let (mut bound, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (a, b) = (base.join("a"), base.join("b"));
            while flips.load(Ordering::Relaxed) < wanted {
                renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                flips.fetch_add(1, Ordering::Relaxed);
            }
        });
        while flips.load(Ordering::Relaxed) < wanted {
            match LinuxMounts.bind_within(&base, Path::new("a/deep"), &target) {
                Ok(()) => {
                    bound += 1;
                    assert!(target.join("own").exists() && !target.join("secret").exists(), "bound from outside");
                    LinuxMounts.unmount(&target).unwrap();
                }
                Err(_) => refused += 1,
            }
            // What is made for a path that is missing.
            let _raced = LinuxFs.create_dir_within(&base, Path::new("a/made/here"), 0o755);
            assert!(!outside.join("made").exists(), "made outside");
        }
    });
    println!("{} flips, {bound} bound, {refused} refused", flips.load(Ordering::Relaxed));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "nothing was made outside");
    assert!(outside.join("deep/secret").exists());
}

#[test]
fn programs_run_for_others_and_kernel_files_are_written_in_place() {
    let run = |program, words: &[&str]| {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        LinuxMounts.run_program(program, &words, std::time::Duration::from_secs(20))
    };
    let end = run("sh", &["-c", "echo said; exit 21"]).unwrap();
    assert_eq!((end.code, end.words.as_str()), (Some(21), "said\n"));
    assert_eq!(run("sh", &["-c", "kill -9 $$"]).unwrap().code, None);
    assert!(run("no-such-program-of-any-host", &[]).unwrap_err().is_not_found());
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("scan");
    assert!(LinuxMounts.write_attribute(&file, "1").unwrap_err().is_not_found(), "none is made");
    fs::write(&file, "").unwrap();
    LinuxMounts.write_attribute(&file, "0 0 3").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "0 0 3");
    let table = LinuxMounts.mount_table(Path::new("/")).unwrap();
    let proc = table.iter().find(|line| line.at == Path::new("/proc")).unwrap();
    assert!(proc.device.starts_with("0:") && !proc.source.is_empty() && proc.fs_type == "proc");
}

#[test]
fn whether_memory_can_be_kept_off_swap_is_tried_and_nothing_stays() {
    let tmp = tempfile::tempdir().unwrap();
    let first = keeps_memory_off_swap(tmp.path());
    assert_eq!(keeps_memory_off_swap(tmp.path()), first);
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    assert!(!keeps_memory_off_swap(&tmp.path().join("missing")));
}
