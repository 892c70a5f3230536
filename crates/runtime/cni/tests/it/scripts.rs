//! What plugins are told, and what follows from what they say.

use std::fs;
use std::time::{Duration, Instant};

use cni::CniError;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::bed::{Bed, list, pod};

const FIRST: &str = r#"echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/x"}],"ips":[{"address":"10.0.0.5/24","interface":0}]}'"#;
fn two(bed: &Bed) -> Value {
    bed.plugin("first", FIRST);
    bed.plugin("second", FIRST);
    json!([{"type": "first", "bridge": "b0"}, {"type": "second", "capabilities": {"portMappings": true, "dns": true}}])
}

#[tokio::test]
async fn plugins_add_in_order_and_delete_backwards_with_the_result() {
    let bed = Bed::new();
    let net = list("1.0.0", two(&bed));
    let result = bed.cni.add(&net, &pod()).await.expect("added");
    assert_eq!(result.addresses("eth0"), ["10.0.0.5"]);
    let notes = bed.notes();
    assert_eq!(bed.who(), ["first ADD", "second ADD"]);
    assert_eq!(notes[0].1, "pod1 eth0 /run/ns/pod1 IgnoreUnknown=1;K8S_POD_NAME=web");
    assert_eq!(
        (&notes[0].2["name"], &notes[0].2["cniVersion"], &notes[0].2["bridge"]),
        (&json!("net"), &json!("1.0.0"), &json!("b0"))
    );
    assert!(notes[0].2.get("prevResult").is_none() && notes[0].2.get("runtimeConfig").is_none());
    let mappings = json!({"portMappings": [{"hostPort": 80, "containerPort": 8080, "protocol": "tcp"}]});
    assert_eq!(notes[1].2["runtimeConfig"], mappings, "what it has asked for, and nothing else");
    assert_eq!(notes[1].2["prevResult"]["ips"][0]["address"], "10.0.0.5/24");
    // The form of libcni's cache.
    let kept: Value = serde_json::from_slice(&fs::read(bed.cached()).expect("kept")).expect("json");
    assert_eq!(
        (&kept["kind"], &kept["networkName"], &kept["ifName"]),
        (&json!("cniCacheV1"), &json!("net"), &json!("eth0"))
    );
    assert_eq!(kept["cniArgs"][1], json!(["K8S_POD_NAME", "web"]));
    assert_eq!(kept["result"]["ips"][0]["address"], "10.0.0.5/24");

    bed.forget_notes();
    bed.cni.check(&net, &pod()).await.expect("checked");
    assert_eq!(bed.who(), ["first CHECK", "second CHECK"]);
    bed.forget_notes();
    for _ in 0..2 {
        bed.cni.del(&net, &pod()).await.expect("deleted");
    }
    assert_eq!(bed.who(), ["second DEL", "first DEL", "second DEL", "first DEL"]);
    let notes = bed.notes();
    assert_eq!(notes[1].2["prevResult"]["ips"][0]["address"], "10.0.0.5/24");
    assert!(notes[3].2.get("prevResult").is_none() && !bed.cached().exists());
    let unknown = bed.cni.check(&net, &pod()).await.expect_err("unknown");
    assert!(unknown.to_string().contains("no result"), "{unknown}");
}

#[tokio::test]
async fn what_was_added_by_an_older_configuration_is_deleted_by_it() {
    let bed = Bed::new();
    bed.cni.add(&list("1.0.0", two(&bed)), &pod()).await.expect("added");
    bed.plugin("third", "");
    bed.forget_notes();
    bed.cni.del(&list("1.0.0", json!([{"type": "third"}])), &pod()).await.expect("deleted");
    assert_eq!(bed.who(), ["second DEL", "first DEL"]);
    bed.cni.add(&list("1.0.0", two(&bed)), &pod()).await.expect("added");
    assert_eq!(bed.cni.del_all("pod1").await.expect("deleted"), 1);
    assert_eq!(bed.cni.del_all("pod1").await.expect("nothing"), 0);
}

