use contract::runtime::{CallErrorKind, Relist, RuntimeInfo};
use fakes::FakeRuntime;
use fakes::runtime::{Fault, Features, Mutation};
use model::runtime::{ContainerState, EventTier};
use tokio::time::{Instant, sleep};

use super::{Rig, ms, rig, secs};

#[test]
fn tells_name_version_and_conditions() {
    rig(Features::containerd_1_6(), |r| async move {
        let info = r.info();
        assert_eq!((info.name.as_str(), info.version.as_str()), ("fake", "1.0.0"));
        assert_eq!((info.ready, &info.network, &info.error), (true, &Ok(()), &None));
        assert!(info.listed && !info.stale && info.last_relist.is_set());
        r.fake.set_network_ready(false);
        r.fake.set_runtime_ready(false);
        sleep(secs(5)).await;
        let info = r.info();
        assert_eq!(
            info.network.clone().unwrap_err(),
            "container runtime network not ready: \
             NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized"
        );
        assert!(
            !info.ready
                && info.error.as_deref().unwrap().starts_with("container runtime not ready: RuntimeReady=false")
        );
        r.fake.set_network_ready(true);
        r.fake.set_runtime_ready(true);
        sleep(secs(5)).await;
        assert!(r.info().ready && r.info().network.is_ok());
    });
}

#[test]
fn a_runtime_that_comes_back_is_found_and_what_it_did_meanwhile_is_seen() {
    for features in [Features::containerd_2(), Features::containerd_1_6(), Features::without_events()] {
        rig(features, |r| async move {
            let (_, app) = r.run("web").await;
            r.observe("web", false).await.unwrap();
            let tier = r.info().tier;
            r.fake.down();
            sleep(ms(1500)).await;
            let info = r.info();
            assert!(info.stale && !info.ready && info.error.is_some());
            assert_eq!(info.tier, EventTier::Relist);
            assert_eq!(r.state("web"), Some(ContainerState::Running), "the view is kept");
            assert_eq!(r.observe("web", false).await.unwrap_err().kind, CallErrorKind::Unavailable);
            assert_eq!(r.stop("web", &app, 1).await.unwrap_err().kind, CallErrorKind::Unavailable);
            r.fake.exit(app.as_str(), 9);
            sleep(secs(60)).await;
            r.fake.up();
            let back = r.until("web", ContainerState::Exited).await;
            assert!(back <= secs(8), "{back:?}");
            sleep(secs(1)).await;
            let info = r.info();
            assert!(!info.stale && info.ready, "{info:?}");
            assert_eq!((info.tier, info.divergences), (tier, 0));
            assert_eq!(r.actor.info().restarts, 0);
        });
    }
}

#[test]
fn a_short_break_is_over_within_a_second() {
    rig(Features::containerd_1_6(), |r| async move {
        let (_, app) = r.run("web").await;
        r.fake.disconnect();
        r.fake.exit(app.as_str(), 1);
        let took = r.until("web", ContainerState::Exited).await;
        assert!(took <= secs(1), "{took:?}");
    });
}

#[test]
fn a_runtime_that_is_not_there_at_start_is_waited_for() {
    actor::testing::run(7, |kernel| async move {
        let fake = FakeRuntime::default();
        fake.down();
        let r = Rig::new(kernel, fake);
        sleep(secs(30)).await;
        assert!(!r.info().listed && r.info().stale && !r.info().ready);
        r.fake.up();
        let before = Instant::now();
        r.wiring.value::<RuntimeInfo>().subscribe().wait_for(|i| i.listed && i.ready && !i.stale).await.unwrap();
        assert!(before.elapsed() <= secs(8));
    });
}

#[test]
fn a_status_that_hangs_means_down_after_half_a_minute() {
    rig(Features::containerd_1_6(), |r| async move {
        r.fake.inject(Fault::hang("Status"));
        sleep(secs(20)).await;
        assert!(r.info().ready);
        sleep(secs(20)).await;
        assert_eq!((r.info().ready, r.info().error.as_deref()), (false, Some("container runtime is down")));
        assert!(!r.info().stale, "lists still work");
        r.fake.clear_faults();
        sleep(secs(40)).await;
        assert!(r.info().ready);
    });
}

#[test]
fn a_stream_that_closes_at_once_is_given_up_without_a_hot_loop() {
    actor::testing::run(7, |kernel| async move {
        let fake = FakeRuntime::new(Features::containerd_2());
        fake.close_event_streams(true);
        let r = Rig::new(kernel, fake);
        sleep(secs(60)).await;
        assert_eq!(r.info().tier, EventTier::Relist);
        assert_eq!(r.fake.count("GetContainerEvents"), 5);
        let lists = r.fake.count("ListContainers");
        assert!((55..=75).contains(&lists), "{lists}");
    });
}

#[test]
fn a_list_that_keeps_failing_marks_the_view_stale() {
    rig(Features::containerd_1_6(), |r| async move {
        r.fake.inject(Fault::error("ListContainers", tonic::Code::ResourceExhausted, "message larger than max"));
        assert!(r.wiring.call(Relist).await.is_err());
        assert!(r.info().stale && r.info().ready);
        r.fake.clear_faults();
        sleep(secs(2)).await;
        assert!(!r.info().stale);
    });
}

#[test]
fn networks_of_pods_reach_the_runtime() {
    rig(Features::containerd_2(), |rig| async move {
        let cidrs = "10.244.1.0/24,fd00:1::/64".to_owned();
        rig.wiring.call(contract::runtime::SetPodNetworks { cidrs: cidrs.clone() }).await.unwrap();
        let told = rig.fake.calls().into_iter().find_map(|c| match c.mutation? {
            Mutation::UpdateRuntimeConfig(r) => Some(r.runtime_config?.network_config?.pod_cidr),
            _ => None,
        });
        assert_eq!(told, Some(cidrs));
    });
}
