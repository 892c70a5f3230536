use super::*;
use ports::host::TMPFS_MAGIC;

mod group;
mod open;
mod remove;
mod sync;

fn tmp() -> (tempfile::TempDir, PathBuf) {
    let t = tempfile::tempdir().unwrap();
    let p = t.path().to_owned();
    (t, p)
}

const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Makes a chain of directories of one name, deeper than any path may be long.
fn chain(base: &Path, name: &str, depth: usize) -> OwnedFd {
    let mut fd = rustix::fs::open(base, DIR, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&fd, name, Mode::RWXU).unwrap();
        fd = rustix::fs::openat(&fd, name, DIR, Mode::empty()).unwrap();
    }
    fd
}

/// Runs `work` in a process of its own that may open `files` files: the limit holds for a whole process.
fn with_few_files(test: &str, files: u32, work: impl FnOnce()) {
    const INSIDE: &str = "BOSUN_TEST_FEW_FILES";
    if std::env::var_os(INSIDE).is_some() {
        return work();
    }
    let line = format!("ulimit -n {files}; exec \"$0\" --exact \"$1\" --nocapture");
    let mut sh = std::process::Command::new("sh");
    let run = sh.arg("-c").arg(line).arg(std::env::current_exe().unwrap()).arg(test).env(INSIDE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&run.stderr));
}

fn mode(path: &Path) -> u32 {
    LinuxFs.stat_link(path).unwrap().unwrap().mode
}

#[test]
fn new_directories_get_exactly_the_mode_and_old_ones_keep_theirs() {
    let (_t, p) = tmp();
    let before = mode(&p);
    LinuxFs.create_dir(&p.join("a/b"), 0o777).unwrap();
    assert_eq!((mode(&p.join("a")), mode(&p.join("a/b"))), (0o777, 0o777), "whatever the umask");
    LinuxFs.create_dir(&p.join("a/b"), 0o700).unwrap();
    assert_eq!((mode(&p.join("a/b")), mode(&p)), (0o777, before));
    fs::write(p.join("file"), "").unwrap();
    assert!(LinuxFs.create_dir(&p.join("file"), 0o700).is_err());
}

#[test]
fn files_are_replaced_in_one_step_and_leave_nothing_beside_them() {
    let (_t, p) = tmp();
    let file = p.join("etc-hosts");
    LinuxFs.write_file(&file, b"one", 0o644).unwrap();
    let first = LinuxFs.stat(&file).unwrap().unwrap();
    LinuxFs.write_file(&file, b"two", 0o666).unwrap();
    let second = LinuxFs.stat(&file).unwrap().unwrap();
    assert_ne!(first.ino, second.ino);
    assert_eq!(second.mode, 0o666);
    assert_eq!(LinuxFs.read_file(&file, 3).unwrap(), b"two");
    assert_eq!(LinuxFs.list_dir(&p).unwrap(), [DirEntry { name: "etc-hosts".into(), is_dir: false }]);
    assert!(LinuxFs.write_file(&p.join("no/dir"), b"x", 0o644).unwrap_err().is_not_found());
    let long = p.join("n".repeat(255));
    LinuxFs.write_file(&long, b"x", 0o644).unwrap();
    assert_eq!(LinuxFs.read_file(&long, 1).unwrap(), b"x");
}

