use super::*;

#[test]
fn urls_are_taken_apart() {
    let rows = [
        ("http://h", Some(("h", 80, "/", "h"))),
        ("https://h:8443/a?b", Some(("h", 8443, "/a?b", "h:8443"))),
        ("https://h:443/", Some(("h", 443, "/", "h"))),
        ("HTTPS://u:p@h/a#f", Some(("h", 443, "/a", "h"))),
        ("http://[fd00::1]:81/", Some(("fd00::1", 81, "/", "[fd00::1]:81"))),
        ("http://[fd00::1]/", Some(("fd00::1", 80, "/", "[fd00::1]"))),
        ("http://h?q", Some(("h", 80, "/?q", "h"))),
        ("http:///a", None),
        ("http://h:x/", None),
        ("ftp://h/a", None),
        ("h/a", None),
    ];
    for (text, wanted) in rows {
        let url = Url::parse(text);
        let shown = url.as_ref().map(|u| (u.host.as_str(), u.port(), u.path.as_str(), u.host_header()));
        assert_eq!(shown, wanted.map(|(h, p, path, header)| (h, p, path, header.to_owned())), "{text}");
    }
}

#[test]
fn locations_resolve_as_in_a_browser() {
    let base = Url { tls: false, host: "10.0.0.1".into(), port: Some(8080), path: "/a/b?x=1".into() };
    let rows = [
        ("/c", Some("http://10.0.0.1:8080/c")),
        ("c", Some("http://10.0.0.1:8080/a/c")),
        ("c?q=2", Some("http://10.0.0.1:8080/a/c?q=2")),
        ("?q=2", Some("http://10.0.0.1:8080/a/b?q=2")),
        ("../c", Some("http://10.0.0.1:8080/c")),
        ("./c/..", Some("http://10.0.0.1:8080/a/")),
        ("/c#part", Some("http://10.0.0.1:8080/c")),
        ("/c?to=http://x/", Some("http://10.0.0.1:8080/c?to=http://x/")),
        ("http://10.0.0.1/c", Some("http://10.0.0.1/c")),
        ("https://10.0.0.1:443/c", Some("https://10.0.0.1:443/c")),
        ("HTTP://other:81", Some("http://other:81/")),
        ("//other/c", Some("http://other/c")),
        ("http://[::1]:9/c", Some("http://[::1]:9/c")),
        ("http://user:pw@other/c", Some("http://other/c")),
        ("ftp://other/c", None),
        ("http:///c", None),
        ("http://other:99999/c", None),
    ];
    for (location, want) in rows {
        assert_eq!(base.join(location).map(|u| u.to_string()).as_deref(), want, "{location}");
    }
}

#[test]
fn escapes_are_read_as_strictly_as_in_go() {
    let path = |text| unescape(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(path("a%20b+c%2Fd%25"), Ok("a b+c/d%".to_owned()));
    assert_eq!(unescape_query("a%20b+c%2Bd"), Ok("a b c+d".to_owned()));
    for (text, shown) in [("a%zzb", "%zz"), ("a%2", "%2"), ("%", "%"), ("%%41", "%%4"), ("%+f", "%+f")] {
        let wanted = format!("invalid URL escape {shown:?}");
        assert_eq!(path(text).unwrap_err().to_string(), wanted, "{text}");
        assert_eq!(unescape_query(text).unwrap_err().to_string(), wanted, "{text}");
    }
    let query = Query::parse("a=1&b&a=2&c=%zz&d=1;e=2&=x&f=%C3%BC");
    assert_eq!((query.first("a"), query.first("b"), query.first("c")), (Some("1"), Some(""), None));
    assert_eq!((query.all("a").collect::<Vec<_>>(), query.first("f")), (vec!["1", "2"], Some("ü")));
    assert_eq!((query.first("d"), query.first("")), (None, Some("x")));
}

#[test]
fn what_is_escaped_reads_as_before() {
    let text = "a/b ü?#[]@!$&'()*+,;=:%~-._";
    assert_eq!(escape(text).to_string(), "a%2Fb%20%C3%BC%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%25~-._");
    assert_eq!(escape_segment(text).to_string(), "a%2Fb%20%C3%BC%3F%23%5B%5D@!$&'()*+,;=:%25~-._");
    assert_eq!(unescape(&escape_segment(text).to_string()).unwrap(), text.as_bytes());
}
