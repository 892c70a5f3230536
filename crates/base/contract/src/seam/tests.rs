use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{AskError, Spec, testing};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use model::PodUid;

use super::*;
use crate::image::ImageView;
use crate::probe::{PodProbes, RetainProbes, StopProbes};
use crate::{ImageManager, ProbeManager, Wiring};

const HERE: &dyn Fn(&PodUid) -> bool = &|uid| uid.as_str().starts_with("here");

fn key(uid: &str) -> Vec<u8> {
    format!("\"{uid}\"").into_bytes()
}

fn row() -> Option<Vec<u8>> {
    serde_json::to_vec(&PodProbes::default()).ok()
}

#[test]
fn a_feed_begins_with_all_and_goes_on_with_changes() {
    let wiring = Wiring::default();
    let crew = wiring.crew::<ProbeManager>();
    let poster = crew.poster::<PodProbes>();
    poster.post("a".into(), PodProbes::default().into());
    let mut feed = crew.feed::<PodProbes>();
    let (number, rows) = (1, vec![(key("a"), row())]);
    assert_eq!(feed.next(), Some(Changes { number, whole: true, rows }));
    assert_eq!(feed.next(), None);
    poster.post("b".into(), PodProbes::default().into());
    poster.remove(&"a".into());
    assert!(feed.changes().has_changed().is_ok());
    let rows = vec![(key("a"), None), (key("b"), row())];
    assert_eq!(feed.next(), Some(Changes { number: 3, whole: false, rows }));
    assert_eq!(feed.next(), None);
    assert_eq!(Wiring::default().crew::<ProbeManager>().feed::<PodProbes>().next().map(|c| c.whole), Some(true));
}

#[test]
fn a_feed_of_a_value_has_its_latest() {
    let wiring = Wiring::default();
    let crew = wiring.crew::<ImageManager>();
    let mut feed = crew.feed::<ImageView>();
    assert_eq!(feed.next().map(|c| (c.number, c.whole, c.rows.len())), Some((0, true, 1)));
    assert_eq!(feed.next(), None);
    for queued in 1..4 {
        crew.publisher().publish(ImageView { queued, ..ImageView::default() });
    }
    let text = feed.next().unwrap().rows.remove(0);
    assert_eq!(text.0, b"null");
    assert_eq!(serde_json::from_slice::<ImageView>(&text.1.unwrap()).unwrap().queued, 3);
}

#[test]
fn rows_begun_elsewhere_are_taken_when_they_fit_and_refused_with_the_reason() {
    let wiring = Wiring::default();
    let board = wiring.board::<PodProbes>();
    let mut taker = wiring.crew::<ProbeManager>().taker::<PodProbes>();
    let mut one = |key: Vec<u8>, value: Option<Vec<u8>>| taker.take(vec![(key, value)], (false, false), HERE);
    assert_eq!(one(key("here-1"), row()), Taken { posted: 1, refused: vec![] });
    assert_eq!(one(key("gone"), row()).refused, [Refusal::NoSuchPod("gone".into())]);
    for (key, value) in [(b"{".to_vec(), row()), (b"7".to_vec(), row()), (key("here-1"), Some(b"[]".to_vec()))] {
        let taken = one(key, value);
        assert!(matches!(taken.refused[..], [Refusal::Unreadable(_)]) && taken.posted == 0, "{taken:?}");
    }
    assert_eq!(one(key("gone"), None).posted, 1, "to take away is always fine");
    assert_eq!(board.snapshot().len(), 1);
    let mut value = wiring.crew::<ImageManager>().taker::<ImageView>();
    assert!(matches!(value.take(vec![(vec![], None)], (false, false), HERE).refused[..], [Refusal::Unreadable(_)]));
}

#[test]
fn a_whole_in_pieces_takes_away_what_is_not_in_it() {
    let wiring = Wiring::default();
    let board = wiring.board::<PodProbes>();
    let mut taker = wiring.crew::<ProbeManager>().taker::<PodProbes>();
    for uid in ["here-1", "here-2", "here-3"] {
        taker.take(vec![(key(uid), row())], (false, false), HERE);
    }
    taker.take(vec![(key("here-2"), row())], (true, true), HERE);
    assert_eq!(board.snapshot().len(), 3, "more will come");
    taker.take(vec![(key("here-4"), row())], (true, false), HERE);
    let left: Vec<_> = board.snapshot().into_keys().collect();
    assert_eq!(left, [PodUid::from("here-2"), "here-4".into()]);
}

