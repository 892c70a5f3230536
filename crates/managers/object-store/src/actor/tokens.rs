//! Tokens of pods: one request for each at a time, and the first one before anybody asks.

use std::sync::Arc;

use actor::{Ctx, Deferred, Handler};
use contract::objects::{FetchToken, ObjectError, Token};
use model::core::Pod;
use ports::api::ApiServer;
use projection::TokenSlot;
use tokio::sync::oneshot;

use super::{ObjectStore, now};
use crate::fetch::{STANDALONE_TOKEN, is_away};
use crate::tokens::{self, MAX_JITTER_NS, TokenKey};

impl ObjectStore {
    /// Asks for the tokens of a pod that is about to start, while its worker makes cgroup and folders: the request takes
    /// longer than these. A pod that is ending needs none.
    pub(super) fn expect_tokens(&mut self, pod: &Arc<Pod>, ctx: &mut Ctx<Self>) {
        let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
        if model::pod::is_terminal_phase(phase) || pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        let Some(api) = self.deps.api.clone() else { return };
        for TokenSlot { audience, expiration_s } in projection::tokens(pod) {
            let key = key(pod, audience, expiration_s);
            if self.tokens.fresh(&key, now(ctx)).is_none() {
                self.request_token(api.clone(), pod, key, ctx);
            }
        }
    }

    /// Asks the API server, unless it is being asked. Whoever is in the list when its answer comes gets it.
    fn request_token(&mut self, api: Arc<dyn ApiServer>, pod: &Arc<Pod>, key: TokenKey, ctx: &mut Ctx<Self>) {
        if self.awaited_tokens.contains_key(&key) {
            return;
        }
        self.awaited_tokens.insert(key.clone(), Vec::new());
        let jitter = ctx.rng().i64(0..=MAX_JITTER_NS);
        let (cache, pod, asked) = (self.deps.cache.clone(), pod.clone(), key.clone());
        let request = async move {
            match tokens::request(&*api, &pod, &asked, jitter).await {
                Ok(token) => Ok(token),
                Err(e) if is_away(&e) => Err((e, cache.restore_token(&asked).await)),
                Err(e) => Err((e, None)),
            }
        };
        ctx.run(request, move |act: &mut Self, answer, ctx| {
            let answer = match answer {
                Ok(token) => Ok(act.keep_token(&key, token)),
                Err((why, kept)) => {
                    let instead = act.tokens.instead(&key, &why.to_string(), now(ctx));
                    let kept = kept.map(|t| Token { refresh_at: now(ctx).plus(tokens::RETRY), ..t });
                    instead.or_else(|e| kept.ok_or(e))
                }
            };
            for waiter in act.awaited_tokens.remove(&key).unwrap_or_default() {
                // Whoever waited may have given up.
                let _ = waiter.send(answer.clone());
            }
        });
    }

    /// A pod that was released meanwhile is not remembered.
    fn keep_token(&mut self, key: &TokenKey, token: Token) -> Token {
        if self.deps.cache.holds.get(&key.uid).is_some() {
            self.deps.cache.persist_token(key, &token);
            self.tokens.put(key.clone(), token.clone());
        }
        token
    }
}

impl Handler<FetchToken> for ObjectStore {
    type Result = Deferred<Self, Result<Token, ObjectError>>;

    fn handle(&mut self, msg: FetchToken, ctx: &mut Ctx<Self>) -> Self::Result {
        let key = key(&msg.pod, msg.audience, msg.expiration_s);
        if let Some(token) = self.tokens.fresh(&key, now(ctx)) {
            return Deferred::ready(Ok(token));
        }
        let Some(api) = self.deps.api.clone() else {
            return Deferred::ready(self.tokens.instead(&key, STANDALONE_TOKEN, now(ctx)));
        };
        self.request_token(api, &msg.pod, key.clone(), ctx);
        let (waiter, answer) = oneshot::channel();
        self.awaited_tokens.entry(key).or_default().push(waiter);
        Deferred::new(async move {
            let lost = || ObjectError::Failed("failed to fetch token: the request was lost".to_owned());
            answer.await.unwrap_or_else(|_| Err(lost()))
        })
    }
}

fn key(pod: &Pod, audience: String, expiration_s: i64) -> TokenKey {
    let account = projection::references::service_account(pod).to_owned();
    TokenKey { uid: model::pod::uid(pod), account, audience, expiration_s }
}
