//! The real watch on a real folder, in real time.

use std::time::Duration;

use futures::StreamExt;
use ports::watch::{Change, Changes, FolderWatch};

use crate::folder::InotifyWatch;

/// The next change, or a failure after a generous while.
async fn next(changes: &mut Changes) -> Change {
    let next = tokio::time::timeout(Duration::from_secs(10), changes.next());
    next.await.expect("a change in time").expect("the watch lives").expect("no error")
}

fn run<F: Future<Output = ()>>(f: F) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f);
}

#[test]
fn inotify_tells_what_happens_in_a_folder() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let mut changes = InotifyWatch.start(dir.path()).unwrap();
        std::fs::write(dir.path().join("a"), "1").unwrap();
        assert_eq!(next(&mut changes).await, Change::Created("a".into()));
        assert_eq!(next(&mut changes).await, Change::Written("a".into()));
        std::fs::set_permissions(dir.path().join("a"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(next(&mut changes).await, Change::Touched("a".into()));
        std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        assert_eq!(next(&mut changes).await, Change::Gone("a".into()));
        assert_eq!(next(&mut changes).await, Change::Written("b".into()));
        std::fs::remove_file(dir.path().join("b")).unwrap();
        assert_eq!(next(&mut changes).await, Change::Gone("b".into()));
        std::fs::remove_dir(dir.path()).unwrap();
        assert_eq!(next(&mut changes).await, Change::PathGone);
    });
}

#[test]
fn inotify_tells_of_a_single_file() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "1").unwrap();
        let mut changes = InotifyWatch.start(&file).unwrap();
        std::fs::write(&file, "2").unwrap();
        assert_eq!(next(&mut changes).await, Change::Everything);
        std::fs::write(dir.path().join("b"), "3").unwrap();
        std::fs::rename(dir.path().join("b"), &file).unwrap();
        // The old file's links changed before it went.
        let mut last = next(&mut changes).await;
        while last == Change::Everything {
            last = next(&mut changes).await;
        }
        assert_eq!(last, Change::PathGone);
    });
}

#[test]
fn inotify_says_when_there_is_nothing_to_watch() {
    run(async {
        let error = InotifyWatch.start(std::path::Path::new("/nonexistent/x")).err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    });
}
