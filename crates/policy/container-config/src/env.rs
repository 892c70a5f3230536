//! Environment of a container (pod-lifecycle 5.5, 5.6).

mod error;
mod expand;
mod field;
mod file;
mod objects;
mod resource;
mod service;
mod variables;

use std::net::IpAddr;

use model::core::{ConfigMap, Container, EnvFromSource, EnvVarSource, Pod, Secret, Service};
use model::expansion::expand;
use model::object::ObjectKind;
use model::pod;

pub use error::EnvError;
pub use expand::expand_strings;
pub use field::{FieldError, FieldInput, env_field, format_map, object_field};
pub use objects::{LookupError, NoObjects, ObjectLookup, ObjectMap, referenced_files, referenced_objects};
pub use resource::{ResourceError, container_resource, with_default_limits};
pub use service::service_environment;
pub use variables::{EnvVar, Environment};

use crate::NodeSettings;

/// Context of [`environment`].
#[derive(Clone, Copy)]
pub struct EnvInput<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The container (an ephemeral one in the form of an ordinary one).
    pub container: &'a Container,
    /// Node-wide settings (host addresses, allocatable).
    pub node: &'a NodeSettings,
    /// All known services; `None`: not read yet. A node without API server passes an empty list.
    pub services: Option<&'a [Service]>,
    /// ConfigMaps, Secrets and variable files.
    pub objects: &'a dyn ObjectLookup,
    /// Addresses of the pod, primary first and in the node's order of families; the host's for a host-network pod.
    pub pod_ips: &'a [IpAddr],
}

fn prefixed(prefix: Option<&str>, key: &str) -> String {
    format!("{}{key}", prefix.unwrap_or_default())
}

/// Turns "not found and optional" into `None`.
fn optional<T>(found: Result<T, EnvError>, missing: bool, optional: Option<bool>) -> Result<Option<T>, EnvError> {
    match found {
        Err(_) if missing && optional == Some(true) => Ok(None),
        other => other.map(Some),
    }
}

struct Builder<'a> {
    input: &'a EnvInput<'a>,
    services: Environment,
    env: Environment,
}

