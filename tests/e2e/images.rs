//! Pulls from a real registry: what fails, how it is told, and that it heals.

use testbed::{Image, Login, Registry};

use crate::node::{Node, state};

fn container(image: &str, policy: &str) -> String {
    format!(
        "  containers:\n  - name: main\n    image: {image}\n    imagePullPolicy: {policy}\n    command: [sleep, \"1000\"]\n"
    )
}

#[test]
fn a_missing_image_is_told_and_runs_once_it_is_pushed() {
    let mut node = Node::start();
    let registry = Registry::start(&mut node.bed, "pull.example", Login::Open).expect("a registry");
    registry.push(&Image::busybox("other:1").expect("an image"), "other:1").expect("pushed");
    node.put("late", &container("pull.example/app:1", "IfNotPresent"));
    let message = node.wait("late", "to fail its pull", |p| {
        let waiting = state(p, "waiting");
        let failed = waiting["reason"] == "ErrImagePull" || waiting["reason"] == "ImagePullBackOff";
        failed.then(|| waiting["message"].as_str().unwrap_or_default().to_owned())
    });
    assert!(message.contains("pull.example/app:1"), "{message}");
    node.wait("late", "to back off", |p| (state(p, "waiting")["reason"] == "ImagePullBackOff").then_some(()));
    registry.push(&Image::busybox("app:1").expect("an image"), "app:1").expect("pushed");
    node.wait_running("late");
}

#[test]
fn a_registry_that_asks_for_a_password_is_told_as_a_failed_pull() {
    let mut node = Node::start();
    let registry = Registry::start(&mut node.bed, "closed.example", Login::Password).expect("a registry");
    registry.push(&Image::busybox("app:1").expect("an image"), "app:1").expect("pushed with the password");
    node.put("denied", &container("closed.example/app:1", "Always"));
    let message = node.wait("denied", "to fail its pull", |p| {
        let waiting = state(p, "waiting");
        (waiting["reason"] == "ErrImagePull").then(|| waiting["message"].as_str().unwrap_or_default().to_owned())
    });
    assert!(message.contains("auth"), "{message}");
}

#[test]
fn pull_policies_decide_whether_the_registry_is_asked() {
    let mut node = Node::start();
    let registry = Registry::start(&mut node.bed, "pull.example", Login::Open).expect("a registry");
    registry.push(&Image::busybox("app:1").expect("an image"), "app:1").expect("pushed");
    node.put("never", &container("pull.example/app:1", "Never"));
    node.wait("never", "to be refused", |p| (state(p, "waiting")["reason"] == "ErrImageNeverPull").then_some(()));
    // Before the next pull: the same image from a registry is no longer a preloaded one, and has to be asked for (KEP-2535).
    node.put("present", &container(testbed::BUSYBOX_IMAGES[0], "IfNotPresent"));
    node.wait_running("present");
    node.put("always", &container("pull.example/app:1", "Always"));
    node.wait_running("always");
}

#[test]
fn a_malformed_image_name_is_told() {
    let node = Node::start();
    node.put("typo", &container("UPPER/Case:1:2", "IfNotPresent"));
    node.wait("typo", "to be refused", |p| (state(p, "waiting")["reason"] == "InvalidImageName").then_some(()));
}
