//! Images that are missing, slow or forbidden.

use std::time::Duration;

use fakes::runtime::Pull;
use sim::LIMIT;
use tokio::time::sleep;
use tonic::Code;

use crate::{pod, run, secs, times};

fn of_image(name: &str, image: &str) -> String {
    pod(name, &format!("\n  containers:\n  - {{name: app, image: '{image}'}}"))
}

fn fails() -> Pull {
    Pull::Fails(Duration::from_millis(100), Code::Unknown, "failed to pull and unpack image: no route".to_owned())
}

#[test]
fn a_missing_image_is_pulled_once_for_the_pod() {
    run(async |node| {
        node.world.runtime.registry("new:1", Pull::Succeeds(secs(5)));
        node.put("web.yaml", &of_image("web", "new:1"));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.world.runtime.count("PullImage"), 1);
        assert!(node.has_event("web", "Pulling") && node.has_event("web", "Pulled"));
    });
}

#[test]
fn a_failing_pull_backs_off_10_20_40_seconds() {
    run(async |node| {
        node.world.runtime.registry("new:1", fails());
        let seen = crate::follow(&node, "web");
        node.put("web.yaml", &of_image("web", "new:1"));
        node.until("the first error is shown", secs(5), |_| {
            seen.borrow().iter().any(|s| s == "Pending app=ErrImagePull")
        })
        .await;
        node.until("the back-off is shown", secs(30), |n| n.state("web", "app") == "waiting:ImagePullBackOff").await;
        node.until("four pulls", secs(300), |n| n.world.runtime.count("PullImage") == 4).await;
        let at = times(&node, "PullImage", "");
        let gaps: Vec<f64> = at.windows(2).map(|w| w[1] - w[0]).collect();
        for (gap, least) in gaps.iter().zip([10.0, 20.0, 40.0]) {
            assert!(*gap >= least && *gap < least + 20.0, "{gaps:?}");
        }
        node.world.runtime.registry("new:1", Pull::Succeeds(secs(1)));
        node.until("web is ready in the end", secs(300), |n| n.is_ready("web")).await;
    });
}

#[test]
fn an_image_that_must_not_be_pulled_says_so() {
    run(async |node| {
        let spec = "\n  containers:\n  - {name: app, image: 'new:1', imagePullPolicy: Never}";
        node.put("web.yaml", &pod("web", spec));
        node.until("it says so", secs(5), |n| n.state("web", "app") == "waiting:ErrImageNeverPull").await;
        sleep(secs(60)).await;
        assert_eq!(node.world.runtime.count("PullImage"), 0);
    });
}

#[test]
fn a_pod_that_is_removed_while_its_image_is_pulled_is_gone_at_once_and_the_pull_goes_on() {
    run(async |node| {
        node.world.runtime.registry("new:1", Pull::Succeeds(secs(100)));
        node.put("web.yaml", &of_image("web", "new:1"));
        node.until("the pull runs", secs(5), |n| n.world.runtime.count("PullImage") == 1).await;
        node.remove("web.yaml");
        node.until("web is gone", secs(20), |n| n.is_gone("web")).await;
        node.until("the image is there", secs(120), |n| n.world.runtime.has_image("new:1")).await;
        assert!(node.count("CreateContainer").is_empty());
    });
}

#[test]
fn a_pull_that_hangs_does_not_hold_up_pods_whose_images_are_there() {
    run(async |node| {
        node.world.runtime.registry("new:1", Pull::Hangs);
        node.put("stuck.yaml", &of_image("stuck", "new:1"));
        node.until("the pull runs", secs(5), |n| n.world.runtime.count("PullImage") == 1).await;
        for i in 0..10 {
            node.put(&format!("p{i}.yaml"), &of_image(&format!("p{i}"), "app:1"));
        }
        node.until("the others are ready", secs(10), |n| (0..10).all(|i| n.is_ready(&format!("p{i}")))).await;
    });
}

#[test]
fn pods_that_want_one_image_share_its_pull() {
    run(async |node| {
        node.world.runtime.registry("new:1", Pull::Succeeds(secs(5)));
        for i in 0..5 {
            node.put(&format!("p{i}.yaml"), &of_image(&format!("p{i}"), "new:1"));
        }
        node.until("all are ready", LIMIT, |n| (0..5).all(|i| n.is_ready(&format!("p{i}")))).await;
        assert_eq!(node.world.runtime.count("PullImage"), 1);
    });
}

#[test]
fn a_name_that_is_no_image_is_refused_without_a_pull() {
    run(async |node| {
        node.put("web.yaml", &of_image("web", "Not An Image"));
        node.until("it says so", secs(5), |n| {
            n.state("web", "app") == "waiting:InvalidImageName"
                || !n.wiring().value::<contract::config_sources::folder::FolderManifests>().get().manifests.is_empty()
        })
        .await;
        sleep(secs(30)).await;
        assert_eq!(node.world.runtime.count("PullImage"), 0);
        assert!(node.running_ids().is_empty());
    });
}
