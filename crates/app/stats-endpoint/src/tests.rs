//! The router against a StatsManager that answers from memory; `golden`: against the real one.

mod golden;
mod scene;

use std::sync::Arc;

use actor::Kernel;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use contract::Wiring;
use contract::stats::{Cadvisor, Resource, StatsError, Summarise};
use fakes::StandIn;
use http_body_util::BodyExt;
use model::stats::Summary;
use tower::ServiceExt;

use crate::{Deps, router};

/// Over a StatsManager that names the node after what was asked; fails when told to.
fn served(kernel: &Kernel, broken: bool) -> axum::Router {
    let wiring = Wiring::default();
    let stats = StandIn::<contract::StatsManager>::on(&wiring);
    stats.answer(move |m: &Summarise| {
        if broken {
            return Err(StatsError { message: "failed to get root cgroup stats: gone".to_owned() });
        }
        let mut summary = Summary::default();
        summary.node.node_name = if m.only_cpu_and_memory { "brief" } else { "full" }.to_owned();
        Ok(Arc::new(summary))
    });
    stats.answer(|_: &Resource| "resource_scrape_error 0\n".into());
    stats.answer(|_: &Cadvisor| Ok("container_scrape_error 0\n".into()));
    router(Deps { crew: wiring.crew(), effects: kernel.effects("stats-endpoint") })
}

async fn text_of(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

fn request(method: Method, path: &str) -> Request<Body> {
    Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
}

#[test]
fn each_path_answers_as_the_book_says() {
    actor::testing::run(1, |kernel| async move {
        let app = served(&kernel, false);
        let table = [
            ("GET", "/stats/summary", 200, "\"full\""),
            ("POST", "/stats/summary", 200, "\"full\""),
            ("PUT", "/stats/summary", 405, "405: Method Not Allowed"),
            ("HEAD", "/stats/summary", 405, ""),
            ("GET", "/stats/summary?only_cpu_and_memory=true", 200, "\"brief\""),
            ("GET", "/stats/summary?only_cpu_and_memory=tr%75e", 200, "\"brief\""),
            ("GET", "/stats/summary?only_cpu_and_memory=1", 200, "\"full\""),
            ("GET", "/stats/summary?only_cpu_and_memory=True", 200, "\"full\""),
            ("GET", "/stats/summary?only_cpu_and_memory=true&only_cpu_and_memory=true", 200, "\"full\""),
            ("GET", "/stats/summary?only_cpu_and_memory", 200, "\"full\""),
            (
                "GET",
                "/stats/summary?a=b;c",
                500,
                "Internal Error: parse form failed: invalid semicolon separator in query",
            ),
            ("GET", "/stats/summary?a=%zz", 500, "Internal Error: parse form failed: invalid URL escape \"%zz\""),
            ("GET", "/stats", 404, "404: Page Not Found"),
            ("GET", "/stats/", 404, "404: Page Not Found"),
            ("GET", "/stats/container", 404, "404: Page Not Found"),
            ("POST", "/stats/default/pod/uid/c", 404, "404: Page Not Found"),
            ("GET", "/metrics/resource", 200, "resource_scrape_error 0"),
            ("GET", "/metrics/cadvisor", 200, "container_scrape_error 0"),
        ];
        for (method, path, status, part) in table {
            let answer = app.clone().oneshot(request(method.parse().unwrap(), path)).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{method} {path}");
            if method != "HEAD" {
                let text = text_of(answer).await;
                assert!(text.contains(part), "{method} {path}: {text}");
            }
        }
    });
}

#[test]
fn a_form_counts_as_the_query_does_and_both_together_are_two() {
    actor::testing::run(1, |kernel| async move {
        let app = served(&kernel, false);
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let table = [
            ("", form, "only_cpu_and_memory=true", "\"brief\""),
            ("", "text/plain", "only_cpu_and_memory=true", "\"full\""),
            ("?only_cpu_and_memory=true", form, "only_cpu_and_memory=true", "\"full\""),
            ("?only_cpu_and_memory=true", form, "x=y", "\"brief\""),
        ];
        for (query, kind, body, part) in table {
            let request =
                Request::post(format!("/stats/summary{query}")).header("content-type", kind).body(Body::from(body));
            let answer = app.clone().oneshot(request.unwrap()).await.unwrap();
            assert!(text_of(answer).await.contains(part), "{query} {kind} {body}");
        }
        let huge =
            Request::post("/stats/summary").header("content-type", form).body(Body::from("a".repeat(1 << 20))).unwrap();
        let answer = app.oneshot(huge).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    });
}

#[test]
fn a_failed_gathering_is_an_internal_error_with_its_text() {
    actor::testing::run(1, |kernel| async move {
        let answer = served(&kernel, true).oneshot(request(Method::GET, "/stats/summary")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(text_of(answer).await, "Internal Error: failed to get root cgroup stats: gone");
        let nobody = Deps { crew: Wiring::default().crew(), effects: kernel.effects("stats-endpoint") };
        let answer = router(nobody).oneshot(request(Method::GET, "/metrics/resource")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    });
}

#[test]
fn metrics_are_packed_for_who_accepts_it() {
    actor::testing::run(1, |kernel| async move {
        let app = served(&kernel, false);
        for (accepted, packed) in
            [("gzip", true), ("deflate, *;q=0.5", true), ("gzip;q=0, deflate", false), ("br", false)]
        {
            let request = Request::get("/metrics/cadvisor").header("accept-encoding", accepted);
            let answer = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(answer.headers().contains_key("content-encoding"), packed, "{accepted}");
            assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let mut text = String::new();
            if packed {
                std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
            } else {
                text = String::from_utf8(bytes.to_vec()).unwrap();
            }
            assert_eq!(text, "container_scrape_error 0\n");
        }
    });
}
