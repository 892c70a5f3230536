//! Environment variables and the references in them.

use model::core::{Container, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector, ResourceFieldSelector};
use model::quantity::Quantity;

use super::faults::{Context, Faults};
use super::names::{Rule, subscript};

/// Fields of the pod that an environment variable may take.
const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of the pod that a file of a downward API volume may take.
pub(super) const VOLUME_FIELDS: &[&str] =
    &["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"];

pub(super) fn validate(path: &str, c: &Container, cx: &Context<'_>, faults: &mut Faults) {
    for (i, var) in c.env.iter().flatten().enumerate() {
        env_var(&format!("{path}.env[{i}]"), var, cx, faults);
    }
    for (i, from) in c.env_from.iter().flatten().enumerate() {
        let path = format!("{path}.envFrom[{i}]");
        if let Some(prefix) = from.prefix.as_deref().filter(|p| !p.is_empty()) {
            faults.name(format!("{path}.prefix"), prefix, Rule::EnvName);
        }
        let members = [("configMapRef", from.config_map_ref.is_some()), ("secretRef", from.secret_ref.is_some())];
        faults.exactly_one(&path, &members);
    }
}

fn env_var(path: &str, var: &EnvVar, cx: &Context<'_>, faults: &mut Faults) {
    faults.name(format!("{path}.name"), &var.name, Rule::EnvName);
    let Some(from) = &var.value_from else { return };
    if var.value.as_deref().is_some_and(|v| !v.is_empty()) {
        faults.invalid(format!("{path}.valueFrom"), "", "may not be given when value is not empty");
    }
    let path = format!("{path}.valueFrom");
    if faults.exactly_one(&path, &members(from)) {
        from.field_ref.iter().for_each(|f| field(&format!("{path}.fieldRef"), f, ENV_FIELDS, faults));
        from.resource_field_ref
            .iter()
            .for_each(|r| resource_field(&format!("{path}.resourceFieldRef"), r, false, faults));
        from.file_key_ref.iter().for_each(|f| file_key(&format!("{path}.fileKeyRef"), f, cx, faults));
    }
}

fn members(from: &EnvVarSource) -> [(&'static str, bool); 5] {
    [
        ("fieldRef", from.field_ref.is_some()),
        ("resourceFieldRef", from.resource_field_ref.is_some()),
        ("configMapKeyRef", from.config_map_key_ref.is_some()),
        ("secretKeyRef", from.secret_key_ref.is_some()),
        ("fileKeyRef", from.file_key_ref.is_some()),
    ]
}

/// A reference to a field of the pod. Labels and annotations are taken one by one, by key.
pub(super) fn field(path: &str, f: &ObjectFieldSelector, allowed: &[&str], faults: &mut Faults) {
    if f.api_version.as_deref().is_some_and(|v| v != "v1") {
        faults.one_of(format!("{path}.apiVersion"), f.api_version.as_deref().unwrap_or_default(), &["v1"]);
    }
    let at = format!("{path}.fieldPath");
    if f.field_path.is_empty() {
        faults.required(at, "");
        return;
    }
    match subscript(&f.field_path) {
        Some(("metadata.labels", key)) => faults.name(at, key, Rule::Qualified),
        Some(("metadata.annotations", key)) => faults.name(at, &key.to_lowercase(), Rule::Qualified),
        Some((_, _)) => faults.invalid(at, f.field_path.as_str(), "only labels and annotations take a key"),
        None => {
            let mut words = allowed.to_vec();
            if !words.contains(&f.field_path.as_str()) {
                words.extend(["metadata.labels['KEY']", "metadata.annotations['KEY']"]);
            }
            faults.one_of(at, &f.field_path, &words);
        }
    }
}

/// A reference to a request or limit of a container. In a volume the container must be named.
pub(super) fn resource_field(path: &str, r: &ResourceFieldSelector, in_volume: bool, faults: &mut Faults) {
    if in_volume && r.container_name.as_deref().unwrap_or_default().is_empty() {
        faults.required(format!("{path}.containerName"), "");
    }
    if r.resource.is_empty() {
        faults.required(format!("{path}.resource"), "");
        return;
    }
    let name = r.resource.strip_prefix("limits.").or_else(|| r.resource.strip_prefix("requests."));
    let name = match name {
        Some("cpu") => "cpu",
        Some("memory" | "ephemeral-storage") => "memory",
        Some(other) if other.starts_with("hugepages-") => "memory",
        _ => {
            const ALLOWED: &[&str] = &[
                "limits.cpu",
                "limits.memory",
                "limits.ephemeral-storage",
                "limits.hugepages-SIZE",
                "requests.cpu",
                "requests.memory",
                "requests.ephemeral-storage",
                "requests.hugepages-SIZE",
            ];
            faults.one_of(format!("{path}.resource"), &r.resource, ALLOWED);
            return;
        }
    };
    let Some(divisor) = &r.divisor else { return };
    let allowed: &[&str] = if name == "cpu" {
        &["1m", "1"]
    } else {
        &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"]
    };
    let at = format!("{path}.divisor");
    match Quantity::try_from(divisor) {
        Err(e) => faults.invalid(at, divisor.0.as_str(), e.to_string()),
        // 0 stands for "not given".
        Ok(q) if q.is_zero() => {}
        Ok(q) => {
            let known = allowed.iter().filter_map(|a| a.parse::<Quantity>().ok()).any(|a| a == q);
            if !known {
                faults.one_of(at, &divisor.0, allowed);
            }
        }
    }
}

/// A variable from a file that an init container left in an emptyDir (KEP-3721).
fn file_key(path: &str, f: &FileKeySelector, cx: &Context<'_>, faults: &mut Faults) {
    faults.name(format!("{path}.key"), &f.key, Rule::EnvName);
    super::paths::relative_path(&format!("{path}.path"), &f.path, faults);
    let at = format!("{path}.volumeName");
    if f.volume_name.is_empty() {
        faults.required(at, "");
        return;
    }
    match cx.volumes.get(f.volume_name.as_str()) {
        None => faults.not_found(at, &f.volume_name, "no volume of this pod has this name"),
        Some(v) if v.empty_dir.is_none() => {
            faults.invalid(at, f.volume_name.as_str(), "must be an emptyDir volume");
        }
        Some(_) => {}
    }
}
