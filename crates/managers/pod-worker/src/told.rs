//! What a step tells of itself while it runs.

use std::time::Duration;

use model::core::PodStatus;
use model::history::What;
use model::runtime::{ContainerState, PodObservation};
use pod_history::New;
use pod_plan::PodPlan;

use crate::job::Job;

/// What was done before, and what every step does, is told of only when it takes this long, or fails.
const WORTH_A_WORD: Duration = Duration::from_secs(1);

impl Job {
    /// Waits for a call, and tells of it meanwhile.
    pub(crate) async fn during<T, E: std::fmt::Display>(
        &self,
        what: What,
        of: &str,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut call = std::pin::pin!(call);
        let is_usual = matches!(what, What::Look | What::Cgroup) || self.chronicle.was_done(what, of);
        if !is_usual {
            self.chronicle.begin(what, of, self.now());
        }
        let early = tokio::select! {
            biased;
            answer = &mut call => Some(answer),
            () = tokio::time::sleep(WORTH_A_WORD) => None,
        };
        let answer = match early {
            Some(answer) if is_usual => {
                if let Err(e) = &answer {
                    self.chronicle.failed(what, of, &e.to_string(), self.now());
                }
                return answer;
            }
            Some(answer) => answer,
            None => {
                if is_usual {
                    self.chronicle.begin(what, of, self.now());
                }
                // The next daemon shall know of a call over which this one died.
                self.chronicle.save(&*self.deps.journal, false, self.now());
                call.await
            }
        };
        match &answer {
            Ok(_) => self.chronicle.end(what, of, Ok(()), self.now()),
            Err(e) => self.chronicle.end(what, of, Err(&e.to_string()), self.now()),
        }
        answer
    }

    /// Tells of what was decided.
    pub(crate) fn note_plan(&self, plan: &PodPlan) {
        self.chronicle.decide(plan, self.now());
    }

    /// Tells of containers that ended since they were last seen alive.
    pub(crate) fn note_exits(&self, observed: &PodObservation) {
        for c in &observed.containers {
            if c.state == ContainerState::Exited && self.memo.alive.contains(&c.id) {
                let text = if c.reason == "OOMKilled" { c.reason.as_str() } else { "" };
                let exited = New { number: c.exit_code, text, ..New::of(What::Exited, &c.name) };
                self.chronicle.note(exited, self.now());
            }
        }
    }

    /// Tells when the pod becomes ready, or is so no more.
    pub(crate) fn note_status(&self, status: &PodStatus) {
        self.chronicle.status(status, self.now());
    }
}
