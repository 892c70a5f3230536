use std::sync::Arc;

use model::core::Pod;
use ports::api::ApiExt;
use trace::{Context, Kind, Limits, Queue, Sampler, Value};

use super::pair;

#[tokio::test]
async fn a_request_is_a_span_of_which_the_server_is_told() {
    let (server, client) = pair().await;
    client.get::<Pod>(Some("default"), "a").await.unwrap_err();
    assert_eq!(server.traceparents(), [None], "nobody is told of traces that there are not");

    let queue = Arc::new(Queue::new(Limits { batch: 2, ..Limits::default() }));
    assert!(trace::install(Sampler::per_million(0), queue.clone(), Arc::new(|| 1)), "one test to a process (nextest)");
    let parent = Context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let get = client.get::<Pod>(Some("default"), "a");
    trace::within(parent, get).await.unwrap_err();
    client.get::<Pod>(Some("default"), "a").await.unwrap_err();
    trace::within(parent, client.get::<Pod>(Some("default"), "b")).await.unwrap_err();

    let spans = queue.batch().await;
    let [first, second] = &spans[..] else { panic!("{spans:?}") };
    let told: Vec<Context> = server.traceparents().iter().flatten().map(|t| Context::parse(t).unwrap()).collect();
    assert_eq!((told[0], told[2]), (first.context, second.context));
    assert!(!told[1].sampled, "a trace that begins with it is not recorded at this rate");
    for span in &spans {
        assert_eq!((span.parent, span.context.trace), (parent.map(|p| p.span), parent.unwrap().trace));
        assert_eq!((&*span.name, span.kind), ("HTTP GET", Kind::Client));
        assert!(span.attributes.contains(&("http.response.status_code", Value::Int(404))), "{span:?}");
        assert!(span.error.as_deref().is_some_and(|e| e.contains("not found")), "{span:?}");
    }
}
