//! The door for blocking work: on threads as in life, inline as in simulated time.

use crate::crew::LONG;
use actor::testing::{self, run_real_with, spin_until};
use actor::{
    Actor, ActorRef, AskError, Class, Ctx, Deferred, Effects, Handler, Hold, Kernel, KernelConfig, Serial, Spec,
};
use actor::{message, supervised};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::task::spawn_local;

/// Asks for blocking work; the work is what the message brings.
struct Asker;

impl Actor for Asker {
    type Context = Ctx<Self>;
}
supervised!(Asker);

type Work = Box<dyn FnOnce() -> u32 + Send>;

struct Do(Class, Work);
message!(Do => u32);

impl Handler<Do> for Asker {
    type Result = Deferred<Self, u32>;

    fn handle(&mut self, Do(class, work): Do, ctx: &mut Ctx<Self>) -> Self::Result {
        let effects = ctx.effects();
        Deferred::new(async move { effects.blocking(class, work).await })
    }
}

/// Little patience with calls that do not come back.
fn impatient() -> KernelConfig {
    KernelConfig { blocking_patience: Some(Duration::from_millis(50)), ..KernelConfig::default() }
}

fn asker(kernel: &Kernel) -> ActorRef<Asker> {
    kernel.spawn(Spec::new("asker"), |_| Asker)
}

/// Fills a class with calls that come back when the sender is dropped.
fn fill(effects: &Effects, class: Class, calls: usize) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    for _ in 0..calls {
        let held = held.clone();
        effects.start(class, move || {
            let _ = held.lock().unwrap().recv();
        });
    }
    release
}

fn info(kernel: &Kernel, class: Class) -> actor::ClassInfo {
    kernel.blocking_classes().into_iter().find(|c| c.class == class).unwrap()
}

#[test]
fn a_class_that_hangs_holds_up_no_other_and_paths_of_users_and_clients_make_nobody_ill() {
    run_real_with(impatient(), async |kernel| {
        let asker = asker(&kernel);
        for (class, calls, places) in [(Class::UserPaths, 200, 128), (Class::ServedFiles, 40, 16)] {
            let release = fill(&kernel.effects("volumes"), class, calls);
            assert_eq!(asker.ask(Do(Class::HostFiles, Box::new(|| 7)), LONG).await, Ok(7));
            spin_until("all places are taken", || info(&kernel, class).running == places).await;
            spin_until("overdue", || info(&kernel, class).overdue == calls).await;
            let hung = info(&kernel, class);
            assert!(hung.running == places && hung.threads == places && !hung.progresses, "{hung:?}");
            assert!(kernel.health().is_ok(), "a dead file server is no reason to end the daemon");
            drop(release);
            spin_until("all back", || info(&kernel, class).finished == calls as u64).await;
        }
    });
}

#[test]
fn a_path_that_hangs_gives_its_place_away_and_there_is_an_end_to_that() {
    run_real_with(impatient(), async |kernel| {
        let effects = kernel.effects("volumes");
        for round in 1..=2 {
            let release = fill(&effects, Class::UserPaths, 100);
            assert_eq!(effects.blocking(Class::UserPaths, || 7).await, 7, "behind a hundred that hang");
            let more = fill(&effects, Class::UserPaths, 100);
            spin_until("all are used", || info(&kernel, Class::UserPaths).running == 128).await;
            spin_until("more hang than may", || info(&kernel, Class::UserPaths).overdue == 200).await;
            let hung = info(&kernel, Class::UserPaths);
            assert_eq!((hung.running, hung.threads), (128, 128));
            drop((release, more));
            spin_until("all back", || info(&kernel, Class::UserPaths).finished == round * 201).await;
        }
    });
}

#[test]
fn a_vital_class_that_finishes_nothing_makes_the_kernel_ill_until_it_does() {
    run_real_with(impatient(), async |kernel| {
        let asker = asker(&kernel);
        let (release, held) = mpsc::channel::<()>();
        let work: Work = Box::new(move || held.recv().map_or(1, |()| 0));
        let asked = spawn_local({
            let asker = asker.clone();
            async move { asker.ask(Do(Class::Journal, work), LONG).await }
        });
        spin_until("ill", || kernel.health().is_err()).await;
        let why = kernel.health().unwrap_err().to_string();
        assert_eq!(why, "blocking work of the class journal does not come back, first of all that of asker");
        let named = kernel.directory().get("asker").unwrap().overdue_calls;
        assert!(named.len() == 1 && named[0].starts_with("journal for "), "{named:?}");
        assert!(!kernel.settle_blocking(Duration::from_millis(20)), "it has not come back");
        drop(release);
        assert_eq!(asked.await.unwrap(), Ok(1));
        spin_until("well", || kernel.health().is_ok()).await;
        assert!(kernel.directory().get("asker").unwrap().overdue_calls.is_empty());
        assert!(kernel.settle_blocking(Duration::from_secs(20)));
    });
}

