//! Plays cases, several at a time, each on a thread with a kernel and a clock of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actor::{Kernel, testing};
use contract::Role;

use crate::case::Case;
use crate::outcome::{Broken, Outcome};
use crate::report::{Report, Verdict};
use crate::stage::Stage;
use crate::subject::Subject;

/// How long a case may take, on its own clock.
const LIMIT: Duration = Duration::from_secs(120);
/// The same where that clock is virtual in any case.
const LIMIT_INSIDE: Duration = Duration::from_secs(24 * 3600);

/// Which cases are played.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only those with this in their name.
    pub only: Option<String>,
    /// Only those that every manager of the role must keep.
    pub core: bool,
}

/// Plays the cases that are chosen, and tells what became of each, in their order.
pub fn play<R: Role>(cases: &[Case<R>], subject: &Arc<dyn Subject<R>>, choice: &Choice) -> Report {
    let begun = Instant::now();
    let is_meant = |case: &&Case<R>| {
        (case.is_core || !choice.core) && choice.only.as_ref().is_none_or(|part| case.name.contains(part.as_str()))
    };
    let meant: Vec<&Case<R>> = cases.iter().filter(is_meant).collect();
    let can_be_played =
        |case: &&Case<R>| !(case.is_inside && subject.is_real()) && (subject.is_new() || !case.needs_new_manager);
    let (cases, left_out): (Vec<_>, Vec<_>) = meant.into_iter().partition(can_be_played);
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..subject.at_once().min(cases.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let Some(case) = cases.get(number) else { return };
                    let verdict = one(case, number, subject);
                    verdicts.lock().unwrap_or_else(PoisonError::into_inner).push((number, verdict));
                }
            });
        }
    });
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|(number, _)| *number);
    let cases = verdicts.into_iter().map(|(_, verdict)| verdict).collect();
    let left_out = left_out.into_iter().map(|case| case.name).collect();
    Report { role: R::NAME, manager: subject.name(), cases, left_out, took_ms: millis(begun) }
}

/// Whether there is somebody to try: it can be started, and serves this role.
///
/// # Errors
/// Nobody comes; no case would tell more than this.
pub fn reach<R: Role>(subject: &Arc<dyn Subject<R>>) -> Outcome {
    let run = async |kernel: Kernel| {
        let stage = Stage::new(format!("reach-{}", std::process::id()), kernel, subject.clone());
        let begun = stage.begin().await;
        // What it does wrong is for the cases to tell.
        let _misdeeds = stage.close().await;
        begun
    };
    if subject.is_real() { testing::run_real(run) } else { testing::run(1, run) }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn one<R: Role>(case: &Case<R>, number: usize, subject: &Arc<dyn Subject<R>>) -> Verdict {
    let begun = Instant::now();
    let run = |kernel: Kernel| {
        let tag = format!("{}-{}-{number}", case.name, std::process::id());
        on_stage(case, Stage::new(tag, kernel, subject.clone()))
    };
    let played = catch_unwind(AssertUnwindSafe(|| {
        if subject.is_real() || case.needs_real_time { testing::run_real(run) } else { testing::run(1, run) }
    }));
    let found = played.unwrap_or_else(|_| Err(Broken("the case itself panicked, see stderr".to_owned())));
    let broken = found.err().map(|Broken(why)| why);
    Verdict { case: case.name, source: case.source, rule: case.rule, broken, took_ms: millis(begun) }
}

async fn on_stage<R: Role>(case: &Case<R>, stage: Stage<R>) -> Outcome {
    let limit = if case.is_inside { LIMIT_INSIDE } else { LIMIT };
    let late = |_| Err(Broken(format!("it is not over after {limit:?}")));
    let found = tokio::time::timeout(limit, case.play(stage.clone())).await.unwrap_or_else(late);
    let closed = stage.close().await;
    found.and(closed)
}
