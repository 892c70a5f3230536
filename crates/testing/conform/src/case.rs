//! One rule, and how it is tried.

use std::fmt;

use contract::Role;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use crate::outcome::Outcome;
use crate::stage::Stage;

/// One rule of a contract, and how it is tried.
pub struct Case<R: Role> {
    /// What reports and `--only` call it.
    pub name: &'static str,
    /// Where the rule stands.
    pub source: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// Whether every manager of the role must keep it, however little it does beside.
    pub is_core: bool,
    /// It needs sockets, so it is played on the real clock whoever is tried.
    pub needs_real_time: bool,
    /// It needs hours, or the manager's own disk or clock, so it is played only against one in this process.
    pub is_inside: bool,
    /// It needs a manager that begins with it: one that ran before remembers what it saw.
    pub needs_new_manager: bool,
    play: Box<dyn Fn(Stage<R>) -> LocalBoxFuture<'static, Outcome> + Send + Sync>,
}

impl<R: Role> fmt::Debug for Case<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.name)
    }
}

impl<R: Role> Case<R> {
    /// A case that is played by `play`.
    pub fn new<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Self
    where
        F: Fn(Stage<R>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        let play = Box::new(move |stage| play(stage).boxed_local());
        Case {
            name,
            source,
            rule,
            is_core: false,
            needs_real_time: false,
            is_inside: false,
            needs_new_manager: false,
            play,
        }
    }

    /// A case that begins when the manager has the place, on what `on` has set up around it before.
    pub(crate) fn begun<B, F, Fut>(
        name: &'static str,
        source: &'static str,
        rule: &'static str,
        on: fn(Stage<R>) -> B,
        play: F,
    ) -> Self
    where
        B: 'static,
        F: Fn(B) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        Case::new(name, source, rule, move |stage: Stage<R>| {
            let play = play.clone();
            async move {
                let bed = on(stage.clone());
                stage.begin().await?;
                play(bed).await
            }
        })
    }

    /// The same, as one that every manager of the role must keep.
    #[must_use]
    pub fn core(self) -> Self {
        Case { is_core: true, ..self }
    }

    /// The same, always on the real clock.
    #[must_use]
    pub fn in_real_time(self) -> Self {
        Case { needs_real_time: true, ..self }
    }

    /// The same, not against a process that ran before.
    #[must_use]
    pub fn anew(self) -> Self {
        Case { needs_new_manager: true, ..self }
    }

    /// The same, only against a manager in this process.
    #[must_use]
    pub fn inside(self) -> Self {
        Case { is_inside: true, ..self }
    }

    pub(crate) fn play(&self, stage: Stage<R>) -> LocalBoxFuture<'static, Outcome> {
        (self.play)(stage)
    }
}
