use super::{Endpoint, EndpointError};

#[test]
fn accepts_unix_sockets_only() {
    let long = format!("unix:///{}", "x".repeat(107));
    let rows: &[(&str, &str, Result<&str, &str>)] = &[
        ("full url", "unix:///run/containerd/containerd.sock", Ok("/run/containerd/containerd.sock")),
        ("one slash", "unix:/run/c.sock", Ok("/run/c.sock")),
        ("bare path", "/run/c.sock", Ok("/run/c.sock")),
        ("colon in a path", "/run/a:b.sock", Ok("/run/a:b.sock")),
        ("empty", "  ", Err("is empty")),
        ("tcp", "tcp://127.0.0.1:3735", Err("tcp is refused")),
        ("windows pipe", "npipe:////./pipe/containerd", Err("protocol \"npipe\" is not supported")),
        ("http", "http://localhost", Err("protocol \"http\"")),
        ("host in a unix url", "unix://run/c.sock", Err("must be absolute")),
        ("relative", "c.sock", Err("must be absolute")),
        ("too long", &long, Err("at most 107")),
    ];
    for (name, text, want) in rows {
        match (Endpoint::parse(text), want) {
            (Ok(e), Ok(path)) => assert_eq!(e.path().to_str(), Some(*path), "{name}"),
            (Err(e), Err(part)) => assert!(e.to_string().contains(part), "{name}: {e}"),
            (got, want) => panic!("{name}: got {got:?}, want {want:?}"),
        }
    }
    assert_eq!(Endpoint::parse(""), Err(EndpointError::Empty));
}

#[test]
fn warns_of_a_bare_path_and_shows_the_full_form() {
    let e = Endpoint::parse("/run/c.sock").unwrap();
    assert_eq!(e.deprecation().unwrap(), "endpoint without a scheme is deprecated, write unix:///run/c.sock");
    assert_eq!(Endpoint::parse("unix:///run/c.sock").unwrap().deprecation(), None);
}
