//! Devices of the Container Device Interface.

use cri_api::v1;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::cdi::{Found, Known, asked};
use crate::{Brought, DeviceKind, DeviceNode};

fn found(folder: usize, name: &str, text: &str) -> Found {
    Found { path: format!("/cdi{folder}/{name}").into(), folder, text: Ok(text.to_owned()) }
}

/// A file with one device that sets one variable.
fn one(kind: &str, device: &str, value: &str) -> String {
    let edits = json!({ "env": [format!("FROM={value}")] });
    json!({ "cdiVersion": "0.6.0", "kind": kind, "devices": [{ "name": device, "containerEdits": edits }] }).to_string()
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|n| (*n).to_owned()).collect()
}

#[test]
fn devices_are_asked_for_by_field_and_by_annotation_each_once() {
    let named = ["v.com/gpu=0", "v.com/gpu=1"].map(|name| v1::CdiDevice { name: name.into() });
    let mut config = v1::ContainerConfig { cdi_devices: named.into(), ..Default::default() };
    config.annotations.insert("cdi.k8s.io/b".into(), "v.com/nic=1,v.com/gpu=1".into());
    config.annotations.insert("cdi.k8s.io/a".into(), "v.com/nic=0".into());
    config.annotations.insert("other".into(), "v.com/nic=9".into());
    assert_eq!(asked(&config), ["v.com/gpu=0", "v.com/gpu=1", "v.com/nic=0", "v.com/nic=1"]);
}

