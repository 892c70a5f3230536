//! Effects of setting up volumes that hold API objects.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::core::Pod;
use ports::host::TMPFS_MAGIC;
use projection::{Fetched, Missing, TokenSlot};
use serde_json::{Value, json};

use super::fake::{FakeHost, config, content, deps, pod, with_spec};
use crate::projected::Content;
use crate::set_up::{Outcome, all};

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

fn set_up(host: &Arc<FakeHost>, pod: &Pod, fetched: Fetched, random: u32) -> Outcome {
    all(&deps(host), &config(host), pod, &with(fetched, random))
}

fn map_pod(fields: Value) -> Arc<Pod> {
    let mut source = json!({"name": "cm", "defaultMode": 0o644});
    source.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    pod("u", json!([{"name": "v", "configMap": source}]))
}

/// `name content` of what a container sees, links followed.
fn seen(dir: &Path) -> Vec<String> {
    let mut out = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("..") {
            continue;
        }
        if path.is_dir() {
            out.extend(seen(&path).into_iter().map(|line| format!("{name}/{line}")));
        } else {
            out.push(format!("{name} {}", fs::read_to_string(&path).unwrap()));
        }
    }
    out
}

#[test]
fn a_config_map_is_files_behind_one_switch() {
    let host = FakeHost::new();
    let p = map_pod(
        json!({"defaultMode": 0o400, "items": [{"key": "a", "path": "d/a"}, {"key": "b", "path": "b", "mode": 0o640}]}),
    );
    let out = set_up(&host, &p, fetched(json!({"a": "1", "b": "2", "c": "3"})), 1);
    assert!(out.failed.is_empty() && out.stale.is_empty());
    let mounted = &out.done.volumes["v"];
    assert_eq!((mounted.host_path.clone(), mounted.read_only, mounted.selinux_relabel), (host.root(MAP), true, true));
    let dir = host.root(MAP);
    assert_eq!(seen(&dir), ["b 2", "d/a 1"]);
    let files = fs::read_link(dir.join("..data")).unwrap();
    assert_eq!(files.to_str().unwrap(), "..2026_11_20_09_08_37.0000000001");
    assert_eq!(fs::read_link(dir.join("d")).unwrap().to_str().unwrap(), "..data/d");
    let modes = ["", "d", "d/a", "b"].map(|f| host.mode(&dir.join(&files).join(f)));
    assert_eq!(modes, [0o755, 0o755, 0o400, 0o640]);
    assert!(host.root("pods/u/plugins/kubernetes.io~empty-dir/wrapped_v/ready").is_file());
    assert!(!host.is_mounted(MAP), "a configMap is on disk");
}

#[test]
fn what_may_be_secret_is_in_memory() {
    let host = FakeHost::new();
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
        assert_eq!(host.tmpfs_size(&dir), Some(Some(8 << 30)), "{plugin}: no more than the node grants to pods");
    }
}

#[test]
fn the_group_reads_and_a_token_belongs_to_the_one_user() {
    let host = FakeHost::new();
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
    let data = host.root(PROJECTED).join(fs::read_link(host.root(PROJECTED).join("..data")).unwrap());
    for (file, mode) in [("", 0o2755), ("s", 0o2755), ("s/user", 0o440), ("tok", 0o640)] {
        let path = if file.is_empty() { data.clone() } else { data.join(file) };
        assert_eq!((host.mode(&path), host.group(&path)), (mode, Some(7)), "{file}");
    }
    assert_eq!((host.owner(&data.join("tok")), host.owner(&data.join("s/user"))), (Some(1000), None));
}

#[test]
fn the_same_content_is_not_written_again_and_other_content_switches() {
    let host = FakeHost::new();
    let (p, dir) = (map_pod(json!({})), host.root(MAP));
    set_up(&host, &p, fetched(json!({"a": "1", "b": "2"})), 1);
    let before = fs::read_link(dir.join("..data")).unwrap();
    set_up(&host, &p, fetched(json!({"a": "1", "b": "2"})), 2);
    assert_eq!(fs::read_link(dir.join("..data")).unwrap(), before);
    set_up(&host, &p, fetched(json!({"a": "one", "c": "3"})), 3);
    assert_eq!(seen(&dir), ["a one", "c 3"]);
    assert!(!dir.join(before).exists());
}

