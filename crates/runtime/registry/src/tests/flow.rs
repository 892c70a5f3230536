//! Pulls that go well.

use super::*;
use crate::Phase;

#[tokio::test]
async fn an_image_comes_by_tag_and_by_digest() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    for reference in ["team/app:1".to_owned(), format!("team/app@{}", made.digest())] {
        let node = Node::new();
        let progress = Progress::default();
        let request = Request { image: fake.name(&reference), credentials: None, pinned: true };
        let image = node.puller.pull(&request, &progress).await.unwrap();
        node.must_have(&image, &made);
        assert!(image.pinned);
        assert_eq!(image.repo_digests, [fake.name(&format!("team/app@{}", made.digest()))]);
        assert_eq!(image.repo_tags.len(), usize::from(reference == "team/app:1"));
        assert_eq!(node.puller.store().resolve(&fake.name(&reference)).unwrap().as_ref(), Some(&image));
        let layers = progress.layers();
        assert_eq!(layers.len(), 3);
        assert!(layers.iter().all(|l| l.phase == Phase::Done && l.have == l.size), "{layers:?}");
    }
}

#[tokio::test]
async fn of_an_index_the_image_for_this_machine_comes() {
    let (ours, theirs) = (Made::new("amd64", &[layer("a", 10)]), Made::new("arm64", &[layer("b", 10)]));
    let fake = Fake::with(&ours).await;
    fake.put(&theirs, "team/app", "other");
    let one = |made: &Made, machine: &str| {
        let platform = format!(r#"{{"os":"linux","architecture":"{machine}"}}"#);
        let (digest, size) = (made.digest(), made.manifest.len());
        format!(r#"{{"mediaType":"{OCI_MANIFEST}","digest":"{digest}","size":{size},"platform":{platform}}}"#)
    };
    let index = format!(r#"{{"schemaVersion":2,"manifests":[{},{}]}}"#, one(&theirs, "arm64"), one(&ours, "amd64"));
    fake.put_manifest("team/app", "many", OCI_INDEX, index.as_bytes());
    let node = Node::new();
    let image = node.pull(&fake.name("team/app:many")).await.unwrap();
    node.must_have(&image, &ours);
    let digest = Digest::of(index.as_bytes());
    assert_eq!(image.repo_digests, [fake.name(&format!("team/app@{digest}"))], "the name stands for the index");
    let other = Node::with(Settings { platform: "linux/s390x".parse().unwrap(), ..settings() });
    let error = other.refusal(&fake.name("team/app:many")).await;
    assert_eq!(error, "no image for linux/s390x; there are: linux/arm64, linux/amd64");
    let error = other.refusal(&fake.name("team/app:other")).await;
    assert_eq!(error, "no image for linux/s390x; there are: linux/arm64", "a manifest alone is for one machine, too");
}

#[tokio::test]
async fn what_is_here_is_not_pulled_again_but_asked_for() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    let node = Node::new();
    let first = node.pull(&fake.name("team/app:1")).await.unwrap();
    fake.state().seen.clear();
    assert_eq!(node.pull(&fake.name("team/app:1")).await.unwrap(), first);
    assert_eq!(fake.lines(""), ["HEAD /v2/team/app/manifests/1"]);
    let by_digest = fake.name(&format!("team/app@{}", made.digest()));
    node.pull(&by_digest).await.unwrap();
    assert_eq!(fake.lines("GET"), Vec::<String>::new());
    fake.put(&made, "team/copy", "1");
    node.pull(&fake.name("team/copy:1")).await.unwrap();
    assert_eq!(fake.lines("GET"), ["GET /v2/team/copy/manifests/1"], "another name for the same needs one document");
    let more = Made::new("amd64", &[layer("large", 600_000), layer("new", 10)]);
    fake.put(&more, "team/app", "1");
    fake.state().seen.clear();
    let next = node.pull(&fake.name("team/app:1")).await.unwrap();
    node.must_have(&next, &more);
    assert_eq!(fake.lines("/blobs/").len(), 2, "its configuration and the layer that is new");
    fake.state().lock = fake::Lock::Basic("a".to_owned(), "b".to_owned());
    let error = node.pull(&by_digest).await.unwrap_err();
    assert!(error.is_denied(), "who may not have it is told so, though it is here: {error}");
}

#[tokio::test]
async fn a_registry_that_does_not_say_digests_is_asked_for_the_manifest() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    fake.state().silent = true;
    let node = Node::new();
    let first = node.pull(&fake.name("team/app:1")).await.unwrap();
    assert_eq!(node.pull(&fake.name("team/app:1")).await.unwrap().id, first.id);
    fake.fault("HEAD", 9, Act::Status(405, ""));
    assert_eq!(node.pull(&fake.name("team/app:1")).await.unwrap().id, first.id);
}

#[tokio::test]
async fn layers_come_side_by_side_within_their_bound() {
    let layers: Vec<Vec<u8>> = (0..9).map(|n| layer(&format!("f{n}"), 1000)).collect();
    let made = Made::new("amd64", &layers);
    let fake = Fake::with(&made).await;
    fake.fault("/blobs/", 99, Act::Late(Duration::from_millis(40)));
    let node = Node::with(Settings { layers_at_once: 3, ..settings() });
    let image = node.pull(&fake.name("team/app:1")).await.unwrap();
    node.must_have(&image, &made);
    assert_eq!(fake.state().most_at_once, 3);
}

#[tokio::test]
async fn a_layer_that_an_image_has_twice_comes_once() {
    let twice = layer("same", 5000);
    let made = Made::new("amd64", &[twice.clone(), layer("other", 10), twice]);
    let fake = Fake::with(&made).await;
    let node = Node::new();
    let image = node.pull(&fake.name("team/app:1")).await.unwrap();
    node.must_have(&image, &made);
    assert_eq!(fake.lines(&made.layer(0).to_string()).len(), 1);
    assert_ne!(image.chain[0], image.chain[2]);
}

#[tokio::test]
async fn pulls_at_once_share_their_layers() {
    let (one, two) = (Made::usual(), Made::new("amd64", &[layer("large", 600_000), layer("x", 10)]));
    let fake = Fake::with(&one).await;
    fake.put(&two, "team/two", "1");
    let node = Node::new();
    let (name, other) = (fake.name("team/app:1"), fake.name("team/two:1"));
    let (a, b, c) = tokio::join!(node.pull(&name), node.pull(&other), node.pull(&name));
    node.must_have(&a.unwrap(), &one);
    node.must_have(&b.unwrap(), &two);
    assert_eq!(c.unwrap().id, one.id());
    assert_eq!(fake.lines(&one.layer(0).to_string()).len(), 1, "{:?}", fake.lines("/blobs/"));
}

#[tokio::test]
async fn a_slow_registry_holds_no_other_up_for_longer_than_a_turn() {
    let made = Made::usual();
    let (slow, fine) = (Fake::with(&made).await, Fake::with(&made).await);
    slow.fault(&made.layer(0).to_string(), 9, Act::Stall(Some(1000)));
    let deadlines = Deadlines { turn: Duration::from_millis(300), ..Deadlines::default() };
    let node = Node::with(Settings { deadlines, ..settings() });
    let (slow_name, name) = (slow.name("team/app:1"), fine.name("team/app:1"));
    let stuck = node.pull(&slow_name);
    tokio::pin!(stuck);
    let begun = async {
        while slow.lines("/blobs/").len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = &mut stuck => panic!("it stalls"),
        () = begun => {}
    }
    let second = tokio::select! {
        _ = &mut stuck => panic!("it stalls"),
        second = tokio::time::timeout(Duration::from_secs(30), node.pull(&name)) => second.expect("its own attempt"),
    };
    node.must_have(&second.unwrap(), &made);
    let own: Vec<_> = std::fs::read_dir(node.puller.store().root().join("ingest")).unwrap().flatten().collect();
    assert!(own.iter().all(|e| !e.file_name().to_string_lossy().starts_with(".new-")), "{own:?}");
}

#[tokio::test]
async fn an_image_without_layers_is_one() {
    let made = Made::new("amd64", &[]);
    let fake = Fake::with(&made).await;
    let node = Node::new();
    let image = node.pull(&fake.name("team/app:1")).await.unwrap();
    assert_eq!((image.id, image.layers.len()), (made.id(), 0));
}
