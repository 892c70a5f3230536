//! What the kernel says in the log, and in the metrics.

use crate::crew::{Add, Bomb, Explode, LONG, Log, Site, Worker};
use actor::{Policy, Spec, testing};
use std::fmt::Debug;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects events of the kernel, fields and all; spans by their fields.
struct Collector(Log);

struct Line<'a>(&'a mut String);
impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        *self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "actor" && *metadata.level() <= Level::INFO
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = format!("span {}", span.metadata().name());
        span.record(&mut Line(&mut line));
        self.0.add(line);
        Id::from_u64(self.0.lines().len() as u64)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut Line(&mut line));
        self.0.add(line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A log that panics over errors: the supervisor's own code meets it.
struct Breaks;

impl Subscriber for Breaks {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "actor" && *metadata.level() == Level::ERROR
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        panic!("the log is broken");
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn an_actor_that_its_supervisor_loses_makes_the_kernel_unhealthy() {
    let told = Log::default();
    let heard = told.clone();
    tracing::subscriber::with_default(Breaks, || {
        testing::run(1, |_| async move {
            let on_fatal = Some(std::sync::Arc::new(move |who: &str| heard.add(who.to_owned())) as _);
            let kernel = actor::Kernel::new(actor::KernelConfig { on_fatal, ..actor::KernelConfig::default() });
            let worker = kernel.spawn(Spec::new("worker"), Worker::factory(Bomb::None, &Log::default()));
            worker.ask(Add(1), LONG).await.unwrap();
            assert!(kernel.health().is_ok());
            assert!(worker.ask(Explode(Site::Handler), LONG).await.is_err());
            worker.stopped().await;
            assert!(kernel.health().is_err());
        });
    });
    assert_eq!(told.lines(), ["worker"]);
}

#[test]
fn a_restart_logs_one_error_and_a_span_per_generation() {
    let log = Log::default();
    tracing::subscriber::with_default(Collector(log.clone()), || {
        testing::run(1, |kernel| async move {
            let worker = kernel.spawn(Spec::new("worker"), Worker::factory(Bomb::None, &Log::default()));
            let _ = worker.ask(Explode(Site::Handler), LONG).await;
            worker.ask(Add(1), LONG).await.unwrap();
        });
    });
    let lines = log.lines();
    let errors: Vec<_> = lines.iter().filter(|l| l.starts_with("ERROR")).collect();
    assert_eq!(errors.len(), 1, "{lines:#?}");
    for part in ["actor crashed", "during=\"Explode\"", "cause=panic: handler", "crew.rs:", "RestartAfter(0ns)"] {
        assert!(errors[0].contains(part), "{part} in {}", errors[0]);
    }
    let spans: Vec<_> = lines.iter().filter(|l| l.starts_with("span")).collect();
    assert_eq!(spans, ["span actor name=worker generation=0", "span actor name=worker generation=1"]);
}

#[test]
fn snapshots_are_plain_data() {
    let snapshot = testing::run(1, |kernel| async move {
        let worker = kernel.spawn(Spec::new("worker").mailbox(7), Worker::factory(Bomb::None, &Log::default()));
        worker.ask(Add(1), LONG).await.unwrap();
        worker.tell(Add(1)).unwrap();
        kernel.directory().actors()
    });
    let json = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(json[0]["name"], "worker");
    assert_eq!(json[0]["group"], "root");
    assert_eq!(json[0]["state"], "running");
    assert_eq!((&json[0]["mailbox_depth"], &json[0]["mailbox_capacity"]), (&1.into(), &7.into()));
    assert_eq!((&json[0]["turns"], &json[0]["last_message"]), (&1.into(), &"Add".into()));
    assert_eq!(json[0]["turn_buckets"].as_array().unwrap().len(), actor::TURN_BUCKETS_US.len() + 1);
}

#[test]
fn totals_never_fall_when_actors_leave() {
    testing::run(1, |kernel| async move {
        let group = kernel.group("pods", Policy::default());
        for name in ["pod/1", "pod/2"] {
            let worker = kernel.spawn(Spec::new(name).group(&group), Worker::factory(Bomb::None, &Log::default()));
            worker.ask(Add(1), LONG).await.unwrap();
            worker.kill();
            worker.ask(Add(1), LONG).await.unwrap();
            if name == "pod/1" {
                worker.stop();
                worker.stopped().await;
            }
        }
        let totals = kernel.directory().totals();
        assert_eq!(totals.len(), 1);
        let pods = &totals["pods"];
        assert_eq!((pods.actors, pods.turns, pods.restarts), (1, 4, 2));
        assert_eq!(pods.turn_buckets.iter().sum::<u64>(), 4);
    });
}
