//! Pods that an earlier daemon left running (pod-lifecycle 8.5).

use super::*;

/// With a readiness probe, and the status that the API has of it: its container `c1` was ready, or not.
fn probed(source: &str, known_ready: Option<bool>) -> Pod {
    let mut pod = pod(json!({ "readinessProbe": { "exec": { "command": ["true"] } } }), json!({}));
    pod.metadata.annotations.get_or_insert_default().insert("kubernetes.io/config.source".into(), source.into());
    if let Some(ready) = known_ready {
        let word = if ready { "True" } else { "False" };
        let condition = |t: &str, s: &str| json!({ "type": t, "status": s, "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" });
        pod.status = serde_json::from_value(json!({
            "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIP": "10.1.0.7",
            "conditions": [condition("Ready", word), condition("ContainersReady", word)],
            "containerStatuses": [{ "name": "app", "image": "img", "imageID": "img@sha256:1", "containerID": "fake://c1",
                "ready": ready, "started": true, "restartCount": 0,
                "state": { "running": { "startedAt": "1970-01-01T00:00:12Z" } } }],
        }))
        .unwrap();
    }
    pod
}

fn ready_words(bench: &Bench) -> Vec<String> {
    bench.see(|w| w.words.iter().filter(|l| l.starts_with("status")).cloned().collect())
}

#[test]
fn a_ready_pod_never_looks_unready_and_an_unready_one_never_ready() {
    for (known, word) in [(true, "status Running ready=True"), (false, "status Running ready=False")] {
        run(1, move |kernel| async move {
            let pod = probed("api", Some(known));
            let bench = Bench::start(&kernel, left_running(&pod));
            bench.tell(&pod, UpdateKind::Create).await;
            tokio::time::sleep(Duration::from_secs(300)).await;
            let said = ready_words(&bench);
            assert!(!said.is_empty() && said.iter().all(|w| w == word), "{said:?}");
            assert!(bench.see(|w| w.created.is_empty()), "nothing is started again");
        });
    }
}

#[test]
fn the_first_status_of_an_adopted_pod_is_what_the_api_has_already() {
    run(2, |kernel| async move {
        let pod = probed("api", Some(true));
        let bench = Bench::start(&kernel, left_running(&pod));
        bench.tell(&pod, UpdateKind::Create).await;
        let (first, api) = (bench.see(|w| w.statuses[0].clone()), pod.status.unwrap());
        assert_eq!(first.start_time, api.start_time);
        assert_eq!(first.pod_ip, api.pod_ip);
        let of = |s: &PodStatus| {
            let c = s.container_statuses.as_ref().unwrap()[0].clone();
            (c.container_id, c.ready, c.started, c.restart_count, c.state)
        };
        assert_eq!(of(&first), of(&api));
        for known in api.conditions.unwrap() {
            let now = first.conditions.iter().flatten().find(|c| c.type_ == known.type_).unwrap();
            assert_eq!((&now.status, &now.last_transition_time), (&known.status, &known.last_transition_time));
        }
    });
}

#[test]
fn a_container_that_the_api_does_not_know_yet_is_not_called_ready_before_it_was_probed() {
    run(3, |kernel| async move {
        let pod = probed("api", None);
        let bench = Bench::start(&kernel, left_running(&pod));
        bench.tell(&pod, UpdateKind::Create).await;
        assert!(ready_words(&bench).iter().all(|w| w == "status Running ready=False"), "{:?}", ready_words(&bench));
    });
}

#[test]
fn a_static_pod_goes_on_with_the_status_of_its_mirror() {
    for (known, word) in [(true, "status Running ready=True"), (false, "status Running ready=False")] {
        run(4, move |kernel| async move {
            let pod = probed("file", Some(known));
            let bench = Bench::start(&kernel, left_running(&pod));
            bench.tell(&pod, UpdateKind::Create).await;
            bench.worker.ask(contract::pod_worker::GrantStart { uid: UID.into() }, ASK).await.unwrap();
            let_work().await;
            let said = ready_words(&bench);
            assert!(!said.is_empty() && said.iter().all(|w| w == word), "{said:?}");
        });
    }
}
