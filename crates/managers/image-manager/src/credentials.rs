//! Which credentials a pod's pull is tried with (pod-lifecycle 5.3): its pull secrets, the node's files, then plugins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::Class;
use contract::objects::{FetchServiceAccount, FetchToken};
use futures::FutureExt;
use metrics::credentials::{PLUGIN_DURATION, PLUGIN_ERRORS};
use model::core::{Pod, Secret};
use model::pod;
use ports::credential::PluginCall;
use pull_credentials::provider_config::{Provider, TokenAttributes};
use pull_credentials::{
    AccountKey, AuthMap, Credential, CredentialError, Keyring, Source, exchange, keyring_of_secrets, matches,
    node_files, parse_config_json, parse_dockercfg,
};

use crate::credential_cache::CallResult;
use crate::deps::Tools;

/// A plugin that says nothing for so long is killed.
const PLUGIN_DEADLINE: Duration = Duration::from_secs(60);
/// The API server's own default.
const TOKEN_LIFE_S: i64 = 3600;
/// Longer than any credential file.
const FILE_MAX_BYTES: u64 = 16 << 20;

/// For whom a plugin is asked.
struct Identity {
    source: Source,
    token: Option<String>,
    annotations: BTreeMap<String, String>,
    /// Whose cached answers may be used.
    cache: AccountKey,
    /// Whose calls under way may be joined.
    call: AccountKey,
}

/// Everything to try for this repository, in order: secrets of the pod, files of the node, plugins.
pub(crate) async fn find(
    tools: &Tools,
    repository: &str,
    pod: &Arc<Pod>,
    secrets: &[Arc<Secret>],
) -> Result<Vec<Credential>, CredentialError> {
    let mut found = keyring_of_secrets(secrets.iter().map(|s| &**s))?.lookup(repository);
    let mut node = Keyring::default();
    node.add(node_auths(tools).await, &Source::Node);
    found.extend(node.lookup(repository));
    let mut plugins = Keyring::default();
    for provider in &tools.config.providers {
        if provider.match_images.iter().any(|p| matches(p, repository))
            && let Some((auths, source)) = ask_plugin(tools, provider, repository, pod).await
        {
            plugins.add(auths, &source);
        }
    }
    found.extend(plugins.lookup(repository));
    Ok(found)
}

/// The first file that can be read and understood.
async fn node_auths(tools: &Tools) -> AuthMap {
    let now = tools.now();
    if let Some(auths) = tools.deps.credential_cache.node_auths(now) {
        return auths;
    }
    let (fs, config) = (tools.deps.fs.clone(), tools.config.clone());
    let read = tools.effects.blocking(Class::HostFiles, move || {
        let files = node_files(&config.root_dir, &config.working_dir, config.home.as_deref());
        files.into_iter().find_map(|file| {
            let text = fs.read_file(&file.path, FILE_MAX_BYTES).ok()?;
            let parsed = if file.config_json { parse_config_json(&text) } else { parse_dockercfg(&text) };
            parsed
                .inspect_err(|e| {
                    tracing::warn!(file = %file.path.display(), error = %e, "credentials of the node are left out");
                })
                .ok()
        })
    });
    let auths = read.await.unwrap_or_default();
    tools.deps.credential_cache.keep_node_auths(auths.clone(), now);
    auths
}

/// A plugin that fails gives nothing, and the pull goes on without it.
async fn ask_plugin(tools: &Tools, provider: &Provider, image: &str, pod: &Arc<Pod>) -> Option<(AuthMap, Source)> {
    let identity = match &provider.token {
        Some(attributes) => identity_of(tools, attributes, pod).await?,
        None => Identity::node(),
    };
    let kept = tools
        .deps
        .credential_cache
        .plugin(&provider.name, |cache| cache.get(image, &identity.cache, tools.now()).cloned());
    if let Some(auths) = kept {
        return Some((auths, identity.source));
    }
    let source = identity.source.clone();
    let key = (provider.name.clone(), image.to_owned(), identity.call.clone());
    let start = || call_plugin(tools.clone(), provider.clone(), image.to_owned(), identity).boxed();
    Some((tools.deps.credential_cache.call(key, start).await?, source))
}

/// `None`: the plugin is not to be asked for this pod.
async fn identity_of(tools: &Tools, attributes: &TokenAttributes, pod: &Arc<Pod>) -> Option<Identity> {
    let name = pod.spec.as_ref().and_then(|s| s.service_account_name.as_deref()).unwrap_or_default();
    if name.is_empty() {
        // Static pods have none.
        return (!attributes.require_service_account).then(Identity::node);
    }
    let namespace = pod::namespace(pod);
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        tracing::warn!(namespace, service_account = name, error = %e, "{what} for a credential provider");
    };
    let ask = FetchServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() };
    let facts = tools.crew.call(ask).await.inspect_err(|e| failed("no service account", e)).ok()?;
    let mut annotations = BTreeMap::new();
    for key in &attributes.required_annotations {
        // An annotation is how a workload opts in: without it there is nothing to complain of.
        annotations.insert(key.clone(), facts.annotations.get(key)?.clone());
    }
    for key in &attributes.optional_annotations {
        annotations.extend(facts.annotations.get(key).map(|v| (key.clone(), v.clone())));
    }
    let audience = attributes.audience.clone();
    let ask = FetchToken { pod: pod.clone(), audience, expiration_s: TOKEN_LIFE_S };
    let token = tools.crew.call(ask).await.inspect_err(|e| failed("no token", e)).ok()?.text;
    let key = |token: Option<&str>| AccountKey::new((namespace, name, &facts.uid), &annotations, token);
    let (cache, call) = (key(attributes.cache_by_token.then_some(&*token)), key(Some(&token)));
    let uid = facts.uid.clone();
    let source = Source::ServiceAccount { uid, namespace: namespace.to_owned(), name: name.to_owned() };
    Some(Identity { source, token: Some(token), annotations, cache, call })
}

impl Identity {
    fn node() -> Self {
        let none = AccountKey::default;
        Self { source: Source::Node, token: None, annotations: BTreeMap::new(), cache: none(), call: none() }
    }
}

/// One call of a plugin; keeps what it answers.
async fn call_plugin(tools: Tools, provider: Provider, image: String, identity: Identity) -> CallResult {
    let version = &provider.api_version;
    let call = PluginCall {
        name: provider.name.clone(),
        args: provider.args.clone(),
        env: provider.env.clone(),
        stdin: exchange::request(version, &image, identity.token.as_deref(), &identity.annotations),
        deadline: PLUGIN_DEADLINE,
    };
    let began = tools.clock.now();
    let ran = tools.deps.plugin.run(call).await;
    let took = tools.clock.now().saturating_duration_since(began);
    PLUGIN_DURATION.with_label_values(&[&provider.name]).observe(took.as_secs_f64());
    let out = match ran {
        Ok(stdout) => exchange::answer(version, &stdout).map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    };
    match out {
        Ok(answer) => {
            let now = tools.now();
            let default = provider.default_cache_duration;
            tools
                .deps
                .credential_cache
                .plugin(&provider.name, |cache| cache.put(&image, identity.cache, &answer, default, now));
            Some(answer.auths)
        }
        Err(error) => {
            PLUGIN_ERRORS.with_label_values(&[&provider.name]).inc();
            tracing::warn!(image, error, "failed getting credential from external registry credential provider");
            None
        }
    }
}
