use ports::runtime::RuntimeEventKind::{Created, Deleted, Started, Stopped};
use prost::Message;

use super::event;
use crate::stubs::containerd::{ContainerEvent, Envelope, TaskDelete, TaskStart};

fn envelope(topic: &str, body: &impl Message) -> Envelope {
    Envelope {
        timestamp: Some(prost_types::Timestamp { seconds: 1, nanos: 5 }),
        namespace: "k8s.io".to_owned(),
        topic: topic.to_owned(),
        event: Some(prost_types::Any { type_url: "any".to_owned(), value: body.encode_to_vec() }),
    }
}

#[test]
fn each_topic_becomes_its_kind() {
    let at = Some(prost_types::Timestamp { seconds: 2, nanos: 0 });
    let id = || "c1".to_owned();
    let delete = |id: &str| TaskDelete {
        container_id: "c1".to_owned(),
        id: id.to_owned(),
        exited_at: at,
        ..TaskDelete::default()
    };
    let rows = [
        ("created", envelope("/containers/create", &ContainerEvent { id: id() }), Some((Created, 1_000_000_005))),
        ("deleted", envelope("/containers/delete", &ContainerEvent { id: id() }), Some((Deleted, 1_000_000_005))),
        ("started", envelope("/tasks/start", &TaskStart { container_id: id() }), Some((Started, 1_000_000_005))),
        ("exited, which no status shows yet", envelope("/tasks/exit", &delete("")), None),
        ("task deleted", envelope("/tasks/delete", &delete("")), Some((Stopped, 2_000_000_000))),
        ("an exec deleted", envelope("/tasks/delete", &delete("exec-1")), None),
        ("something else", envelope("/tasks/oom", &TaskStart { container_id: id() }), None),
        ("no id", envelope("/tasks/start", &TaskStart::default()), None),
    ];
    for (name, e, want) in rows {
        let got = event(e);
        assert_eq!(got.as_ref().map(|g| (g.kind, g.at.0)), want, "{name}");
        assert!(got.is_none_or(|g| g.id == "c1"), "{name}");
    }
}
