use std::io::Read;

use super::fixture::Node;

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                       guarantees and is for debugging purposes only.";

#[tokio::test]
async fn configz_answers_any_method() {
    let node = Node::new();
    for method in ["GET", "POST", "DELETE"] {
        let answer = node.call(method, "/configz", "").await;
        assert_eq!((answer.code, answer.header("content-type")), (200, "application/json"), "{method}");
        assert_eq!(answer.text(), "{\"kubeletconfig\":{\"maxPods\":110}}");
    }
}

#[tokio::test]
async fn flagz_is_the_page_of_a_kubelet() {
    let answer = Node::new().get("/flagz").await;
    assert_eq!(answer.text(), format!("\nkubelet flagz\n{WARNING}\naddress:0.0.0.0\nv:2\n"));
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

/// Lines of the recorded page, with what differs from run to run and from program to program taken out.
#[tokio::test]
async fn statusz_has_the_lines_of_a_kubelet() {
    let golden = include_str!("golden/statusz.txt");
    let ours = Node::new().get("/statusz").await.text();
    let names = |page: &str| -> Vec<String> {
        let lines = page.lines().map(|l| l.split_once('=').map_or(l, |(name, _)| name).to_owned());
        lines.collect()
    };
    assert_eq!(names(&ours), names(golden));
    let line = |page: &str, name: &str| page.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    for same in ["Binary version", "Emulation version", "Paths"] {
        assert_eq!(line(&ours, same), line(golden, same));
    }
    let (a, b) = (line(&ours, "Started"), line(golden, "Started"));
    assert_eq!(a.len(), b.len(), "{a} {b}");
    assert_eq!(line(&ours, "Up"), "Up= 0 hr 00 min 00 sec");
}

#[tokio::test]
async fn a_caller_that_takes_no_text_is_told_so() {
    let node = Node::new();
    let rows = [
        ("text/plain", 200),
        ("*/*", 200),
        ("application/json, text/*;q=0.5", 200),
        ("application/json", 406),
        ("application/json;g=config.k8s.io;v=v1beta1;as=Statusz", 406),
    ];
    for (accept, code) in rows {
        for path in ["/statusz", "/flagz"] {
            assert_eq!(node.get_with(path, &[("accept", accept)]).await.code, code, "{path} {accept}");
        }
    }
}

#[tokio::test]
async fn the_verbosity_is_put() {
    let node = Node::new();
    let rows = [
        ("PUT", "5", 200, "successfully set klog.logging.verbosity to 5\n", Some(5)),
        ("PUT", "-1", 200, "successfully set klog.logging.verbosity to -1\n", Some(0)),
        (
            "PUT",
            "x",
            400,
            "failed set klog.logging.verbosity x: strconv.ParseInt: parsing \"x\": invalid syntax\n",
            None,
        ),
        ("PUT", "", 400, "failed set klog.logging.verbosity : strconv.ParseInt: parsing \"\": invalid syntax\n", None),
        ("PUT", "101", 400, "failed set klog.logging.verbosity 101: a filter is in force\n", None),
        ("GET", "", 406, "unsupported http method\n", None),
        ("POST", "5", 406, "unsupported http method\n", None),
    ];
    for (method, body, code, text, set) in rows {
        *node.verbosity.lock().unwrap() = None;
        let answer = node.call(method, "/debug/flags/v", body).await;
        assert_eq!((answer.code, answer.text().as_str()), (code, text), "{method} {body}");
        assert_eq!(*node.verbosity.lock().unwrap(), set, "{method} {body}");
    }
}

#[tokio::test]
async fn profiles_are_shown_as_text_and_in_the_format_of_pprof() {
    let node = Node::new();
    let rows = [
        ("/debug/pprof/", 200, "text/html; charset=utf-8", "<a href='heap?debug=1'>"),
        ("/debug/pprof/goroutine?debug=1", 200, "text/plain; charset=utf-8", "actors: total 0"),
        ("/debug/pprof/heap?debug=1", 200, "text/plain; charset=utf-8", "VmRSS:"),
        ("/debug/pprof/threadcreate?debug=2", 200, "text/plain; charset=utf-8", "threads: total "),
        ("/debug/pprof/cmdline", 200, "text/plain; charset=utf-8", "endpoints"),
        ("/debug/pprof/symbol", 200, "text/plain; charset=utf-8", "num_symbols: 0"),
        ("/debug/pprof/block", 404, "text/plain; charset=utf-8", "no block profile"),
        ("/debug/pprof/nothing", 404, "text/plain; charset=utf-8", "Unknown profile"),
        ("/debug/pprof/profile?seconds=601", 400, "text/plain; charset=utf-8", "profile duration exceeds 600 seconds"),
    ];
    for (path, code, kind, part) in rows {
        let answer = node.get(path).await;
        assert_eq!((answer.code, answer.header("content-type")), (code, kind), "{path}");
        assert!(answer.text().contains(part), "{path}: {}", answer.text());
    }
    for path in ["heap", "threadcreate"] {
        let answer = node.get(&format!("/debug/pprof/{path}")).await;
        assert_eq!(answer.header("content-type"), "application/octet-stream");
        let mut raw = Vec::new();
        flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_end(&mut raw).unwrap();
        assert!(!raw.is_empty(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_cpu_profile_is_taken_at_a_time() {
    let node = Node::new();
    let (first, second) =
        tokio::join!(node.get("/debug/pprof/profile?seconds=5"), node.get("/debug/pprof/profile?debug=1"));
    assert_eq!(first.code, 200);
    assert_eq!(first.header("content-disposition"), "attachment; filename=\"profile\"");
    assert_eq!(second.code, 500);
    assert!(second.text().contains("already in use"));
    let third = node.get("/debug/pprof/profile?seconds=1&debug=1").await.text();
    assert!(third.starts_with("counters over 1 s"), "{third}");
}
