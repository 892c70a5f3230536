//! Asking the hosts of a registry, one after the other, again where that may help.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::auth::{Auth, Credentials};
use crate::backoff;
use crate::client::{Answer, Ask, Client};
use crate::endpoint::Endpoint;
use crate::error::{Failure, HostFailure, PullError};
use crate::settings::Settings;

/// One pull.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    auth: Auth,
    pub(crate) settings: Settings,
    /// Path of the repository.
    pub(crate) repository: String,
    pub(crate) endpoints: Vec<Endpoint>,
}

impl Session {
    pub(crate) fn new(
        settings: Settings,
        credentials: Option<Credentials>,
        repository: String,
        endpoints: Vec<Endpoint>,
    ) -> Self {
        let client = Client::new(settings.deadlines);
        Self { client, auth: Auth::new(credentials), settings, repository, endpoints }
    }

    /// Asks an endpoint about the repository; shows who asks when it wants to know. A refusal is an answer, too.
    pub(crate) async fn call(&self, endpoint: &Endpoint, what: &str, ask: &Ask) -> Result<Answer, Failure> {
        let url = endpoint.url(&self.repository, what);
        let pass = self.auth.pass(endpoint).await?;
        let answer = self.client.follow(endpoint, &url, ask, pass.as_ref()).await?;
        // What another server wants to know is not for it.
        if answer.status().as_u16() != 401 || answer.elsewhere {
            return Ok(answer);
        }
        let challenges = answer.challenges();
        match self.auth.answer(&self.client, endpoint, &self.repository, pass.as_ref(), &challenges).await? {
            Some(better) => self.client.follow(endpoint, &url, ask, Some(&better)).await,
            None => Ok(answer),
        }
    }

    /// The first good answer of the endpoints that `may` be asked. What may pass is asked again, what a host does not have or allow the next one is
    /// asked.
    pub(crate) async fn first<'s, T>(
        &'s self,
        may: impl Fn(&Endpoint) -> bool,
        asked: &'static str,
        attempt: impl Fn(&'s Endpoint) -> BoxFuture<'s, Result<T, Failure>>,
    ) -> Result<T, PullError> {
        let mut refused = Vec::new();
        for endpoint in self.endpoints.iter().filter(|e| may(e)) {
            let mut failed = 0;
            loop {
                match attempt(endpoint).await {
                    Ok(found) => return Ok(found),
                    Err(failure) => {
                        failed += 1;
                        if failure.may_pass() && failed < failure.attempts(self.settings.attempts) {
                            self.pause(failed, &failure).await;
                            continue;
                        }
                        refused.push(refusal(endpoint, asked, failure));
                        break;
                    }
                }
            }
        }
        Err(if refused.is_empty() { PullError::NoHost(asked) } else { PullError::Refused(refused) })
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&self, failed: u32, failure: &Failure) {
        let told = match failure {
            Failure::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        tokio::time::sleep(backoff::wait(self.settings.first_wait, failed, told, fastrand::f64())).await;
    }
}

pub(crate) fn refusal(endpoint: &Endpoint, asked: &str, failure: Failure) -> HostFailure {
    tracing::debug!(host = endpoint.name(), asked, %failure, "a host of a registry did not give what was asked for");
    HostFailure { host: endpoint.name(), asked: asked.to_owned(), failure }
}