#[test]
fn reading_is_bounded() {
    let (_t, p) = tmp();
    fs::write(p.join("big"), vec![b'x'; 11]).unwrap();
    assert_eq!(LinuxFs.read_file(&p.join("big"), 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(LinuxFs.read_file(&p.join("big"), 11).unwrap().len(), 11);
    assert!(LinuxFs.read_file(&p.join("none"), 10).unwrap_err().is_not_found());
}

#[test]
fn what_containers_wrote_is_read_without_leaving_the_volume() {
    let (_t, p) = tmp();
    let volume = p.join("volume");
    fs::create_dir_all(volume.join("a")).unwrap();
    fs::write(p.join("secret"), "host").unwrap();
    fs::write(volume.join("a/env"), "K='v'").unwrap();
    std::os::unix::fs::symlink("a", volume.join("inside")).unwrap();
    std::os::unix::fs::symlink("..", volume.join("up")).unwrap();
    std::os::unix::fs::symlink(p.join("secret"), volume.join("out")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, volume.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let read = |path: &str| LinuxFs.read_within(&volume, Path::new(path), 5);
    assert_eq!((read("a/env").unwrap(), read("inside/env").unwrap()), (b"K='v'".to_vec(), b"K='v'".to_vec()));
    for (path, why) in [("pipe", io::ErrorKind::InvalidInput), ("a", io::ErrorKind::InvalidInput)] {
        assert_eq!(read(path).unwrap_err().kind(), why, "{path}");
    }
    for path in ["up/secret", "out", "../secret", "/etc/hostname"] {
        assert!(!read(path).unwrap_err().is_not_found(), "{path}");
    }
    assert!(read("none").unwrap_err().is_not_found());
    let small = LinuxFs.read_within(&volume, Path::new("a/env"), 4).unwrap_err();
    assert_eq!(small.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn create_file_refuses_what_is_there() {
    let (_t, p) = tmp();
    LinuxFs.create_file(&p.join("log"), 0o666).unwrap();
    assert_eq!(mode(&p.join("log")), 0o666);
    assert_eq!(LinuxFs.create_file(&p.join("log"), 0o666).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn stat_tells_links_from_what_they_point_at() {
    let (_t, p) = tmp();
    LinuxFs.create_dir(&p.join("d"), 0o755).unwrap();
    LinuxFs.symlink(Path::new("d"), &p.join("l")).unwrap();
    LinuxFs.symlink(Path::new("nowhere"), &p.join("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(p.join("s")).unwrap();
    let kind = |name: &str| LinuxFs.stat(&p.join(name)).unwrap().map(|s| s.kind);
    assert_eq!(kind("l"), Some(FileKind::Dir));
    assert_eq!(LinuxFs.stat_link(&p.join("l")).unwrap().unwrap().kind, FileKind::Symlink);
    assert_eq!(kind("dangling"), None);
    assert_eq!(kind("s"), Some(FileKind::Socket));
    assert_eq!(kind("s/below"), None);
    assert_eq!(LinuxFs.stat(Path::new("/dev/null")).unwrap().unwrap().kind, FileKind::CharDevice);
    assert_eq!(LinuxFs.read_link(&p.join("l")).unwrap(), Path::new("d"));
}

#[test]
fn within_table() {
    let (_t, p) = tmp();
    let base = p.join("vol");
    fs::create_dir_all(base.join("real")).unwrap();
    fs::create_dir_all(p.join("outside")).unwrap();
    LinuxFs.symlink(Path::new("real"), &base.join("sibling")).unwrap();
    LinuxFs.symlink(&p.join("outside"), &base.join("absolute")).unwrap();
    LinuxFs.symlink(Path::new("../outside"), &base.join("up")).unwrap();
    fs::write(base.join("file"), "").unwrap();
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
        assert_eq!(LinuxFs.create_dir_within(&base, Path::new(relative), 0o2770).is_ok(), ok, "{relative}");
    }
    assert_eq!(mode(&base.join("new/deep/dir")), 0o2770);
    assert!(base.join("real/x").is_dir());
    assert!(LinuxFs.list_dir(&p.join("outside")).unwrap().is_empty());
}

#[test]
fn kernels_without_openat2_get_a_stricter_walk() {
    let (_t, p) = tmp();
    fs::create_dir_all(p.join("a/b")).unwrap();
    LinuxFs.symlink(Path::new("a"), &p.join("l")).unwrap();
    let walk = |path: &[&str]| {
        let root = rustix::fs::open(&p, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let parts: Vec<&std::ffi::OsStr> = path.iter().map(std::ffi::OsStr::new).collect();
        open_by_steps(root, &parts, OFlags::RDONLY | OFlags::DIRECTORY).is_ok()
    };
    assert!(walk(&["a", "b"]) && walk(&[]));
    assert!(!walk(&["l", "b"]) && !walk(&["l"]));
}

#[test]
fn ownership_changes_the_link_itself() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let (_t, p) = tmp();
    fs::write(p.join("f"), "").unwrap();
    LinuxFs.symlink(Path::new("f"), &p.join("l")).unwrap();
    LinuxFs.set_owner(&p.join("l"), None, Some(2000)).unwrap();
    assert_eq!(LinuxFs.stat_link(&p.join("l")).unwrap().unwrap().gid, 2000);
    assert_eq!(LinuxFs.stat(&p.join("f")).unwrap().unwrap().gid, 0);
    LinuxFs.set_mode(&p.join("f"), 0o2775).unwrap();
    assert_eq!(mode(&p.join("f")), 0o2775);
    assert!(LinuxFs.set_mode(&p.join("l"), 0o777).is_err());
    assert_eq!(mode(&p.join("f")), 0o2775, "what a link points at keeps its mode");
}

#[test]
fn file_systems_tell_their_kind_and_size() {
    let s = LinuxFs.stat_fs(Path::new("/proc")).unwrap();
    assert_ne!(s.magic, TMPFS_MAGIC);
    let s = LinuxFs.stat_fs(Path::new("/")).unwrap();
    assert!(s.total_bytes >= s.available_bytes && s.total_bytes > 0);
}
