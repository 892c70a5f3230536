//! Effects of setting up volumes that hold API objects.

use std::sync::Arc;

use fakes::Folder;
use model::core::Pod;
use ports::host::{DirEntry, FileKind, HostFs, Mounter, TMPFS_MAGIC};
use projection::{Fetched, Missing, TokenSlot};
use serde_json::{Value, json};

use super::rig::{all_with, config, content, deps, host, pod, with_spec};
use crate::projected::Content;
use crate::set_up::Outcome;

const MAP: &str = "pods/u/volumes/kubernetes.io~configmap/v";
const SECRET: &str = "pods/u/volumes/kubernetes.io~secret/v";
const PROJECTED: &str = "pods/u/volumes/kubernetes.io~projected/v";

fn fetched(map: Value) -> Fetched {
    let mut out = Fetched::default();
    let map = serde_json::from_value(json!({"data": map})).unwrap();
    out.config_maps.insert("cm".into(), Ok(Arc::new(map)));
    let gone = Missing { not_found: true, text: "configmap \"nope\" not found".into() };
    out.config_maps.insert("nope".into(), Err(gone));
    let secret = serde_json::from_value(json!({"data": {"user": "dQ==", "pass": "cA=="}})).unwrap();
    out.secrets.insert("sec".into(), Ok(Arc::new(secret)));
    out.tokens.insert(TokenSlot { audience: "me".into(), expiration_s: 600 }, Ok("tok".into()));
    out
}

fn with(fetched: Fetched, random: u32) -> Content {
    Content { fetched, random, ..content() }
}

fn set_up(host: &Folder, pod: &Pod, fetched: Fetched, random: u32) -> Outcome {
    all_with(&deps(host), &config(host), pod, &with(fetched, random))
}

fn map_pod(fields: Value) -> Arc<Pod> {
    let mut source = json!({"name": "cm", "defaultMode": 0o644});
    source.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    pod("u", json!([{"name": "v", "configMap": source}]))
}

/// `name content` of what a container sees, links followed.
fn seen(host: &Folder, dir: &str) -> Vec<String> {
    let mut out = Vec::new();
    for DirEntry { name, .. } in host.disk.list_dir(&host.path(dir)).unwrap() {
        let below = format!("{dir}/{name}");
        if name.starts_with("..") {
            continue;
        }
        if host.disk.stat(&host.path(&below)).unwrap().unwrap().kind == FileKind::Dir {
            out.extend(seen(host, &below).into_iter().map(|line| format!("{name}/{line}")));
        } else {
            out.push(format!("{name} {}", host.read(&below)));
        }
    }
    out
}

#[test]
fn a_config_map_is_files_behind_one_switch() {
    let host = host();
    let p = map_pod(
        json!({"defaultMode": 0o400, "items": [{"key": "a", "path": "d/a"}, {"key": "b", "path": "b", "mode": 0o640}]}),
    );
    let out = set_up(&host, &p, fetched(json!({"a": "1", "b": "2", "c": "3"})), 1);
    assert!(out.failed.is_empty() && out.stale.is_empty());
    let mounted = &out.done.volumes["v"];
    assert_eq!((mounted.host_path.clone(), mounted.read_only, mounted.selinux_relabel), (host.path(MAP), true, true));
    assert_eq!(seen(&host, MAP), ["b 2", "d/a 1"]);
    let files = host.link_of(format!("{MAP}/..data"));
    assert_eq!(files, "..2026_11_20_09_08_37.0000000001");
    assert_eq!(host.link_of(format!("{MAP}/d")), "..data/d");
    let modes = ["", "d", "d/a", "b"].map(|f| host.mode(format!("{MAP}/{files}/{f}")));
    assert_eq!(modes, [0o755, 0o755, 0o400, 0o640]);
    assert!(!host.exists("pods/u/plugins/kubernetes.io~empty-dir"), "the files show that they are whole");
    assert!(!host.is_mounted(MAP), "a configMap is on disk");
}

#[test]
fn what_may_be_secret_is_in_memory() {
    let host = host();
    for (plugin, source) in [
        ("secret", json!({"secret": {"secretName": "sec", "defaultMode": 0o644}})),
        ("projected", json!({"projected": {"defaultMode": 0o644, "sources": []}})),
        ("downward-api", json!({"downwardAPI": {"defaultMode": 0o644, "items": []}})),
    ] {
        let mut volume = json!({"name": "v"});
        volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        let out = set_up(&host, &pod("u", json!([volume])), fetched(json!({})), 1);
        assert!(out.failed.is_empty(), "{plugin}: {:?}", out.failed);
        let dir = format!("pods/u/volumes/kubernetes.io~{plugin}/v");
        assert_eq!(
            host.disk.tmpfs_size(&host.path(&dir)),
            Some(Some(8 << 30)),
            "{plugin}: no more than the node grants to pods"
        );
    }
}

