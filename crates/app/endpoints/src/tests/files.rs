//! `/logs/` as a file server, and what hostile paths get.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use super::fixture::{Answer, Node};

const TIME: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

fn node() -> Node {
    let node = Node::new();
    let log = node.log_dir();
    fs::write(log.join("messages"), "0123456789").unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    fs::File::options().write(true).open(log.join("messages")).unwrap().set_modified(at).unwrap();
    fs::create_dir(log.join("sub")).unwrap();
    fs::write(log.join("sub/a&b c.log"), "x").unwrap();
    fs::create_dir(log.join("page")).unwrap();
    fs::write(log.join("page/index.html"), "<p>page").unwrap();
    fs::write(log.join("binary"), b"\0\x01").unwrap();
    fs::write(log.join("big"), vec![b'a'; 300_000]).unwrap();
    node
}

#[tokio::test]
async fn folders_are_listed_as_go_lists_them() {
    let node = node();
    let answer = node.get("/logs/").await;
    assert_eq!((answer.code, answer.header("content-type")), (200, "text/html; charset=utf-8"));
    let expected = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n\
                    <a href=\"big\">big</a>\n<a href=\"binary\">binary</a>\n<a href=\"messages\">messages</a>\n\
                    <a href=\"page/\">page/</a>\n<a href=\"sub/\">sub/</a>\n</pre>\n";
    assert_eq!(answer.text(), expected);
    assert!(node.get("/logs/sub/").await.text().contains("<a href=\"a&amp;b%20c.log\">a&amp;b c.log</a>"));
    let unchanged = node.get_with("/logs/", &[("if-modified-since", answer.header("last-modified"))]).await;
    assert_eq!((unchanged.code, unchanged.body.len()), (304, 0));
}

#[tokio::test]
async fn files_are_served_with_what_go_says_of_them() {
    let node = node();
    let answer = node.get("/logs/messages").await;
    assert_eq!((answer.code, answer.text().as_str()), (200, "0123456789"));
    let headers: Vec<&str> =
        ["content-type", "content-length", "accept-ranges", "last-modified"].map(|h| answer.header(h)).to_vec();
    assert_eq!(headers, ["text/plain; charset=utf-8", "10", "bytes", TIME]);
    assert_eq!(node.get("/logs/binary").await.header("content-type"), "application/octet-stream");
    assert_eq!(node.get("/logs/sub/a&b%20c.log").await.text(), "x");
    assert_eq!(node.get("/logs/page/").await.text(), "<p>page");
    assert_eq!(node.get("/logs/big").await.body.len(), 300_000);
    for (path, to) in [
        ("/logs", "/logs/"),
        ("/logs/sub", "sub/"),
        ("/logs/messages/", "../messages"),
        ("/logs/page/index.html", "./"),
        ("/logs/sub/../sub", "sub/"),
    ] {
        let answer = node.get(path).await;
        assert_eq!((answer.code, answer.header("location")), (301, to), "{path}");
    }
    let missing = node.get("/logs/nothing").await;
    assert_eq!((missing.code, missing.text().as_str()), (404, "404 page not found\n"));
    assert_eq!(node.get("/logs/messages/below").await.code, 404);
}

/// Headers, and the code, body and `Content-Range` that they get.
type Row<'r> = (&'r [(&'r str, &'r str)], u16, &'r str, &'r str);