#[test]
fn a_panic_on_a_thread_is_the_askers_with_its_words_and_place() {
    run_real_with(impatient(), async |kernel| {
        let asker = asker(&kernel);
        let work: Work = Box::new(|| panic!("no such block"));
        assert_eq!(asker.ask(Do(Class::HostFiles, work), LONG).await, Err(AskError::Crashed));
        assert_eq!(asker.ask(Do(Class::HostFiles, Box::new(|| 3)), LONG).await, Ok(3));
        let info = kernel.directory().get("asker").unwrap();
        let cause = info.last_cause.unwrap();
        assert_eq!(info.restarts, 1);
        assert!(cause.contains("panic: no such block") && cause.contains("blocking.rs"), "{cause}");
    });
}

#[test]
fn threads_are_made_on_demand_and_end_when_idle() {
    run_real_with(impatient(), async |kernel| {
        assert_eq!(info(&kernel, Class::HostFiles).threads, 0);
        let together = Arc::new(Barrier::new(5));
        for _ in 0..4 {
            let together = together.clone();
            kernel.effects("four").start(Class::HostFiles, move || {
                together.wait();
            });
        }
        assert_eq!(info(&kernel, Class::HostFiles).threads, 4);
        together.wait();
        spin_until("idle threads are gone", || info(&kernel, Class::HostFiles).threads == 0).await;
    });
}

#[test]
fn a_class_never_has_more_threads_than_it_may() {
    run_real_with(impatient(), async |kernel| {
        let effects = kernel.effects("many");
        let mut most = 0;
        for _ in 0..200 {
            let calls = (0..20).map(|_| effects.blocking(Class::Computing, || ()));
            futures::future::join_all(calls).await;
            most = most.max(info(&kernel, Class::Computing).threads);
        }
        assert_eq!(most, 2);
    });
}

/// The last call that is waited for may be one that is given up, not one that ends.
#[test]
fn whoever_waits_for_the_end_of_all_calls_is_told_of_one_that_is_given_up() {
    run_real_with(impatient(), async |kernel| {
        let effects = kernel.effects("busy");
        let release = fill(&effects, Class::Journal, 16);
        let mut waiting = Box::pin(effects.blocking(Class::Journal, || ()));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(release);
        spin_until("the others are back", || info(&kernel, Class::Journal).finished == 16).await;
        let (told, thread) = mpsc::channel();
        let settles = std::thread::spawn({
            let kernel = kernel.clone();
            move || {
                told.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                let begin = Instant::now();
                (kernel.settle_blocking(Duration::from_secs(30)), begin.elapsed())
            }
        });
        // The thread has begun to wait; were it later, there would be nothing to wait for.
        let stat = Path::new("/proc").join(thread.recv().unwrap()).join("stat");
        let waits = || std::fs::read_to_string(&stat).unwrap().contains(") S ");
        spin_until("it waits", waits).await;
        drop(waiting);
        let (settled, took) = settles.join().unwrap();
        assert!(settled && took < Duration::from_secs(15), "{settled} after {took:?}");
    });
}

#[test]
fn work_whose_asker_is_gone_before_a_thread_is_free_is_not_begun() {
    run_real_with(impatient(), async |kernel| {
        let effects = kernel.effects("busy");
        let release = fill(&effects, Class::Computing, 2);
        let (told, begun) = mpsc::channel();
        let waiting = spawn_local({
            let effects = effects.clone();
            async move { effects.blocking(Class::Computing, move || told.send(())).await }
        });
        spin_until("waits", || info(&kernel, Class::Computing).waiting == 1).await;
        waiting.abort();
        let _ = waiting.await;
        drop(release);
        spin_until("free", || info(&kernel, Class::Computing).finished == 2).await;
        assert_eq!(begun.recv(), Err(mpsc::RecvError), "the work was dropped, not run");
        assert_eq!(info(&kernel, Class::Computing).waiting, 0);
    });
}

