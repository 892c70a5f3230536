use super::*;
use fakes::MemoryJournal;
use std::os::unix::fs::PermissionsExt;

struct Place {
    dir: tempfile::TempDir,
    journal: Arc<MemoryJournal>,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), journal: Arc::default() }
    }

    fn key_file(&self) -> PathBuf {
        self.dir.path().join("deep/objects.key")
    }

    fn open(&self) -> SealedCache {
        let config = actor::KernelConfig::default();
        let effects = actor::Kernel::new(config).effects("object-store");
        SealedCache::new(self.journal.clone(), Arc::new(fakes::LinuxFs), effects, self.key_file())
    }
}

fn written(sealed: &SealedCache, line: &str, content: &[u8]) {
    sealed.inner.write_line(line, Some(content.to_vec())).unwrap();
}

#[test]
fn what_was_sealed_is_read_in_another_life_and_never_lies_open() {
    let place = Place::new();
    written(&place.open(), "object/secret/ns/a", b"sesame");
    let raw = place.journal.load("object/secret/ns/a").unwrap().unwrap();
    assert!(!raw.windows(6).any(|w| w == b"sesame"));
    assert_eq!(place.open().inner.read("object/secret/ns/a").unwrap(), b"sesame");
    let mode = std::fs::metadata(place.key_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn lines_that_were_exchanged_cut_or_changed_do_not_open() {
    let place = Place::new();
    let sealed = place.open();
    written(&sealed, "object/a", b"one");
    let raw = place.journal.load("object/a").unwrap().unwrap();
    let flipped: Vec<u8> = raw.iter().enumerate().map(|(i, b)| if i == 13 { b ^ 1 } else { *b }).collect();
    for (what, line, bytes) in [
        ("another line's", "object/b", raw.clone()),
        ("cut", "object/a", raw[..raw.len() - 1].to_vec()),
        ("very short", "object/a", raw[..5].to_vec()),
        ("changed", "object/a", flipped),
    ] {
        place.journal.save(line, &bytes).unwrap();
        assert_eq!(sealed.inner.read(line), None, "{what}");
    }
}

#[test]
fn the_same_content_is_not_written_twice() {
    let place = Place::new();
    let sealed = place.open();
    written(&sealed, "object/a", b"one");
    let first = place.journal.load("object/a").unwrap();
    written(&sealed, "object/a", b"one");
    assert_eq!(place.journal.load("object/a").unwrap(), first);
    written(&sealed, "object/a", b"two");
    assert_ne!(place.journal.load("object/a").unwrap(), first);
}

#[test]
fn a_damaged_key_is_replaced_and_its_lines_are_lost() {
    let place = Place::new();
    written(&place.open(), "object/a", b"one");
    for damaged in [b"short".to_vec(), vec![7; 64]] {
        std::fs::write(place.key_file(), damaged).unwrap();
        let sealed = place.open();
        assert_eq!(sealed.inner.read("object/a"), None);
        written(&sealed, "object/a", b"new");
        assert_eq!(place.open().inner.read("object/a").unwrap(), b"new");
    }
}

#[test]
fn a_journal_that_cannot_be_written_costs_the_line_only() {
    let place = Place::new();
    place.journal.set_broken(true);
    let sealed = place.open();
    written(&sealed, "object/a", b"one");
    assert_eq!(sealed.inner.read("object/a"), None);
    place.journal.set_broken(false);
    written(&sealed, "object/a", b"one");
    assert_eq!(sealed.inner.read("object/a").unwrap(), b"one");
}

#[tokio::test]
async fn a_write_that_panicked_does_not_wedge_the_writers() {
    let place = Place::new();
    let sealed = place.open();
    place.journal.set_panics(true);
    sealed.put("object/a".to_owned(), Some(b"one".to_vec()));
    while sealed.inner.queue().writing {
        tokio::task::yield_now().await;
    }
    place.journal.set_panics(false);
    sealed.put("object/b".to_owned(), Some(b"two".to_vec()));
    while sealed.inner.queue().writing {
        tokio::task::yield_now().await;
    }
    assert_eq!(sealed.inner.read("object/b").unwrap(), b"two");
}

/// No thread could be started, or the runtime ended: the work is dropped as it is.
#[test]
fn a_write_that_never_began_does_not_wedge_the_writers() {
    let place = Place::new();
    let sealed = place.open();
    drop(sealed.queued("object/a".to_owned(), Some(b"one".to_vec())).expect("nobody writes"));
    let writer = sealed.queued("object/b".to_owned(), Some(b"two".to_vec())).expect("nobody writes");
    assert!(sealed.queued("object/c".to_owned(), None).is_none(), "one at a time");
    writer.write();
    assert_eq!(sealed.inner.read("object/a").unwrap(), b"one", "the next one writes all that waits");
    assert_eq!(sealed.inner.read("object/b").unwrap(), b"two");
    assert!(sealed.queued("object/c".to_owned(), None).is_some());
}
