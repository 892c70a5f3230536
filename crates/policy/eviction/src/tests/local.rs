use super::*;
use crate::{Layout, has_local_limit, local_overrun};

fn limited() -> Pod {
    let limits = json!({ "limits": { "ephemeral-storage": "10Mi" } });
    pod(json!({
        "containers": [{ "name": "app", "resources": limits }, { "name": "side", "resources": limits }],
        "volumes": [
            { "name": "tmp", "emptyDir": { "sizeLimit": "1Mi" } },
            { "name": "mem", "emptyDir": { "medium": "Memory", "sizeLimit": "2Mi" } },
            { "name": "none", "emptyDir": { "sizeLimit": "0" } },
        ],
    }))
}

fn used(volume: (&str, i64), pod_mi: i64, container: (i64, i64)) -> PodStats {
    stats(json!({
        "volume": [{ "name": volume.0, "usedBytes": volume.1 }],
        "ephemeral-storage": { "usedBytes": pod_mi * MI },
        "containers": [{
            "name": "app", "logs": { "usedBytes": container.0 * MI }, "rootfs": { "usedBytes": container.1 * MI },
        }],
    }))
}

/// Edge 54.
#[test]
fn the_first_limit_that_is_crossed_is_told() {
    let tmp = "Usage of EmptyDir volume \"tmp\" exceeds the limit \"1Mi\". ";
    let mem = "Usage of EmptyDir volume \"mem\" exceeds the limit \"2Mi\". ";
    let whole = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ";
    let app = "Container app exceeded its local ephemeral storage limit \"10Mi\". ";
    let none = None::<(&str, &str)>;
    let table = [
        ("all within", used(("tmp", MI), 20, (5, 5)), Layout::Single, none),
        ("an emptyDir", used(("tmp", MI + 1), 21, (6, 5)), Layout::Single, Some(("emptydirfs.limit", tmp))),
        ("one in memory", used(("mem", 2 * MI + 1), 0, (0, 0)), Layout::Single, Some(("emptydirfs.limit", mem))),
        ("a limit of nothing is none", used(("none", GI), 0, (0, 0)), Layout::Single, none),
        ("the whole pod", used(("tmp", 0), 21, (6, 5)), Layout::Single, Some(("ephemeralpodfs.limit", whole))),
        ("a container", used(("tmp", 0), 20, (6, 5)), Layout::Single, Some(("ephemeralcontainerfs.limit", app))),
        ("its layer is elsewhere", used(("tmp", 0), 20, (6, 5)), Layout::ImagesApart, none),
        (
            "its logs alone",
            used(("tmp", 0), 20, (11, 0)),
            Layout::ImagesApart,
            Some(("ephemeralcontainerfs.limit", app)),
        ),
    ];
    for (what, stats, layout, expected) in table {
        let got = local_overrun(&limited(), &stats, layout);
        assert_eq!(got.as_ref().map(|o| (o.signal, o.message.as_str())), expected, "{what}");
    }
}

#[test]
fn what_sets_no_limit_need_not_be_measured() {
    assert!(has_local_limit(&limited()));
    let memory = json!({ "limits": { "memory": "1Mi" } });
    let volumes = json!([{ "name": "tmp", "emptyDir": { "sizeLimit": "0" } }, { "name": "c", "configMap": {} }]);
    assert!(!has_local_limit(&pod(
        json!({ "containers": [{ "name": "app", "resources": memory }], "volumes": volumes })
    )));
    let of_init = json!({ "name": "init", "resources": { "limits": { "ephemeral-storage": "1Mi" } } });
    assert!(has_local_limit(&pod(json!({ "containers": [{ "name": "app" }], "initContainers": [of_init] }))));
    assert_eq!(
        local_overrun(&pod(json!({ "containers": [] })), &used(("tmp", GI), 9999, (99, 99)), Layout::Single),
        None
    );
}
