use model::Timestamp;
use model::core::PersistentVolumeClaim;
use model::quantity::Quantity;
use serde_json::{Value, json};

use crate::growth::{Ask, End, Growth, Refusal, Told, failed, growth};

/// A claim of 2Gi with this status.
fn claim(modes: &str, status: Value) -> PersistentVolumeClaim {
    let spec = json!({ "accessModes": [modes], "resources": { "requests": { "storage": "2Gi" } } });
    let meta = json!({ "name": "c", "namespace": "shop", "resourceVersion": "7" });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec, "status": status })).unwrap()
}

fn gib(n: i64) -> Quantity {
    Quantity::from_bytes(n << 30)
}

fn told(status: &str) -> PersistentVolumeClaim {
    let resources = json!({ "storage": "2Gi" });
    let capacity = json!({ "storage": if status.is_empty() { "2Gi" } else { "1Gi" } });
    let statuses = if status.is_empty() { json!({}) } else { json!({ "storage": status }) };
    let conditions =
        json!([{ "type": "FileSystemResizePending", "status": "True" }, { "type": "Own", "status": "True" }]);
    claim(
        "ReadWriteOnce",
        json!({ "capacity": capacity, "allocatedResources": resources, "allocatedResourceStatuses": statuses, "conditions": conditions }),
    )
}

fn ask(claim: &PersistentVolumeClaim, failed: bool) -> Ask {
    match growth(claim, gib(2), failed) {
        Growth::Ask(ask) => ask,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_claim_says_whether_it_is_the_nodes_turn() {
    for (status, want) in [
        ("NodeResizePending", None),
        ("NodeResizeInProgress", None),
        ("NodeResizeInfeasible", Some(Growth::NotNow)),
        ("ControllerResizeInProgress", Some(Growth::NotNow)),
        ("", Some(Growth::Reached(gib(2)))),
    ] {
        let found = growth(&told(status), gib(2), false);
        match want {
            Some(want) => assert_eq!(found, want, "{status}"),
            None => assert!(matches!(&found, Growth::Ask(ask) if ask.to == gib(2)), "{status}: {found:?}"),
        }
    }
    let half =
        claim("ReadWriteOnce", json!({ "capacity": { "storage": "1Gi" }, "allocatedResources": { "storage": "2Gi" } }));
    assert_eq!(growth(&half, gib(2), false), Growth::NotNow, "the controller is at work");
}

#[test]
fn a_volume_that_grew_on_another_node_grows_here_too_unless_nodes_have_nothing_to_do() {
    let status = json!({ "capacity": { "storage": "2Gi" }, "allocatedResources": { "storage": "2Gi" } });
    let mut shared = claim("ReadWriteMany", status);
    let again = ask(&shared, false);
    assert_eq!((again.begun(&shared), again.finished(&shared)), (None, None), "the claim tells of it already");
    assert_eq!(again.after(Refusal::Unsupported).end, End::Reached);
    let key = "volume.kubernetes.io/node-expansion-not-required".to_owned();
    shared.metadata.annotations = Some([(key, String::new())].into());
    assert_eq!(growth(&shared, gib(2), false), Growth::Reached(gib(2)));
}

#[test]
fn a_claim_hears_when_it_begins_and_when_it_is_done() {
    let pending = told("NodeResizePending");
    let ask = ask(&pending, false);
    let status = json!({ "allocatedResourceStatuses": { "storage": "NodeResizeInProgress" } });
    assert_eq!(ask.begun(&pending), Some(json!({ "metadata": { "resourceVersion": "7" }, "status": status })));
    assert_eq!(ask.begun(&told("NodeResizeInProgress")), None);
    let status = json!({
        "capacity": { "storage": "2Gi" }, "allocatedResourceStatuses": { "storage": null },
        "conditions": [{ "$patch": "delete", "type": "FileSystemResizePending" }],
    });
    assert_eq!(ask.finished(&pending), Some(json!({ "metadata": { "resourceVersion": "7" }, "status": status })));
}

#[test]
fn an_old_controller_is_told_of_the_size_alone() {
    let silent = claim("ReadWriteOnce", json!({ "capacity": { "storage": "1Gi" } }));
    let ask = ask(&silent, true);
    assert_eq!(ask.begun(&silent), None);
    assert_eq!(ask.finished(&silent).unwrap()["status"], json!({ "capacity": { "storage": "2Gi" } }));
    for refusal in [Refusal::Absent, Refusal::Unsupported, Refusal::InUse, Refusal::Infeasible, Refusal::Other] {
        assert_eq!(ask.after(refusal).told, None, "{refusal:?}");
    }
    assert_eq!(ask.after(Refusal::InUse).end, End::NotInUse { reached: true });
}

#[test]
fn what_a_refusal_makes_of_the_claim() {
    let pending = told("NodeResizePending");
    let first = ask(&pending, false);
    for (refusal, told, end) in [
        (Refusal::Absent, None, End::Failed),
        (Refusal::Unsupported, Some(Told::Error), End::Failed),
        (Refusal::InUse, Some(Told::Error), End::NotInUse { reached: false }),
        (Refusal::Infeasible, Some(Told::Infeasible), End::Failed),
        (Refusal::Other, Some(Told::Error), End::Failed),
    ] {
        let after = first.after(refusal);
        assert_eq!((after.told, after.end), (told, end), "{refusal:?}");
    }
    // The user wants another size by now, and it failed before: the controller may take the size back.
    let mut changed = pending.clone();
    let wanted = json!({ "requests": { "storage": "1536Mi" } });
    changed.spec.as_mut().unwrap().resources = Some(serde_json::from_value(wanted).unwrap());
    assert_eq!(ask(&changed, true).after(Refusal::Other).told, Some(Told::Infeasible));
    assert_eq!(ask(&changed, false).after(Refusal::Other).told, Some(Told::Error));
    let now = Timestamp::from_secs(1_795_165_717);
    let patch = failed(&pending, Told::Infeasible, "no room", now).unwrap();
    assert_eq!(patch["status"]["allocatedResourceStatuses"], json!({ "storage": "NodeResizeInfeasible" }));
    let condition = &patch["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["message"]),
        (&json!("NodeResizeError"), &json!("failed to expand pvc with no room"))
    );
    let error = json!({ "conditions": [{ "type": "NodeResizeError", "status": "True" }] });
    assert_eq!(failed(&claim("ReadWriteOnce", error), Told::Error, "x", now), None, "told already");
}
