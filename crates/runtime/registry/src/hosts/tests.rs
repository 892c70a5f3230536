use super::*;

/// One line per host: URL, capabilities, of what it is a mirror.
fn lines(endpoints: &[Endpoint]) -> Vec<String> {
    let line = |e: &Endpoint| {
        let can = (if e.resolves { "r" } else { "-" }, if e.pulls { "p" } else { "-" });
        format!("{} {}{} {}", e.root, can.0, can.1, e.mirror_of.as_deref().unwrap_or("itself"))
    };
    endpoints.iter().map(line).collect()
}

#[test]
fn without_a_configuration_a_registry_is_asked_itself() {
    let rows = [
        ("docker.io", "https://registry-1.docker.io/v2 rp itself"),
        ("quay.io", "https://quay.io/v2 rp itself"),
        ("r.io:5000", "https://r.io:5000/v2 rp itself"),
        ("localhost:5000", "http://localhost:5000/v2 rp itself"),
        ("localhost", "http://localhost/v2 rp itself"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v2 rp itself"),
        ("[::1]:5000", "http://[::1]:5000/v2 rp itself"),
        ("127.0.0.1:443", "https://127.0.0.1:443/v2 rp itself"),
        ("127.example.com", "https://127.example.com/v2 rp itself"),
    ];
    for (registry, want) in rows {
        assert_eq!(lines(&hosts(None, registry).unwrap()), [want]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(lines(&hosts(Some(empty.path()), registry).unwrap()), [want]);
    }
}

const MIRRORS: &str = r#"
server = "https://registry-1.docker.io"
ca = "own.pem"

[host."https://z.example.com/"]
  capabilities = ["pull", "resolve"]
  ca = ["/etc/a.pem", "b.pem"]
  client = [["c.cert", "c.key"], ["d.cert", "d.key"]]

[host."http://a.example.com:5000/proxy"]
  capabilities = ["pull"]
  skip_verify = true
  [host."http://a.example.com:5000/proxy".header]
    X-One = "1"
    X-Two = ["2", "3"]

[host."https://harbor.example.com/v2/hub"]
  override_path = true
  client = "both.pem"

[host."plain.example.com"]
"#;

#[test]
fn mirrors_come_in_the_order_of_the_file_and_the_server_last() {
    let found = parse(MIRRORS, Path::new("/etc/h"), "docker.io").unwrap();
    assert_eq!(
        lines(&found),
        [
            "https://z.example.com/v2 rp docker.io",
            "http://a.example.com:5000/proxy/v2 -p docker.io",
            "https://harbor.example.com/v2/hub rp docker.io",
            "https://plain.example.com/v2 rp docker.io",
            "https://registry-1.docker.io/v2 rp itself",
        ]
    );
    assert_eq!(found[0].tls.ca, [Path::new("/etc/a.pem"), Path::new("/etc/h/b.pem")]);
    assert_eq!(found[0].tls.client, Some(("/etc/h/c.cert".into(), Some("/etc/h/c.key".into()))));
    assert!(found[1].tls.skip_verify && !found[0].tls.skip_verify);
    let headers = [("X-One", "1"), ("X-Two", "2"), ("X-Two", "3")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(found[1].headers, headers);
    assert_eq!(found[2].tls.client, Some(("/etc/h/both.pem".into(), None)));
    assert_eq!(found[4].tls.ca, [Path::new("/etc/h/own.pem")]);
    let url = found[2].url("library/busybox", "manifests/1");
    assert_eq!(url.to_string(), "https://harbor.example.com/v2/hub/library/busybox/manifests/1?ns=docker.io");
    assert_eq!(found[4].url("a", "blobs/x").to_string(), "https://registry-1.docker.io/v2/a/blobs/x");
}

#[test]
fn a_server_may_stand_for_the_registry() {
    let other = parse("server = \"http://10.0.0.1:5000\"", Path::new("/"), "r.io").unwrap();
    assert_eq!(lines(&other), ["http://10.0.0.1:5000/v2 rp r.io"]);
    assert_eq!(lines(&parse("", Path::new("/"), "r.io").unwrap()), ["https://r.io/v2 rp itself"]);
}

#[test]
fn what_is_wrong_is_told_with_its_key() {
    let rows = [
        ("server = 7", "server is no text"),
        ("server = \"ftp://x\"", "no URL"),
        ("host = 7", "host is no table"),
        ("[host]\n\"https://a\" = 7", "host.\"https://a\" is no table"),
        ("[host.\"https://a\"]\ncapabilities = [\"fly\"]", "\"fly\" is none"),
        ("[host.\"https://a\"]\ncapabilities = 7", "no list of texts"),
        ("[host.\"https://a\"]\nskip_verify = \"yes\"", "neither true nor false"),
        ("[host.\"https://a\"]\nca = 7", "ca is no path"),
        ("[host.\"https://a\"]\nclient = [[7]]", "client is neither"),
        ("[host.\"https://a\".header]\nx = 7", "header x is neither"),
        ("server = ", "TOML parse error"),
    ];
    for (text, want) in rows {
        let error = parse(text, Path::new("/"), "r.io").unwrap_err();
        assert!(error.contains(want), "{error}, not {want}");
    }
}

#[test]
fn folders_are_found_as_containerd_finds_them() {
    let root = tempfile::tempdir().unwrap();
    let put = |folder: &str, file: &str, text: &str| {
        fs::create_dir_all(root.path().join(folder)).unwrap();
        fs::write(root.path().join(folder).join(file), text).unwrap();
    };
    let first = |registry| lines(&hosts(Some(root.path()), registry).unwrap())[0].clone();
    put("_default", "hosts.toml", "[host.\"https://mirror\"]");
    assert_eq!(first("r.io:5000"), "https://mirror/v2 rp r.io:5000");
    put("r.io:5000", "hosts.toml", "[host.\"https://colon\"]");
    assert_eq!(first("r.io:5000"), "https://colon/v2 rp r.io:5000");
    put("r.io_5000_", "hosts.toml", "[host.\"https://underscore\"]");
    assert_eq!(first("r.io:5000"), "https://underscore/v2 rp r.io:5000");
    put("certs.io", "ca.crt", "");
    put("certs.io", "me.cert", "");
    let found = hosts(Some(root.path()), "certs.io").unwrap();
    let at = |name| root.path().join("certs.io").join(name);
    assert_eq!(
        (found[0].tls.ca.clone(), found[0].tls.client.clone()),
        (vec![at("ca.crt")], Some((at("me.cert"), Some(at("me.key")))))
    );
    put("bad.io", "hosts.toml", "server = 7");
    let error = hosts(Some(root.path()), "bad.io").unwrap_err().to_string();
    assert!(error.contains("bad.io/hosts.toml") && error.contains("server is no text"), "{error}");
    fs::create_dir_all(root.path().join("dir.io/hosts.toml")).unwrap();
    assert!(matches!(hosts(Some(root.path()), "dir.io"), Err(HostsError::Read { .. })));
}