#[test]
fn which_file_a_device_is_of() {
    let env = |files: Vec<Found>| {
        let edits = Known::of(files).edits(&names(&["v.com/gpu=0"])).map_err(|e| e.to_string())?;
        let f = Fixture::with(|f| f.cdi = Brought { edits, found: Vec::new() });
        let env = f.json()["process"]["env"].as_array().expect("env").clone();
        Ok::<_, String>(env.last().expect("a variable").clone())
    };
    let low = || found(0, "a.json", &one("v.com/gpu", "0", "low"));
    let high = || found(1, "a.json", &one("v.com/gpu", "0", "high"));
    assert_eq!(env(vec![low()]), Ok(json!("FROM=low")));
    assert_eq!(env(vec![high(), low()]), Ok(json!("FROM=high")), "a folder outdoes those before it");
    let twice = env(vec![low(), found(0, "b.json", &one("v.com/gpu", "0", "other"))]);
    let why = "unresolvable CDI devices v.com/gpu=0; /cdi0/b.json: device v.com/gpu=0 is in another file, too";
    assert_eq!(twice, Err(why.to_owned()));
    let broken = env(vec![found(0, "b.json", "{"), low()]);
    assert_eq!(broken, Ok(json!("FROM=low")), "a broken file takes nothing from the others");
    assert_eq!(env(vec![]), Err("unresolvable CDI devices v.com/gpu=0".to_owned()));
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let device = r#"{"name": "0", "containerEdits": {"env": ["A=b"]}}"#;
    let rows = [
        ("a.json", "[]".to_owned(), "expected struct"),
        ("a.json", one("v.com/gpu", "0", "x").replace("0.6.0", "9.0.0"), "cdiVersion \"9.0.0\" is not known"),
        ("a.json", one("gpu", "0", "x"), "kind \"gpu\" is not VENDOR/CLASS"),
        ("a.json", one("-v/gpu", "0", "x"), "kind \"-v/gpu\" is not VENDOR/CLASS"),
        ("a.json", one("v.com/gpu", "a b", "x"), "device \"a b\": not a name"),
        ("a.json", one("v.com/gpu", "0", "x").replace("FROM=", "="), "env: \"=x\" is not NAME=VALUE"),
        ("a.json", one("v.com/gpu", "0", "x").replace("env", "wrong"), "unknown field `wrong`"),
        ("a.yaml", "cdiVersion: 0.6.0\nkind: v/c\ndevices: []\n".to_owned(), "it has no devices"),
        ("a.yaml", "cdiVersion: 0.6.0\nkind: v/c\ndevices: [{name: a, containerEdits: {}}]\n".to_owned(), "empty"),
        (
            "a.yaml",
            format!("cdiVersion: 0.6.0\nkind: v/c\ndevices: [{device}, {device}]\n"),
            "device \"0\" is in it twice",
        ),
    ];
    let edits = [
        (r#"{"deviceNodes": [{"path": ""}]}"#, "deviceNodes: a path is empty"),
        (r#"{"deviceNodes": [{"path": "/dev/x", "type": "q"}]}"#, "type \"q\" (allowed: b, c, u, p)"),
        (r#"{"deviceNodes": [{"path": "/dev/x", "permissions": "rx"}]}"#, "permissions \"rx\""),
        (r#"{"mounts": [{"hostPath": "/a"}]}"#, "hostPath or containerPath is empty"),
        (r#"{"hooks": [{"hookName": "never", "path": "/a"}]}"#, "unknown variant `never`"),
        (r#"{"hooks": [{"hookName": "poststop", "path": ""}]}"#, "hooks: a path is empty"),
        (r#"{"intelRdt": {"closID": "a/b"}}"#, "closID \"a/b\" is no name of a folder"),
        (r#"{"netDevices": [{"hostInterfaceName": "", "name": "a"}]}"#, "netDevices: a name is empty"),
    ];
    let with = |edits: &str| {
        let text = r#"{"cdiVersion": "1.1.0", "kind": "v/c", "devices": [{"name": "0", "containerEdits": EDITS}]}"#;
        text.replace("EDITS", edits)
    };
    let rows = rows.into_iter().chain(edits.map(|(edits, why)| ("a.json", with(edits), why)));
    for (name, text, why) in rows {
        let known = Known::of(vec![found(0, name, &text)]);
        let told = known.edits(&names(&["v/none=0"])).expect_err("unknown").to_string();
        assert!(told.contains(&format!("/cdi0/{name}: ")) && told.contains(why), "{text}\n{told}");
    }
}

/// All that a device may bring.
const RICH: &str = r#"
cdiVersion: 1.1.0
kind: v.com/gpu
annotations: {note: any}
containerEdits:
  env: [SHARED=1]
  mounts:
  - {hostPath: /usr/lib/vendor, containerPath: /usr/lib/vendor, type: bind, options: [ro, rbind]}
devices:
- name: a
  annotations: {note: any}
  containerEdits:
    env: [PATH=/vendor, GPU=a]
    additionalGids: [0, 44, 44]
    deviceNodes:
    - {path: /dev/gpu, type: c, major: 195, minor: 7, fileMode: 432, permissions: rw, uid: 5, gid: 6}
    - {path: /dev/ctl, hostPath: /dev/vendor/ctl}
    - {path: /dev/pipe, type: p}
    hooks:
    - {hookName: createContainer, path: /bin/ldcache, args: [ldcache, "-r"], env: [A=b], timeout: 3}
    intelRdt: {closID: fast, l3CacheSchema: "L3:0=f"}
- name: b
  containerEdits:
    env: [GPU=b]
"#;

fn rich(devices: &[&str], change: impl FnOnce(&mut Fixture)) -> Fixture {
    let edits = Known::of(vec![found(0, "v.yaml", RICH)]).edits(&names(devices)).expect("known");
    let ctl = DeviceNode {
        path: "/dev/vendor/ctl".into(),
        kind: DeviceKind::Char,
        major: 10,
        minor: 3,
        mode: 0o660,
        uid: 0,
        gid: 0,
    };
    let look = |source: &str| (source == "/dev/vendor/ctl").then(|| ctl.clone());
    let found = edits.device_nodes.iter().map(|n| look(&n.source().to_string_lossy())).collect();
    Fixture::with(|f| {
        f.cdi = Brought { edits, found };
        change(f);
    })
}

#[test]
fn a_device_brings_all_that_its_file_says() {
    let spec = rich(&["v.com/gpu=a", "v.com/gpu=b"], |_| {}).json();
    let env = spec["process"]["env"].as_array().expect("env");
    let count = |v: &str| env.iter().filter(|e| *e == v).count();
    assert_eq!((count("SHARED=1"), count("PATH=/vendor"), count("GPU=b"), count("GPU=a")), (1, 1, 1, 0), "{env:?}");
    assert_eq!(env.iter().filter(|e| e.as_str().is_some_and(|e| e.starts_with("PATH="))).count(), 1);
    assert_eq!(spec["process"]["user"]["additionalGids"], json!([0, 44]), "0 is the user's own");
    let devices = json!([
        {"path": "/dev/gpu", "type": "c", "major": 195, "minor": 7, "fileMode": 432, "uid": 5, "gid": 6},
        {"path": "/dev/ctl", "type": "c", "major": 10, "minor": 3},
        {"path": "/dev/pipe", "type": "p", "major": 0, "minor": 0},
    ]);
    assert_eq!(spec["linux"]["devices"], devices);
    let rules = spec["linux"]["resources"]["devices"].as_array().expect("rules");
    let own = json!([
        {"allow": true, "type": "c", "major": 195, "minor": 7, "access": "rw"},
        {"allow": true, "type": "c", "major": 10, "minor": 3, "access": "rwm"},
    ]);
    assert_eq!(json!(rules[rules.len() - 2..]), own);
    let mounts = spec["mounts"].as_array().expect("mounts");
    let mine: Vec<&Value> = mounts.iter().filter(|m| m["destination"] == "/usr/lib/vendor").collect();
    let want = json!({"destination": "/usr/lib/vendor", "type": "bind", "source": "/usr/lib/vendor", "options": ["ro", "rbind"]});
    assert_eq!(mine, [&want], "once for all devices of a file");
    let hook = json!({"path": "/bin/ldcache", "args": ["ldcache", "-r"], "env": ["A=b"], "timeout": 3});
    assert_eq!(spec["hooks"], json!({ "createContainer": [hook] }));
    let class = json!({"closID": "fast", "l3CacheSchema": "L3:0=f"});
    assert_eq!(spec["linux"]["intelRdt"], class);
}

#[test]
fn nodes_are_their_containers_where_nothing_is_said() {
    let f = rich(&["v.com/gpu=a"], |f| {
        let security = f.security();
        (security.run_as_user, security.run_as_group) =
            (Some(v1::Int64Value { value: 1000 }), Some(v1::Int64Value { value: 2000 }));
    });
    let owner = |n: usize| {
        let node = f.json()["linux"]["devices"][n].clone();
        (node["uid"].clone(), node["gid"].clone())
    };
    assert_eq!((owner(0), owner(1)), ((json!(5), json!(6)), (json!(1000), json!(2000))));
}

#[test]
fn what_cannot_be_given_is_refused() {
    let gone = rich(&["v.com/gpu=a"], |f| f.cdi.found = vec![None, None, None]);
    assert_eq!(gone.error(), "CDI devices: /dev/vendor/ctl: no device is there");
    let text = RICH.replace("hostPath: /dev/vendor/ctl}", "hostPath: /dev/vendor/ctl, type: b}");
    let other = rich(&["v.com/gpu=a"], |f| {
        f.cdi.edits = Known::of(vec![found(0, "v.yaml", &text)]).edits(&names(&["v.com/gpu=a"])).expect("known");
    });
    assert_eq!(other.error(), "CDI devices: /dev/vendor/ctl: it should be of type b, and is another");
    let text = RICH.replace("closID: fast", "enableMBM: true");
    let watched = rich(&["v.com/gpu=a"], |f| {
        f.cdi.edits = Known::of(vec![found(0, "v.yaml", &text)]).edits(&names(&["v.com/gpu=a"])).expect("known");
    });
    assert!(watched.error().starts_with("CDI devices: intelRdt: enableCMT"), "{}", watched.error());
    let text = RICH.replace("env: [GPU=b]", "netDevices: [{hostInterfaceName: eth1, name: eth0}]");
    let net = rich(&["v.com/gpu=b"], |f| {
        f.cdi.edits = Known::of(vec![found(0, "v.yaml", &text)]).edits(&names(&["v.com/gpu=b"])).expect("known");
    });
    assert!(net.error().starts_with("CDI devices: netDevices: eth1: "), "{}", net.error());
}
