//! Named fault points, and rules that strike at them. Off: one relaxed load per point.

mod rule;

use crate::control::{Order, locked};
use crate::crash::Killed;
use crate::passages::{Passages, Point};
use crate::record::Record;
use crate::seed;
use std::any::{Any, TypeId};
use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub use rule::{Action, Rule, RuleError, When};

/// What points of work for one subject begin with.
const FOR: &str = "for:";
/// Strikes that the log keeps.
const LOG_LIMIT: usize = 4096;

type Twin = Arc<dyn Fn(&dyn Any) -> Option<Box<dyn Any + Send>> + Send + Sync>;

/// The fault plan of a kernel. Cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    on: AtomicBool,
    seed: u64,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    rules: Vec<Armed>,
    /// By actor; also of those that are gone.
    passed: BTreeMap<Arc<str>, Arc<Passages>>,
    log: Vec<String>,
    droppable: HashSet<TypeId>,
    twins: HashMap<TypeId, Twin>,
}

struct Armed {
    rule: Rule,
    seen: u64,
    rng: fastrand::Rng,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("on", &self.on()).field("rules", &self.rules()).finish()
    }
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Faults(Arc::new(Inner { on: AtomicBool::new(false), seed, plan: Mutex::default() }))
    }

    /// Whether points are looked at.
    pub fn on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    /// Looks at points from now on: rules strike, and points are listed in [`Faults::declared`].
    pub fn enable(&self) {
        self.0.on.store(true, Ordering::Relaxed);
    }

    /// Looks at no point any more; rules and lists stay.
    pub fn disable(&self) {
        self.0.on.store(false, Ordering::Relaxed);
    }

    /// Adds a rule, and enables. The first rule that hits wins.
    pub fn add(&self, rule: Rule) {
        let mut plan = locked(&self.0.plan);
        let seed = seed::derive(self.0.seed, &[&plan.rules.len().to_le_bytes(), rule.to_string().as_bytes()]);
        plan.rules.push(Armed { rule, seen: 0, rng: fastrand::Rng::with_seed(seed) });
        drop(plan);
        self.enable();
    }

    /// Adds rules in text form, one per line or `;`; see [`Rule`].
    ///
    /// # Errors
    /// At the first rule that does not parse; none is added then.
    pub fn add_text(&self, text: &str) -> Result<(), RuleError> {
        let lines = text.split(['\n', ';']).map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
        let rules = lines.map(str::parse).collect::<Result<Vec<Rule>, _>>()?;
        rules.into_iter().for_each(|rule| self.add(rule));
        Ok(())
    }

    /// Forgets all rules; points are listed further on.
    pub fn clear(&self) {
        locked(&self.0.plan).rules.clear();
    }

    /// The rules in force.
    pub fn rules(&self) -> Vec<Rule> {
        locked(&self.0.plan).rules.iter().map(|a| a.rule.clone()).collect()
    }

    /// All (actor, point) pairs that were passed while enabled.
    pub fn declared(&self) -> Vec<(String, String)> {
        self.passages().into_iter().map(|(actor, point, _)| (actor, point)).collect()
    }

    /// All (actor, point) pairs that were passed while enabled, in order, and how often.
    pub fn passages(&self) -> Vec<(String, String, u64)> {
        let passed = locked(&self.0.plan).passed.clone();
        let mut counts = BTreeMap::new();
        for (actor, passages) in passed {
            for (point, count) in passages.all() {
                *counts.entry((actor.to_string(), point)).or_default() += count;
            }
        }
        counts.into_iter().map(|((actor, point), count)| (actor, point, count)).collect()
    }

    /// What was struck, in order: `actor: action@point`.
    pub fn log(&self) -> Vec<String> {
        locked(&self.0.plan).log.clone()
    }

    /// Allows [`Action::Drop`] for tells of `M`: its contract bears loss.
    pub fn permit_drop<M: 'static>(&self) {
        locked(&self.0.plan).droppable.insert(TypeId::of::<M>());
    }

    /// Allows [`Action::Duplicate`] for `M`: its contract bears a second copy.
    pub fn permit_duplicate<M: Clone + Send + 'static>(&self) {
        let twin: Twin = Arc::new(|m| Some(Box::new(m.downcast_ref::<M>()?.clone())));
        locked(&self.0.plan).twins.insert(TypeId::of::<M>(), twin);
    }

    /// Of a point of work for one subject. Only rules that name the subject strike, and the point is not declared: there
    /// are as many as there are pods.
    pub(crate) fn decide_for(&self, actor: &str, subject: &str) -> Option<(Action, String)> {
        let is_named = |rule: &Rule| rule.point.strip_prefix(FOR).is_some_and(|named| named == subject);
        let named = locked(&self.0.plan).rules.iter().any(|armed| is_named(&armed.rule));
        let point = named.then(|| format!("{FOR}{subject}"))?;
        Some((self.decide_at(actor, &point)?, point))
    }

    pub(crate) fn decide(&self, record: &Record, point: Point) -> Option<Action> {
        let of_actor = || locked(&self.0.plan).passed.entry(record.name.clone()).or_default().clone();
        record.passages.get_or_init(of_actor).note(point);
        self.decide_at(&record.name, point)
    }

    fn decide_at(&self, actor: &str, point: impl fmt::Display) -> Option<Action> {
        let mut plan = locked(&self.0.plan);
        let plan = &mut *plan;
        let point = LazyCell::new(|| point.to_string());
        let hit = plan.rules.iter_mut().find_map(|armed| {
            if !armed.rule.is_of(actor) || !armed.rule.is_at(&point) {
                return None;
            }
            armed.seen += 1;
            armed.rule.when.hits(armed.seen, &mut armed.rng).then(|| armed.rule.action.clone())
        })?;
        if plan.log.len() < LOG_LIMIT {
            plan.log.push(format!("{actor}: {hit}@{}", *point));
        }
        Some(hit)
    }
}

