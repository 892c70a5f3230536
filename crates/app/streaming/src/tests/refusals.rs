//! What is answered when there is no stream.

use std::time::Duration;

use fakes::runtime::{Code, Fault};
use tokio::io::AsyncWriteExt;

use super::bed::{Bed, SPDY, settings};

async fn nothing(_: tokio::net::TcpStream, _: String) {}

#[tokio::test]
async fn requests_that_ask_for_nothing_that_is_here_are_refused_with_the_books_words() {
    let bed = Bed::start(nothing).await;
    let socket = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (name, line, headers, status, text) in [
        (
            "no stream",
            "POST /exec/shop/web/main?stdout=1",
            SPDY,
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        ("no upgrade", "POST /exec/shop/web/main?output=1", "", 500, "Upgrade request required\n"),
        ("no upgrade", "GET /attach/shop/web/u1/main?output=1", "", 500, "Upgrade request required\n"),
        ("no upgrade", "POST /portForward/shop/web", "", 500, "Upgrade request required\n"),
        ("no pod", "POST /exec/shop/nobody/main?output=1", SPDY, 404, "pod does not exist"),
        ("other namespace", "POST /attach/default/web/main?output=1", SPDY, 404, "pod does not exist"),
        ("no pod", "GET /portForward/shop/nobody", SPDY, 404, "pod does not exist"),
        ("no container", "POST /exec/shop/web/nil?output=1", SPDY, 500, "container not found (\"nil\")"),
        ("has ended", "POST /exec/shop/web/old?output=1", SPDY, 500, "container not found (\"old\")"),
        ("not started", "POST /attach/shop/web/never?output=1", SPDY, 500, "container never not found in pod web_shop"),
        ("other UID", "POST /portForward/shop/web/u9", SPDY, 404, "pod not found"),
        ("no sandbox", "POST /portForward/shop/idle", SPDY, 500, "pod not found (\"idle_shop(u2)\")"),
        ("no port", "GET /portForward/shop/web", socket, 400, "query parameter \"port\" is required"),
        ("no port", "GET /portForward/shop/web?port=0", socket, 400, "port \"0\" must be > 0"),
        ("PUT", "PUT /exec/shop/web/main?output=1", SPDY, 405, "405: Method Not Allowed"),
        ("DELETE", "DELETE /portForward/shop/web", SPDY, 405, "405: Method Not Allowed"),
        ("HEAD", "HEAD /attach/shop/web/main?output=1", SPDY, 405, ""),
        ("no such path", "POST /exec/shop/web", SPDY, 404, ""),
    ] {
        let (got, head, body) = bed.refused(line, headers).await;
        assert_eq!((got, body.as_str()), (status, text), "{name}: {line}");
        if !text.is_empty() {
            assert!(head.to_ascii_lowercase().contains("content-type: text/plain; charset=utf-8"), "{name}: {head}");
        }
    }
}

#[tokio::test]
async fn a_websocket_that_is_none_is_refused() {
    let bed = Bed::start(nothing).await;
    let half = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n";
    let (status, _, body) = bed.refused("GET /exec/shop/web/main?output=1", half).await;
    assert_eq!(
        (status, body.as_str()),
        (400, "unable to upgrade: WebSocket protocol error: No \"Sec-WebSocket-Version: 13\" header\n")
    );
    let half = format!("{half}Sec-WebSocket-Version: 13\r\n");
    let (status, _, body) = bed.refused("GET /exec/shop/web/main?output=1", &half).await;
    assert_eq!(
        (status, body.as_str()),
        (400, "unable to upgrade: WebSocket protocol error: No \"Sec-WebSocket-Key\" header\n")
    );
}

#[tokio::test]
async fn errors_of_the_runtime_become_statuses_with_its_words() {
    let bed = Bed::start(nothing).await;
    for (code, status) in
        [(Code::NotFound, 404), (Code::ResourceExhausted, 429), (Code::InvalidArgument, 500), (Code::Unavailable, 500)]
    {
        bed.runtime.clear_faults();
        bed.runtime.inject(Fault::error("Exec", code, "no luck"));
        let (got, head, body) = bed.refused("POST /exec/shop/web/main?output=1", SPDY).await;
        assert_eq!((got, body), (status, format!("rpc error: code = {code:?} desc = no luck")));
        assert_eq!(head.to_ascii_lowercase().contains("retry-after: 60\r\n"), status == 429, "{head}");
    }
}

#[tokio::test]
async fn refusals_of_the_streaming_server_are_passed_on_word_for_word() {
    for (answer, status, text) in [
        ("404 Not Found\r\nContent-Length: 4\r\nX-Own: yes\r\n\r\ngone", 404, "gone"),
        (
            "429 Too Many Requests\r\nX-Own: yes\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbus\r\n1\r\ny\r\n0\r\n\r\n",
            429,
            "busy",
        ),
        ("500 Internal Server Error\r\nX-Own: yes\r\nConnection: close\r\n\r\nto the end", 500, "to the end"),
    ] {
        let bed = Bed::start(move |mut stream, _| async move {
            let _ = stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).await;
        })
        .await;
        let (got, head, body) = bed.refused("POST /exec/shop/web/main?output=1", SPDY).await;
        assert_eq!((got, body.as_str()), (status, text));
        assert!(head.to_ascii_lowercase().contains("x-own: yes"), "{head}");
        assert!(head.to_ascii_lowercase().contains("connection: close"), "{head}");
    }
}

#[tokio::test]
async fn a_redirect_or_nonsense_of_the_streaming_server_is_an_error_and_never_followed() {
    for (answer, text) in [
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            "invalid upgrade response: status code 302\n",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "invalid upgrade response: status code 200\n"),
        ("\0\0\0garbage that is no HTTP", "the runtime's streaming server broke off: "),
        ("", "the runtime's streaming server broke off: "),
    ] {
        let bed = Bed::start(move |mut stream, _| async move {
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await;
        let (status, head, body) = bed.refused("POST /exec/shop/web/main?output=1", SPDY).await;
        assert_eq!(status, 500);
        assert!(body.starts_with(text), "{body:?}");
        assert!(!head.to_ascii_lowercase().contains("location"), "{head}");
    }
}

#[tokio::test]
async fn a_streaming_server_that_never_answers_is_not_waited_for_for_ever() {
    let settings = crate::Settings { answer_timeout: Duration::from_millis(200), ..settings() };
    let bed = Bed::with(settings, |stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let (status, _, body) = bed.refused("POST /exec/shop/web/main?output=1", SPDY).await;
    assert_eq!((status, body.as_str()), (500, "the runtime's streaming server did not answer in time\n"));
}

#[tokio::test]
async fn a_streaming_server_that_is_not_there_is_told() {
    let bed = Bed::start(nothing).await;
    for (url, text) in [
        ("http://127.0.0.1:1/x", "error dialing backend: dial tcp 127.0.0.1:1: "),
        (
            "https://127.0.0.1:1/x",
            "error dialing backend: the runtime's URL \"https://127.0.0.1:1/x\" cannot be used: ",
        ),
    ] {
        bed.runtime.set_stream_url(url);
        let (status, _, body) = bed.refused("POST /attach/shop/web/main?output=1", SPDY).await;
        assert_eq!(status, 500);
        assert!(body.starts_with(text), "{body}");
    }
}
