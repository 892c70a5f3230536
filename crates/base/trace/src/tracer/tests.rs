use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use metrics::trace::{LOST_FULL, SPANS_LOST};

use super::*;
use crate::{Limits, enter, within};

fn tracer(rate: u32, limits: Limits) -> Tracer {
    let ticks = AtomicI64::new(1);
    let clock = Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed));
    Tracer { sampler: Sampler::per_million(rate), queue: Arc::new(Queue::new(limits)), clock }
}

#[tokio::test(start_paused = true)]
async fn a_span_tells_of_itself_when_it_ends() {
    let tracer = tracer(1_000_000, Limits::default());
    let mut parent = tracer.span("parent".into(), Kind::Internal, None);
    let mut child = tracer.span("child".into(), Kind::Client, Some((parent.context().unwrap(), false)));
    child.set("key", || 7);
    child.fail(|| "why".to_owned());
    parent.set("name", || "x");
    drop(child);
    drop(parent);
    let batch = tracer.queue.batch().await;
    let [child, parent] = &batch[..] else { panic!("{batch:?}") };
    assert_eq!((&*child.name, &*parent.name), ("child", "parent"), "in the order of their ends");
    assert_eq!((child.parent, parent.parent), (Some(parent.context.span), None));
    assert_eq!(child.context.trace, parent.context.trace);
    assert_eq!((&child.attributes[..], child.error.as_deref()), (&[("key", 7.into())][..], Some("why")));
    let times = [parent.began_ns, child.began_ns, child.ended_ns, parent.ended_ns];
    assert_eq!(times, [1, 2, 3, 4]);
}

#[test]
fn what_is_not_recorded_has_a_context_all_the_same() {
    let tracer = tracer(0, Limits::default());
    let span = tracer.span("a".into(), Kind::Internal, None);
    assert!(!span.is_recorded());
    assert!(!span.context().unwrap().sampled, "others are told that it is not");
    let of_another = Context { sampled: true, ..span.context().unwrap() };
    assert!(tracer.span("b".into(), Kind::Server, Some((of_another, true))).is_recorded(), "its parent decides");
}

#[tokio::test(start_paused = true)]
async fn a_batch_goes_when_it_is_full_or_its_time_is_over() {
    let limits = Limits { queue: 5, batch: 3, gather: Duration::from_secs(5) };
    let tracer = tracer(1_000_000, limits);
    let began = tokio::time::Instant::now();
    let end = |count: usize| (0..count).for_each(|_| drop(tracer.span("a".into(), Kind::Internal, None)));
    end(1);
    assert_eq!(tracer.queue.batch().await.len(), 1);
    assert_eq!(began.elapsed(), limits.gather);
    end(7);
    assert_eq!(SPANS_LOST.with_label_values(&[LOST_FULL]).get(), 2, "there is room for five");
    assert_eq!(tracer.queue.batch().await.len(), 3);
    assert_eq!(began.elapsed(), limits.gather, "at once");
    assert_eq!(tracer.queue.batch().await.len(), 2);
    let (batch, ()) = tokio::join!(tracer.queue.batch(), async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        end(3);
    });
    assert_eq!(batch.len(), 3, "nothing is sent while there is nothing");
}

#[tokio::test]
async fn a_context_is_current_within_its_work_only() {
    let context = |n: u64| Some(Context { trace: NonZeroU128::MIN, span: NonZeroU64::new(n).unwrap(), sampled: true });
    let look = |n| {
        within(context(n), async move {
            assert_eq!(current(), context(n));
            tokio::task::yield_now().await;
            assert_eq!(current(), context(n));
            within(None, async { assert_eq!(current(), None) }).await;
        })
    };
    tokio::join!(look(1), look(2));
    assert_eq!(current(), None);
    let struck = std::panic::catch_unwind(|| {
        let _entered = enter(context(3));
        panic!("in it");
    });
    assert!(struck.is_err());
    assert_eq!(current(), None, "a panic leaves nothing behind");
}

#[test]
fn without_a_tracer_there_is_nothing() {
    assert!(!is_on());
    let name = || panic!("nobody asks for a name");
    assert_eq!(span(name, Kind::Client).context(), None);
    assert_eq!(root(name, Kind::Server, None).context(), None);
    assert_eq!(child("a").context(), None);
    assert!(std::mem::size_of::<Option<Context>>() <= 32);
}
