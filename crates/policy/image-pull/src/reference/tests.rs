use super::*;
use proptest::prelude::*;

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn names_get_a_tag_only_when_they_have_neither_tag_nor_digest() {
    let digest = format!("busybox@sha256:{HEX}");
    let both = format!("registry.k8s.io/pause:3.9@sha256:{HEX}");
    for (image, expected) in [
        ("busybox", "busybox:latest"),
        ("busybox:1.36", "busybox:1.36"),
        ("busybox:latest", "busybox:latest"),
        ("library/busybox", "library/busybox:latest"),
        ("registry.k8s.io/e2e-test-images/busybox:1.36.1-1", "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"),
        ("localhost/x", "localhost/x:latest"),
        ("localhost:5000/a/b", "localhost:5000/a/b:latest"),
        ("127.0.0.1:5000/a:v1", "127.0.0.1:5000/a:v1"),
        ("[::1]:5000/a", "[::1]:5000/a:latest"),
        ("HOST/a", "HOST/a:latest"),
        ("a__b/c--d.e_f", "a__b/c--d.e_f:latest"),
        ("index.docker.io/busybox", "index.docker.io/busybox:latest"),
        (digest.as_str(), digest.as_str()),
        (both.as_str(), both.as_str()),
        ("busybox:_x.Y-1", "busybox:_x.Y-1"),
    ] {
        assert_eq!(with_default_tag(image).as_deref(), Ok(expected), "{image}");
    }
}

#[test]
fn refuses_what_no_registry_would_serve() {
    let upper_digest = format!("a@sha256:{}", HEX.to_uppercase());
    let long = "a".repeat(250);
    for (image, error) in [
        ("", ReferenceError::Format),
        ("/", ReferenceError::Format),
        ("a/", ReferenceError::Format),
        ("a//b", ReferenceError::Format),
        (":tag", ReferenceError::Format),
        ("a:", ReferenceError::Format),
        ("a b", ReferenceError::Format),
        ("-a", ReferenceError::Format),
        ("a___b", ReferenceError::Format),
        ("a..b", ReferenceError::Format),
        ("a@", ReferenceError::Format),
        ("a@sha256:short", ReferenceError::Format),
        ("a:b:c", ReferenceError::Format),
        ("host:port/a", ReferenceError::Format),
        ("-host.io/a", ReferenceError::Format),
        ("a:-tag", ReferenceError::Format),
        ("https://host.io/a", ReferenceError::Format),
        ("Busybox", ReferenceError::UpperCase("Busybox".into())),
        ("host.io/Foo/bar:1", ReferenceError::UpperCase("Foo/bar".into())),
        (HEX, ReferenceError::Identifier(HEX.into())),
        (long.as_str(), ReferenceError::TooLong),
        ("a@md5:0123456789abcdef0123456789abcdef", ReferenceError::DigestAlgorithm),
        ("a@sha256:0123456789abcdef0123456789abcdef", ReferenceError::DigestLength),
        (upper_digest.as_str(), ReferenceError::DigestFormat),
    ] {
        assert_eq!(with_default_tag(image), Err(error), "{image}");
    }
    let long_tag = format!("a:{}", "t".repeat(129));
    assert_eq!(with_default_tag(&long_tag), Err(ReferenceError::Format));
}

proptest! {
    #[test]
    fn a_tagged_name_stays_as_it_is(image in "[A-Za-z0-9:/@._-]{0,80}") {
        if let Ok(tagged) = with_default_tag(&image) {
            prop_assert!(tagged.starts_with(&image));
            prop_assert_eq!(with_default_tag(&tagged), Ok(tagged.clone()));
        }
    }

    #[test]
    fn never_panics(image in "\\PC{0,80}") {
        let _ = with_default_tag(&image);
    }
}

#[test]
fn repositories_table() {
    let digest = format!("quay.io/a@sha256:{}", "0".repeat(64));
    for (image, expected) in [
        ("busybox", "docker.io/library/busybox"),
        ("busybox:1.36", "docker.io/library/busybox"),
        ("team/app", "docker.io/team/app"),
        ("index.docker.io/busybox", "docker.io/library/busybox"),
        ("localhost:5000/x:1", "localhost:5000/x"),
        ("registry.k8s.io/e2e-test-images/busybox:1.36.1-1", "registry.k8s.io/e2e-test-images/busybox"),
        (digest.as_str(), "quay.io/a"),
    ] {
        assert_eq!(super::repository(image).unwrap(), expected, "{image}");
    }
    assert!(super::repository("Bad").is_err());
}

#[test]
fn a_name_falls_into_its_parts_and_comes_together_again() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let rows = [
        ("busybox", "docker.io", "library/busybox", Some("latest"), None),
        ("a/b:1", "docker.io", "a/b", Some("1"), None),
        ("localhost:5000/a/b", "localhost:5000", "a/b", Some("latest"), None),
        ("r.io/a:1@DIGEST", "r.io", "a", Some("1"), Some(digest.as_str())),
        ("r.io:5000/a@DIGEST", "r.io:5000", "a", None, Some(digest.as_str())),
        ("index.docker.io/busybox:1", "docker.io", "library/busybox", Some("1"), None),
    ];
    for (name, host, path, tag, with_digest) in rows {
        let parsed = Reference::parse(&name.replace("DIGEST", &digest)).unwrap();
        let parts = (parsed.host.as_str(), parsed.path.as_str(), parsed.tag.as_deref(), parsed.digest.as_deref());
        assert_eq!(parts, (host, path, tag, with_digest), "{name}");
        assert_eq!(Reference::parse(&parsed.to_string()).as_ref(), Ok(&parsed));
    }
    assert_eq!(Reference::parse("a b"), Err(ReferenceError::Format));
}
