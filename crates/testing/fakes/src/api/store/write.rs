//! Requests that read and change the store, with the answers of a real server.

use std::sync::Arc;
use std::time::Duration;

use model::k8s_openapi::jiff::Timestamp;
use ports::api::{ApiError, Method, PatchKind};
use serde_json::{Value, json};

use super::super::patch;
use super::super::target::{FieldSelector, Target};
use super::{Key, Store, key, list_body, seconds, set_or_remove};

/// One request as the store sees it.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Method.
    pub method: Method,
    /// Path without query.
    pub path: &'a str,
    /// Query, not escaped.
    pub query: &'a [(String, String)],
    /// Body; `Null` for none.
    pub body: Value,
    /// Time of the server.
    pub now: Timestamp,
}

impl Ask<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }
}

type Answer = Result<Arc<Value>, ApiError>;

impl Store {
    /// Answers one request.
    ///
    /// # Errors
    /// As a server refuses: 400, 404, 405, 409, 410, 422.
    pub fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let Some(target) = Target::parse(ask.path) else {
            return Err(ApiError::status(404, "NotFound", "the server could not find the requested resource"));
        };
        match (ask.method, &target.name, target.sub.as_deref()) {
            (Method::Get, None, _) => self.answer_list(&target, ask),
            (Method::Get, Some(_), _) => self.existing(&target),
            (Method::Post, Some(name), Some("token")) => self.token(&target, name, ask),
            (Method::Post, None, _) => self.create(&target, ask),
            (Method::Put, Some(_), sub) => {
                let old = self.existing(&target)?;
                self.unchanged_since(&target, &old, &ask.body)?;
                self.update(&target, &old, ask.body.clone(), sub)
            }
            (Method::Patch(kind), Some(_), sub) => {
                let old = self.existing(&target)?;
                if ask.body["metadata"]["resourceVersion"].is_string() {
                    self.unchanged_since(&target, &old, &ask.body)?;
                }
                let mut new = patched_part(&old, sub);
                match kind {
                    PatchKind::Strategic => patch::strategic(&mut new, &ask.body),
                    PatchKind::Merge => patch::merge(&mut new, &ask.body),
                }
                self.update(&target, &old, new, sub)
            }
            (Method::Delete, Some(_), None) => self.delete(&target, ask),
            (Method::Delete, None, _) => self.delete_collection(&target, ask),
            _ => Err(ApiError::status(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            )),
        }
    }

    fn existing(&self, target: &Target) -> Result<Arc<Value>, ApiError> {
        self.get(target).ok_or_else(|| {
            let name = target.name.as_deref().unwrap_or_default();
            ApiError::status(404, "NotFound", format!("{} \"{name}\" not found", target.qualified()))
        })
    }

    fn answer_list(&self, target: &Target, ask: &Ask<'_>) -> Answer {
        let fields = FieldSelector::parse(ask.parameter("fieldSelector").unwrap_or_default());
        let all = self.list(target, &fields);
        let limit = ask.parameter("limit").and_then(|l| l.parse::<usize>().ok()).filter(|l| *l > 0);
        // The token carries the version of the first page and where the next one starts.
        let token = ask.parameter("continue").and_then(|c| c.split_once('-'));
        let (version, from) = match token {
            Some((version, from)) => (version.parse().unwrap_or(0), from.parse().unwrap_or(0)),
            None => (self.version, 0_usize),
        };
        if version < self.compacted && token.is_some() {
            return Err(ApiError::status(410, "Expired", "The provided continue parameter is too old"));
        }
        let least = ask.parameter("resourceVersion").and_then(|v| v.parse::<u64>().ok());
        if let Some(least) = least.filter(|least| *least > self.version) {
            // What a cluster says that was restored from an older state.
            let message = format!("Too large resource version: {least}, current: {}", self.version);
            return Err(ApiError::status(504, "ResourceVersionTooLarge", message));
        }
        let page: Vec<_> = all.iter().skip(from).take(limit.unwrap_or(usize::MAX)).cloned().collect();
        let rest = all.len().saturating_sub(from + page.len());
        let mut body = list_body(target, &page, version);
        if rest > 0 {
            body["metadata"]["continue"] = format!("{version}-{}", from + page.len()).into();
            body["metadata"]["remainingItemCount"] = rest.into();
        }
        Ok(body.into())
    }

    fn create(&mut self, target: &Target, ask: &Ask<'_>) -> Answer {
        let mut object = ask.body.clone();
        if !object.is_object() {
            return Err(ApiError::status(400, "BadRequest", "the body of the request was not an object"));
        }
        if matches!(target.resource.as_str(), "tokenreviews" | "subjectaccessreviews") {
            return Ok(object.into());
        }
        let meta = object["metadata"].clone();
        let name = match (meta["name"].as_str(), meta["generateName"].as_str()) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) if !prefix.is_empty() => format!("{prefix}{}", self.suffix()),
            _ => return Err(invalid(target, "", "metadata.name: Required value: name or generateName is required")),
        };
        let key = key(target, &name);
        if self.objects.contains_key(&key) {
            let message = format!("{} \"{name}\" already exists", target.qualified());
            return Err(ApiError::status(409, "AlreadyExists", message));
        }
        let uid = self.fresh_uid();
        let fields = &mut object["metadata"];
        fields["name"] = name.into();
        fields["uid"] = uid.into();
        fields["creationTimestamp"] = seconds(ask.now).into();
        if !target.namespace.is_empty() {
            fields["namespace"] = target.namespace.clone().into();
        }
        if target.resource == "pods" {
            fields["generation"] = 1.into();
            object["status"] = json!({ "phase": "Pending", "qosClass": "BestEffort" });
        }
        Ok(self.put(key, target, object))
    }

    /// Refuses an update of an object that was changed since it was read.
    fn unchanged_since(&self, target: &Target, old: &Value, new: &Value) -> Result<(), ApiError> {
        let name = target.name.as_deref().unwrap_or_default();
        match new["metadata"]["resourceVersion"].as_str().filter(|v| !v.is_empty()) {
            None if target.resource == "leases" => {
                let message = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
                Err(invalid(target, name, message))
            }
            Some(version) if old["metadata"]["resourceVersion"] != version => Err(conflict(
                target,
                "the object has been modified; please apply your changes to the latest version and try again",
            )),
            _ => Ok(()),
        }
    }

    fn update(&mut self, target: &Target, old: &Arc<Value>, mut new: Value, sub: Option<&str>) -> Answer {
        uid_holds(target, old, &new["metadata"]["uid"])?;
        if matches!(sub, Some("status" | "approval")) {
            let mut taken = Value::clone(old);
            set_or_remove(&mut taken, "status", new.get_mut("status").map(Value::take).filter(|s| !s.is_null()));
            for field in ["labels", "annotations", "finalizers"] {
                set_or_remove(&mut taken["metadata"], field, new["metadata"].get_mut(field).map(Value::take));
            }
            new = taken;
        } else if matches!(target.resource.as_str(), "pods" | "nodes" | "certificatesigningrequests") {
            set_or_remove(&mut new, "status", old.get("status").cloned());
        }
        let fixed =
            ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
        for field in fixed.into_iter().chain(["resourceVersion", "generation", "managedFields"]) {
            set_or_remove(&mut new["metadata"], field, old["metadata"].get(field).cloned());
        }
        for field in ["apiVersion", "kind"] {
            new[field] = old[field].clone();
        }
        if new == **old {
            return Ok(Arc::clone(old));
        }
        if target.resource == "pods" && new["spec"] != old["spec"] {
            new["metadata"]["generation"] = (old["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
        }
        let key = key(target, target.name.as_deref().unwrap_or_default());
        let stored = self.put(key.clone(), target, new);
        self.drop_when_done(&key, &stored);
        Ok(stored)
    }

    /// An object that waited only for its last finalizer goes with it.
    fn drop_when_done(&mut self, key: &Key, object: &Value) {
        let meta = &object["metadata"];
        let graceful = key.1 == "pods" && meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
        if !meta["deletionTimestamp"].is_null() && !graceful && !has_finalizers(object) {
            self.drop_object(key);
        }
    }

    fn delete(&mut self, target: &Target, ask: &Ask<'_>) -> Answer {
        let old = self.existing(target)?;
        let wanted = &ask.body["preconditions"];
        uid_holds(target, &old, &wanted["uid"])?;
        if wanted["resourceVersion"].is_string() && wanted["resourceVersion"] != old["metadata"]["resourceVersion"] {
            return Err(conflict(target, "Precondition failed: ResourceVersion in precondition does not match"));
        }
        let asked = ask.body["gracePeriodSeconds"].as_i64();
        let asked = asked.or_else(|| ask.parameter("gracePeriodSeconds").and_then(|g| g.parse().ok()));
        let grace = if target.resource == "pods" { pod_grace(&old, asked) } else { 0 };
        let key = key(target, target.name.as_deref().unwrap_or_default());
        if grace == 0 && !has_finalizers(&old) {
            return Ok(self.drop_object(&key).unwrap_or_default());
        }
        let running = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if running.is_some_and(|running| running <= grace) {
            return Ok(old);
        }
        let mut new = Value::clone(&old);
        let grace_s = u64::try_from(grace).unwrap_or_default();
        let at = ask.now.checked_add(Duration::from_secs(grace_s)).unwrap_or(ask.now);
        let meta = &mut new["metadata"];
        meta["deletionTimestamp"] = seconds(at).into();
        meta["deletionGracePeriodSeconds"] = grace.into();
        if let Some(generation) = meta["generation"].as_i64() {
            meta["generation"] = (generation + 1).into();
        }
        Ok(self.put(key, target, new))
    }

    fn delete_collection(&mut self, target: &Target, ask: &Ask<'_>) -> Answer {
        let fields = FieldSelector::parse(ask.parameter("fieldSelector").unwrap_or_default());
        for object in self.list(target, &fields) {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let one = Target { name: Some(text("name")), namespace: text("namespace"), ..target.clone() };
            self.delete(&one, ask)?;
        }
        Ok(json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }).into())
    }

    fn token(&mut self, target: &Target, account: &str, ask: &Ask<'_>) -> Answer {
        let mut answer = ask.body.clone();
        let bound = &answer["spec"]["boundObjectRef"];
        if bound["kind"] == "Pod" {
            let pod = Target {
                resource: "pods".to_owned(),
                name: bound["name"].as_str().map(str::to_owned),
                sub: None,
                ..target.clone()
            };
            let found = self.existing(&pod)?;
            uid_holds(&pod, &found, &bound["uid"])?;
        }
        let life_s = answer["spec"]["expirationSeconds"].as_u64().unwrap_or(3600);
        let at = ask.now.checked_add(Duration::from_secs(life_s)).unwrap_or(ask.now);
        let token = format!("token.{}.{account}.{}", target.namespace, self.next_id());
        answer["kind"] = "TokenRequest".into();
        answer["apiVersion"] = "authentication.k8s.io/v1".into();
        answer["metadata"] = json!({ "name": account, "namespace": target.namespace });
        answer["status"] = json!({ "token": token, "expirationTimestamp": seconds(at) });
        Ok(answer.into())
    }
}

/// What a patch is applied to: of a sub-resource nothing else is taken over.
fn patched_part(old: &Value, sub: Option<&str>) -> Value {
    match sub {
        Some("status" | "approval") => json!({ "metadata": old["metadata"], "status": old["status"] }),
        _ => old.clone(),
    }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty())
}

/// Pods that never ran or ran out go at once, whatever was asked.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if over || pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        return 0;
    }
    match asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30) {
        negative if negative < 0 => 1,
        grace => grace,
    }
}

fn uid_holds(target: &Target, object: &Value, wanted: &Value) -> Result<(), ApiError> {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    match wanted.as_str() {
        Some(wanted) if wanted != uid => {
            let text = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            Err(conflict(target, &text))
        }
        _ => Ok(()),
    }
}

fn conflict(target: &Target, cause: &str) -> ApiError {
    let name = target.name.as_deref().unwrap_or_default();
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {cause}", target.qualified());
    ApiError::status(409, "Conflict", message)
}

fn invalid(target: &Target, name: &str, cause: &str) -> ApiError {
    ApiError::status(422, "Invalid", format!("{} \"{name}\" is invalid: {cause}", target.kind()))
}
