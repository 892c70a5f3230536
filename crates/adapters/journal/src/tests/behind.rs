//! Lines that are written behind.

use std::sync::mpsc;
use std::time::Duration;

use ports::journal::Journal;

use super::faulty::{Disk, Mode};
use crate::{AGAIN, RedbJournal, SOON};

/// What the file has, whatever the journal remembers.
fn on_disk(j: &RedbJournal, key: &str) -> Option<Vec<u8>> {
    use redb::ReadableDatabase;
    j.read(|db| Ok(db.begin_read()?.open_table(crate::LINES)?.get(key)?.map(|v| v.value().to_vec()))).unwrap()
}

#[test]
fn a_line_behind_is_read_at_once_and_comes_to_disk_when_it_is_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let j = RedbJournal::open(&dir.path().join("journal.redb")).unwrap();
    let (asked, asks) = mpsc::channel();
    j.flush_by(move |after| asked.send(after).unwrap());
    j.save("worker/old", b"0").unwrap();
    j.put_soon("worker/new", Some(b"1".to_vec()));
    j.put_soon("worker/new", Some(b"2".to_vec()));
    j.put_soon("worker/old", None);
    assert_eq!((j.load("worker/new").unwrap(), j.load("worker/old").unwrap()), (Some(b"2".to_vec()), None));
    assert_eq!(j.keys("worker/").unwrap(), ["worker/new"]);
    assert_eq!((on_disk(&j, "worker/new"), on_disk(&j, "worker/old")), (None, Some(b"0".to_vec())));
    assert_eq!(asks.try_iter().collect::<Vec<_>>(), [SOON], "asked for once");
    j.flush();
    assert_eq!((on_disk(&j, "worker/new"), on_disk(&j, "worker/old")), (Some(b"2".to_vec()), None));
    assert_eq!((j.load("worker/new").unwrap(), j.keys("worker/").unwrap().len()), (Some(b"2".to_vec()), 1));
    j.flush();
    assert_eq!(asks.try_iter().count(), 0, "nothing is left");
    j.put_soon("worker/new", None);
    assert_eq!(asks.try_iter().collect::<Vec<_>>(), [SOON]);
}

#[test]
fn a_write_that_somebody_waits_for_takes_them_along_and_the_later_one_counts() {
    let dir = tempfile::tempdir().unwrap();
    let j = RedbJournal::open(&dir.path().join("journal.redb")).unwrap();
    j.put_soon("a", Some(b"behind".to_vec()));
    j.put_soon("b", Some(b"behind".to_vec()));
    j.save("a", b"later").unwrap();
    assert_eq!((on_disk(&j, "a"), on_disk(&j, "b")), (Some(b"later".to_vec()), Some(b"behind".to_vec())));
    assert_eq!(j.load("a").unwrap().as_deref(), Some(&b"later"[..]));
    j.put_soon("a", Some(b"latest".to_vec()));
    j.remove("b").unwrap();
    assert_eq!((on_disk(&j, "a"), on_disk(&j, "b")), (Some(b"latest".to_vec()), None));
}

#[test]
fn the_end_of_the_journal_writes_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.redb");
    RedbJournal::open(&path).unwrap().put_soon("a", Some(b"1".to_vec()));
    assert_eq!(RedbJournal::open(&path).unwrap().load("a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_disk_that_takes_nothing_keeps_them_waiting_and_gets_them_later() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let j = disk.journal(&dir.path().join("journal.redb"));
    let (asked, asks) = mpsc::channel::<Duration>();
    j.flush_by(move |after| asked.send(after).unwrap());
    disk.set(Mode::Full);
    j.put_soon("a", Some(b"1".to_vec()));
    j.flush();
    assert_eq!(asks.try_iter().collect::<Vec<_>>(), [SOON, AGAIN], "it is tried again");
    assert_eq!(j.load("a").unwrap().as_deref(), Some(&b"1"[..]));
    disk.set(Mode::Works);
    j.flush();
    assert_eq!(on_disk(&j, "a").as_deref(), Some(&b"1"[..]));
}
