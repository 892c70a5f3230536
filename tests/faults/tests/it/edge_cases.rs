//! Edge cases of pod-lifecycle 15 that no other file tests. `case_7` is number 7 of its tables.

use std::time::Duration;

use cri_api::v1;
use fakes::FakeRuntime;
use fakes::runtime::{Features, Program, samples};
use ports::host::HostFs as _;
use sim::{LIMIT, SimNode, World};
use tokio::time::sleep;

use crate::{pod, run, secs, simple, times};

fn with_uid(name: &str, text: &str) -> String {
    text.replace(&format!("{{name: {name}}}"), &format!("{{name: {name}, uid: uid-{name}}}"))
}

/// A pod in the runtime that nobody wants.
async fn stranger(node: &SimNode) {
    let client = node.world.runtime.client();
    let config = Some(samples::sandbox("stranger", 0));
    client.run_pod_sandbox(v1::RunPodSandboxRequest { config, ..Default::default() }).await.unwrap();
}

#[test]
fn case_1_an_empty_folder_has_spoken_and_orphans_are_stopped() {
    run(async |node| {
        stranger(&node).await;
        node.until("it is stopped", LIMIT, |n| n.world.runtime.sandboxes().iter().all(|s| !s.ready)).await;
    });
}

#[test]
fn case_2_a_folder_that_is_made_later_is_watched_from_then_on() {
    actor::testing::run(1, |kernel| async move {
        let mut world = World::new(&kernel);
        world.runtime.add_images(&["app:1"]);
        let folder = std::path::Path::new(sim::DISK).join("later");
        world.settings.config.sources.static_pod_path = Some(folder.clone());
        let mut node = SimNode::down(world, &kernel);
        stranger(&node).await;
        node.boot();
        node.until("a missing folder is an empty one", LIMIT, |n| n.world.runtime.sandboxes().iter().all(|s| !s.ready))
            .await;
        assert!(node.wiring().value::<contract::config_sources::folder::FolderManifests>().get().error.is_some());
        node.world.files.create_dir(&folder, 0o755).unwrap();
        sleep(secs(3)).await;
        node.world.write(&folder.join("web.yaml"), &simple("web", ""));
        node.world.watch.written("web.yaml");
        node.until("web is ready, without waiting for the next look", secs(3), |n| n.is_ready("web")).await;
        assert!(node.wiring().value::<contract::config_sources::folder::FolderManifests>().get().error.is_none());
    });
}

#[test]
fn case_7_hidden_files_are_ignored() {
    run(async |node| {
        node.put(".web.yaml.swp", &simple("web", ""));
        sleep(secs(60)).await;
        assert!(node.running_ids().is_empty());
        assert!(node.wiring().value::<contract::config_sources::folder::FolderManifests>().get().manifests.is_empty());
    });
}

#[test]
fn case_21_updates_during_a_long_step_are_one_further_step() {
    run(async |node| {
        node.world.runtime.on_exec(|_| fakes::runtime::ExecReply { takes: secs(30), ..Default::default() });
        let text = |n: usize| {
            let spec =
                "\n  containers:\n  - {name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [hi]}}}}";
            pod("web", spec).replace("{name: web}", &format!("{{name: web, uid: same, labels: {{n: '{n}'}}}}"))
        };
        node.put("web.yaml", &text(0));
        node.until("the hook runs", secs(5), |n| n.world.runtime.count("ExecSync") == 1).await;
        for n in 1..=5 {
            node.put("web.yaml", &text(n));
            sleep(secs(1)).await;
        }
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        sleep(secs(5)).await;
        assert_eq!(node.world.runtime.count("ExecSync"), 1);
        assert_eq!(node.steps("web").len(), 4, "{:?}", node.steps("web"));
    });
}

#[test]
fn case_37_two_ready_sandboxes_are_both_replaced() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let mut config = node.world.runtime.sandboxes()[0].config.clone();
        config.metadata.as_mut().unwrap().attempt = 1;
        let client = node.world.runtime.client();
        client.run_pod_sandbox(v1::RunPodSandboxRequest { config: Some(config), ..Default::default() }).await.unwrap();
        node.until("a third one stands alone", LIMIT, |n| {
            let ready: Vec<u32> = n
                .world
                .runtime
                .sandboxes()
                .iter()
                .filter(|s| s.ready)
                .map(|s| s.config.metadata.as_ref().unwrap().attempt)
                .collect();
            ready == [2] && n.is_ready("web")
        })
        .await;
    });
}