#[test]
fn a_missing_object_leaves_nothing_behind_unless_it_is_optional() {
    let host = FakeHost::new();
    let out = set_up(&host, &map_pod(json!({"name": "nope"})), fetched(json!({})), 1);
    assert_eq!(out.failed[0].error, "configmap \"nope\" not found");
    assert!(!out.failed[0].hopeless);
    assert!(!host.root("pods/u").exists());
    let out = set_up(&host, &map_pod(json!({"name": "nope", "optional": true})), fetched(json!({})), 1);
    assert!(out.failed.is_empty());
    assert!(host.root(MAP).join("..data").exists(), "an empty volume is a volume");
}

#[test]
fn what_is_in_place_stays_usable_when_it_cannot_be_brought_in_line() {
    let host = FakeHost::new();
    let p = map_pod(json!({"items": [{"key": "a", "path": "a"}]}));
    set_up(&host, &p, fetched(json!({"a": "1"})), 1);
    let out = set_up(&host, &p, fetched(json!({"b": "2"})), 2);
    assert!(out.failed.is_empty());
    assert_eq!(out.stale[0].error, "configmap references non-existent config key: a");
    assert_eq!(out.done.volumes["v"].host_path, host.root(MAP));
    host.fail("symlink", "..data_tmp", true);
    let out = set_up(&host, &p, fetched(json!({"a": "2"})), 3);
    assert_eq!((out.stale.len(), seen(&host.root(MAP))), (1, vec!["a 1".to_owned()]));
    host.fail("symlink", "..data_tmp", false);
    let out = set_up(&host, &p, fetched(json!({"a": "2"})), 4);
    assert_eq!((out.stale.len(), seen(&host.root(MAP))), (0, vec!["a 2".to_owned()]));
    let left = fs::read_dir(host.root(MAP))
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with("..2"));
    assert_eq!(left.count(), 1, "what a failed try left is gone");
}

#[test]
fn a_first_try_that_fails_half_way_leaves_nothing_behind() {
    let host = FakeHost::new();
    host.fail("symlink", "..data_tmp", true);
    let p = pod("u", json!([{"name": "v", "secret": {"secretName": "sec", "defaultMode": 0o644}}]));
    let out = set_up(&host, &p, fetched(json!({})), 1);
    assert_eq!((out.failed.len(), out.stale.len()), (1, 0));
    assert!(!host.is_mounted(SECRET) && !host.root(SECRET).exists());
    assert!(!host.root("pods/u/plugins/kubernetes.io~empty-dir/wrapped_v").exists());
}

#[test]
fn after_a_reboot_the_tmpfs_is_made_and_filled_again() {
    let host = FakeHost::new();
    let p = pod("u", json!([{"name": "v", "secret": {"secretName": "sec", "defaultMode": 0o644}}]));
    set_up(&host, &p, fetched(json!({})), 1);
    // The disk is as it was, the mount is gone with what was in it.
    ports::host::Mounter::unmount(&*host, &host.root(SECRET)).unwrap();
    let out = set_up(&host, &p, fetched(json!({})), 2);
    assert!(out.failed.is_empty() && host.is_mounted(SECRET));
    assert_eq!(seen(&host.root(SECRET)), ["pass p", "user u"]);
}

#[test]
fn what_a_kubelet_left_is_taken_over() {
    let host = FakeHost::new();
    host.mount(SECRET, TMPFS_MAGIC);
    host.file("pods/u/plugins/kubernetes.io~empty-dir/wrapped_v/ready");
    let dir = host.root(SECRET);
    let old = "..2026_01_02_03_04_05.1234567890";
    fs::create_dir(dir.join(old)).unwrap();
    fs::write(dir.join(old).join("user"), "old").unwrap();
    symlink(old, dir.join("..data")).unwrap();
    symlink("..data/user", dir.join("user")).unwrap();
    let p = pod("u", json!([{"name": "v", "secret": {"secretName": "sec", "defaultMode": 0o644}}]));
    let out = set_up(&host, &p, fetched(json!({})), 1);
    assert!(out.failed.is_empty());
    assert_eq!(seen(&dir), ["pass p", "user u"]);
    assert!(!dir.join(old).exists());
}

#[test]
fn mounts_inside_of_the_volume_find_their_directories() {
    let host = FakeHost::new();
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
    assert!(host.root(MAP).join("cache").is_dir());
    assert_eq!(seen(&host.root(MAP)), ["a 1"]);
}

#[test]
fn downward_files_hold_what_variables_would() {
    let host = FakeHost::new();
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
        let out = all(&deps(&host), &config, &p, &with(fetched(json!({})), 1));
        match expected {
            Ok(text) => {
                let dir = host.root(&format!("pods/{uid}/volumes/kubernetes.io~downward-api/v"));
                assert_eq!(seen(&dir), [text], "{item}");
            }
            Err(text) => assert_eq!(out.failed[0].error, text, "{item}"),
        }
    }
}
