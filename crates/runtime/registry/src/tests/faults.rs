//! Everything that a registry, or what lies between, can do wrong.

use super::fake::redirect;
use super::*;

#[tokio::test]
async fn what_passes_is_waited_out() {
    let made = Made::usual();
    let rows: Vec<(&str, u32, Act)> = vec![
        ("/manifests/", 4, Act::Status(503, "")),
        ("/manifests/", 2, Act::Status(500, "<html>oops</html>")),
        ("/manifests/", 1, Act::Header(429, "retry-after", "0".to_owned())),
        ("/manifests/", 2, Act::Cut(10)),
        ("/blobs/", 4, Act::Status(502, "")),
        ("/blobs/", 3, Act::Status(429, "")),
        ("/blobs/", 3, Act::Cut(0)),
        ("/blobs/", 3, Act::Cut(60)),
    ];
    for (part, times, act) in rows {
        let fake = Fake::with(&made).await;
        fake.fault(part, times, act.clone());
        let node = Node::new();
        let image = node.pull(&fake.name("team/app:1")).await.unwrap_or_else(|e| panic!("{act:?}: {e}"));
        node.must_have(&image, &made);
    }
}

#[tokio::test]
async fn a_layer_goes_on_where_it_broke_off() {
    let made = Made::usual();
    let large = made.layer(0).to_string();
    let fake = Fake::with(&made).await;
    fake.fault(&large, 1, Act::Cut(400_000));
    let node = Node::new();
    let image = node.pull(&fake.name("team/app:1")).await.unwrap();
    node.must_have(&image, &made);
    let ranges = fake.header(&large, "range");
    assert_eq!(ranges.len(), 2);
    let from: u64 = ranges[1].as_deref().unwrap()["bytes=".len()..].trim_end_matches('-').parse().unwrap();
    assert!(from > 0 && from <= 400_000, "{from}");
}

#[tokio::test]
async fn a_layer_goes_on_in_the_next_pull() {
    let made = Made::usual();
    let large = made.layer(0).to_string();
    let fake = Fake::with(&made).await;
    fake.fault(&large, 1, Act::Stall(Some(300_000)));
    let node = Node::new();
    let name = fake.name("team/app:1");
    {
        let progress = Progress::default();
        let request = Request { image: name.clone(), credentials: None, pinned: false };
        let pull = node.puller.pull(&request, &progress);
        let far = until(|| progress.layers().first().is_some_and(|l| l.have > 200_000));
        // Dropped in the middle, as when whoever asked is gone.
        tokio::select! { _ = pull => panic!("it stalls"), () = far => {} }
    }
    assert!(node.parts() > 0);
    let image = node.pull(&name).await.unwrap();
    node.must_have(&image, &made);
    assert!(fake.header(&large, "range")[1].is_some());
}

#[tokio::test]
async fn registries_that_do_not_know_ranges_are_borne() {
    let made = Made::usual();
    let large = made.layer(0).to_string();
    for act in [Act::Whole, Act::Status(416, ""), Act::Elsewhere] {
        let fake = Fake::with(&made).await;
        fake.fault(&large, 1, Act::Cut(400_000));
        fake.fault(&large, 1, act.clone());
        let node = Node::new();
        let image = node.pull(&fake.name("team/app:1")).await.unwrap_or_else(|e| panic!("{act:?}: {e}"));
        node.must_have(&image, &made);
    }
}

#[tokio::test]
async fn a_part_that_a_power_cut_spoilt_is_begun_anew() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    let node = Node::new();
    let part = node.puller.store().root().join(format!("ingest/{}.part", made.layer(0).hex()));
    for spoilt in [vec![0; 100_000], vec![0; made.layers[0].len()], vec![0; made.layers[0].len() + 1]] {
        std::fs::write(&part, spoilt).unwrap();
        let image = node.pull(&fake.name("team/app:1")).await.unwrap();
        node.must_have(&image, &made);
        node.puller.store().remove(&fake.name("team/app:1"), Duration::ZERO).unwrap();
    }
}

#[tokio::test]
async fn a_host_that_says_nothing_any_more_is_given_up() {
    let made = Made::usual();
    let short =
        Deadlines { answer: Duration::from_millis(150), progress: Duration::from_millis(150), ..Deadlines::default() };
    for (part, act) in [
        ("/manifests/", Act::Stall(None)),
        ("/manifests/", Act::Stall(Some(20))),
        ("/blobs/", Act::Stall(None)),
        ("/blobs/", Act::Stall(Some(100))),
    ] {
        let fake = Fake::with(&made).await;
        fake.fault(part, 99, act.clone());
        let node = Node::with(Settings { deadlines: short, attempts: 2, ..settings() });
        let error = node.refusal(&fake.name("team/app:1")).await;
        assert!(error.contains("nothing came for 0.15 s"), "{act:?}: {error}");
        assert!(error.starts_with(&fake.address.to_string()), "{error}");
    }
}