#[tokio::test]
async fn errors_are_told_in_the_plugins_words() {
    let bed = Bed::new();
    bed.plugin("no", r#"echo '{"code":11,"msg":"try again","details":"busy"}'; exit 1"#);
    bed.plugin("mute", "echo oops >&2; exit 7");
    bed.plugin("strange", "echo hello");
    for (plugin, want) in [
        ("no", "network plugin \"no\" (ADD): try again; busy"),
        ("mute", "network plugin \"mute\" (ADD): it ended with code 7 and says: \"oops\""),
        ("strange", "a result that is none"),
        ("none", "is in none of"),
    ] {
        let error = bed.cni.add(&list("1.0.0", json!([{"type": plugin}])), &pod()).await.expect_err("refused");
        assert!(error.to_string().contains(want), "{error}");
    }
    let CniError::Plugin { code, .. } =
        bed.cni.add(&list("1.0.0", json!([{"type": "no"}])), &pod()).await.expect_err("no")
    else {
        panic!("no code")
    };
    assert_eq!(code, 11);
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed_with_what_it_started() {
    let mut bed = Bed::new();
    bed.cni.limit = Duration::from_millis(500);
    let child = bed.dir.path().join("child");
    bed.plugin("hangs", &format!("sleep 1000 & echo $! > {}; wait", child.display()));
    let before = Instant::now();
    let error = bed.cni.add(&list("1.0.0", json!([{"type": "hangs"}])), &pod()).await.expect_err("late");
    assert!(matches!(error, CniError::Late { .. }) && before.elapsed() < Duration::from_secs(15), "{error}");
    let child = fs::read_to_string(child).expect("it has started something");
    let state = || fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    // Dead, or a zombie that nobody has reaped yet.
    let gone = || state().is_empty() || state().contains(") Z ");
    assert!(
        (0..1000).any(|_| gone() || {
            std::thread::yield_now();
            false
        }) || gone()
    );
}

#[tokio::test]
async fn what_a_version_does_not_have_is_not_asked_for() {
    let bed = Bed::new();
    let old = list("0.3.1", two(&bed));
    bed.cni.add(&old, &pod()).await.expect("added");
    assert!(matches!(bed.cni.check(&old, &pod()).await, Err(CniError::Version { .. })));
    bed.forget_notes();
    bed.cni.status(&old).await.expect("programs are there");
    bed.cni.gc(&old, &[("pod1".into(), "eth0".into())]).await.expect("nothing to do");
    assert!(bed.who().is_empty());
    bed.cni.del(&old, &pod()).await.expect("deleted");
    assert!(bed.notes()[0].2.get("prevResult").is_none(), "0.3.1 has no results in DEL");
    let missing = bed.cni.status(&list("0.3.1", json!([{"type": "none"}]))).await.expect_err("missing");
    assert!(matches!(missing, CniError::NoPlugin { .. }));
}

#[tokio::test]
async fn what_belongs_to_nobody_is_collected() {
    let bed = Bed::new();
    let net = list("1.1.0", two(&bed));
    bed.cni.add(&net, &pod()).await.expect("added");
    let other = cni::Attachment { container: "pod2".into(), ..pod() };
    bed.cni.add(&net, &other).await.expect("added");
    bed.forget_notes();
    bed.cni.status(&net).await.expect("ready");
    bed.cni.gc(&net, &[("pod2".into(), "eth0".into())]).await.expect("collected");
    assert_eq!(bed.who(), ["first STATUS", "second STATUS", "second DEL", "first DEL", "first GC", "second GC"]);
    let notes = bed.notes();
    assert!(notes[2].1.starts_with("pod1 eth0"));
    assert_eq!(notes[4].2["cni.dev/valid-attachments"], json!([{"containerID": "pod2", "ifname": "eth0"}]));
    assert!(!bed.cached().exists());
}

#[tokio::test]
async fn a_new_configuration_is_told_of() {
    let bed = Bed::new();
    let folder = bed.dir.path().join("net.d");
    assert!(cni::changes(&folder).is_err());
    fs::create_dir(&folder).expect("folder");
    let mut changes = cni::changes(&folder).expect("watched");
    fs::write(folder.join("10-net.conf"), r#"{"name":"n","type":"a"}"#).expect("write");
    changes.next().await.expect("an event").expect("good");
    assert_eq!(cni::find(&folder).expect("found").name, "n");
}
