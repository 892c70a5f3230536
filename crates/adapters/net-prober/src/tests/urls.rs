use crate::url::Url;

fn base() -> Url {
    Url { tls: false, host: "10.0.0.1".into(), port: 8080, path: "/a/b?x=1".into() }
}

#[test]
fn locations_resolve_as_in_a_browser() {
    let rows = [
        ("/c", Some("http://10.0.0.1:8080/c")),
        ("c", Some("http://10.0.0.1:8080/a/c")),
        ("c?q=2", Some("http://10.0.0.1:8080/a/c?q=2")),
        ("?q=2", Some("http://10.0.0.1:8080/a/b?q=2")),
        ("../c", Some("http://10.0.0.1:8080/c")),
        ("./c/..", Some("http://10.0.0.1:8080/a/")),
        ("/c#part", Some("http://10.0.0.1:8080/c")),
        ("/c?to=http://x/", Some("http://10.0.0.1:8080/c?to=http://x/")),
        ("http://10.0.0.1/c", Some("http://10.0.0.1:80/c")),
        ("https://10.0.0.1/c", Some("https://10.0.0.1:443/c")),
        ("HTTP://other:81", Some("http://other:81/")),
        ("//other/c", Some("http://other:80/c")),
        ("http://[::1]:9/c", Some("http://[::1]:9/c")),
        ("http://user:pw@other/c", Some("http://other:80/c")),
        ("ftp://other/c", None),
        ("http:///c", None),
        ("http://other:99999/c", None),
    ];
    for (location, want) in rows {
        assert_eq!(base().join(location).map(|u| u.to_string()).as_deref(), want, "{location}");
    }
}
