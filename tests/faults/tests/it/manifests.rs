//! Bad manifests beside good ones.

use contract::config_sources::ManifestState;
use ports::host::HostFs as _;
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, run, secs, simple};

fn refused(node: &SimNode, file: &str) -> Option<Vec<String>> {
    let view = node.wiring().value::<contract::config_sources::folder::FolderManifests>().get();
    let state = view.manifests.iter().find(|(path, _)| path.ends_with(file)).map(|(_, s)| s.clone());
    match state {
        Some(ManifestState::Refused { errors, .. }) => Some(errors),
        _ => None,
    }
}

#[test]
fn a_bad_manifest_is_refused_with_its_reason_and_disturbs_nobody() {
    let table = [
        ("not YAML", "kind: [Pod".to_owned()),
        ("empty", String::new()),
        ("another kind", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n".to_owned()),
        ("no containers", pod("x", "\n  restartPolicy: Always")),
        ("a name in capitals", simple("Web", "")),
        ("a secret", simple("x", "\n  volumes:\n  - {name: v, secret: {secretName: s}}")),
        ("a wrong type", simple("x", "\n  terminationGracePeriodSeconds: soon")),
        ("a wrong policy", simple("x", "\n  restartPolicy: Sometimes")),
        ("bytes", "\u{0}\u{1}\u{2}".to_owned()),
    ];
    run(async |node| {
        node.put("good.yaml", &simple("good", ""));
        node.until("good is ready", LIMIT, |n| n.is_ready("good")).await;
        let id = node.running_id("good", "app");
        for (i, (_, text)) in table.iter().enumerate() {
            node.put(&format!("bad{i}.yaml"), text);
        }
        node.put("late.yaml", &simple("late", ""));
        node.until("late is ready", LIMIT, |n| n.is_ready("late")).await;
        sleep(secs(60)).await;
        for (i, (what, _)) in table.iter().enumerate() {
            let errors = refused(&node, &format!("bad{i}.yaml"));
            assert!(errors.as_ref().is_some_and(|e| !e.is_empty()), "{what}: {errors:?}");
        }
        assert_eq!(node.running_id("good", "app"), id);
        assert_eq!(node.running_ids().len(), 2);
        assert!(node.kernel.directory().actors().iter().all(|a| a.restarts == 0), "an actor crashed over a manifest");
    });
}

#[test]
fn a_manifest_that_becomes_good_is_started() {
    run(async |node| {
        node.put("web.yaml", "kind: [Pod");
        sleep(secs(2)).await;
        assert!(refused(&node, "web.yaml").is_some());
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert!(refused(&node, "web.yaml").is_none());
    });
}

#[test]
fn a_pod_that_does_not_fit_is_rejected_and_says_why() {
    run(async |node| {
        let big = "\n  containers:\n  - {name: app, image: 'app:1', resources: {requests: {cpu: '64'}}}";
        node.put("big.yaml", &pod("big", big));
        node.put("small.yaml", &simple("small", ""));
        node.until("small is ready", LIMIT, |n| n.is_ready("small")).await;
        node.until("big is rejected", LIMIT, |n| n.phase("big") == "Failed").await;
        let status = node.status("big").unwrap();
        // A static pod is critical: it is refused only when not even preemption helps.
        assert_eq!(status.reason.as_deref(), Some("UnexpectedAdmissionError"));
        assert!(status.message.as_deref().unwrap().starts_with("Pod was rejected: "), "{:?}", status.message);
        assert!(node.has_event("big", "UnexpectedAdmissionError"));
        sleep(secs(120)).await;
        assert_eq!(node.running_ids().len(), 1);
        node.remove("big.yaml");
        node.until("big is gone", LIMIT, |n| n.is_gone("big")).await;
    });
}

#[test]
fn a_refusal_is_told_though_its_teller_dies_over_it() {
    run(async |node| {
        node.kernel.faults().add_text("status-manager: panic@turn:SetPodStatus#1").unwrap();
        let big = "\n  containers:\n  - {name: app, image: 'app:1', resources: {requests: {cpu: '64'}}}";
        node.put("big.yaml", &pod("big", big));
        node.until("big is rejected", LIMIT, |n| n.phase("big") == "Failed").await;
        assert_eq!(node.kernel.faults().log().len(), 1, "it died");
    });
}

#[test]
fn a_change_that_no_watch_tells_is_found_by_the_next_look() {
    run(async |node| {
        node.world.write(&node.world.manifests().join("web.yaml"), &simple("web", ""));
        node.until("web is ready", secs(25), |n| n.is_ready("web")).await;
        node.world.files.remove_file(&node.world.manifests().join("web.yaml")).unwrap();
        node.until("web is gone", secs(60), |n| n.is_gone("web")).await;
    });
}

#[test]
fn a_manifest_that_breaks_later_keeps_its_pod_until_the_next_complete_look() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.put("web.yaml", "kind: [Pod");
        sleep(secs(1)).await;
        assert!(node.is_ready("web"));
        node.until("web is gone", secs(60), |n| n.is_gone("web")).await;
    });
}

#[test]
fn two_manifests_with_one_uid_do_not_fight_over_it() {
    run(async |node| {
        let named = |name: &str| {
            simple(name, "").replace(&format!("{{name: {name}}}"), &format!("{{name: {name}, uid: same}}"))
        };
        node.put("a.yaml", &named("a"));
        node.put("b.yaml", &named("b"));
        sleep(secs(30)).await;
        let first: Vec<String> = node.running_ids();
        assert_eq!(first.len(), 1, "{}", node.picture());
        sleep(secs(120)).await;
        assert_eq!(node.running_ids(), first, "{}", node.picture());
        let row = node.wiring().board::<contract::pod_manager::DesiredPod>().get(&"same".into()).unwrap();
        let worker = node.wiring().board::<contract::pod_worker::WorkerState>().get(&"same".into()).unwrap();
        assert_eq!(model::pod::name(&row.pod), model::pod::name(worker.pod.as_ref().unwrap()));
    });
}

#[test]
fn a_uid_that_is_a_path_leads_nowhere() {
    run(async |node| {
        let outside = node.world.settings.root_dir.join("precious");
        node.world.files.create_dir(&outside.join("volumes"), 0o755).unwrap();
        node.world.write(&outside.join("file"), "x");
        for (i, uid) in ["../precious", "a/../../precious", "..", "/", "a/b"].iter().enumerate() {
            let text = simple(&format!("p{i}"), "").replace("}\nspec", &format!(", uid: '{uid}'}}\nspec"));
            assert!(text.contains(uid));
            node.put(&format!("p{i}.yaml"), &text);
        }
        sleep(secs(60)).await;
        for i in 0..5 {
            assert!(refused(&node, &format!("p{i}.yaml")).is_some(), "p{i} is not refused\n{}", node.picture());
            node.remove(&format!("p{i}.yaml"));
        }
        sleep(secs(120)).await;
        assert!(node.world.has(&outside.join("file")));
        assert!(node.running_ids().is_empty());
    });
}
