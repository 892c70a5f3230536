//! `/logs/` (interfaces 3.6): the files of `/var/log`, as Go's file server serves them, and queries of the journal.
//!
//! Two deliberate differences: a link is followed only within the log folders (a pod with a host path below `/var/log` could
//! otherwise show any file of the host), and what is neither file nor folder is refused instead of waited for.

mod body;
mod conditions;
mod files;
mod journal;
mod listing;
mod media;
mod options;
mod range;
mod served;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;

use crate::deps::Shared;

pub(crate) async fn root(state: Shared, method: Method, uri: Uri, headers: HeaderMap, query: RawQuery) -> Response {
    below(state, method, uri, headers, query).await
}

pub(crate) async fn below(
    State(deps): Shared,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let path = uri.path().strip_prefix("/logs").unwrap_or("/");
    let (settings, effects) = (&deps.settings, &deps.effects);
    let asked =
        if settings.enable_system_log_query { options::read(query.as_deref()) } else { Ok(options::Asked::Nothing) };
    let roots = [settings.system_log_dir.clone(), settings.pod_logs_dir.clone()];
    match asked {
        Ok(options::Asked::Nothing) => files::serve(effects, roots, path, &method, &headers).await,
        Ok(options::Asked::File(file)) => files::serve_file(effects, roots, &file, &method, &headers).await,
        Ok(options::Asked::Services(query)) => journal::answer(effects, settings, query, &headers).await,
        Err(refused) => refused.into(),
    }
}

#[cfg(test)]
mod tests;
