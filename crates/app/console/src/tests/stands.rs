//! `bosun why` and `bosun timeline` against a daemon of canned answers.

use axum::response::{IntoResponse, Response};

use super::{Fake, refuse};
use crate::Command;

fn daemon(path: &str) -> Response {
    match path {
        "/v1/why/shop%2Fweb" => r#"{"pod":"shop/web","uid":"u1","wanted":"to run: 1 container","cause":"FromTheFuture",
            "summary":"something new","step":"image of app","owner":"image-manager","waitsFor":"the next try","sinceNs":40000000000,
            "untilNs":130000000000,"said":"no\u001b[2J\nroute","decisions":[{"atNs":90000000000,"count":3,"text":"start app"}],
            "look":["bosun get events"],"nowNs":100000000000}"#
            .into_response(),
        "/v1/timeline/web" => serde_json::to_string(&crate::timeline::tests::life()).unwrap().into_response(),
        _ => refuse(404, "no pod \"wbe\" on this node; did you mean shop/web?"),
    }
}

#[tokio::test]
async fn why_fits_one_screen_whatever_a_newer_daemon_says() {
    let fake = Fake::start(daemon);
    let Command::Why(args) = fake.command("why web -n shop") else { panic!() };
    crate::why::run(&args).await.unwrap();
    let path = crate::target::path_below("/v1/why", &args.pod);
    let verdict = crate::client::get(&args.socket.socket, &path).await.unwrap();
    let screen = crate::why::screen(&verdict);
    let expected = [
        "Pod:       shop/web  (u1)",
        "Wanted:    to run: 1 container",
        "Cause:     Unknown: something new",
        "Step:      image of app",
        "Owner:     image-manager",
        "Since:     60s ago, 1970-01-01T00:00:40Z",
        "Waits for: the next try",
        "Until:     in 30s, 1970-01-01T00:02:10Z",
        "Said:      no [2J route",
    ];
    assert_eq!(screen, expected);
}

#[tokio::test]
async fn a_pod_that_is_not_there_is_told_with_names_that_are_near() {
    let fake = Fake::start(daemon);
    let Command::Why(args) = fake.command("why wbe") else { panic!() };
    let error = crate::why::run(&args).await.unwrap_err();
    assert!(error.to_string().contains("did you mean shop/web?"), "{error:#}");
}

#[tokio::test]
async fn a_timeline_is_drawn_told_and_written() {
    let fake = Fake::start(daemon);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("life.html");
    for words in ["timeline web", "timeline web -o json", &format!("timeline web --html {}", file.display())] {
        let Command::Timeline(args) = fake.command(words) else { panic!() };
        crate::timeline::run(&args).await.unwrap();
    }
    assert!(std::fs::read_to_string(&file).unwrap().contains("<h1>shop/web</h1>"));
    let Command::Timeline(args) = fake.command("timeline web --html /nowhere/x.html") else { panic!() };
    let error = crate::timeline::run(&args).await.unwrap_err();
    assert!(format!("{error:#}").contains("/nowhere/x.html"), "{error:#}");
}
