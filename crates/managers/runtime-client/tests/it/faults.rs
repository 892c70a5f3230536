use contract::runtime::{CallErrorKind, ObservePod};
use fakes::runtime::{Fault, Features, OnTerm, Program};
use futures::future::join_all;
use model::runtime::ContainerState;
use tokio::time::sleep;

use super::{ms, rig, secs, uid};

#[test]
fn a_call_under_way_outlives_the_actor_and_answers() {
    rig(Features::without_events(), |r| async move {
        r.fake.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(20), 0))]);
        let (_, app) = r.run("web").await;
        let (stopped, ()) = tokio::join!(r.stop("web", &app, 30), async {
            sleep(secs(5)).await;
            r.actor.kill();
        });
        stopped.unwrap();
        assert_eq!(r.observe("web", false).await.unwrap().containers[0].state, ContainerState::Exited);
        assert_eq!(r.actor.info().restarts, 1);
        assert_eq!(r.fake.count("StopContainer"), 1);
    });
}

#[test]
fn the_view_outlives_the_actor_and_is_made_right_again() {
    rig(Features::containerd_1_6(), |r| async move {
        let (_, app) = r.run("web").await;
        r.observe("web", false).await.unwrap();
        r.actor.kill();
        r.fake.exit(app.as_str(), 1);
        assert_eq!(r.state("web"), Some(ContainerState::Running));
        let took = r.until("web", ContainerState::Exited).await;
        assert!(took <= ms(500), "{took:?}");
        assert_eq!(r.actor.info().restarts, 1);
    });
}

#[test]
fn an_observation_that_dies_with_the_actor_is_lost_and_asked_again() {
    rig(Features::without_events(), |r| async move {
        r.run("web").await;
        r.fake.inject(Fault::hang("ListContainers"));
        let m = ObservePod { uid: uid("web"), namespace: "ns".into(), name: "web".into(), force: true };
        let (answer, ()) = tokio::join!(r.wiring.call(m), async {
            sleep(secs(1)).await;
            r.actor.kill();
        });
        assert_eq!(answer.unwrap_err().kind, CallErrorKind::Lost);
        r.fake.clear_faults();
        assert_eq!(r.observe("web", true).await.unwrap().containers.len(), 1);
    });
}

/// Each point, each kind of fault, while eight pods start and half of their containers end.
#[test]
fn faults_at_every_point_are_survived() {
    let points = [
        "before-relist",
        "before-inspection",
        "after-inspection",
        "event",
        "after-poll",
        "before-call",
        "after-call",
        "turn:",
    ];
    for point in points {
        for action in ["panic", "kill", "stall(2s)"] {
            for features in [Features::containerd_2(), Features::containerd_1_6()] {
                rig(features, |r| async move {
                    r.kernel.faults().add_text(&format!("runtime-client: {action}@{point}#2")).unwrap();
                    let starts = join_all((0..8).map(|n| {
                        let r = &r;
                        async move { start_at_last(r, &format!("p{n}")).await }
                    }));
                    starts.await;
                    for n in (0..8).step_by(2) {
                        let app = r.fake.container(&format!("p{n}"), "app").unwrap();
                        r.fake.exit(&app.id, 1);
                    }
                    sleep(secs(70)).await;
                    for n in 0..8 {
                        let want = if n % 2 == 0 { ContainerState::Exited } else { ContainerState::Running };
                        assert_eq!(r.state(&format!("p{n}")), Some(want), "{action}@{point}: p{n}");
                    }
                    assert_eq!(r.fake.containers().len(), 8, "{action}@{point}: nothing was made twice");
                    assert!(!r.info().stale && r.info().listed);
                    assert_eq!(r.kernel.faults().log().len(), 1, "{action}@{point}");
                });
            }
        }
    }
}

/// As a pod worker does it: after a call whose answer is lost it looks before it tries again.
async fn start_at_last(r: &super::Rig, pod: &str) {
    for _ in 0..50 {
        let seen = match r.observe(pod, false).await {
            Ok(seen) => seen,
            Err(_) => {
                sleep(ms(100)).await;
                continue;
            }
        };
        let done = match (seen.sandbox(), seen.container("app")) {
            (None, _) => r.sandbox(pod, 0).await.map(drop),
            (Some(s), None) => r.create(pod, &s.id, "app", 0).await.map(drop),
            (_, Some(c)) if c.state == ContainerState::Created => r.start(pod, &c.id).await,
            _ => return,
        };
        if done.is_err() {
            sleep(ms(100)).await;
        }
    }
    panic!("{pod} did not start");
}
