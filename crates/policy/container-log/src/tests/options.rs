use model::Timestamp;

use crate::{LogOptions, Refusal, Streams, decode};

#[test]
fn reads_the_query_as_the_api_does() {
    let base = LogOptions::default();
    let time = Some(Timestamp(1_767_225_600_500_000_000));
    let rows = [
        ("", base.clone()),
        ("follow", LogOptions { follow: true, ..base.clone() }),
        ("follow=", LogOptions { follow: true, ..base.clone() }),
        ("follow=true", LogOptions { follow: true, ..base.clone() }),
        ("follow=yes", LogOptions { follow: true, ..base.clone() }),
        ("follow=FALSE", base.clone()),
        ("follow=0", base.clone()),
        ("follow=false&follow=true", base.clone()),
        ("previous=1&timestamps", LogOptions { previous: true, timestamps: true, ..base.clone() }),
        ("sinceSeconds=1", LogOptions { since_seconds: Some(1), ..base.clone() }),
        ("sinceTime=2026-01-01T00%3A00%3A00.5Z", LogOptions { since_time: time, ..base.clone() }),
        ("sinceTime=2026-01-01T02:00:00.5%2B02:00", LogOptions { since_time: time, ..base.clone() }),
        ("tailLines=0", LogOptions { tail_lines: Some(0), ..base.clone() }),
        ("tail=5&tailLines=7", LogOptions { tail_lines: Some(5), ..base.clone() }),
        ("tail=all&tailLines=7", base.clone()),
        ("tail=all&tailLines=abc", base.clone()),
        ("limitBytes=1", LogOptions { limit_bytes: Some(1), ..base.clone() }),
        ("stream=All", base.clone()),
        ("stream=Stdout", LogOptions { streams: Streams::Stdout, ..base.clone() }),
        ("stream=Stderr", LogOptions { streams: Streams::Stderr, ..base.clone() }),
        ("container=x&insecureSkipTLSVerifyBackend=true&unknown=1", base.clone()),
        ("follow=%zz&a;b=1&&=", base.clone()),
    ];
    for (query, options) in rows {
        assert_eq!(decode(query, true), Ok(options), "{query}");
    }
}

#[test]
fn refuses_what_cannot_be() {
    let invalid = (422, r#"{"message": "Invalid request."}"#);
    let undecodable = (400, r#"{"message": "Unable to decode query."}"#);
    let rows = [
        ("tailLines=-1", invalid),
        ("tail=-1", invalid),
        ("limitBytes=0", invalid),
        ("sinceSeconds=0", invalid),
        ("sinceSeconds=-5", invalid),
        ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", invalid),
        ("stream=Both", invalid),
        ("stream=Stdout&tailLines=1", invalid),
        ("tailLines=abc", undecodable),
        ("tailLines=", undecodable),
        ("tailLines=1.5", undecodable),
        ("limitBytes=99999999999999999999", undecodable),
        ("sinceTime=yesterday", undecodable),
        ("sinceTime=2026-01-01T00:00:00+02:00", undecodable),
        ("tail=some", undecodable),
    ];
    for (query, (code, body)) in rows {
        assert_eq!(decode(query, true), Err(Refusal { code, body: body.to_owned() }), "{query}");
    }
}

#[test]
fn one_output_alone_needs_the_feature_gate() {
    assert_eq!(decode("stream=All", false), Ok(LogOptions::default()));
    let refusal = decode("stream=Stderr", false).unwrap_err();
    assert_eq!(refusal.code, 400);
    assert!(refusal.body.starts_with("unable to return the given log stream: \"Stderr\""), "{}", refusal.body);
}

#[test]
fn the_later_of_both_times_counts() {
    let now = Timestamp::from_secs(1000);
    let rows = [
        (None, None, None),
        (Some(10), None, Some(990)),
        (None, Some(5), Some(5)),
        (Some(10), Some(995), Some(995)),
        (Some(10), Some(5), Some(990)),
    ];
    for (seconds, time, since) in rows {
        let options =
            LogOptions { since_seconds: seconds, since_time: time.map(Timestamp::from_secs), ..LogOptions::default() };
        assert_eq!(options.since(now), since.map(Timestamp::from_secs), "{seconds:?} {time:?}");
    }
    let forever = LogOptions { since_seconds: Some(i64::MAX), ..LogOptions::default() };
    assert!(forever.since(now).unwrap() < Timestamp::ZERO);
}
