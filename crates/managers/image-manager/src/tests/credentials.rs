//! Pull secrets, credentials of the node, and who may use what others pulled.

use actor::testing::run;
use fakes::pull_secret;
use pull_credentials::verification::Policy;
use serde_json::json;

use super::rig::{Bench, Setup, id_of, reason, with_bench};

const IMAGE: &str = "r.io/team/app:1";

#[test]
fn pull_secrets_are_tried_in_order_until_one_works() {
    with_bench(Setup::default(), async |bench| {
        bench.private(IMAGE, "right");
        let secrets = [
            pull_secret("other", "q.io", "never"),
            pull_secret("host", "r.io", "wrong"),
            pull_secret("path", "r.io/team", "right"),
        ];
        bench.ensure_with("p", IMAGE, "IfNotPresent", &secrets).await.unwrap();
        assert_eq!(bench.tried(), ["right"], "more specific ones first");
        bench.private(IMAGE, "wrong");
        bench.ensure_with("p", IMAGE, "Always", &secrets).await.unwrap();
        assert_eq!(bench.tried(), ["right", "wrong"]);
    });
}

#[test]
fn a_pull_whose_credentials_all_fail_tells_of_each() {
    with_bench(Setup::default(), async |bench| {
        bench.private(IMAGE, "nobody");
        let secrets = [pull_secret("a", "r.io/team", "x"), pull_secret("b", "r.io", "y")];
        let denied = ["x", "y"].map(|user| {
            format!(
                "failed to pull and unpack image \"{IMAGE}\": pull access denied for \"{user}\": authorization failed"
            )
        });
        let denied = format!("[{}]", denied.join(", "));
        let failed = bench.ensure_with("p", IMAGE, "IfNotPresent", &secrets).await;
        assert_eq!(reason(&failed), "ErrImagePull");
        assert_eq!(failed.unwrap_err().message, denied);
        let events = bench.events().await;
        assert_eq!(
            events[1],
            format!("p spec.containers{{app}} Warning Failed: Failed to pull image \"r.io/team/app:1\": {denied}")
        );
        assert!(bench.files("pulling").is_empty() && bench.files("pulled").is_empty());
    });
}

#[test]
fn a_broken_pull_secret_fails_the_pull() {
    with_bench(Setup::default(), async |bench| {
        let mut broken = (*pull_secret("s", "r.io", "u")).clone();
        let bytes = model::k8s_openapi::ByteString(b"not json".to_vec());
        broken.data.as_mut().unwrap().insert(".dockerconfigjson".into(), bytes);
        let failed = bench.ensure_with("p", IMAGE, "IfNotPresent", &[broken.into()]).await.unwrap_err();
        assert_eq!(
            (failed.reason.as_str(), failed.message.as_str()),
            ("ErrImagePull", "invalid JSON at line 1 column 2")
        );
        assert!(bench.tried().is_empty());
    });
}

#[test]
fn the_nodes_own_credentials_come_after_the_pods() {
    with_bench(Setup::default(), async |bench| {
        let config = json!({"auths": {"r.io": {"username": "node", "password": "p"}}});
        bench.root.write("config.json", config.to_string());
        bench.private(IMAGE, "node");
        bench.ensure_with("p", IMAGE, "Always", &[pull_secret("s", "r.io", "pod")]).await.unwrap();
        assert_eq!(bench.tried(), ["pod", "node"]);
        let record = bench.files("pulled").remove(0);
        assert_eq!(record["credentialMapping"]["r.io/team/app"], json!({"nodePodsAccessible": true}));
    });
}

#[test]
fn what_a_secret_opened_is_closed_to_pods_without_it() {
    with_bench(Setup::default(), async |bench| {
        bench.private(IMAGE, "u");
        let secret = pull_secret("s", "r.io", "u");
        bench.ensure_with("owner", IMAGE, "IfNotPresent", std::slice::from_ref(&secret)).await.unwrap();
        assert_eq!(bench.tried(), ["u"]);
        bench.ensure_with("owner", IMAGE, "IfNotPresent", std::slice::from_ref(&secret)).await.unwrap();
        assert_eq!(bench.tried(), Vec::<String>::new(), "the owner need not ask again");
        bench.events().await;
        let failed = bench.ensure("stranger", IMAGE, "IfNotPresent").await;
        assert_eq!((reason(&failed), bench.tried()), ("ErrImagePull", vec!["-".to_owned()]));
        bench.events().await;
        let never = bench.ensure("stranger", IMAGE, "Never").await;
        assert_eq!(
            never.unwrap_err().message,
            "Container image \"r.io/team/app:1\" is not present with pull policy of Never"
        );
    });
}

