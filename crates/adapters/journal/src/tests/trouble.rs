//! A disk that fails: what was on it is still there when it works again, and writes land again without a new start.

use std::path::Path;

use ports::journal::Journal;

use super::faulty::{Disk, Mode};
use crate::RedbJournal;

const TROUBLES: [Mode; 3] = [Mode::Eio, Mode::Full, Mode::ReadOnly];

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn writes_land_again_when_the_disk_works_again() {
    for trouble in TROUBLES {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::default(), dir.path().join("journal.redb"));
        let j = disk.journal(&path);
        j.save("worker/a", b"before").unwrap();
        disk.set(trouble);
        for _ in 0..5 {
            let e = j.save("worker/a", b"lost").unwrap_err().to_string();
            assert!(e.contains("journal.redb"), "{e}");
        }
        disk.set(Mode::Works);
        assert!(matches!(j.load("worker/a").unwrap().as_deref(), Some(b"before" | b"lost")), "{trouble:?}");
        j.save("worker/b", b"after").unwrap();
        drop(j);
        let j = RedbJournal::open(&path).unwrap();
        assert_eq!(j.keys("").unwrap(), ["worker/a", "worker/b"], "{trouble:?}");
        assert_eq!(names(dir.path()), ["journal.redb"], "{trouble:?}");
    }
}

#[test]
fn a_short_fault_costs_no_write_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, path) = (Disk::default(), dir.path().join("journal.redb"));
    let j = disk.journal(&path);
    disk.set(Mode::Full);
    j.save("a", b"1").unwrap_err();
    disk.set(Mode::Works);
    // The database is still the one that refuses everything since its error.
    j.save("a", b"2").unwrap();
    assert_eq!(j.load("a").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn what_is_read_after_an_error_of_the_disk_is_doubted_for_a_while() {
    for doubted in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path) = (if doubted { Disk::doubted() } else { Disk::default() }, dir.path().join("journal.redb"));
        let j = disk.journal(&path);
        j.save("worker/a", b"1").unwrap();
        disk.set(Mode::Eio);
        j.save("worker/b", b"2").unwrap_err();
        disk.set(Mode::Garbles);
        let saved = j.save("worker/b", b"2");
        assert_eq!(saved.is_err(), doubted, "{saved:?}");
        assert_eq!(names(dir.path()).len(), if doubted { 1 } else { 2 }, "{:?}", names(dir.path()));
        disk.set(Mode::Works);
        j.save("worker/b", b"3").unwrap();
        assert_eq!(j.keys("").unwrap().len(), if doubted { 2 } else { 1 }, "nothing is lost to a doubt");
    }
}

#[test]
fn a_failing_disk_is_opened_once_per_pause_not_once_per_write() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, path) = (Disk::patient(), dir.path().join("journal.redb"));
    let j = disk.journal(&path);
    disk.set(Mode::Eio);
    let before = disk.opens();
    for _ in 0..200 {
        j.save("a", b"1").unwrap_err();
    }
    assert!(disk.opens() - before <= 2, "{} openings for 200 writes", disk.opens() - before);
}

#[test]
fn trouble_at_start_neither_ends_the_daemon_nor_sets_the_file_aside() {
    for trouble in TROUBLES {
        for existed in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (disk, path) = (Disk::default(), dir.path().join("journal.redb"));
            if existed {
                disk.journal(&path).save("worker/a", b"1").unwrap();
            }
            let before = std::fs::read(&path).ok();
            disk.set(trouble);
            let j = disk.try_journal(&path).expect("a failed write at start is no failure to start");
            j.save("worker/b", b"2").unwrap_err();
            if existed {
                assert_eq!(std::fs::read(&path).ok(), before, "{trouble:?}");
            }
            disk.set(Mode::Works);
            j.save("worker/b", b"2").unwrap();
            assert_eq!(j.load("worker/a").unwrap().is_some(), existed, "{trouble:?}");
            assert_eq!(names(dir.path()), ["journal.redb"], "{trouble:?}");
        }
    }
}

#[test]
fn a_panic_inside_of_a_commit_wedges_no_writer_and_loses_no_line() {
    for panics in 1..=3 {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::default(), dir.path().join("journal.redb"));
        let j = disk.journal(&path);
        j.save("worker/old", b"1").unwrap();
        disk.set(Mode::Panics(panics));
        let j = &j;
        let failed = std::thread::scope(|s| {
            let write = |i| s.spawn(move || j.save(&format!("worker/{i}"), b"x"));
            let writers: Vec<_> = (0..8).map(write).collect();
            writers.into_iter().map(|w| w.join().unwrap()).filter(Result::is_err).count()
        });
        disk.set(Mode::Works);
        j.save("worker/new", b"1").unwrap();
        assert!(j.load("worker/old").unwrap().is_some(), "{panics}");
        // A write that panicked is not a write: each one that was said to be is there.
        assert_eq!(j.keys("worker/").unwrap().len() + failed, 10, "{panics}");
        assert_eq!(names(dir.path()), ["journal.redb"], "{panics}");
    }
}

#[test]
fn a_power_cut_leaves_what_was_written_before() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, path, copy) = (Disk::default(), dir.path().join("journal.redb"), dir.path().join("copy.redb"));
    let j = disk.journal(&path);
    j.save("worker/0", b"0").unwrap();
    disk.watch(&path);
    let mut cuts = 0;
    for n in 1..30u32 {
        j.save(&format!("worker/{}", n % 7), n.to_string().as_bytes()).unwrap();
        // In the middle of that write the ones before it must be there, each whole.
        for picture in disk.pictures() {
            cuts += 1;
            std::fs::write(&copy, picture).unwrap();
            let after = RedbJournal::open(&copy).unwrap();
            for before in n.saturating_sub(6)..n {
                let line = after.load(&format!("worker/{}", before % 7)).unwrap();
                assert_eq!(line, Some(before.to_string().into_bytes()), "cut in write {n}");
            }
            drop(after);
            assert_eq!(names(dir.path()), ["copy.redb", "journal.redb"]);
        }
    }
    assert!(cuts >= 100, "{cuts} cuts");
}
