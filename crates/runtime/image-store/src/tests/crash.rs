//! Every moment at which a writer can die, and what the next one finds.

use super::*;

/// No half-written thing, and every image that is listed is whole.
fn must_be_sound(store: &ImageStore) {
    for folder in ["layers", "blobs/sha256", "images", "ingest", "leases"] {
        let left = names(&store.root().join(folder));
        assert!(!left.iter().any(|n| n.starts_with('.')), "{folder}: {left:?}");
    }
    assert_eq!(names(&store.root().join("images")).iter().filter(|n| n.ends_with(".damaged")).count(), 0);
    for image in store.list().unwrap() {
        let mark = &image.config.config.env[0]["MARK=".len()..];
        assert_eq!(seen(store, &image, "app").as_deref(), Some(mark));
        assert_eq!(seen(store, &image, "bin/sh").as_deref(), Some("sh"));
        for lower in store.lowers(&image) {
            assert!(lower.is_dir(), "{}", lower.display());
        }
    }
}

/// Does something in a store that has one image, once for each step at which it can die, and looks at what is there then.
fn at_each_step(act: impl Fn(&ImageStore), look: impl Fn(&ImageStore)) -> u32 {
    for steps in 0.. {
        let (folder, store) = store();
        one().put(&store, "app:1").unwrap();
        let done = death::after(steps, || act(&store));
        drop(store);
        let store = ImageStore::open(folder.path()).unwrap();
        must_be_sound(&store);
        look(&store);
        if done {
            return steps;
        }
        assert!(steps < 200, "no end of steps");
    }
    0
}

#[test]
fn a_pull_that_dies_leaves_the_old_image_or_the_new_one() {
    let steps = at_each_step(
        |store| drop(two().put(store, "app:1")),
        |store| {
            let now = store.resolve("app:1").unwrap().expect("one of them has the name");
            assert!([one().id(), two().id()].contains(&now.id));
            assert!(store.resolve(&one().id().to_string()).unwrap().is_some(), "the old image is not touched");
            let again = two().put(store, "app:1").unwrap();
            assert_eq!(store.resolve("app:1").unwrap().unwrap(), again);
            must_be_sound(store);
        },
    );
    assert!(steps > 15, "{steps} steps: the test has lost its way");
}

#[test]
fn a_removal_that_dies_is_done_or_not() {
    let steps = at_each_step(
        |store| drop(store.remove("app:1", NO_WAIT)),
        |store| {
            if store.resolve("app:1").unwrap().is_some() {
                store.remove("app:1", NO_WAIT).unwrap();
            }
            store.writing("collect", NO_WAIT).unwrap().collect().unwrap();
            assert_eq!(store.usage().unwrap(), crate::Usage::default(), "nothing is left over");
        },
    );
    assert!(steps > 6, "{steps} steps: the test has lost its way");
}

#[test]
fn a_lease_that_dies_is_there_or_not() {
    at_each_step(
        |store| {
            let image = store.resolve("app:1").unwrap().unwrap();
            drop(store.lease(&image, "box"));
            drop(store.release("box"));
        },
        |store| {
            assert!(store.leases().unwrap().len() < 2);
            assert!(store.resolve("app:1").unwrap().is_some());
            store.release("box").unwrap();
        },
    );
}

#[test]
fn what_nobody_finished_goes_and_nothing_else() {
    let (folder, store) = store();
    one().put(&store, "app:1").unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("layers/.new-1-2-abc/diff/deep")).unwrap();
    std::fs::create_dir_all(root.join("layers/.gone-1-2-abc/diff")).unwrap();
    std::fs::write(root.join("images/.new-1-2-x.json"), "{").unwrap();
    std::fs::write(root.join("images/README"), "mine").unwrap();
    let part = format!("ingest/{}.part", Digest::of(b"x").hex());
    std::fs::write(root.join(&part), "half").unwrap();
    let layers = names(&root.join("layers")).len();
    let store = ImageStore::open(root).unwrap();
    assert_eq!(store.checked().unfinished.len(), 3);
    assert_eq!(names(&root.join("layers")).len(), layers - 2);
    assert!(root.join(&part).exists() && root.join("images/README").exists());
    assert!(store.resolve("app:1").unwrap().is_some());
}

#[test]
fn an_image_that_is_not_whole_is_set_aside_with_its_reason() {
    type Harm = fn(&ImageStore, &Image);
    let rows: [(Harm, &str); 5] = [
        (|store, image| std::fs::remove_dir_all(store.inner.folder.layer_path(&image.chain[1])).unwrap(), "its layer"),
        (|store, image| std::fs::remove_dir_all(store.lowers(image)[0].clone()).unwrap(), "its layer"),
        (
            |store, image| {
                std::fs::write(store.inner.folder.layer_path(&image.chain[0]).join("info.json"), "").unwrap()
            },
            "its layer",
        ),
        (|store, image| std::fs::write(store.inner.folder.blob_path(&image.id), "{}").unwrap(), "its configuration"),
        (|store, image| std::fs::write(store.inner.folder.record_path(&image.id), "{\"id\"").unwrap(), "its record"),
    ];
    for (harm, reason) in rows {
        let (folder, store) = store();
        let image = one().put(&store, "app:1").unwrap();
        two().put(&store, "other:1").unwrap();
        harm(&store, &image);
        let store = ImageStore::open(folder.path()).unwrap();
        let aside = &store.checked().set_aside;
        assert!(aside.iter().any(|(_, why)| why.starts_with(reason)), "{aside:?}, not {reason}");
        assert_eq!(store.resolve("app:1").unwrap(), None);
        let again = one().put(&store, "app:1").unwrap();
        assert_eq!(seen(&store, &again, "app").as_deref(), Some("one"), "pulling mends it");
        let other = two().put(&store, "other:1").unwrap();
        assert_eq!(seen(&store, &other, "etc/os").as_deref(), Some("base"));
    }
}

#[test]
fn what_cannot_be_unpacked_leaves_nothing() {
    let (_folder, store) = store();
    let mut bad = one();
    bad.layers[1] = gzip(&layer(&[("app", "another one")]));
    let error = bad.put(&store, "app:1").unwrap_err();
    assert!(matches!(&error, StoreError::Layer { refused: true, .. }), "{error}");
    assert!(error.to_string().contains("diff id"), "{error}");
    assert_eq!(names(&store.root().join("layers")), Vec::<String>::new());
    assert!(store.list().unwrap().is_empty());
    let few = Made { layers: one().layers[..1].to_vec(), ..one() };
    assert!(few.put(&store, "app:1").unwrap_err().to_string().contains("2 layers, its manifest 1"));
}
