//! What a test makes go wrong between the node and the API server.

use std::time::Duration;

use ports::api::{ApiError, Method};

/// Which requests are meant.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    verb: Option<&'static str>,
    path: String,
}

impl Matching {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests of a verb (`GET`, `POST`, `PUT`, `PATCH`, `DELETE`) whose path contains a text.
    #[must_use]
    pub fn of(verb: &'static str, path: impl Into<String>) -> Self {
        Self { verb: Some(verb), path: path.into() }
    }

    /// Requests of any verb whose path contains a text.
    #[must_use]
    pub fn path(path: impl Into<String>) -> Self {
        Self { verb: None, path: path.into() }
    }

    /// Whether a request is meant.
    #[must_use]
    pub fn takes(&self, method: Method, path: &str) -> bool {
        self.verb.is_none_or(|v| v == verb(method)) && path.contains(&self.path)
    }
}

/// The verb of a method.
#[must_use]
pub const fn verb(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch(_) => "PATCH",
        Method::Delete => "DELETE",
    }
}

/// What happens to a request that is meant.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// It is answered with a failure and not done.
    Fail(ApiError),
    /// It is done, and the answer is lost on its way: the caller sees this failure.
    DoneButLost(ApiError),
    /// It is done and answered after a while.
    Slow(Duration),
    /// It is never answered: the caller waits until its deadline.
    Hang,
    /// It is answered with something that is no JSON, and not done.
    Garbage,
    /// It is done as by a server that does not know a field: one of the object at a JSON pointer (`/status`).
    Unaware(&'static str, &'static str),
}

/// Trouble for some requests, a number of times.
#[derive(Clone, Debug)]
struct Rule {
    matching: Matching,
    trouble: Trouble,
    /// `None`: until cleared.
    left: Option<u32>,
}

/// All trouble that is set up; the first rule that takes a request counts.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Vec<Rule>);

impl Troubles {
    /// Adds trouble for the next `times` requests that match; `None`: for all of them.
    pub fn add(&mut self, matching: Matching, trouble: Trouble, times: Option<u32>) {
        self.0.push(Rule { matching, trouble, left: times });
    }

    /// Ends all trouble.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What happens to this request; uses up one time.
    pub fn next(&mut self, method: Method, path: &str) -> Option<Trouble> {
        let rule = self.0.iter_mut().find(|r| r.left != Some(0) && r.matching.takes(method, path))?;
        rule.left = rule.left.map(|n| n - 1);
        let trouble = rule.trouble.clone();
        self.0.retain(|r| r.left != Some(0));
        Some(trouble)
    }
}