#[test]
fn case_45_an_init_container_removed_by_hand_is_not_run_again() {
    run(async |node| {
        node.world.runtime.program("one", &[Program::exits(secs(1), 0)]);
        let spec =
            "\n  initContainers:\n  - {name: one, image: 'tool:1'}\n  containers:\n  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let container_id = node.instances("web", "one")[0].id.clone();
        let client = node.world.runtime.client();
        client.remove_container(v1::RemoveContainerRequest { container_id }).await.unwrap();
        sleep(secs(150)).await;
        assert!(node.instances("web", "one").is_empty());
        assert!(node.is_ready("web"), "{}", node.picture());
    });
}

#[test]
fn case_47_new_arguments_of_a_pod_with_a_fixed_uid_restart_nothing() {
    run(async |node| {
        let text = |args: &str| {
            let spec = format!(
                "\n  containers:\n  - {{name: app, image: 'app:1', args: [{args}], env: [{{name: A, value: {args}}}]}}"
            );
            with_uid("web", &pod("web", &spec))
        };
        node.put("web.yaml", &text("one"));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.put("web.yaml", &text("two"));
        sleep(secs(150)).await;
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 1);
    });
}

#[test]
fn case_48_a_start_that_failed_counts_as_a_restart() {
    run(async |node| {
        let bad = Program::cannot_start("exec: no such file");
        node.world.runtime.program("app", &[bad.clone(), bad, Program::forever()]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.instances("web", "app").last().unwrap().attempt, 2);
    });
}

#[test]
fn case_50_rules_of_a_container_restart_it_in_a_pod_that_never_restarts() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 42), Program::exits(secs(1), 1)]);
        let spec = "
  restartPolicy: Never
  containers:
  - name: app
    image: app:1
    restartPolicy: Never
    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]";
        node.put("web.yaml", &pod("web", spec));
        node.until("it failed in the end", LIMIT, |n| n.phase("web") == "Failed").await;
        assert_eq!(times(&node, "StartContainer", "/app").len(), 2);
    });
}

#[test]
fn case_51_a_pod_that_never_restarts_ends_with_its_liveness() {
    run(async |node| {
        node.world.runtime.on_exec(|_| fakes::runtime::ExecReply { exit_code: 1, ..Default::default() });
        let spec = "
  restartPolicy: Never
  containers:
  - {name: app, image: 'app:1', livenessProbe: {exec: {command: [ok]}, periodSeconds: 1, failureThreshold: 2}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("it ended", LIMIT, |n| ["Failed", "Succeeded"].contains(&n.phase("web").as_str())).await;
        sleep(secs(100)).await;
        assert_eq!(times(&node, "StartContainer", "/app").len(), 1);
    });
}

#[test]
fn case_53_a_container_that_ran_long_is_restarted_at_once() {
    run(async |node| {
        let short = Program::exits(secs(1), 1);
        let long = Program::exits(secs(700), 1);
        node.world.runtime.program("app", &[short.clone(), short.clone(), long, short.clone(), short]);
        node.put("web.yaml", &simple("web", ""));
        node.until("five starts", secs(1000), |n| times(n, "StartContainer", "/app").len() == 5).await;
        let at = times(&node, "StartContainer", "/app");
        let waits = [at[3] - at[2] - 700.0, at[4] - at[3] - 1.0];
        assert!(waits[0] < 1.0, "{at:?}");
        assert!((10.0..11.0).contains(&waits[1]), "{at:?}");
    });
}

#[test]
fn case_54_a_new_image_has_a_clean_record() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 1)]);
        let text = |image: &str| {
            with_uid("web", &pod("web", &format!("\n  containers:\n  - {{name: app, image: '{image}'}}")))
        };
        node.put("web.yaml", &text("app:1"));
        node.until("in a long back-off", secs(300), |n| times(n, "StartContainer", "/app").len() == 5).await;
        sleep(secs(5)).await;
        node.put("web.yaml", &text("app:2"));
        node.until("it starts at once", secs(3), |n| times(n, "StartContainer", "/app").len() == 6).await;
    });
}