#[tokio::test]
async fn parts_and_conditions_are_those_of_http() {
    let node = node();
    let rows: &[Row<'_>] = &[
        (&[("range", "bytes=2-4")], 206, "234", "bytes 2-4/10"),
        (&[("range", "bytes=-2")], 206, "89", "bytes 8-9/10"),
        (&[("range", "bytes=0-9,0-9")], 200, "0123456789", ""),
        (&[("range", "bytes=10-")], 416, "invalid range: failed to overlap\n", "bytes */10"),
        (&[("range", "rows=1")], 416, "invalid range\n", ""),
        (&[("range", "bytes=2-4"), ("if-range", TIME)], 206, "234", "bytes 2-4/10"),
        (&[("range", "bytes=2-4"), ("if-range", "Thu, 01 Jan 2026 00:00:01 GMT")], 200, "0123456789", ""),
        (&[("range", "bytes=2-4"), ("if-range", "\"tag\"")], 200, "0123456789", ""),
        (&[("if-modified-since", TIME)], 304, "", ""),
        (&[("if-modified-since", "Wed, 31 Dec 2025 23:59:59 GMT")], 200, "0123456789", ""),
        (&[("if-modified-since", "soon")], 200, "0123456789", ""),
        (&[("if-unmodified-since", "Wed, 31 Dec 2025 23:59:59 GMT")], 412, "", ""),
        (&[("if-unmodified-since", TIME)], 200, "0123456789", ""),
        (&[("if-none-match", "*")], 304, "", ""),
        (&[("if-none-match", "\"tag\""), ("if-modified-since", TIME)], 200, "0123456789", ""),
        (&[("if-match", "\"tag\"")], 412, "", ""),
        (&[("if-match", "*")], 200, "0123456789", ""),
    ];
    for (headers, code, text, range) in rows {
        let answer = node.get_with("/logs/messages", headers).await;
        assert_eq!(
            (answer.code, answer.text().as_str(), answer.header("content-range")),
            (*code, *text, *range),
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn several_parts_come_in_one_answer() {
    let node = node();
    let answer = node.get_with("/logs/messages", &[("range", "bytes=0-1,8-")]).await;
    let boundary = answer.header("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap();
    let part = |range: &str| {
        format!("--{boundary}\r\nContent-Range: bytes {range}/10\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n")
    };
    let expected = format!("{}01\r\n{}89\r\n--{boundary}--\r\n", part("0-1"), part("8-9"));
    assert_eq!((answer.code, answer.text()), (206, expected));
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
}

/// Whether anything of a file outside was shown.
fn leaks(answer: &Answer) -> bool {
    answer.body.windows(6).any(|w| w == b"secret")
}

#[tokio::test]
async fn no_path_leads_out_of_the_folder() {
    let node = node();
    let (log, dir) = (node.log_dir(), node.dir.path());
    fs::write(dir.join("secret"), "secret").unwrap();
    fs::create_dir(dir.join("log-more")).unwrap();
    fs::write(dir.join("log-more/secret"), "secret").unwrap();
    symlink(dir.join("secret"), log.join("out")).unwrap();
    symlink("../secret", log.join("out-relative")).unwrap();
    symlink(dir, log.join("out-folder")).unwrap();
    symlink(dir.join("log-more"), log.join("beside")).unwrap();
    symlink("/proc/self", log.join("proc")).unwrap();
    symlink("loop-b", log.join("loop-a")).unwrap();
    symlink("loop-a", log.join("loop-b")).unwrap();
    fs::create_dir(log.join("trap")).unwrap();
    symlink(dir.join("secret"), log.join("trap/index.html")).unwrap();
    let absolute = format!("/logs/{}", dir.join("secret").display());
    let rows = [
        ("/logs/../secret", 404),
        ("/logs/../../../../../../etc/passwd", 404),
        ("/logs/%2e%2e/secret", 404),
        ("/logs/%2e%2e%2fsecret", 404),
        ("/logs/..%2fsecret", 404),
        ("/logs/sub/%2e%2e/%2e%2e/secret", 404),
        ("/logs/..%5csecret", 404),
        ("/logs/%252e%252e/secret", 404),
        ("/logs//etc/passwd", 404),
        (absolute.as_str(), 404),
        ("/logs/out", 403),
        ("/logs/out-relative", 403),
        ("/logs/out-folder/secret", 403),
        ("/logs/out-folder/", 403),
        ("/logs/beside/secret", 403),
        ("/logs/proc/environ", 403),
        ("/logs/loop-a", 500),
        ("/logs/a%00b", 500),
        ("/logs/messages%00", 500),
        ("/logs/a%zzb", 400),
        ("/logs/a%2", 400),
        ("/logs/trap/", 200),
    ];
    for (path, code) in rows {
        let answer = node.get(path).await;
        assert_eq!(answer.code, code, "{path}: {:?}", String::from_utf8_lossy(&answer.body));
        assert!(!leaks(&answer) || path == "/logs/trap/", "{path}");
    }
    // The page of the trap is a list of names, not what the link leads to.
    assert!(node.get("/logs/trap/").await.text().contains("<pre>"));
}

#[tokio::test]
async fn links_within_the_log_folders_are_followed() {
    let node = node();
    let log = node.log_dir();
    symlink("messages", log.join("link")).unwrap();
    symlink("../pods", log.join("pods-link")).unwrap();
    fs::write(node.dir.path().join("pods/0.log"), "line").unwrap();
    assert_eq!(node.get("/logs/link").await.text(), "0123456789");
    assert_eq!(node.get("/logs/pods-link/0.log").await.text(), "line");
}

#[tokio::test]
async fn what_is_no_file_is_refused_and_never_waited_for() {
    let node = node();
    let made = std::process::Command::new("mkfifo").arg(node.log_dir().join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(node.log_dir().join("socket")).unwrap();
    let pipe = tokio::time::timeout(Duration::from_secs(20), node.get("/logs/pipe")).await.unwrap();
    assert_eq!(pipe.code, 403);
    assert_eq!(node.get("/logs/socket").await.code, 500);
}

#[tokio::test]
async fn names_that_are_no_text_are_served_too() {
    let node = node();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(node.log_dir().join(name), "latin").unwrap();
    assert_eq!(node.get("/logs/caf%E9").await.text(), "latin");
}