#[test]
fn the_group_reads_and_a_token_belongs_to_the_one_user() {
    let host = host();
    let sources = json!([
        {"secret": {"name": "sec", "items": [{"key": "user", "path": "s/user", "mode": 0o400}]}},
        {"serviceAccountToken": {"path": "tok", "expirationSeconds": 600, "audience": "me"}},
    ]);
    let p = with_spec(
        "u",
        json!({
            "securityContext": {"fsGroup": 7, "runAsUser": 1000},
            "volumes": [{"name": "v", "projected": {"defaultMode": 0o644, "sources": sources}}],
            "containers": [{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/m"}]}],
        }),
    );
    let out = set_up(&host, &p, fetched(json!({})), 1);
    assert!(out.failed.is_empty());
    let data = format!("{PROJECTED}/{}", host.link_of(format!("{PROJECTED}/..data")));
    for (file, mode) in [("", 0o2755), ("s", 0o2755), ("s/user", 0o440), ("tok", 0o640)] {
        let stat = host.stat(format!("{data}/{file}"));
        assert_eq!((stat.mode, stat.gid), (mode, 7), "{file}");
    }
    let owners = ["tok", "s/user"].map(|file| host.stat(format!("{data}/{file}")).uid);
    assert_eq!(owners, [1000, 0]);
}

#[test]
fn the_same_content_is_not_written_again_and_other_content_switches() {
    let host = host();
    let (p, data) = (map_pod(json!({})), format!("{MAP}/..data"));
    set_up(&host, &p, fetched(json!({"a": "1", "b": "2"})), 1);
    let before = host.link_of(&data);
    set_up(&host, &p, fetched(json!({"a": "1", "b": "2"})), 2);
    assert_eq!(host.link_of(&data), before);
    set_up(&host, &p, fetched(json!({"a": "one", "c": "3"})), 3);
    assert_eq!(seen(&host, MAP), ["a one", "c 3"]);
    assert!(!host.exists(format!("{MAP}/{before}")));
}

/// A daemon that dies between its last two steps leaves the link that was to take the place of the other one.
#[test]
fn a_switch_that_was_cut_off_is_no_obstacle() {
    for is_new in [true, false] {
        let (host, p) = (host(), map_pod(json!({})));
        if !is_new {
            set_up(&host, &p, fetched(json!({"a": "1"})), 1);
        }
        host.dir(MAP);
        host.link("..gone", format!("{MAP}/..data_tmp"));
        let out = set_up(&host, &p, fetched(json!({"a": "2"})), 2);
        assert!(out.failed.is_empty() && out.stale.is_empty(), "{:?} {:?}", out.failed, out.stale);
        assert_eq!(seen(&host, MAP), ["a 2"]);
        assert!(!host.names(MAP).contains(&"..data_tmp".to_owned()));
    }
}

#[test]
fn a_missing_object_leaves_nothing_behind_unless_it_is_optional() {
    let host = host();
    let out = set_up(&host, &map_pod(json!({"name": "nope"})), fetched(json!({})), 1);
    assert_eq!(out.failed[0].error, "configmap \"nope\" not found");
    assert!(!out.failed[0].hopeless);
    assert!(!host.exists("pods/u"));
    let out = set_up(&host, &map_pod(json!({"name": "nope", "optional": true})), fetched(json!({})), 1);
    assert!(out.failed.is_empty());
    assert!(host.exists(format!("{}/{}", MAP, "..data")), "an empty volume is a volume");
}

#[test]
fn what_is_in_place_stays_usable_when_it_cannot_be_brought_in_line() {
    let host = host();
    let p = map_pod(json!({"items": [{"key": "a", "path": "a"}]}));
    set_up(&host, &p, fetched(json!({"a": "1"})), 1);
    let out = set_up(&host, &p, fetched(json!({"b": "2"})), 2);
    assert!(out.failed.is_empty());
    assert_eq!(out.stale[0].error, "configmap references non-existent config key: a");
    assert_eq!(out.done.volumes["v"].host_path, host.path(MAP));
    host.fail("symlink", format!("{MAP}/..data_tmp"));
    let out = set_up(&host, &p, fetched(json!({"a": "2"})), 3);
    assert_eq!((out.stale.len(), seen(&host, MAP)), (1, vec!["a 1".to_owned()]));
    host.disk.calm();
    let out = set_up(&host, &p, fetched(json!({"a": "2"})), 4);
    assert_eq!((out.stale.len(), seen(&host, MAP)), (0, vec!["a 2".to_owned()]));
    let entries = host.disk.list_dir(&host.path(MAP)).unwrap();
    let left = entries.iter().filter(|e| e.name.starts_with("..2")).count();
    assert_eq!(left, 1, "what a failed try left is gone");
}

#[test]
fn a_first_try_that_fails_half_way_leaves_nothing_behind() {
    let host = host();
    host.fail("symlink", format!("{SECRET}/..data_tmp"));
    let p = pod("u", json!([{"name": "v", "secret": {"secretName": "sec", "defaultMode": 0o644}}]));
    let out = set_up(&host, &p, fetched(json!({})), 1);
    assert_eq!((out.failed.len(), out.stale.len()), (1, 0));
    assert!(!host.is_mounted(SECRET) && !host.exists(SECRET));
}

#[test]
fn after_a_reboot_the_tmpfs_is_made_and_filled_again() {
    let host = host();
    let p = pod("u", json!([{"name": "v", "secret": {"secretName": "sec", "defaultMode": 0o644}}]));
    set_up(&host, &p, fetched(json!({})), 1);
    // The disk is as it was, the mount is gone with what was in it.
    host.disk.unmount(&host.path(SECRET)).unwrap();
    let out = set_up(&host, &p, fetched(json!({})), 2);
    assert!(out.failed.is_empty() && host.is_mounted(SECRET));
    assert_eq!(seen(&host, SECRET), ["pass p", "user u"]);
}

#[test]
fn what_a_kubelet_left_is_taken_over() {
    let host = host();
    host.mount(SECRET, TMPFS_MAGIC);
    host.write("pods/u/plugins/kubernetes.io~empty-dir/wrapped_v/ready", "content");
    let old = "..2026_01_02_03_04_05.1234567890";
    host.write(format!("{SECRET}/{old}/user"), "old");
    host.link(old, format!("{SECRET}/..data"));
    host.link("..data/user", format!("{SECRET}/user"));
    let p = pod("u", json!([{"name": "v", "secret": {"secretName": "sec", "defaultMode": 0o644}}]));
    let out = set_up(&host, &p, fetched(json!({})), 1);
    assert!(out.failed.is_empty());
    assert_eq!(seen(&host, SECRET), ["pass p", "user u"]);
    assert!(!host.exists(format!("{SECRET}/{old}")));
}

#[test]
fn mounts_inside_of_the_volume_find_their_directories() {
    let host = host();
    let p = with_spec(
        "u",
        json!({
            "volumes": [{"name": "v", "configMap": {"name": "cm", "defaultMode": 0o644}}, {"name": "w", "emptyDir": {}}],
            "containers": [{"name": "app", "volumeMounts": [
                {"name": "v", "mountPath": "/etc/app"}, {"name": "w", "mountPath": "/etc/app/cache"},
            ]}],
        }),
    );
    set_up(&host, &p, fetched(json!({"a": "1"})), 1);
    assert_eq!(host.stat(format!("{MAP}/cache")).kind, FileKind::Dir);
    assert_eq!(seen(&host, MAP), ["a 1"]);
}

#[test]
fn downward_files_hold_what_variables_would() {
    let host = host();
    let resource = |name: &str, divisor: &str| json!({"path": "f", "resourceFieldRef": {"containerName": "app", "resource": name, "divisor": divisor}});
    let field = |path: &str| json!({"path": "f", "fieldRef": {"fieldPath": path}});
    let mut config = config(&host);
    config.allocatable.insert("cpu".into(), model::k8s_openapi::apimachinery::pkg::api::resource::Quantity("4".into()));
    for (n, (item, expected)) in [
        (field("metadata.name"), Ok("f p")),
        (field("metadata.labels"), Ok("f app=\"x\"\nz=\"q\"")),
        (field("metadata.labels['app']"), Ok("f x")),
        (field("metadata.labels['no']"), Ok("f ")),
        (field("status.podIP"), Err("unsupported fieldPath: status.podIP")),
        (resource("requests.memory", "1Mi"), Ok("f 10")),
        (resource("limits.cpu", "1m"), Ok("f 4000")),
        (resource("limits.pods", "1"), Err("unsupported container resource : limits.pods")),
    ]
    .into_iter()
    .enumerate()
    {
        let uid = format!("u{n}");
        let mut p = Pod::clone(&with_spec(
            &uid,
            json!({
                "volumes": [{"name": "v", "downwardAPI": {"defaultMode": 0o644, "items": [item]}}],
                "containers": [{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/m"}],
                    "resources": {"requests": {"memory": "10Mi"}}}],
            }),
        ));
        p.metadata.name = Some("p".into());
        p.metadata.labels = Some([("app".into(), "x".into()), ("z".into(), "q".into())].into());
        let out = all_with(&deps(&host), &config, &p, &with(fetched(json!({})), 1));
        match expected {
            Ok(text) => {
                let dir = format!("pods/{uid}/volumes/kubernetes.io~downward-api/v");
                assert_eq!(seen(&host, &dir), [text], "{item}");
            }
            Err(text) => assert_eq!(out.failed[0].error, text, "{item}"),
        }
    }
}
