//! Pods that crash actors: workers back off alone, and what crashed a manager twice is told on its pod.

use std::time::Duration;

use actor::{Kernel, Policy, SetAside, Strategy};
use contract::event::RecordEvent;
use contract::pod_manager::DesiredPod;
use contract::{Crew, Supervisor};
use model::PodUid;
use model::event::{EventObject, EventType, NodeEvent};

/// Longest pause of a worker that crashes again and again; the same for all of its messages.
const WORKER_PAUSE: Duration = Duration::from_secs(60);

/// Each worker is one pod's: its crashes are nobody else's.
pub(super) fn workers_policy() -> Policy {
    Policy { strategy: Strategy::Isolated, backoff_max: WORKER_PAUSE, ..Policy::default() }
}

/// Records an event on each pod because of which the kernel sets work aside.
pub(super) fn record_set_aside(kernel: &Kernel, crew: Crew<Supervisor>) {
    let pods = crew.board::<DesiredPod>();
    kernel.on_set_aside(move |aside: &SetAside| {
        let uid = PodUid::from(aside.subject.as_str());
        let Some(row) = pods.get(&uid) else { return };
        let object = EventObject::Pod {
            namespace: model::pod::namespace(&row.pod).to_owned(),
            name: model::pod::name(&row.pod).to_owned(),
            uid,
            field_path: String::new(),
        };
        let message = format!(
            "{} of this pod crashed {} {} times and is set aside for {} s: {}",
            aside.what,
            aside.actor,
            aside.crashes,
            aside.rest.as_secs(),
            aside.cause
        );
        let event = NodeEvent { kind: EventType::Warning, reason: "SetAside".into(), message, object };
        let _counted_by_the_kernel = crew.tell(RecordEvent::from(event));
    });
}
