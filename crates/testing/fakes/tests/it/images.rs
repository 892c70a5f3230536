use cri_api::v1;
use fakes::FakeRuntime;
use fakes::runtime::Pull;
use ports::runtime::RuntimeCode;
use tokio::time::{Duration, Instant};

use super::{WAYS, secs};

fn spec(image: &str) -> Option<v1::ImageSpec> {
    Some(v1::ImageSpec { image: image.to_owned(), ..Default::default() })
}

fn pull(image: &str, user: &str) -> v1::PullImageRequest {
    let auth = (!user.is_empty()).then(|| v1::AuthConfig {
        username: user.to_owned(),
        password: "secret".to_owned(),
        ..Default::default()
    });
    v1::PullImageRequest { image: spec(image), auth, sandbox_config: None }
}

#[tokio::test(start_paused = true)]
async fn pulls_go_as_the_registry_says() {
    let fake = FakeRuntime::default();
    let client = fake.client();
    fake.registry("r.example/slow:1", Pull::Succeeds(secs(40 * 60)));
    fake.registry("r.example/bad:1", Pull::Fails(secs(1), tonic::Code::Unknown, "boom".to_owned()));
    fake.registry("r.example/private:1", Pull::NeedsAuth(secs(1), "joe".to_owned(), "secret".to_owned()));

    let before = Instant::now();
    let id = client.pull_image(pull("r.example/slow:1", "")).await.unwrap().image_ref;
    assert_eq!(before.elapsed(), secs(40 * 60), "a pull has no deadline");
    let by_id = client.image_status(v1::ImageStatusRequest { image: spec(&id), verbose: false }).await.unwrap();
    assert_eq!(by_id.image.unwrap().repo_tags, ["r.example/slow:1"]);

    assert_eq!(client.pull_image(pull("r.example/bad:1", "")).await.unwrap_err().message, "boom");
    assert_eq!(client.pull_image(pull("r.example/none:1", "")).await.unwrap_err().code, RuntimeCode::NotFound);
    let refused = client.pull_image(pull("r.example/private:1", "")).await.unwrap_err();
    assert!(refused.message.contains("authorization failed"));
    client.pull_image(pull("r.example/private:1", "joe")).await.unwrap();
    assert_eq!(client.list_images(v1::ListImagesRequest::default()).await.unwrap().images.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_absent_image_is_no_error_and_removal_is_idempotent() {
    let fake = FakeRuntime::default();
    let client = fake.client();
    fake.add_images(&["busybox"]);
    let absent = client.image_status(v1::ImageStatusRequest { image: spec("nope"), verbose: false }).await.unwrap();
    assert_eq!(absent.image, None);
    for _ in 0..2 {
        client.remove_image(v1::RemoveImageRequest { image: spec("docker.io/library/busybox:latest") }).await.unwrap();
    }
    assert!(!fake.has_image("busybox"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_pull_is_cancelled_at_the_runtime() {
    for way in WAYS {
        let fake = FakeRuntime::default();
        let client = way(&fake);
        fake.registry("r.example/slow:1", Pull::Succeeds(secs(60)));
        let given_up = tokio::time::timeout(secs(1), client.pull_image(pull("r.example/slow:1", ""))).await;
        assert!(given_up.is_err());
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(!fake.has_image("r.example/slow:1"));
    }
}
