//! What a node tells about itself over HTTP (interfaces 3.2): its pods, configuration, flags, log files, profiles; and the
//! two actions that need no stream, `/run` and `/checkpoint`.
//!
//! Owns: the paths below, their methods, parameters and texts. Never asks who is calling: whoever serves these routes puts
//! authentication and authorization in front of all of them.

#![forbid(unsafe_code)]

mod deps;
mod flags;
mod logs;
mod pods;
mod profile;
mod respond;
mod run;
mod running;
mod zpages;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{any, get, post};

pub use deps::{Configz, Deps, SetVerbosity, Settings};
use respond::{method_not_allowed, refuse, see};

/// Says on every path of the debugging handlers that they are off.
const DEBUG_OFF: &str = "Debug endpoints are disabled.";

/// Routes of the server on `port` and of the local socket.
pub fn router(deps: Deps) -> Router {
    let s = deps.settings.clone();
    let mut router = harmless();
    if !s.enable_debugging_handlers {
        return debugging_off(router).with_state(Arc::new(deps));
    }
    router = router
        .route("/runningpods/", reading(running::running_pods))
        .route("/runningpods", see("/runningpods/"))
        .route("/configz", any(zpages::configz))
        .route("/run/{namespace}/{pod}/{container}", acting(run::run))
        .route("/run/{namespace}/{pod}/{uid}/{container}", acting(run::run_by_uid));
    router = switched(router, "/logs/", s.enable_system_log_handler, "logs endpoint is disabled.", |r| {
        r.route("/logs/", reading(logs::root)).route("/logs/{*path}", reading(logs::below))
    });
    router = switched(router, "/debug/pprof/", s.enable_profiling_handler, "profiling endpoint is disabled.", |r| {
        r.route("/debug/pprof/", reading(profile::index)).route("/debug/pprof/{*name}", reading(profile::named))
    });
    router = match s.enable_debug_flags_handler {
        true => router.route("/debug/flags/v", any(flags::verbosity)),
        false => router.route("/debug/flags/v", refuse(StatusCode::METHOD_NOT_ALLOWED, "flags endpoint is disabled.")),
    };
    if s.container_checkpoint {
        router = router.route("/checkpoint/{namespace}/{pod}/{container}", acting(run::checkpoint));
    }
    if s.component_statusz {
        router = router.route("/statusz", reading(zpages::statusz));
    }
    if s.component_flagz {
        router = router.route("/flagz", reading(zpages::flagz));
    }
    router.with_state(Arc::new(deps))
}

/// Routes of the read-only port: pods, and 405 where the debugging handlers would be.
pub fn read_only_router(deps: Deps) -> Router {
    debugging_off(harmless()).with_state(Arc::new(deps))
}

type Routes = Router<Arc<Deps>>;
type Methods = axum::routing::MethodRouter<Arc<Deps>>;

fn harmless() -> Routes {
    Router::new().route("/pods", reading(pods::pods)).route("/pods/", reading(pods::pods))
}

fn debugging_off(mut router: Routes) -> Routes {
    for path in
        ["/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", "/runningpods/", "/debug/pprof/", "/logs/"]
    {
        router = off(router, path, DEBUG_OFF);
    }
    router
}

/// A folder of paths that is switched on or off as a whole.
fn switched(router: Routes, path: &'static str, on: bool, text: &'static str, routes: fn(Routes) -> Routes) -> Routes {
    match on {
        true => routes(router).route(path.trim_end_matches('/'), see(path)),
        false => off(router, path, text),
    }
}

fn off(router: Routes, path: &'static str, text: &'static str) -> Routes {
    router
        .route(path.trim_end_matches('/'), see(path))
        .route(path, refuse(StatusCode::METHOD_NOT_ALLOWED, text))
        .route(&format!("{path}{{*rest}}"), refuse(StatusCode::METHOD_NOT_ALLOWED, text))
}

/// GET and nothing else, HEAD neither.
fn reading<H, T>(handler: H) -> Methods
where
    H: axum::handler::Handler<T, Arc<Deps>>,
    T: 'static,
{
    get(handler).head(method_not_allowed).fallback(method_not_allowed)
}

/// POST and nothing else.
fn acting<H, T>(handler: H) -> Methods
where
    H: axum::handler::Handler<T, Arc<Deps>>,
    T: 'static,
{
    post(handler).fallback(method_not_allowed)
}