#[test]
fn case_55_the_ceiling_of_the_back_off_is_also_its_beginning() {
    actor::testing::run(1, |kernel| async move {
        let mut world = World::new(&kernel);
        world.runtime.add_images(&["app:1"]);
        world.runtime.program("app", &[Program::exits(secs(1), 1)]);
        world.settings.config.pods.max_container_restart_period = secs(5);
        let mut node = SimNode::down(world, &kernel);
        node.boot();
        node.put("web.yaml", &simple("web", ""));
        node.until("five starts", LIMIT, |n| times(n, "StartContainer", "/app").len() == 5).await;
        let at = times(&node, "StartContainer", "/app");
        let waits: Vec<f64> = at.windows(2).map(|w| w[1] - w[0] - 1.0).collect();
        assert!(waits[1..].iter().all(|w| (5.0..6.0).contains(w)), "{waits:?}");
    });
}

#[test]
fn case_68_restart_counts_go_on_from_the_logs_when_the_runtime_has_forgotten() {
    run(async |mut node| {
        node.put("web.yaml", &with_uid("web", &simple("web", "")));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.kill().await;
        let logs = node.world.settings.config.pods.logs_dir.join("default_web-sim_uid-web/app");
        node.world.write(&logs.join("3.log"), "");
        let now = node.world.runtime.now();
        node.world.runtime = FakeRuntime::at(Features::containerd_1_6(), now);
        node.world.runtime.write_files_to(&node.world.files);
        node.world.runtime.add_images(&["app:1"]);
        node.boot();
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.container_status("web", "app").unwrap().restart_count, 4);
    });
}

#[test]
fn case_88_a_finished_pod_keeps_its_address() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(5), 0)]);
        node.put("job.yaml", &simple("job", "\n  restartPolicy: Never"));
        node.until("it runs", LIMIT, |n| n.phase("job") == "Running").await;
        let ip = node.status("job").unwrap().pod_ip.clone();
        assert!(ip.is_some());
        node.until("it succeeded", LIMIT, |n| n.phase("job") == "Succeeded").await;
        sleep(secs(100)).await;
        assert_eq!(node.status("job").unwrap().pod_ip, ip);
    });
}

#[test]
fn case_94_a_folder_with_a_mount_in_it_is_left_alone() {
    run(async |node| {
        let dir = node.world.settings.root_dir.join("pods/nobody/volumes/kubernetes.io~empty-dir/v");
        node.world.write(&dir.join("data"), "x");
        // A disk: a tmpfs would be this node's own, and is unmounted.
        node.world.files.mount(&dir);
        node.put("web.yaml", &simple("web", ""));
        sleep(secs(200)).await;
        assert!(node.world.has(&dir.join("data")));
        assert!(node.is_ready("web"));
    });
}

#[test]
fn case_95_a_stray_file_among_the_volumes_stays() {
    run(async |node| {
        let dir = node.world.settings.root_dir.join("pods/nobody/volumes");
        node.world.write(&dir.join("stray"), "x");
        sleep(secs(200)).await;
        assert!(node.world.has(&dir.join("stray")));
    });
}

#[test]
fn case_98_what_a_killed_daemon_left_of_a_removed_pod_is_collected() {
    run(async |mut node| {
        node.world.runtime.program("app", &[Program::forever().output(&["hello"])]);
        node.put("web.yaml", &with_uid("web", &simple("web", "")));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("its sandbox is stopped", LIMIT, |n| n.world.runtime.sandboxes().iter().all(|s| !s.ready)).await;
        node.kill().await;
        let folders = [
            node.world.settings.root_dir.join("pods/uid-web"),
            node.world.settings.config.pods.logs_dir.join("default_web-sim_uid-web"),
        ];
        for folder in &folders {
            node.world.files.create_dir(folder, 0o755).unwrap();
        }
        sleep(Duration::from_secs(10)).await;
        node.boot();
        node.until("nothing is left", secs(200), |n| {
            n.world.runtime.sandboxes().is_empty()
                && n.world.runtime.containers().is_empty()
                && folders.iter().all(|f| !n.world.has(f))
        })
        .await;
    });
}