#[test]
fn who_has_lost_the_right_to_post_posts_nothing_by_way_of_a_border() {
    let wiring = Wiring::default();
    let former = wiring.crew::<ProbeManager>();
    let mut taker = former.taker::<PodProbes>();
    let _newest = former.succeed();
    assert_eq!(taker.take(vec![(key("here-1"), row())], (false, false), HERE).refused, [Refusal::Fenced]);
    assert_eq!(wiring.refused_posts::<ProbeManager>(), 1);
}

/// Answers what it is told to.
struct Script(Option<Vec<u8>>, Arc<AtomicU64>);

impl Far<ProbeManager> for Script {
    fn started(_: &mut StandIn<ProbeManager, Self>, _: &mut actor::Ctx<StandIn<ProbeManager, Self>>) {}

    fn forward(&mut self, message: Forwarded) -> LocalBoxFuture<'static, Option<Vec<u8>>> {
        assert!(["StopProbes", "RetainProbes"].contains(&message.message), "{message:?}");
        let answer = self.0.clone();
        async move { answer }.boxed_local()
    }

    fn refused(&self) -> Arc<AtomicU64> {
        self.1.clone()
    }
}

#[test]
fn a_stand_in_answers_what_comes_from_there_or_as_one_that_crashed() {
    for (comes, said, refused) in [
        (Some(b"null".to_vec()), Ok(()), 0),
        (None, Err(AskError::Crashed), 0),
        (Some(b"{\"lies\"".to_vec()), Err(AskError::Crashed), 1),
    ] {
        testing::run(1, |kernel| async move {
            let (wiring, count) = (Wiring::default(), Arc::new(AtomicU64::new(0)));
            let far = count.clone();
            let stand_in = kernel.spawn(Spec::new("probe-manager"), move |_| {
                StandIn::<ProbeManager, _>::new(Script(comes.clone(), far.clone()))
            });
            wiring.connect::<ProbeManager, _>(&stand_in);
            let stop = StopProbes { uid: "u".into(), keep_readiness: false };
            assert_eq!(wiring.ask(stop).await, said);
            assert!(wiring.tell(RetainProbes { known: [].into() }).is_ok());
            testing::settle().await;
            assert_eq!(count.load(Ordering::Relaxed), refused * 2);
            assert_eq!(stand_in.info().generation, 0, "nothing crashed here");
            assert_eq!(stand_in.ask(RetainProbes { known: [].into() }, Duration::from_secs(1)).await, said);
        });
    }
}

/// Notes in which order messages are sent. Some have their answer at once, others never.
#[derive(Default, Clone)]
struct InOrder(Arc<Mutex<Vec<String>>>);

impl Far<ProbeManager> for InOrder {
    fn started(_: &mut StandIn<ProbeManager, Self>, _: &mut actor::Ctx<StandIn<ProbeManager, Self>>) {}

    fn forward(&mut self, message: Forwarded) -> LocalBoxFuture<'static, Option<Vec<u8>>> {
        let stop: StopProbes = serde_json::from_slice(&message.body).unwrap();
        let sent = self.0.clone();
        async move {
            sent.lock().unwrap().push(stop.uid.to_string());
            if stop.keep_readiness { std::future::pending().await } else { Some(b"null".to_vec()) }
        }
        .boxed_local()
    }

    fn refused(&self) -> Arc<AtomicU64> {
        Arc::default()
    }
}

/// Found by `cargo xtask conform status`: of a hundred statuses in a row the last but one stood in the end.
#[test]
fn messages_are_forwarded_in_the_order_in_which_they_came() {
    testing::run(1, |kernel| async move {
        let (wiring, far) = (Wiring::default(), InOrder::default());
        let sent = far.0.clone();
        let new = move |_| StandIn::<ProbeManager, _>::new(far.clone());
        wiring.connect::<ProbeManager, _>(&kernel.spawn(Spec::new("probe-manager"), new));
        let names: Vec<String> = (0..20).map(|n| format!("u{n}")).collect();
        for (n, name) in names.iter().enumerate() {
            wiring.tell(StopProbes { uid: name.as_str().into(), keep_readiness: n % 3 > 0 }).unwrap();
        }
        testing::settle().await;
        assert_eq!(*sent.lock().unwrap(), names);
    });
}
