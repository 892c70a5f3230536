use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use ports::log::Compress;

use crate::{FolderChanges, FolderWatch, Gzip, LogFile, resolve};

const GZIP: Gzip = Gzip::new(|path| File::open(path));

async fn told(changes: &mut FolderChanges) -> bool {
    tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.is_ok()
}

#[tokio::test]
async fn a_write_wakes_everybody_who_waits_for_the_folder_and_nobody_else() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watch = FolderWatch::new();
    let mut readers = [watch.subscribe(one.path()), watch.subscribe(one.path()), watch.subscribe(two.path())];
    readers.iter_mut().for_each(FolderChanges::arm);
    assert_eq!(watch.load(), (2, 2));
    std::fs::write(one.path().join("0.log"), "x").unwrap();
    let [a, b, c] = &mut readers;
    assert!(told(a).await && told(b).await);
    assert!(tokio::time::timeout(Duration::from_millis(50), c.changed()).await.is_err());
    assert_eq!(watch.load(), (2, 1), "the watch ends with its event");
}

#[tokio::test]
async fn each_kind_of_change_is_told_once_armed_again() {
    let dir = tempfile::tempdir().unwrap();
    let (log, old) = (dir.path().join("0.log"), dir.path().join("0.log.1"));
    std::fs::write(&log, "").unwrap();
    let watch = FolderWatch::new();
    let mut changes = watch.subscribe(dir.path());
    changes.arm();
    std::fs::File::options().append(true).open(&log).unwrap().write_all(b"more").unwrap();
    assert!(told(&mut changes).await, "write");
    changes.arm();
    std::fs::rename(&log, &old).unwrap();
    assert!(told(&mut changes).await, "rename");
    changes.arm();
    std::fs::File::create(&log).unwrap();
    assert!(told(&mut changes).await, "creation");
    changes.arm();
    std::fs::remove_dir_all(dir.path()).unwrap();
    assert!(told(&mut changes).await, "end of the folder");
}

#[tokio::test]
async fn nothing_stays_when_the_readers_left() {
    let dir = tempfile::tempdir().unwrap();
    let watch = FolderWatch::new();
    let (mut a, b) = (watch.subscribe(dir.path()), watch.subscribe(dir.path()));
    a.arm();
    drop(a);
    assert_eq!(watch.load(), (1, 1));
    drop(b);
    assert_eq!(watch.load(), (0, 0));
    let mut again = watch.subscribe(dir.path());
    again.arm();
    std::fs::write(dir.path().join("x"), "").unwrap();
    assert!(told(&mut again).await);
}

#[test]
fn of_readers_that_leave_at_a_time_one_is_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let watch = FolderWatch::new();
    for _ in 0..2000 {
        let readers = [(); 2].map(|()| watch.subscribe(dir.path()));
        let together = std::sync::Barrier::new(readers.len());
        std::thread::scope(|scope| {
            for reader in readers {
                scope.spawn(|| {
                    let reader = reader;
                    together.wait();
                    drop(reader);
                });
            }
        });
        assert_eq!(watch.load(), (0, 0));
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_waited_for_in_vain_only() {
    let dir = tempfile::tempdir().unwrap();
    let watch = FolderWatch::new();
    let mut changes = watch.subscribe(&dir.path().join("none"));
    changes.arm();
    assert_eq!(watch.load(), (1, 0));
}

#[test]
fn reads_from_memory_and_from_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    std::fs::write(&path, "hello").unwrap();
    let file = LogFile::new(File::open(&path).unwrap()).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(file.read(1, &mut buffer).unwrap(), 4);
    assert_eq!(&buffer[..4], b"ello");
    assert!(matches!(file.read_now(0, &mut buffer).unwrap(), Some(5) | None));
    assert_eq!(file.size().unwrap(), 5);
    assert_eq!(file.read(9, &mut buffer).unwrap(), 0);
}

#[test]
fn knows_when_another_file_took_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    std::fs::write(&path, "hello").unwrap();
    let file = LogFile::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(file.successor(&path).unwrap(), None);
    std::fs::rename(&path, dir.path().join("old")).unwrap();
    assert_eq!(file.successor(&path).unwrap(), None, "nobody did yet");
    std::fs::write(&path, "hi").unwrap();
    assert_eq!(file.successor(&path).unwrap(), Some(2));
}

#[test]
fn a_path_is_resolved_or_the_part_is_told_that_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (log, link) = (dir.path().join("0.log"), dir.path().join("link"));
    std::fs::write(&log, "").unwrap();
    symlink(&log, &link).unwrap();
    assert_eq!(resolve(&link).unwrap(), log.canonicalize().unwrap());
    let missing = resolve(&dir.path().join("none/0.log")).unwrap_err();
    assert_eq!(missing.at, dir.path().join("none"));
}

#[test]
fn compresses_and_keeps_the_mode() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a"), dir.path().join("a.tmp"));
    let text = "line of a log\n".repeat(100_000);
    std::fs::write(&from, &text).unwrap();
    std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::write(&to, "left over").unwrap();
    GZIP.compress(&from, &to).unwrap();
    let mut read = String::new();
    flate2::read::GzDecoder::new(File::open(&to).unwrap()).read_to_string(&mut read).unwrap();
    assert!(read == text);
    assert_eq!(to.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
    assert!(to.metadata().unwrap().len() < 100_000);
    assert!(GZIP.compress(&dir.path().join("none"), &to).unwrap_err().is_not_found());
}

#[test]
fn compression_opens_by_the_given_way_and_writes_through_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let [secret, from, to] = ["secret", "0.log.3", "0.log.3.tmp"].map(|n| dir.path().join(n));
    std::fs::write(&secret, "of the host").unwrap();
    std::fs::write(&from, "text").unwrap();
    symlink(&secret, &to).unwrap();
    let refusing = Gzip::new(|_| Err(std::io::ErrorKind::InvalidInput.into()));
    assert_eq!(refusing.compress(&from, &to).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    GZIP.compress(&from, &to).unwrap();
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "of the host");
    assert!(to.symlink_metadata().unwrap().is_file());
}