/// Fault points for effects: knows the actor's name. Cheap to clone.
#[derive(Clone)]
pub struct FaultHandle {
    faults: Faults,
    record: Arc<Record>,
}

impl fmt::Debug for FaultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultHandle").field(&self.record.name).finish()
    }
}

impl FaultHandle {
    pub(crate) fn new(faults: Faults, record: Arc<Record>) -> Self {
        FaultHandle { faults, record }
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    pub(crate) fn on(&self) -> bool {
        self.faults.on()
    }

    pub(crate) fn decide(&self, point: Point) -> Option<Action> {
        self.faults.decide(&self.record, point)
    }

    pub(crate) fn may_drop<M: 'static>(&self) -> bool {
        locked(&self.faults.0.plan).droppable.contains(&TypeId::of::<M>())
    }

    pub(crate) fn duplicate<M: 'static>(&self, message: &M) -> Option<M> {
        let twin = locked(&self.faults.0.plan).twins.get(&TypeId::of::<M>()).cloned()?;
        twin(message)?.downcast().ok().map(|m| *m)
    }

    /// A point inside of an effect. Panic: this future panics. Kill: the actor dies, an effect of its own with it, a
    /// detached one goes on. Stall and delay: waits.
    pub async fn hit(&self, point: &'static str) {
        if !self.on() {
            return;
        }
        match self.decide(Point::Named(point)) {
            Some(action @ (Action::Panic | Action::Block(_))) => action.strike(point),
            Some(Action::Kill) => {
                self.record.control.give(Order::Kill(format!("fault at {point}")));
                // The supervisor looks at its orders before it polls again.
                tokio::task::yield_now().await;
            }
            Some(Action::Stall(d) | Action::Delay(d)) => tokio::time::sleep(d).await,
            Some(Action::Drop | Action::Duplicate) | None => {}
        }
    }
}

impl Action {
    /// Ends the turn here: panics, or unwinds as killed; or blocks it. Nothing for other actions.
    pub(crate) fn strike(&self, point: &str) {
        match self {
            Action::Panic => panic!("injected at {point}"),
            Action::Kill => std::panic::resume_unwind(Box::new(Killed(format!("fault at {point}")))),
            Action::Block(d) => {
                let until = std::time::Instant::now() + *d;
                while std::time::Instant::now() < until {
                    std::thread::park_timeout(until.saturating_duration_since(std::time::Instant::now()));
                }
            }
            _ => {}
        }
    }
}
