//! The fake runtime as the test bed had it, and its calls in the form of the recording.

use std::time::Duration;

use fakes::FakeRuntime;
use fakes::runtime::{FakeImage, Fault, Features};
use golden_compare::cri::json;

use crate::script::{Script, sleeper};
use golden_compare::recording::{Call, Case};

/// A runtime that has the images of the case and plays its containers.
pub(crate) fn runtime(case: &Case, script: &Script) -> FakeRuntime {
    let fake = FakeRuntime::new(Features::containerd_1_6());
    for (image, id) in case.images() {
        let user = image.contains("/pause:").then_some(65535);
        // Imported images have no digest; the runtime then tells their id.
        fake.add_image(FakeImage { digest: id.clone(), id, uid: user, ..FakeImage::new(&image) });
        fake.program(&image, &[sleeper()]);
    }
    for (container, programs) in &script.programs {
        fake.program(container, programs);
    }
    // As calls take time, those that are made together overlap.
    for (rpc, ms) in [("RunPodSandbox", 40), ("CreateContainer", 10), ("StartContainer", 10), ("StopContainer", 5)] {
        fake.inject(Fault::delay(rpc, Duration::from_millis(ms)));
    }
    script.faults.iter().cloned().for_each(|f| fake.inject(f));
    fake
}

#[allow(clippy::cast_precision_loss, reason = "seconds to compare, not to add up")]
fn seconds(at: model::Timestamp) -> f64 {
    at.0 as f64 / 1e9
}

/// Calls that change something, in the order of their arrival.
pub(crate) fn calls(fake: &FakeRuntime) -> Vec<Call> {
    let calls = fake.calls().into_iter().filter_map(|c| {
        let mutation = c.mutation?;
        Some(Call {
            rpc: mutation.rpc().to_owned(),
            request: json(mutation.message_name(), &mutation.encode()),
            start: seconds(c.at),
            end: c.answered.map_or(f64::INFINITY, seconds),
            made: None,
        })
    });
    calls.collect()
}
