use std::time::Duration;

use contract::config_sources::Source;
use cri_api::v1::{CreateContainerRequest, RunPodSandboxRequest, StartContainerRequest};
use fakes::runtime::{ExecReply, samples};
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{PodUid, Timestamp};
use serde_json::json;

use super::fixture::{Node, pod};

const IMAGE: &str = "registry.k8s.io/pause:3.10";

/// Pod `ns/p` with a container `c` that runs, and a container `gone` that does not.
async fn node() -> Node {
    let node = Node::new();
    node.fake.add_images(&[IMAGE]);
    let runtime = node.fake.client();
    let sandbox_config = samples::sandbox("p", 0);
    let request = RunPodSandboxRequest { config: Some(sandbox_config.clone()), ..Default::default() };
    let sandbox = runtime.run_pod_sandbox(request).await.unwrap().pod_sandbox_id;
    let request = CreateContainerRequest {
        pod_sandbox_id: sandbox.clone(),
        config: Some(samples::container("p", "c", IMAGE, 0)),
        sandbox_config: Some(sandbox_config),
    };
    let id = runtime.create_container(request).await.unwrap().container_id;
    runtime.start_container(StartContainerRequest { container_id: id.clone() }).await.unwrap();
    let value = json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "uid-p"},
        "spec": {"containers": [{"name": "c"}, {"name": "gone"}], "initContainers": [{"name": "i"}],
                 "ephemeralContainers": [{"name": "e"}]},
    });
    node.add("uid-p", pod(value), Source::Api);
    let mut observed = PodObservation::empty(PodUid::from("uid-p"), "ns", "p");
    observed.containers = vec![instance(&id, &sandbox)];
    fakes::observe(&node.wiring, observed);
    node
}

fn instance(id: &str, sandbox: &str) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp(1),
        started_at: Timestamp(1),
        image: IMAGE.to_owned(),
        ..ContainerObservation::new(id, "c", sandbox, ContainerState::Running)
    }
}

#[tokio::test]
async fn a_command_is_run_and_answered_with_all_that_it_wrote() {
    let node = node().await;
    node.fake.on_exec(|call| ExecReply {
        exit_code: i32::from(call.command[0] == "false"),
        stdout: call.command.join("|").into_bytes(),
        stderr: b"!".to_vec(),
        takes: Duration::ZERO,
    });
    let rows = [
        ("/run/ns/p/c?cmd=ls%20-l%20%20x", 200, "ls|-l||x!"),
        ("/run/ns/p/c?cmd=a+b", 200, "a|b!"),
        ("/run/ns/p/uid-p/c?cmd=ls", 200, "ls!"),
        ("/run/ns/p/other/c?cmd=ls", 500, "container not found (\"c\")"),
        ("/run/ns/p/gone?cmd=ls", 500, "container not found (\"gone\")"),
        ("/run/ns/q/c?cmd=ls", 404, "pod does not exist"),
        ("/run/other/p/c?cmd=ls", 404, "pod does not exist"),
        ("/run/ns/p/c?cmd=false+x", 500, "command 'false x' exited with 1: !"),
    ];
    for (path, code, text) in rows {
        let answer = node.call("POST", path, "").await;
        assert_eq!((answer.code, answer.text().as_str()), (code, text), "{path}");
        let kind = if code == 200 { "application/json" } else { "text/plain; charset=utf-8" };
        assert_eq!(answer.header("content-type"), kind, "{path}");
    }
    assert_eq!(node.get("/run/ns/p/c?cmd=ls").await.code, 405);
}

#[tokio::test]
async fn the_words_of_the_runtime_are_passed_on() {
    let node = node().await;
    node.fake.inject(fakes::runtime::Fault::error("ExecSync", 13.into(), "no shim"));
    let answer = node.call("POST", "/run/ns/p/c?cmd=ls", "").await;
    assert_eq!((answer.code, answer.text().as_str()), (500, "rpc error: code = Internal desc = no shim"));
}

#[tokio::test]
async fn a_checkpoint_is_asked_for_with_a_name_and_a_time() {
    let node = node().await;
    let rows = [
        ("/checkpoint/ns/q/c", 404, "pod does not exist"),
        ("/checkpoint/ns/p/x", 404, "container x does not exist"),
        ("/checkpoint/ns/p/c?timeout=abc", 404, "cannot parse value of timeout parameter"),
        ("/checkpoint/ns/p/c?timeout=5&timeout=x", 404, "cannot parse value of timeout parameter"),
        ("/checkpoint/ns/p/i", 500, "checkpointing of ns/p/i failed (container i not found)"),
        ("/checkpoint/ns/p/e", 500, "checkpointing of ns/p/e failed (container e not found)"),
    ];
    for (path, code, text) in rows {
        let answer = node.call("POST", path, "").await;
        assert_eq!((answer.code, answer.text().as_str()), (code, text), "{path}");
    }
    // This runtime has no checkpoints.
    let answer = node.call("POST", "/checkpoint/ns/p/c?timeout=x&timeout=5", "").await;
    assert!(
        answer.text().starts_with("checkpointing of ns/p/c failed (rpc error: code = Unimplemented"),
        "{}",
        answer.text()
    );
    assert!(node.deps.settings.root_dir.join("checkpoints").is_dir());
}
