//! A node with nothing on it, and requests to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use actor::{Kernel, KernelConfig};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use contract::Wiring;
use contract::config_sources::Source;
use contract::lookup::PodLookup;
use contract::pod_manager::DesiredPod;
use fakes::FakeRuntime;
use http_body_util::BodyExt;
use model::PodUid;
use model::core::Pod;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{Deps, Settings};

pub(super) struct Node {
    pub(super) wiring: Wiring,
    pub(super) deps: Deps,
    pub(super) fake: FakeRuntime,
    pub(super) verbosity: Arc<Mutex<Option<u32>>>,
    pub(super) dir: tempfile::TempDir,
}

/// What came back.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

impl Node {
    /// Log folder `log`, pod logs `pods`, root folder `root`, a journal program that does not exist.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["log", "pods", "root"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let fake = FakeRuntime::default();
        let verbosity: Arc<Mutex<Option<u32>>> = Arc::default();
        let set = verbosity.clone();
        let settings = Settings {
            system_log_dir: dir.path().join("log"),
            pod_logs_dir: dir.path().join("pods"),
            root_dir: dir.path().join("root"),
            journalctl: dir.path().join("journalctl"),
            ..Settings::default()
        };
        let wiring = Wiring::default();
        let kernel = Kernel::new(KernelConfig::default());
        let deps = Deps {
            lookup: PodLookup::of(&wiring),
            runtime: Arc::new(fake.cri_client(Default::default())),
            effects: kernel.effects("endpoints"),
            kernel,
            configz: Arc::new(|| json!({"kubeletconfig": {"maxPods": 110}})),
            flagz: vec![("address", "0.0.0.0".to_owned()), ("v", "2".to_owned())],
            set_verbosity: Arc::new(move |level| {
                if level > 100 {
                    return Err("a filter is in force".to_owned());
                }
                *set.lock().unwrap() = Some(level);
                Ok(())
            }),
            settings,
        };
        Self { wiring, deps, fake, verbosity, dir }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.deps.settings);
        self
    }

    pub(super) fn log_dir(&self) -> &Path {
        &self.deps.settings.system_log_dir
    }

    /// Puts a pod where PodManager puts it.
    pub(super) fn add(&self, uid: &str, pod: Pod, source: Source) {
        let row = DesiredPod::admitted(Arc::new(pod), source);
        self.wiring.put(PodUid::from(uid), row);
    }

    /// A program in place of `journalctl`.
    pub(super) fn journal(&self, script: &str) {
        let path = self.dir.path().join("journalctl");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn router(&self) -> Router {
        crate::router(self.deps.clone())
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        send(self.router(), request("GET", path, &[], "")).await
    }

    pub(super) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        send(self.router(), request("GET", path, headers, "")).await
    }

    pub(super) async fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        send(self.router(), request(method, path, &[], body)).await
    }
}

pub(super) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

pub(super) async fn send(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.unwrap();
    let (code, headers): (StatusCode, _) = (response.status(), response.headers().clone());
    let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
    Answer { code: code.as_u16(), headers, body }
}

pub(super) fn pod(value: Value) -> Pod {
    serde_json::from_value(value).unwrap()
}
