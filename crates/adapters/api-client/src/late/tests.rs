use std::sync::Arc;
use std::time::Duration;

use fakes::FakeApi;
use futures::StreamExt;
use model::core::Node;
use ports::api::{ApiError, ApiExt, ApiServer, Followed, Kind, Selection};

use super::LateApi;

#[tokio::test(start_paused = true)]
async fn nothing_is_ready_until_a_server_is_provided_and_follows_begin_then() {
    let late = LateApi::new("waiting for a client certificate");
    let refused = late.get::<Node>(None, "n").await.unwrap_err();
    assert_eq!(refused, ApiError::NotReady { message: "waiting for a client certificate".to_owned() });
    let mut follow = late.follow(Selection { kind: Kind::Node, namespace: None, field_selector: String::new() });
    assert!(tokio::time::timeout(Duration::from_secs(3600), follow.next()).await.is_err());

    late.provide(Arc::new(FakeApi::new()));
    drop(late.clone());
    assert_eq!(follow.next().await, Some(Followed::All(Vec::new())));
    assert!(late.get::<Node>(None, "n").await.unwrap_err().is_not_found());
}
