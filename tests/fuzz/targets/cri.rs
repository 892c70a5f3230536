//! What a runtime sends: decoded and read without a panic, whatever it says.

#![no_main]

use cri_api::v1;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use runtime_client::reading;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 8 {
        0 => {
            if let Ok(answer) = v1::ContainerStatusResponse::decode(bytes)
                && let Some(status) = answer.status
            {
                let _names = reading::names(&status.labels);
                let id = status.id.clone();
                assert_eq!(reading::container(status, "s".into(), String::new()).id.as_str(), id);
            }
        }
        1 => {
            if let Ok(answer) = v1::PodSandboxStatusResponse::decode(bytes)
                && let Some(status) = answer.status
            {
                let id = status.id.clone();
                assert_eq!(reading::sandbox(status).id.as_str(), id);
            }
        }
        2 => drop(v1::ContainerEventResponse::decode(bytes)),
        3 => drop(v1::ListContainersResponse::decode(bytes)),
        4 => drop(v1::ListPodSandboxResponse::decode(bytes)),
        5 => drop(v1::StatusResponse::decode(bytes)),
        6 => drop(v1::ListContainerStatsResponse::decode(bytes)),
        _ => drop(v1::ListPodSandboxStatsResponse::decode(bytes)),
    }
});
