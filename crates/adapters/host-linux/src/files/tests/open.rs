//! Whatever a container puts where a file should be: nobody waits for it, and it does not even notice.

use std::mem::MaybeUninit;

use rustix::fs::{FileType, inotify, makedev, mknodat};

use super::*;

/// A folder with one of each kind of thing.
fn traps() -> (tempfile::TempDir, Vec<PathBuf>) {
    let (t, p) = tmp();
    let paths = ["pipe", "socket", "folder"].map(|name| p.join(name));
    mknodat(CWD, &paths[0], FileType::Fifo, Mode::RWXU, 0).unwrap();
    // The name stays when the listener is gone.
    drop(std::os::unix::net::UnixListener::bind(&paths[1]).unwrap());
    fs::create_dir(&paths[2]).unwrap();
    let mut paths = paths.to_vec();
    paths.push("/dev/null".into());
    if rustix::process::geteuid().is_root() {
        // No driver has this number: opened, it would answer with an error of its own.
        let device = p.join("device");
        if mknodat(CWD, &device, FileType::CharacterDevice, Mode::RWXU, makedev(240, 99)).is_ok() {
            paths.push(device);
        }
    }
    (t, paths)
}

fn kind<T: std::fmt::Debug>(result: HostResult<T>) -> io::ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn only_regular_files_are_read() {
    let (_t, paths) = traps();
    for path in paths {
        let what = path.display();
        let refusals = [LinuxFs.read_end(&path, 10, Links::Refuse).map(drop), LinuxFs.read_file(&path, 10).map(drop)];
        for refusal in refusals {
            let why = refusal.unwrap_err().source;
            let socket = why.raw_os_error() == Some(Errno::NXIO.raw_os_error());
            assert_eq!(socket, path.ends_with("socket"), "{what}: {why}");
            assert!(socket || why.kind() == io::ErrorKind::InvalidInput, "{what}: {why}");
        }
        assert_eq!(open_file_or_folder(&path).is_ok(), path.ends_with("folder"), "{what}");
    }
}

#[test]
fn what_is_refused_was_never_opened() {
    let (t, paths) = traps();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, t.path(), inotify::WatchFlags::OPEN).unwrap();
    let opened = || {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut names = Vec::new();
        let mut reader = inotify::Reader::new(&watch, &mut buffer);
        while let Ok(event) = reader.next() {
            names.extend(event.file_name().map(|n| n.to_string_lossy().into_owned()));
        }
        names
    };
    for path in &paths {
        LinuxFs.read_end(path, 10, Links::Follow).unwrap_err();
    }
    assert_eq!(opened(), Vec::<String>::new());
    // The watch does see an open, also one that does not wait.
    fs::write(t.path().join("file"), "x").unwrap();
    LinuxFs.read_end(&t.path().join("file"), 10, Links::Refuse).unwrap();
    assert!(opened().contains(&"file".to_owned()));
}

#[test]
fn a_link_leads_on_only_where_it_may() {
    let (_t, p) = tmp();
    fs::write(p.join("file"), "text").unwrap();
    LinuxFs.symlink(Path::new("file"), &p.join("link")).unwrap();
    mknodat(CWD, p.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    LinuxFs.symlink(Path::new("pipe"), &p.join("to-pipe")).unwrap();
    let read = |name: &str, links| LinuxFs.read_end(&p.join(name), 10, links).map(|end| end.bytes);
    assert_eq!(read("link", Links::Follow).unwrap(), b"text");
    assert_eq!(kind(read("link", Links::Refuse)), io::ErrorKind::InvalidInput);
    assert_eq!(kind(read("to-pipe", Links::Follow)), io::ErrorKind::InvalidInput);
    assert!(read("none", Links::Refuse).unwrap_err().is_not_found());
}

#[test]
fn the_end_of_a_file_is_bounded_whatever_its_size() {
    let (_t, p) = tmp();
    let path = p.join("huge");
    let mut file = fs::File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b"the end").unwrap();
    let end = |max| LinuxFs.read_end(&path, max, Links::Refuse).unwrap();
    assert_eq!(end(7), FileEnd { bytes: b"the end".to_vec(), cut: true });
    assert_eq!(end(4096).bytes.len(), 4096);
    fs::write(&path, "short").unwrap();
    assert_eq!(end(5), FileEnd { bytes: b"short".to_vec(), cut: false });
    assert_eq!(end(4), FileEnd { bytes: b"hort".to_vec(), cut: true });
    assert_eq!(end(0), FileEnd { bytes: Vec::new(), cut: true });
}
