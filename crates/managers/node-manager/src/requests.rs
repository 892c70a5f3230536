//! Requests about the Node (interfaces 9.2, 9.3).

use std::sync::Arc;

use model::Timestamp;
use model::core::Node;
use model::event::NodeEvent;
use model::json::ToJson;
use node_status::{Facts, changed, event, initial, patch, reconciled, updated};
use ports::api::{ApiError, ApiExt, ApiResult, ApiServer, Method, PatchKind, Request, Throttle};

use crate::config::Config;

/// Tries of one report.
const TRIES: usize = 5;

/// The requests of one pass, and what they tell.
#[derive(Clone)]
pub(crate) struct NodeRequests {
    pub api: Arc<dyn ApiServer>,
    pub config: Arc<Config>,
    pub facts: Facts,
    pub now: Timestamp,
}

/// A Node that is registered.
#[derive(Debug)]
pub(crate) struct Registered {
    pub node: Node,
    /// Made just now, with a complete status.
    pub created: bool,
    pub events: Vec<NodeEvent>,
}

/// Outcome of a report.
#[derive(Debug)]
pub(crate) enum Report {
    /// Nothing changed, and none was due.
    NotNeeded,
    /// Made, and this is what the API server has now.
    Made { report: Box<Reported>, changed: bool, events: Vec<NodeEvent> },
}

/// A report and its answer. A server that keeps less than it is told (older, or with a gate off) answers with less; to tell
/// it the same again would be in vain.
#[derive(Debug)]
pub(crate) struct Reported {
    wanted: Node,
    pub answered: Node,
}

impl Reported {
    fn says_all(&self, old: &Node, new: &Node) -> bool {
        !changed(&self.wanted, new) && !changed(&self.answered, old)
    }
}

impl NodeRequests {
    fn request(&self, method: Method, name: Option<&str>) -> Request {
        Request::to::<Node>(method, None, name).throttle(Throttle::Unlimited).deadline(self.config.deadline())
    }

    async fn get(&self) -> ApiResult<Node> {
        self.api.fetch(self.request(Method::Get, Some(&self.config.plan.name))).await
    }

    async fn patch(&self, body: &impl ToJson) -> ApiResult<Node> {
        let request = self.request(Method::Patch(PatchKind::Strategic), Some(&self.config.plan.name));
        self.api.fetch(request.status().json(body)?).await
    }

    /// Makes the Node, or puts right the one that is there (`known`: the watch has it already). A node that may not make
    /// it may still have been given one.
    pub(crate) async fn register(&self, known: Option<Arc<Node>>) -> ApiResult<Registered> {
        let plan = &self.config.plan;
        let wanted = initial(plan, &self.facts, self.now);
        if let Some(existing) = known {
            return self.reconcile(&existing, &wanted).await;
        }
        let create = self.request(Method::Post, None).json(&wanted)?;
        let refused = match self.api.fetch(create).await {
            Ok(node) => {
                let mut events = updated(plan, &Node::default(), &self.facts, self.now).1;
                if self.facts.not_ready.is_empty() {
                    events.push(event(plan, "NodeReady"));
                }
                return Ok(Registered { node, created: true, events });
            }
            Err(e) if e.is_already_exists() || e.is_forbidden() => e,
            Err(e) => return Err(e),
        };
        match self.get().await {
            Err(e) if e.is_not_found() => Err(refused),
            Err(e) => Err(e),
            Ok(existing) => self.reconcile(&existing, &wanted).await,
        }
    }

    async fn reconcile(&self, existing: &Node, wanted: &Node) -> ApiResult<Registered> {
        let node = match patch(existing, &reconciled(existing, wanted)) {
            Some(body) => self.patch(&body).await?,
            None => existing.clone(),
        };
        Ok(Registered { node, created: false, events: Vec::new() })
    }

    /// Writes the status when it changed or a report is `due`. The first try trusts the `known` Node, later ones read it.
    pub(crate) async fn report(
        &self,
        known: Option<Arc<Node>>,
        before: Option<Arc<Reported>>,
        due: bool,
    ) -> ApiResult<Report> {
        let mut failure = None;
        for attempt in 0..TRIES {
            match self.try_report(known.as_deref().filter(|_| attempt == 0), before.as_deref(), due).await {
                Ok(report) => return Ok(report),
                Err(e) => {
                    tracing::debug!(attempt, error = %e, "the node status was not accepted");
                    failure = Some(e);
                }
            }
        }
        Err(failure.unwrap_or(ApiError::NotReady { message: "no try was made".to_owned() }))
    }

    async fn try_report(&self, known: Option<&Node>, before: Option<&Reported>, due: bool) -> ApiResult<Report> {
        let read = match known {
            Some(_) => None,
            None => Some(self.get().await?),
        };
        let Some(old) = known.or(read.as_ref()) else { return Ok(Report::NotNeeded) };
        let (new, events) = updated(&self.config.plan, old, &self.facts, self.now);
        let changed = changed(old, &new) && !before.is_some_and(|b| b.says_all(old, &new));
        if !changed && !due {
            return Ok(Report::NotNeeded);
        }
        let Some(body) = patch(old, &new) else { return Ok(Report::NotNeeded) };
        let answered = self.patch(&body).await?;
        Ok(Report::Made { report: Box::new(Reported { wanted: new, answered }), changed, events })
    }
}
