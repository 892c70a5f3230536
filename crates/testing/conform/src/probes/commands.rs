//! What is asked of the runtime.

use std::time::Duration;

use contract::ProbeManager;
use serde_json::json;

use super::bed::{Bed, Reply, case, container, exec_with, running, seconds};
use crate::case::Case;
use crate::outcome::{Outcome, demand};
use crate::watch::until;

pub(super) fn cases() -> Vec<Case<ProbeManager>> {
    vec![
        case(
            "command",
            "pod-lifecycle 8.3",
            "a command is run in its own container, with its words and timeoutSeconds",
            command,
        )
        .core(),
        case(
            "command-environment",
            "pod-lifecycle 8.3",
            "$(NAME) in a command is the container's own literal environment",
            command_environment,
        ),
        case("long-output", "pod-lifecycle 8.3", "of what a command says the first 10 KiB are told", long_output),
    ]
}

async fn command(bed: Bed) -> Outcome {
    let probe = json!({"exec": {"command": ["live", "--deep", "a b"]}, "periodSeconds": 1, "timeoutSeconds": 7});
    let spec = json!({"containers": [container("other", json!({})), container("m", json!({"livenessProbe": probe}))]});
    let pod = bed.pod("a", spec);
    let now = bed.stage.now();
    bed.show(&pod, vec![running("other", "c0", now, true), running("m", "c1", now, true)]);
    bed.start(&pod).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await?;
    let Some((_, asked)) = bed.ran("live").pop() else { return Ok(()) };
    let is_right = asked.uid == model::pod::uid(&pod)
        && asked.container.as_str() == "c1"
        && asked.command == ["live", "--deep", "a b"]
        && asked.timeout == Duration::from_secs(7);
    demand(is_right, || format!("asked was {asked:?}"))
}

async fn command_environment(bed: Bed) -> Outcome {
    let fields = json!({
        "env": [{"name": "PORT", "value": "80"}],
        "livenessProbe": {"exec": {"command": ["live", "$(PORT)", "$(OTHER)", "$$(PORT)"]}, "periodSeconds": 1},
    });
    let pod = bed.pod("a", json!({"containers": [container("m", fields)]}));
    bed.runs(&pod);
    bed.start(&pod).await?;
    until("it is probed", seconds(1.9), || bed.count("live") > 0).await?;
    let said = bed.ran("live").pop().map(|(_, m)| m.command);
    let wanted = ["live", "80", "$(OTHER)", "$(PORT)"].map(str::to_owned);
    demand(said.as_deref() == Some(&wanted), || format!("run was {said:?}"))
}

/// More than is told.
static LONG: [u8; 20_000] = [b'x'; 20_000];

async fn long_output(bed: Bed) -> Outcome {
    bed.script("live", [Reply::Exits(1, std::str::from_utf8(&LONG).unwrap_or_default())]);
    bed.running_pod("a", json!({"livenessProbe": exec_with("live", json!({"periodSeconds": 1}))})).await?;
    until("a failure is told", seconds(2.5), || !bed.told().is_empty()).await?;
    let told = bed.told().remove(0).bytes().filter(|b| *b == b'x').count();
    demand(told == 10 * 1024, || format!("{told} bytes of the output are told"))
}