impl Builder<'_> {
    fn config_map(&self, name: &str, opt: Option<bool>) -> Result<Option<ConfigMap>, EnvError> {
        let namespace = pod::namespace(self.input.pod);
        let found = self.input.objects.config_map(namespace, name);
        let missing = matches!(found, Err(LookupError::NotFound));
        optional(found.map_err(|e| e.into_env(ObjectKind::ConfigMap, namespace, name)), missing, opt)
    }

    fn secret(&self, name: &str, opt: Option<bool>) -> Result<Option<Secret>, EnvError> {
        let namespace = pod::namespace(self.input.pod);
        let found = self.input.objects.secret(namespace, name);
        let missing = matches!(found, Err(LookupError::NotFound));
        optional(found.map_err(|e| e.into_env(ObjectKind::Secret, namespace, name)), missing, opt)
    }

    fn add_from(&mut self, from: &EnvFromSource) -> Result<(), EnvError> {
        let prefix = from.prefix.as_deref();
        if let Some(r) = &from.config_map_ref {
            let data = self.config_map(&r.name, r.optional)?.and_then(|m| m.data).unwrap_or_default();
            for (key, value) in data {
                self.env.set(&prefixed(prefix, &key), value);
            }
        } else if let Some(r) = &from.secret_ref {
            let data = self.secret(&r.name, r.optional)?.and_then(|s| s.data).unwrap_or_default();
            for (key, value) in data {
                self.env.set(&prefixed(prefix, &key), value.0);
            }
        }
        Ok(())
    }

    /// Value of a key, or `None` when it is missing and may be.
    fn key<T>(
        &self,
        kind: ObjectKind,
        (name, key): (&str, &str),
        found: Option<T>,
        opt: Option<bool>,
    ) -> Result<Option<T>, EnvError> {
        match found {
            Some(value) => Ok(Some(value)),
            None if opt == Some(true) => Ok(None),
            None => Err(EnvError::NoKey {
                key: key.to_owned(),
                kind: kind.as_str(),
                namespace: pod::namespace(self.input.pod).to_owned(),
                name: name.to_owned(),
            }),
        }
    }

    /// Value from elsewhere; `None`: the variable does not exist at all.
    fn value_from(&self, from: &EnvVarSource) -> Result<Option<Vec<u8>>, EnvError> {
        let EnvInput { pod, container, node, objects, pod_ips, .. } = *self.input;
        if let Some(field) = &from.field_ref {
            let input = FieldInput { pod, host_ips: &node.host_ips, pod_ips };
            return Ok(Some(env_field(field, &input)?.into_bytes()));
        }
        if let Some(field) = &from.resource_field_ref {
            return Ok(Some(container_resource(field, pod, Some(container), &node.allocatable)?.into_bytes()));
        }
        if let Some(r) = &from.config_map_key_ref {
            let Some(map) = self.config_map(&r.name, r.optional)? else { return Ok(None) };
            let value = map.data.and_then(|mut d| d.remove(&r.key)).map(String::into_bytes);
            return self.key(ObjectKind::ConfigMap, (&r.name, &r.key), value, r.optional);
        }
        if let Some(r) = &from.secret_key_ref {
            let Some(secret) = self.secret(&r.name, r.optional)? else { return Ok(None) };
            let value = secret.data.and_then(|mut d| d.remove(&r.key)).map(|v| v.0);
            return self.key(ObjectKind::Secret, (&r.name, &r.key), value, r.optional);
        }
        if let Some(r) = &from.file_key_ref {
            return match objects.file_key(&r.volume_name, &r.path, &r.key) {
                Ok(None) if r.optional != Some(true) => Err(EnvError::File(format!(
                    "environment variable key {:?} not found in file {:?} of volume {:?}",
                    r.key, r.path, r.volume_name
                ))),
                found => found.map(|v| v.map(String::into_bytes)).map_err(EnvError::File),
            };
        }
        Ok(Some(Vec::new()))
    }

    fn add(&mut self, name: &str, value: &str, from: Option<&EnvVarSource>) -> Result<(), EnvError> {
        if !value.is_empty() {
            let lookup = |n: &str| self.env.get(n).or_else(|| self.services.get(n)).map(<[u8]>::to_vec);
            let value = expand(value, lookup);
            self.env.set(name, value);
            return Ok(());
        }
        match from {
            None => self.env.set(name, ""),
            Some(from) => {
                if let Some(value) = self.value_from(from)? {
                    self.env.set(name, value);
                }
            }
        }
        Ok(())
    }
}

/// Variables of a container: `envFrom`, then `env` (each sees the earlier ones only), then what services add and nobody
/// has set.
///
/// # Errors
/// See [`EnvError`]; the first one ends it.
pub fn environment(input: &EnvInput<'_>) -> Result<Environment, EnvError> {
    let links = input.pod.spec.as_ref().and_then(|s| s.enable_service_links).ok_or(EnvError::NoServiceLinks)?;
    let services = match input.services {
        Some(services) => services,
        None if pod::is_static(input.pod) => &[],
        None => return Err(EnvError::NoServicesYet),
    };
    let services = service_environment(services, pod::namespace(input.pod), links);
    let mut builder = Builder { input, services, env: Environment::default() };
    for from in input.container.env_from.iter().flatten() {
        builder.add_from(from)?;
    }
    for var in input.container.env.iter().flatten() {
        builder.add(&var.name, var.value.as_deref().unwrap_or_default(), var.value_from.as_ref())?;
    }
    let Builder { services, mut env, .. } = builder;
    for var in services.vars {
        if env.get(&var.name).is_none() {
            env.vars.push(var);
        }
    }
    Ok(env)
}

#[cfg(test)]
mod tests;
