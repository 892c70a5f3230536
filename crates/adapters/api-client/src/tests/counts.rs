use fakes::api::{Matching, Trouble};
use metrics::rest_client::{DURATION, REQUEST_SIZE, REQUESTS, RESPONSE_SIZE};
use model::core::Pod;
use ports::api::{ApiError, ApiExt};

use super::{kubeconfig, pair, pod};

#[tokio::test]
async fn requests_are_counted_by_server_method_and_code() {
    let (server, client) = pair().await;
    // Its port tells it from the servers of other tests.
    let host = kubeconfig(&server).server.authority().unwrap().to_string();
    let count = |code: &str, method: &str| REQUESTS.with_label_values(&[code, &host, method]).get();
    client.create(Some("default"), &pod("a")).await.unwrap();
    client.get::<Pod>(Some("default"), "a").await.unwrap();
    client.get::<Pod>(Some("default"), "b").await.unwrap_err();
    let boom = ApiError::status(500, "InternalError", "boom");
    server.api().trouble(Matching::any(), Trouble::Fail(boom), 1);
    client.get::<Pod>(Some("default"), "a").await.unwrap_err();
    assert_eq!(
        [count("201", "POST"), count("200", "GET"), count("404", "GET"), count("500", "GET")],
        [1, 1, 1, 1],
        "{REQUESTS:?}"
    );
    assert_eq!(DURATION.with_label_values(&[&*host, "GET"]).get_sample_count(), 3);
    assert!(REQUEST_SIZE.with_label_values(&[&*host, "POST"]).get_sample_sum() > 10.0);
    assert_eq!(RESPONSE_SIZE.with_label_values(&[&*host, "GET"]).get_sample_count(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_counted_as_an_error_of_its_own() {
    let (server, client) = pair().await;
    let host = kubeconfig(&server).server.authority().unwrap().to_string();
    drop(server);
    client.create(Some("default"), &pod("a")).await.unwrap_err();
    assert!(REQUESTS.with_label_values(&["<error>", &*host, "POST"]).get() >= 1, "{REQUESTS:?}");
}
