//! The harness itself: recorded requests sent to the fake runtime come back as the recording.

use std::collections::BTreeMap;

use cri_api::v1;
use ports::runtime::Runtime;
use prost_reflect::DynamicMessage;
use serde_json::Value;

use crate::fake::{calls, runtime};
use crate::script::scripts;
use golden_compare::cri::pool;
use golden_compare::normal::{Dirs, differences, steps};
use golden_compare::recording::{Call, case};

fn request<M: prost::Message + Default>(call: &Call, request: Value) -> M {
    let descriptor = pool().get_message_by_name(&format!("runtime.v1.{}Request", call.rpc)).expect("a request");
    DynamicMessage::deserialize(descriptor, request).expect("recorded").transcode_to().expect("the same message")
}

/// Puts the ids of this runtime in place of the recorded ones, and files into a folder of the test.
fn translate(call: &Call, ids: &BTreeMap<String, String>, dir: &str) -> Value {
    let mut text = call.request.to_string();
    for (recorded, ours) in ids {
        text = text.replace(recorded, ours);
    }
    text = text.replace("/var/lib/kubelet", &format!("{dir}/lib")).replace("/var/log/pods", &format!("{dir}/log"));
    serde_json::from_str(&text).expect("JSON")
}

/// Sends one request; gives the new id when it makes something.
async fn send(runtime: &dyn Runtime, call: &Call, value: Value) -> Option<String> {
    match call.rpc.as_str() {
        "RunPodSandbox" => runtime.run_pod_sandbox(request(call, value)).await.ok().map(|r| r.pod_sandbox_id),
        "CreateContainer" => runtime.create_container(request(call, value)).await.ok().map(|r| r.container_id),
        rpc => {
            // What becomes of the call is the runtime's business; that it was asked is what counts.
            let _ = match rpc {
                "StartContainer" => runtime.start_container(request(call, value)).await,
                "StopContainer" => runtime.stop_container(request(call, value)).await,
                "RemoveContainer" => runtime.remove_container(request(call, value)).await,
                "StopPodSandbox" => runtime.stop_pod_sandbox(request(call, value)).await,
                "ReopenContainerLog" => runtime.reopen_container_log(request(call, value)).await,
                "ExecSync" => runtime.exec_sync(request(call, value)).await.map(|_: v1::ExecSyncResponse| ()),
                "PullImage" => runtime.pull_image(request(call, value)).await.map(|_| ()),
                other => panic!("{other} in a recording"),
            };
            None
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_sent_to_the_fake_comes_back_as_it_was() {
    let dir = std::env::temp_dir().join(format!("golden-replay-{}", std::process::id()));
    let dir = dir.to_string_lossy().into_owned();
    let dirs = Dirs { root: format!("{dir}/lib"), logs: format!("{dir}/log"), ..Dirs::default() };
    for script in scripts() {
        let case = case(script.case);
        let fake = runtime(&case, &script);
        let client = fake.client();
        let mut ids = BTreeMap::new();
        for call in &case.calls {
            if let Some(id) = send(&*client, call, translate(call, &ids, &dir)).await {
                ids.insert(call.made.clone().expect("a recorded id"), id);
            }
        }
        let recorded = steps(&case.calls, &Dirs::default(), None);
        let mut back = calls(&fake);
        // One after the other here, at the same time there.
        back.iter_mut().zip(&case.calls).for_each(|(b, c)| (b.start, b.end) = (c.start, c.end));
        let ours = steps(&back, &dirs, None);
        assert_eq!(differences(&recorded, &ours), Vec::<String>::new(), "{}", case.name);
    }
}
