//! A disk that works.

use std::path::Path;

use ports::journal::Journal;

use crate::RedbJournal;

#[test]
fn lines_survive_a_new_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.redb");
    {
        let j = RedbJournal::open(&path).unwrap();
        j.save("worker/b", b"2").unwrap();
        j.save("worker/a", b"1").unwrap();
        j.save("volume/a", b"3").unwrap();
        j.save("worker/a", b"1b").unwrap();
        j.remove("volume/a").unwrap();
        j.remove("volume/none").unwrap();
    }
    let j = RedbJournal::open(&path).unwrap();
    assert_eq!(j.load("worker/a").unwrap().as_deref(), Some(&b"1b"[..]));
    assert_eq!(j.load("volume/a").unwrap(), None);
    assert_eq!(j.keys("worker/").unwrap(), ["worker/a", "worker/b"]);
}

#[test]
fn writes_of_many_threads_all_land() {
    let dir = tempfile::tempdir().unwrap();
    let j = RedbJournal::open(&dir.path().join("journal.redb")).unwrap();
    std::thread::scope(|s| {
        for i in 0..40 {
            let j = &j;
            s.spawn(move || j.save(&format!("worker/{i:02}"), b"x").unwrap());
        }
    });
    assert_eq!(j.keys("worker/").unwrap().len(), 40);
    assert!(j.queue().batch <= 40, "waiting writes share commits");
}

#[test]
fn a_second_daemon_on_the_same_file_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.redb");
    let _first = RedbJournal::open(&path).unwrap();
    let e = RedbJournal::open(&path).unwrap_err().to_string();
    assert!(e.contains("second bosun"), "{e}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
    let e = RedbJournal::open(Path::new("/nowhere/at/all/journal.redb")).unwrap_err().to_string();
    assert!(e.contains("/nowhere/at/all/journal.redb"), "{e}");
}

fn damaged_files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|n| n.contains("damaged")).collect();
    names.sort();
    names
}

#[test]
fn a_damaged_file_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.redb");
    std::fs::write(&path, vec![7u8; 8192]).unwrap();
    let j = RedbJournal::open(&path).unwrap();
    j.save("k", b"v").unwrap();
    assert_eq!(std::fs::read(dir.path().join("journal.damaged")).unwrap(), vec![7u8; 8192]);
}

#[test]
fn an_earlier_damaged_file_is_never_overwritten_and_their_number_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.redb");
    for n in 1..=13u8 {
        std::fs::write(&path, vec![n; 8192]).unwrap();
        RedbJournal::open(&path).unwrap().save("k", b"v").unwrap();
    }
    assert_eq!(std::fs::read(dir.path().join("journal.damaged")).unwrap()[0], 1);
    assert_eq!(std::fs::read(dir.path().join("journal.damaged.9")).unwrap()[0], 10);
    assert_eq!(damaged_files(dir.path()).len(), 10);
}

#[test]
fn a_file_that_lost_its_end_is_set_aside_and_one_never_finished_is_begun_again() {
    for (keep, aside) in [(0, false), (5, false), (4096, true), (9000, true)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.redb");
        RedbJournal::open(&path).unwrap().save("k", b"v").unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(keep).unwrap();
        let j = RedbJournal::open(&path).unwrap();
        j.save("k", b"w").unwrap();
        assert_eq!(j.load("k").unwrap().as_deref(), Some(&b"w"[..]), "{keep}");
        assert_eq!(!damaged_files(dir.path()).is_empty(), aside, "cut to {keep} bytes");
    }
}

#[test]
fn a_page_that_goes_bad_under_a_running_daemon_does_not_stop_the_journal() {
    use std::os::unix::fs::FileExt;
    for seed in 0..3u64 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.redb");
        let j = RedbJournal::open(&path).unwrap();
        for n in 0..50 {
            j.save(&format!("worker/{n}"), &vec![b'x'; 2000]).unwrap();
        }
        drop(j);
        let j = RedbJournal::open(&path).unwrap();
        let raw = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for page in 1..raw.metadata().unwrap().len() / 4096 {
            if (page * 7 + seed) % 3 == 0 {
                raw.write_all_at(&[0xa5; 4096], page * 4096).unwrap();
            }
        }
        // Whatever of it can still be read: nothing unwinds, and writes land again.
        for n in 0..50 {
            let _any = j.load(&format!("worker/{n}"));
        }
        j.save("worker/new", b"1").unwrap();
        assert_eq!(j.load("worker/new").unwrap().as_deref(), Some(&b"1"[..]), "seed {seed}");
    }
}
