//! Several writers. Two stores that were opened apart stand for two processes: `flock` tells them apart.

use super::*;

#[test]
fn another_process_is_waited_for_and_named() {
    let (folder, store) = store();
    let writing = store.writing("pull busybox", NO_WAIT).unwrap();
    let other = ImageStore::open(folder.path()).unwrap();
    assert!(other.checked().left_to.is_some(), "who writes checks");
    let error = other.writing("remove x", Duration::from_millis(50)).unwrap_err();
    let StoreError::Held(held) = &error else { panic!("{error}") };
    assert_eq!(held.by.as_ref().map(|by| (by.pid, by.what.as_str())), Some((std::process::id(), "pull busybox")));
    assert!(error.to_string().contains("in use by process"), "{error}");
    let waiting = std::thread::spawn(move || other.writing("remove x", Duration::from_secs(20)).map(|_| ()));
    drop(writing);
    waiting.join().unwrap().unwrap();
    store.writing("again", Duration::from_secs(20)).unwrap();
}

#[test]
fn writers_of_one_process_go_on_side_by_side() {
    let (_folder, store) = store();
    let first = store.writing("pull a", NO_WAIT).unwrap();
    std::fs::create_dir(store.root().join("layers/.new-mine")).unwrap();
    let second = store.clone().writing("pull b", NO_WAIT).unwrap();
    assert!(
        store.root().join("layers/.new-mine").exists(),
        "what another one of us has begun is no rest of a dead one"
    );
    drop((first, second));
    drop(store.writing("pull c", NO_WAIT).unwrap());
    assert!(!store.root().join("layers/.new-mine").exists());
}

#[test]
fn garbage_is_not_what_is_under_way() {
    let (_folder, store) = store();
    let image = one().put(&store, "app:1").unwrap();
    let pull = store.writing("pull", NO_WAIT).unwrap();
    pull.keep(two().draft("two:1").unwrap().layers.iter().map(|l| l.chain_id));
    let text = b"a document of an image that comes".to_vec();
    pull.put_document(&Digest::of(&text), &text).unwrap();
    store.remove("app:1", NO_WAIT).unwrap();
    assert!(store.has_layer(&image.chain[0]).unwrap(), "the pull saw it and counts on it");
    assert!(!store.has_layer(&image.chain[1]).unwrap());
    assert!(store.document(&Digest::of(&text)).unwrap().is_some());
    drop(pull);
    store.writing("collect", NO_WAIT).unwrap().collect().unwrap();
    assert_eq!(store.usage().unwrap(), crate::Usage::default());
}

#[test]
fn a_lease_waits_for_another_process_that_looks_for_garbage() {
    let (folder, store) = store();
    let image = one().put(&store, "app:1").unwrap();
    let looking = crate::lock::briefly(folder.path(), true).unwrap();
    let (begun, told) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        begun.send(()).unwrap();
        store.lease(&image, "box").map(|_| store)
    });
    told.recv().unwrap();
    assert_eq!(names(&folder.path().join("leases")), Vec::<String>::new());
    drop(looking);
    let store = waiting.join().unwrap().unwrap();
    assert_eq!(store.leases().unwrap().len(), 1);
    let (one, two) = (crate::lock::briefly(folder.path(), false), crate::lock::briefly(folder.path(), false));
    assert!(one.is_ok() && two.is_ok(), "leases do not wait for each other");
}

#[test]
fn many_threads_put_and_remove() {
    let (_folder, store) = store();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for round in 0..5 {
                    let name = format!("app{thread}:1");
                    let made = Made::new(&format!("{thread}-{round}"), &[base(), layer(&[("app", &name)])]);
                    let image = made.put(&store, &name).unwrap();
                    assert_eq!(seen(&store, &image, "bin/sh").as_deref(), Some("sh"));
                    store.remove(&name, Duration::from_secs(20)).unwrap();
                }
            });
        }
    });
    store.writing("collect", NO_WAIT).unwrap().collect().unwrap();
    assert_eq!(store.usage().unwrap(), crate::Usage::default());
}
