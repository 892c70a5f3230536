use cri_api::v1;

use super::{container_id, container_status, image, image_ref, sandbox_id, sandbox_status, version};

fn answer(version: &str, name: &str) -> v1::VersionResponse {
    v1::VersionResponse {
        version: version.to_owned(),
        runtime_name: name.to_owned(),
        runtime_version: "2.1.9".to_owned(),
        runtime_api_version: "v1".to_owned(),
    }
}

#[test]
fn only_the_version_of_the_kubelet_api_is_accepted() {
    assert!(version(answer("0.1.0", "containerd")).is_ok());
    let e = version(answer("v1", "containerd")).unwrap_err();
    assert_eq!(e.message, "runtime speaks version \"v1\" of the kubelet API, \"0.1.0\" is needed");
    let e = version(answer("0.1.0", "")).unwrap_err();
    assert!(e.message.starts_with("not all fields are set"), "{e}");
}

#[test]
fn empty_ids_are_errors() {
    assert_eq!(sandbox_id("", "web").unwrap_err().message, "PodSandboxId is not set for sandbox \"web\"");
    assert_eq!(container_id("", "app").unwrap_err().message, "ContainerId is not set for container \"app\"");
    assert_eq!(image_ref("", "app:1").unwrap_err().message, "imageRef of image \"app:1\" is not set");
    assert!(sandbox_id("s", "web").is_ok() && container_id("c", "app").is_ok() && image_ref("i", "app:1").is_ok());
}

#[test]
fn a_container_status_needs_what_the_book_names() {
    type Change = fn(&mut v1::ContainerStatus);
    let rows: [(&str, Change); 5] = [
        ("id", |s| s.id.clear()),
        ("metadata.name", |s| s.metadata = None),
        ("created_at", |s| s.created_at = 0),
        ("image.image", |s| s.image = None),
        ("image_ref", |s| s.image_ref.clear()),
    ];
    let whole = v1::ContainerStatus {
        id: "c1".to_owned(),
        metadata: Some(v1::ContainerMetadata { name: "app".to_owned(), attempt: 0 }),
        created_at: 1,
        image: Some(v1::ImageSpec { image: "app:1".to_owned(), ..Default::default() }),
        image_ref: "sha256:0".to_owned(),
        ..Default::default()
    };
    assert!(container_status(&whole).is_ok());
    for (field, change) in rows {
        let mut s = whole.clone();
        change(&mut s);
        let e = container_status(&s).unwrap_err();
        assert!(e.message.ends_with(&format!("lacks {field}")), "{e}");
    }
}

#[test]
fn a_sandbox_status_and_an_image_need_what_the_book_names() {
    let metadata =
        v1::PodSandboxMetadata { name: "web".to_owned(), uid: "u".to_owned(), namespace: "ns".to_owned(), attempt: 0 };
    let whole =
        v1::PodSandboxStatus { id: "s1".to_owned(), metadata: Some(metadata), created_at: 1, ..Default::default() };
    assert!(sandbox_status(&whole).is_ok());
    let bare = v1::PodSandboxStatus { metadata: None, ..whole };
    assert_eq!(sandbox_status(&bare).unwrap_err().message, "status of sandbox \"s1\" lacks metadata.name");
    assert!(image(&v1::Image { id: "i".to_owned(), size: 1, ..Default::default() }).is_ok());
    assert!(image(&v1::Image { id: "i".to_owned(), ..Default::default() }).is_err());
}