#[test]
fn another_secret_with_the_same_password_is_let_in_and_remembered() {
    with_bench(Setup::default(), async |bench| {
        bench.private(IMAGE, "u");
        for name in ["first", "second"] {
            let secret = pull_secret(name, "r.io", "u");
            bench.ensure_with(name, IMAGE, "IfNotPresent", &[secret]).await.unwrap();
        }
        assert_eq!(bench.tried(), ["u"]);
        let record = bench.files("pulled").remove(0);
        let secrets = record["credentialMapping"]["r.io/team/app"]["kubernetesSecrets"].as_array().unwrap().clone();
        let names: Vec<_> = secrets.iter().map(|s| s["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["first", "second"]);
    });
}

#[test]
fn nobody_joins_a_pull_that_somebody_elses_secret_opens() {
    with_bench(Setup { serial: false, ..Setup::default() }, async |bench| {
        bench.private(IMAGE, "u");
        let secret = [pull_secret("s", "r.io", "u")];
        let (owner, stranger) = tokio::join!(
            bench.ensure_with("owner", IMAGE, "IfNotPresent", &secret),
            bench.ensure("stranger", IMAGE, "IfNotPresent"),
        );
        assert_eq!((reason(&owner), reason(&stranger)), ("ok", "ErrImagePull"));
    });
}

#[test]
fn images_that_nobody_pulled_here_may_be_used_by_default() {
    for (policy, expected) in [
        (Some(Policy::default()), "ok"),
        (Some(Policy::NeverVerify), "ok"),
        (None, "ok"),
        (Some(Policy::AlwaysVerify), "ErrImageNeverPull"),
    ] {
        let name = format!("{policy:?}");
        run(8, |kernel| async move {
            let bench = Bench::start(&kernel, Setup { verification: policy, ..Setup::default() });
            bench.put(&[IMAGE]);
            let got = bench.ensure("p", IMAGE, "Never").await;
            assert_eq!(reason(&got), expected, "{name}");
        });
    }
}

#[test]
fn a_gate_that_is_off_leaves_no_files_and_says_less() {
    with_bench(Setup { verification: None, ..Setup::default() }, async |bench| {
        bench.ensure("p", IMAGE, "IfNotPresent").await.unwrap();
        bench.events().await;
        bench.ensure("p", IMAGE, "IfNotPresent").await.unwrap();
        let text =
            "p spec.containers{app} Normal Pulled: Container image \"r.io/team/app:1\" already present on machine";
        assert_eq!(bench.events().await, [text]);
        assert!(!bench.root.exists(""));
    });
}

#[test]
fn a_pull_leaves_a_record_and_no_intent() {
    with_bench(Setup::default(), async |bench| {
        let pulling = bench.ensure_beside("p", "busybox");
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert_eq!(bench.files("pulling")[0]["image"], "busybox");
        assert!(bench.files("pulled").is_empty());
        pulling.await.unwrap().unwrap();
        assert!(bench.files("pulling").is_empty());
        let record = bench.files("pulled").remove(0);
        assert_eq!(record["imageRef"], id_of("busybox"));
        assert_eq!(record["credentialMapping"], json!({"docker.io/library/busybox": {"nodePodsAccessible": true}}));
    });
}

#[test]
fn records_that_cannot_be_read_are_no_way_in() {
    with_bench(Setup::default(), async |bench| {
        bench.ensure("p", IMAGE, "IfNotPresent").await.unwrap();
        for name in bench.root.names("image_manager/pulled") {
            bench.root.write(format!("image_manager/pulled/{name}"), "broken");
        }
        bench.private(IMAGE, "somebody");
        let failed = bench.ensure("p", IMAGE, "IfNotPresent").await;
        assert_eq!(reason(&failed), "ErrImagePull");
    });
}

#[test]
fn a_pull_that_a_restart_cut_off_counts_as_pulled_here() {
    run(12, |kernel| async move {
        let name = pull_credentials::records::file_name(IMAGE);
        let intent = pull_credentials::records::PullIntent { image: IMAGE.into() };
        let bench = Bench::start(&kernel, Setup::default());
        bench.put(&[IMAGE]);
        bench.root.write(format!("image_manager/pulling/{name}"), intent.encode());
        bench.manager.kill();
        actor::testing::settle().await;
        assert!(bench.files("pulling").is_empty());
        assert_eq!(bench.files("pulled")[0].get("credentialMapping"), None, "open to nobody without a check");
        assert_eq!(reason(&bench.ensure("p", IMAGE, "Never").await), "ErrImageNeverPull");
    });
}
