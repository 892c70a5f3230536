use std::io::{self, Write};

use axum::response::{IntoResponse, Response};

use super::{Fake, parse, pieces, refuse, web};
use crate::Command;
use crate::logs::write_to;

/// Runs the command; answers with success, stdout and stderr. An error's text ends stderr.
async fn run(fake: &Fake, words: &str) -> (bool, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let Command::Logs(args) = fake.command(words) else { panic!("no logs command: {words}") };
    let result = write_to(&args, &mut out, &mut err).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let mut err = text(err);
    let good = result.unwrap_or_else(|e| {
        err.push_str(&format!("{e:#}"));
        false
    });
    (good, text(out), err)
}

fn daemon(path: &str) -> Response {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match path {
        "/v1/pods/web" | "/v1/pods/shop%2Fweb" => web(),
        "/v1/pods/none" => refuse(404, "no pod \"none\" on this node; `bosun get pods` lists them"),
        "/containerLogs/shop/web/app" if query.contains("previous") => {
            refuse(400, "previous terminated container \"app\" in pod \"web\" not found")
        }
        "/containerLogs/shop/web/app" => pieces(&["one\ntw", "o\n"]),
        "/containerLogs/shop/web/proxy" => pieces(&["half", " a line"]),
        "/containerLogs/shop/web/setup" => {
            refuse(400, "container \"setup\" in pod \"web\" is waiting to start: PodInitializing")
        }
        "/containerLogs/shop/web/x" => refuse(404, "container \"x\" not found in pod \"web\""),
        _ => axum::http::StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test]
async fn the_first_container_is_read_and_said_aloud() {
    let fake = Fake::start(daemon);
    let (good, out, err) = run(&fake, "logs web -f --tail 3").await;
    assert_eq!((good, out.as_str()), (true, "one\ntwo\n"));
    assert_eq!(err, "Defaulted container \"app\" out of: app, proxy, setup (init)\n");
    assert_eq!(fake.asked(), ["/v1/pods/web", "/containerLogs/shop/web/app?follow=true&tailLines=3"]);
}

#[tokio::test]
async fn bytes_are_passed_on_as_they_are() {
    let fake = Fake::start(daemon);
    let (good, out, err) = run(&fake, "logs web -n shop -c proxy").await;
    assert_eq!((good, out.as_str(), err.as_str()), (true, "half a line", ""));
}

#[tokio::test]
async fn refusals_are_the_daemons_own_words_and_name_what_helps() {
    let fake = Fake::start(daemon);
    let table = [
        ("logs none", "no pod \"none\" on this node; `bosun get pods` lists them"),
        ("logs web -c x", "container \"x\" not found in pod \"web\"; containers of shop/web: app, proxy, setup (init)"),
        ("logs web -c app -p", "previous terminated container \"app\" in pod \"web\" not found"),
        ("logs web -c setup", "container \"setup\" in pod \"web\" is waiting to start: PodInitializing"),
    ];
    for (words, expected) in table {
        let (good, out, err) = run(&fake, words).await;
        assert_eq!((good, out.as_str(), err.as_str()), (false, "", expected), "{words}");
    }
}

#[tokio::test]
async fn all_containers_come_in_order_and_one_that_has_no_log_does_not_stop_the_rest() {
    let fake = Fake::start(daemon);
    let (good, out, err) = run(&fake, "logs web --all-containers --prefix").await;
    assert!(!good);
    assert_eq!(out, "[pod/web/app] one\n[pod/web/app] two\n[pod/web/proxy] half a line\n");
    assert_eq!(err, "bosun: setup: container \"setup\" in pod \"web\" is waiting to start: PodInitializing\n");
}

#[tokio::test]
async fn followed_together_lines_stay_whole() {
    let fake = Fake::start(daemon);
    let (_, out, _) = run(&fake, "logs web --all-containers -f").await;
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["half a line", "one", "two"]);
}

/// `head`: takes some lines, then goes.
struct Head(usize);

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.0 -= 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_reader_that_has_had_enough_ends_an_endless_log_quietly() {
    let endless = |path: &str| {
        if path.starts_with("/v1/") {
            return web();
        }
        let line = || Some((Ok::<_, io::Error>("line\n"), ()));
        Response::new(axum::body::Body::from_stream(futures::stream::unfold((), move |()| async move { line() })))
    };
    let fake = Fake::start(endless);
    for words in ["logs web -f -c app", "logs web --all-containers -f", "logs web --all-containers"] {
        let Command::Logs(args) = fake.command(words) else { panic!() };
        let mut err = Vec::new();
        assert!(write_to(&args, &mut Head(3), &mut err).await.unwrap(), "{words}");
        assert!(err.is_empty(), "{words}: {}", String::from_utf8_lossy(&err));
    }
}

#[tokio::test]
async fn a_daemon_that_breaks_off_is_told_apart_from_a_log_that_ends() {
    let breaks = |path: &str| {
        if path.starts_with("/v1/") {
            return web();
        }
        let next = |n: u8| async move {
            // The server sends what it has when the body makes it wait.
            tokio::task::yield_now().await;
            Some((if n == 0 { Ok("one\n") } else { Err(io::Error::other("gone")) }, n + 1))
        };
        Response::new(axum::body::Body::from_stream(futures::stream::unfold(0, next)))
    };
    let fake = Fake::start(breaks);
    let (good, out, err) = run(&fake, "logs web -c app").await;
    assert_eq!((good, out.as_str()), (false, "one\n"));
    assert!(err.starts_with("the daemon broke off the log"), "{err}");
}

#[tokio::test]
async fn an_absent_daemon_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let Command::Logs(args) = parse("logs web", &dir.path().join("none.sock")) else { panic!() };
    let e = write_to(&args, &mut Vec::new(), &mut Vec::new()).await.unwrap_err();
    assert!(format!("{e:#}").contains("none.sock: no such socket; start the daemon with `bosun run`"), "{e:#}");
    let stale = dir.path().join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let Command::Logs(args) = parse("logs web", &stale) else { panic!() };
    let e = write_to(&args, &mut Vec::new(), &mut Vec::new()).await.unwrap_err();
    assert!(format!("{e:#}").contains("nobody answers (is the daemon running"), "{e:#}");
}

#[tokio::test]
async fn a_daemon_without_log_endpoint_is_named() {
    let old = |path: &str| if path.starts_with("/v1/") { web() } else { refuse(404, "") };
    let (good, _, err) = run(&Fake::start(old), "logs web -c app").await;
    assert!(!good && err.contains("does not serve /containerLogs/shop/web/app"), "{err}");
}
