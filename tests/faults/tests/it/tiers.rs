//! The three ways of hearing of changes end in the same picture.

use std::time::Duration;

use fakes::runtime::Features;
use model::runtime::EventTier;
use tokio::time::sleep;

use crate::faulty::Round;
use crate::secs;

fn tiers() -> [(Features, EventTier); 3] {
    [
        (Features::containerd_1_6(), EventTier::Containerd),
        (Features::containerd_2(), EventTier::CriStream),
        (Features::without_events(), EventTier::Relist),
    ]
}

#[test]
fn pods_come_go_and_crash_alike_on_each_tier() {
    for (features, tier) in tiers() {
        actor::testing::run(5, |kernel| async move {
            let mut round = Round::undisturbed_on(&kernel, features).await;
            assert_eq!(round.node.wiring().value::<contract::runtime::RuntimeInfo>().get().tier, tier);
            for _ in 0..3 {
                round.case(None).await.unwrap_or_else(|e| panic!("{tier:?}: {e}"));
            }
            // The sandbox of a stranger may come just while a relist looks, before its event is read: one per round.
            let found = round.node.wiring().value::<contract::runtime::RuntimeInfo>().get().divergences;
            assert!(found <= 5, "{tier:?}: {found}");
        });
    }
}

#[test]
fn a_daemon_killed_on_each_tier_costs_no_container() {
    for (features, tier) in tiers() {
        actor::testing::run(5, |kernel| async move {
            let mut round = Round::undisturbed_on(&kernel, features).await;
            for i in 0..4_u64 {
                round.stir();
                sleep(Duration::from_millis(400 * i)).await;
                round.node.restart().await;
                sleep(secs(25)).await;
                round.k += 1;
            }
            round.k -= 1;
            round.converge().await;
            let fine = round.settled().and_then(|()| round.undisturbed_residents());
            fine.unwrap_or_else(|e| panic!("{tier:?}: {e}\n{}", round.node.picture()));
        });
    }
}

#[test]
fn statuses_that_follow_their_events_late_are_waited_for() {
    for (features, tier) in tiers() {
        actor::testing::run(5, |kernel| async move {
            let mut round = Round::undisturbed_on(&kernel, features).await;
            round.node.world.runtime.set_exit_lag(Duration::from_millis(300));
            for _ in 0..3 {
                round.case(None).await.unwrap_or_else(|e| panic!("{tier:?}: {e}"));
            }
        });
    }
}

#[test]
fn a_stream_of_events_that_closes_again_and_again_is_given_up_for_relists() {
    actor::testing::run(5, |kernel| async move {
        let mut round = Round::undisturbed_on(&kernel, Features::containerd_2()).await;
        round.node.world.runtime.close_event_streams(true);
        round.node.world.runtime.disconnect();
        sleep(secs(60)).await;
        for _ in 0..3 {
            round.case(None).await.unwrap();
        }
    });
}
