//! Handlers that are switched off, methods that are not routed.

use super::fixture::{Node, request, send};
use crate::{Settings, read_only_router};

const DEBUG: &[&str] = &[
    "/run/ns/p/c",
    "/exec/ns/p/c",
    "/attach/ns/p/c",
    "/portForward/ns/p",
    "/containerLogs/ns/p/c",
    "/runningpods/",
    "/debug/pprof/",
    "/debug/pprof/heap",
    "/logs/",
    "/logs/messages",
];

#[tokio::test]
async fn without_debugging_handlers_their_paths_say_so_and_the_others_are_gone() {
    let off = Node::new().with(|s| s.enable_debugging_handlers = false);
    for path in DEBUG {
        for method in ["GET", "POST", "PUT"] {
            let answer = off.call(method, path, "").await;
            assert_eq!(
                (answer.code, answer.text().as_str()),
                (405, "Debug endpoints are disabled.\n"),
                "{method} {path}"
            );
            let answer = send(read_only_router(Node::new().deps), request(method, path, &[], "")).await;
            assert_eq!(answer.code, 405, "{method} {path}");
        }
    }
    for path in ["/configz", "/statusz", "/flagz", "/debug/flags/v", "/checkpoint/ns/p/c"] {
        assert_eq!(off.get(path).await.code, 404, "{path}");
        let answer = send(read_only_router(Node::new().deps), request("GET", path, &[], "")).await;
        assert_eq!(answer.code, 404, "{path}");
    }
    assert_eq!(off.get("/pods").await.code, 200);
    assert_eq!(send(read_only_router(Node::new().deps), request("GET", "/pods", &[], "")).await.code, 200);
}

type Change = fn(&mut Settings);

#[tokio::test]
async fn each_handler_has_its_own_switch() {
    let rows: &[(Change, &str, u16, &str)] = &[
        (|s| s.enable_system_log_handler = false, "/logs/", 405, "logs endpoint is disabled.\n"),
        (|s| s.enable_system_log_handler = false, "/logs/a/b", 405, "logs endpoint is disabled.\n"),
        (|s| s.enable_profiling_handler = false, "/debug/pprof/heap", 405, "profiling endpoint is disabled.\n"),
        (|s| s.enable_profiling_handler = false, "/debug/pprof/", 405, "profiling endpoint is disabled.\n"),
        (|s| s.enable_debug_flags_handler = false, "/debug/flags/v", 405, "flags endpoint is disabled.\n"),
        (|s| s.container_checkpoint = false, "/checkpoint/ns/p/c", 404, ""),
        (|s| s.component_statusz = false, "/statusz", 404, ""),
        (|s| s.component_flagz = false, "/flagz", 404, ""),
    ];
    for (change, path, code, text) in rows {
        let answer = Node::new().with(change).get(path).await;
        assert_eq!((answer.code, answer.text().as_str()), (*code, *text), "{path}");
    }
}

#[tokio::test]
async fn a_method_that_is_not_routed_is_refused_in_the_routers_words() {
    let node = Node::new();
    let rows = [
        ("/pods", "GET"),
        ("/pods/", "GET"),
        ("/runningpods/", "GET"),
        ("/logs/", "GET"),
        ("/statusz", "GET"),
        ("/flagz", "GET"),
        ("/debug/pprof/heap", "GET"),
        ("/run/ns/p/c", "POST"),
        ("/run/ns/p/u/c", "POST"),
        ("/checkpoint/ns/p/c", "POST"),
    ];
    for (path, only) in rows {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] {
            let answer = node.call(method, path, "").await;
            if method == only {
                assert_ne!(answer.code, 405, "{method} {path}");
                continue;
            }
            assert_eq!(answer.code, 405, "{method} {path}");
            if method != "HEAD" {
                assert_eq!(answer.text(), "405: Method Not Allowed", "{method} {path}");
            }
        }
    }
}
