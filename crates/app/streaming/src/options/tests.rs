use axum::http::HeaderMap;

use super::*;

fn query(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|p| !p.is_empty());
    pairs.map(|p| p.split_once('=').unwrap_or((p, ""))).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().expect("a value"));
    }
    headers
}

#[test]
fn streams_are_named_input_output_and_error_and_their_value_is_1() {
    for (text, streams) in [
        ("input=1", Some("i---")),
        ("output=1&error=1", Some("-oe-")),
        ("input=1&output=1&error=1&tty=1", Some("io-t")),
        ("output=1&output=0", Some("-o--")),
        ("stdout=1", None),
        ("output=true", None),
        ("error=1&tty=1", None),
        ("", None),
    ] {
        let shown = StreamOptions::parse(&query(text)).ok().map(|w| {
            let flag = |on: bool, c: char| if on { c } else { '-' };
            [flag(w.stdin, 'i'), flag(w.stdout, 'o'), flag(w.stderr, 'e'), flag(w.tty, 't')].iter().collect::<String>()
        });
        assert_eq!(shown.as_deref(), streams, "{text}");
    }
    let error = StreamOptions::parse(&query("stdout=1")).expect_err("12-15");
    assert_eq!(error, "you must specify at least 1 of stdin, stdout, stderr");
    let wanted = StreamOptions::parse(&query("output=1&command=sh&command=-c&command=")).expect("fine");
    assert_eq!(wanted.command, ["sh", "-c", ""]);
}

#[test]
fn ports_are_a_list_or_repeated_and_all_of_them_are_ports() {
    for (text, want) in [
        ("port=80", Ok(vec![80])),
        ("port=80,443&port=65535", Ok(vec![80, 443, 65535])),
        ("", Err("query parameter \"port\" is required")),
        ("port=", Err("query parameter \"port\" cannot be empty")),
        ("port=0", Err("port \"0\" must be > 0")),
        (
            "port=65536",
            Err("unable to parse \"65536\" as a port: strconv.ParseUint: parsing \"65536\": value out of range"),
        ),
        ("port=80,x", Err("unable to parse \"80,x\" as a port: strconv.ParseUint: parsing \"x\": invalid syntax")),
        ("port=-1", Err("unable to parse \"-1\" as a port: strconv.ParseUint: parsing \"-1\": invalid syntax")),
    ] {
        assert_eq!(ports(&query(text)), want.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn upgrades_websockets_and_tunnels_are_told_by_their_headers() {
    let spdy = headers(&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")]);
    assert!(is_upgrade(&spdy) && !is_websocket(&spdy));
    let mixed = headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]);
    assert!(is_websocket(&mixed));
    assert!(!is_websocket(&headers(&[("upgrade", "websocket")])), "without Connection: Upgrade it is a plain request");
    let offers = headers(&[
        ("sec-websocket-protocol", "v5.channel.k8s.io, SPDY/3.1+portforward.k8s.io"),
        ("sec-websocket-protocol", "SPDY/3.1+x"),
    ]);
    assert_eq!(subprotocols(&offers), ["v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io", "SPDY/3.1+x"]);
    assert_eq!(tunnelled(&offers), ["portforward.k8s.io"]);
}