#[test]
fn work_that_hangs_keeps_its_thread_when_its_asker_leaves() {
    run_real_with(impatient(), async |kernel| {
        let effects = kernel.effects("log");
        let (release, hung) = mpsc::channel::<()>();
        let hung = Arc::new(Mutex::new(hung));
        let read = |n: usize| {
            let (effects, hung) = (effects.clone(), hung.clone());
            let read = spawn_local(async move {
                let read = move || hung.lock().unwrap().recv().is_ok();
                effects.blocking(Class::Computing, read).await;
            });
            (n, read)
        };
        for (n, asked) in (0..2).map(read) {
            spin_until("runs", || info(&kernel, Class::Computing).running > n).await;
            asked.abort();
            let _ = asked.await;
        }
        let (_, third) = read(2);
        spin_until("waits", || info(&kernel, Class::Computing).waiting == 1).await;
        let now = info(&kernel, Class::Computing);
        assert_eq!((now.running, now.threads), (2, 2), "who leaves makes no room for another thread");
        drop(release);
        third.await.unwrap();
    });
}

#[test]
fn simulated_time_has_no_threads_and_a_fixed_order() {
    testing::run(1, async |kernel| {
        let here = std::thread::current().id();
        let log = Arc::new(Mutex::new(Vec::new()));
        let all = (0..50).map(|n| {
            let (effects, log) = (kernel.effects("many"), log.clone());
            async move {
                effects
                    .blocking(Class::ALL[n % 5], move || log.lock().unwrap().push((n, std::thread::current().id())))
                    .await
            }
        });
        futures::future::join_all(all).await;
        assert_eq!(*log.lock().unwrap(), (0..50).map(|n| (n, here)).collect::<Vec<_>>());
        assert!(kernel.blocking_classes().iter().all(|c| c.threads == 0));
        let asker = asker(&kernel);
        let work: Work = Box::new(|| panic!("here"));
        assert_eq!(asker.ask(Do(Class::Journal, work), LONG).await, Err(AskError::Crashed));
        assert_eq!(asker.ask(Do(Class::Journal, Box::new(|| 4)), LONG).await, Ok(4));
    });
}

#[test]
fn a_call_that_hangs_in_simulated_time_holds_its_key_and_nothing_else() {
    testing::run(1, async |kernel| {
        let (effects, serial) = (kernel.effects("files"), Serial::<&str>::default());
        let one = async |key: &'static str, hangs: bool| {
            let work = move || if hangs { testing::hang() } else { key };
            let run = serial.run(&key, &effects, Class::HostFiles, work);
            tokio::time::timeout(Duration::from_secs(3600), run).await.ok()
        };
        assert_eq!(one("a", true).await, None);
        assert_eq!(one("a", false).await, None, "the key is held by the call that hangs");
        assert_eq!(one("b", false).await, Some("b"));
        assert_eq!(info(&kernel, Class::HostFiles).running + info(&kernel, Class::HostFiles).waiting, 1);
    });
}

/// Whoever began it may be gone: a restart drops its futures, not its threads.
#[test]
fn work_on_a_thread_keeps_what_it_holds_when_nobody_waits_for_it_any_more() {
    testing::run_real(async |kernel| {
        let (effects, gate) = (kernel.effects("files"), Arc::new(tokio::sync::Mutex::new(())));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let hold = Hold::on(gate.clone()).await;
        let work = hold.clone().during(move || {
            begun.send(()).unwrap();
            wait.recv().unwrap();
        });
        let asker = tokio::task::spawn_local(async move {
            let _hold = hold;
            effects.blocking(Class::UserPaths, work).await;
        });
        has_begun.await.unwrap();
        asker.abort();
        assert!(asker.await.unwrap_err().is_cancelled());
        assert!(gate.try_lock().is_err(), "the work goes on");
        go.send(()).unwrap();
        testing::spin_until("its end lets go", || gate.try_lock().is_ok()).await;
    });
}

/// By the simulated clock, not by that of the machine.
#[test]
fn a_hung_journal_is_an_illness_after_its_patience_and_one_hung_call_among_others_is_none() {
    testing::run(1, async |kernel| {
        let (effects, patience) = (kernel.effects("files"), Duration::from_secs(60));
        let hang = || effects.start(Class::Journal, || testing::hang());
        hang();
        tokio::time::sleep(patience).await;
        assert_eq!(kernel.health(), Ok(()));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(kernel.health().is_err());
        effects.blocking(Class::Journal, || ()).await;
        assert_eq!(kernel.health(), Ok(()), "it has come back");
        tokio::time::sleep(patience * 60).await;
        assert_eq!(kernel.health(), Ok(()), "the one that never will is its own affair");
        hang();
        tokio::time::sleep(patience * 2).await;
        assert!(kernel.health().is_err());
    });
}