#[tokio::test]
async fn what_does_not_pass_is_told_with_host_and_reason() {
    let made = Made::usual();
    let (config, first) = (made.id().hex(), made.layer(0).hex());
    let rows: Vec<(&str, Act, &str)> = vec![
        (
            "/manifests/",
            Act::Status(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"no such tag"}]}"#),
            "answered 404 (no such tag); is the name right?",
        ),
        ("/manifests/", Act::Status(403, ""), "answered 403; are credentials needed"),
        ("/manifests/", Act::Status(401, ""), "answered 401; are credentials needed"),
        ("/manifests/", Act::Status(429, "\u{1b}[31m"), "answered 429; too many pulls"),
        ("/manifests/", Act::Status(500, ""), "answered 500"),
        ("/manifests/", Act::Status(204, ""), "answered 204"),
        ("/manifests/", Act::Content(b"{".to_vec()), "not a document of an image"),
        ("/manifests/", Act::Content(vec![b' '; 5 << 20]), "its manifest is larger than 4194304 bytes"),
        ("/manifests/", redirect("ftp://x/".to_owned()), "a redirect to \"ftp://x/\""),
        ("/manifests/", redirect("/v2/team/app/manifests/1".to_owned()), "more than 10 redirects"),
        (&config, Act::Content(b"{}".to_vec()), "gave content that is not"),
        (&config, Act::More(10), "its configuration is larger than"),
        (&first, Act::Status(404, ""), "for layer sha256:"),
        (&first, Act::Content(made.layers[1].clone()), "it ended after"),
        (&first, Act::Content(vec![7; made.layers[0].len()]), "gave content that is not"),
        (&first, Act::More(1), "is longer than the"),
        (&first, Act::More(1 << 20), "is longer than the"),
    ];
    for (part, act, reason) in rows {
        let fake = Fake::with(&made).await;
        fake.fault(part, 999, act.clone());
        let error = Node::new().refusal(&fake.name("team/app:1")).await;
        assert!(error.contains(reason), "{error}, not {reason}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

#[tokio::test]
async fn a_manifest_that_is_not_what_was_asked_for_is_refused() {
    let (made, other) = (Made::usual(), Made::new("amd64", &[layer("other", 10)]));
    let fake = Fake::with(&made).await;
    fake.fault("/manifests/", 9, Act::Content(other.manifest.clone()));
    let error = Node::new().refusal(&fake.name(&format!("team/app@{}", made.digest()))).await;
    assert!(error.contains("gave content that is not"), "{error}");
    // By tag the registry's own word about the digest counts.
    let fake = Fake::with(&made).await;
    let wrong = Digest::of(b"something else").to_string();
    fake.fault("/manifests/", 9, Act::Header(200, "docker-content-digest", wrong));
    let error = Node::new().refusal(&fake.name("team/app:1")).await;
    assert!(error.contains("gave content that is not"), "{error}");
}

#[tokio::test]
async fn layers_that_mean_harm_are_refused_and_leave_nothing() {
    let mut evil = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..9].copy_from_slice(b"../victim");
    header.set_size(0);
    header.set_cksum();
    evil.append(&header, &[][..]).unwrap();
    let evil = Made::new("amd64", &[layer("fine", 100), evil.into_inner().unwrap()]);
    let fake = Fake::with(&evil).await;
    let error = Node::new().refusal(&fake.name("team/app:1")).await;
    assert!(error.contains("leads upwards"), "{error}");
    let mut liar = Made::new("amd64", &[layer("a", 100)]);
    let real = gzip(&layer("b", 100));
    let text = String::from_utf8(liar.manifest).unwrap();
    let size = |l: &[u8]| format!("\"size\":{}}}", l.len());
    let text = text.replace(&Digest::of(&liar.layers[0]).to_string(), &Digest::of(&real).to_string());
    liar.manifest = text.replace(&size(&liar.layers[0]), &size(&real)).into_bytes();
    liar.layers = vec![real];
    let fake = Fake::with(&liar).await;
    let error = Node::new().refusal(&fake.name("team/app:1")).await;
    assert!(error.contains("has the diff id"), "{error}");
    let bomb = Made::new("amd64", &[vec![0; 8 << 20]]);
    let fake = Fake::with(&bomb).await;
    let limits = image_store::Limits { ratio: 50, ratio_from: 1 << 20, ..Default::default() };
    let error = Node::with(Settings { limits, ..settings() }).refusal(&fake.name("team/app:1")).await;
    assert!(error.contains("a decompression bomb"), "{error}");
}

#[tokio::test]
async fn an_image_that_cannot_fit_is_not_begun() {
    let mut made = Made::new("amd64", &[layer("a", 100)]);
    let size = format!("\"size\":{}}}]", made.layers[0].len());
    made.manifest =
        String::from_utf8(made.manifest).unwrap().replace(&size, "\"size\":9000000000000000000}]").into_bytes();
    let fake = Fake::with(&made).await;
    let error = Node::new().refusal(&fake.name("team/app:1")).await;
    assert!(error.contains("needs at least 9000000000000000000 bytes"), "{error}");
    assert_eq!(fake.lines(&made.layer(0).hex()), Vec::<String>::new());
}

#[tokio::test]
async fn names_and_hosts_that_are_none_are_told() {
    let node = Node::new();
    for (name, reason) in [
        ("A B", "invalid reference format"),
        ("127.0.0.1:1/a", "127.0.0.1:1 (for its manifest) cannot be reached"),
        ("r.invalid.:5000/a", "invalid reference format"),
    ] {
        let error = node.refusal(name).await;
        assert!(error.contains(reason), "{error}, not {reason}");
    }
    let sha512 = format!("r.io/a@sha512:{}", "a".repeat(128));
    assert!(node.refusal(&sha512).await.contains("only sha256"));
}
