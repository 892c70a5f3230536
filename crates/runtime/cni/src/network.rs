//! Calls of all plugins of a network, in order.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::attachment::Attachment;
use crate::cache;
use crate::call::{Environment, call};
use crate::conf::{NetworkList, Plugin};
use crate::error::CniError;
use crate::result::NetworkResult;

/// Versions of CNI that brought something (`CNI spec`, change log).
const CHECK_SINCE: (u32, u32, u32) = (0, 4, 0);
const STATUS_SINCE: (u32, u32, u32) = (1, 1, 0);

/// Plugins of this node.
#[derive(Clone, Debug)]
pub struct Cni {
    /// Folders of plugins, the first one first.
    pub programs: Vec<PathBuf>,
    /// Where results are kept: `/var/lib/cni`.
    pub cache: PathBuf,
    /// How long one call of one plugin may take.
    pub limit: Duration,
}

/// A plugin's configuration with what every call adds to it.
fn configured(list: &NetworkList, plugin: &Plugin, add: Map<String, Value>) -> Vec<u8> {
    let mut conf = plugin.conf.clone();
    conf.insert("name".into(), list.name.clone().into());
    conf.insert("cniVersion".into(), list.version.clone().into());
    conf.extend(add);
    Value::Object(conf).to_string().into_bytes()
}

fn additions(plugin: &Plugin, previous: Option<&Value>, to: &Attachment) -> Map<String, Value> {
    let mut add = Map::new();
    if let Some(previous) = previous {
        add.insert("prevResult".into(), previous.clone());
    }
    let wanted = to.capabilities.iter().filter(|(name, _)| plugin.wants(name));
    let wanted: Map<String, Value> = wanted.map(|(name, value)| (name.clone(), value.clone())).collect();
    if !wanted.is_empty() {
        add.insert("runtimeConfig".into(), Value::Object(wanted));
    }
    add
}

impl Cni {
    async fn one(
        &self,
        list: &NetworkList,
        plugin: &Plugin,
        command: &'static str,
        environment: &Environment,
        add: Map<String, Value>,
    ) -> Result<Vec<u8>, CniError> {
        let configuration = configured(list, plugin, add);
        call(&self.programs, &plugin.kind, command, environment, &configuration, self.limit).await
    }

    /// Gives a network. After an error, [`Cni::del`] takes back what some of the plugins did.
    ///
    /// # Errors
    /// A plugin fails, or its result cannot be kept.
    pub async fn add(&self, list: &NetworkList, to: &Attachment) -> Result<NetworkResult, CniError> {
        let environment = to.environment();
        let mut result: Option<NetworkResult> = None;
        for plugin in &list.plugins {
            let add = additions(plugin, result.as_ref().map(|r| &r.raw), to);
            let out = self.one(list, plugin, "ADD", &environment, add).await?;
            let strange = |message| CniError::Plugin { plugin: plugin.kind.clone(), command: "ADD", code: 0, message };
            result = Some(NetworkResult::parse(&out).map_err(strange)?);
        }
        let result = result.unwrap_or_default();
        cache::write(&self.cache, list, to, &result)?;
        Ok(result)
    }

    /// Whether a network is still as it was given.
    ///
    /// # Errors
    /// A plugin says that it is not, nothing is known of it, or the network's version has no CHECK.
    pub async fn check(&self, list: &NetworkList, to: &Attachment) -> Result<(), CniError> {
        if !list.since(CHECK_SINCE) {
            let (network, version) = (list.name.clone(), list.version.clone());
            return Err(CniError::Version { network, version, command: "CHECK" });
        }
        if list.disable_check {
            return Ok(());
        }
        let kept = cache::read(&self.cache, &list.name, &to.container, &to.interface);
        let unknown = || CniError::Plugin {
            plugin: list.name.clone(),
            command: "CHECK",
            code: 0,
            message: "no result of ADD is known".into(),
        };
        let kept = kept.ok_or_else(unknown)?;
        for plugin in &list.plugins {
            let add = additions(plugin, Some(&kept.result), to);
            self.one(list, plugin, "CHECK", &to.environment(), add).await?;
        }
        Ok(())
    }

    /// Takes a network back, also twice, also after a part of an ADD. By the configuration that it was given by, if that is known. A
    /// file that the namespace is not mounted on any more stands for none.
    ///
    /// # Errors
    /// A plugin fails: to be called again.
    pub async fn del(&self, list: &NetworkList, to: &Attachment) -> Result<(), CniError> {
        let kept = cache::read(&self.cache, &list.name, &to.container, &to.interface);
        let given = kept.as_ref().and_then(cache::Entry::list);
        let used = given.as_ref().unwrap_or(list);
        let previous = kept.as_ref().map(|k| &k.result).filter(|r| used.since(CHECK_SINCE) && !r.is_null());
        let mut environment = to.environment();
        if to.namespace.as_deref().is_some_and(is_let_go) {
            environment.namespace.clear();
        }
        for plugin in used.plugins.iter().rev() {
            let add = additions(plugin, previous, to);
            self.one(used, plugin, "DEL", &environment, add).await?;
        }
        cache::remove(&self.cache, &list.name, &to.container, &to.interface)
    }

    /// Takes back all that a container was given, whatever the configuration is now.
    ///
    /// # Errors
    /// As [`Cni::del`].
    pub async fn del_all(&self, container: &str) -> Result<usize, CniError> {
        let kept = cache::of_container(&self.cache, container);
        let count = kept.len();
        for entry in kept {
            let Some(list) = entry.list() else { continue };
            self.del(&list, &entry.attachment()).await?;
        }
        Ok(count)
    }

    /// Takes back what belongs to nobody: attachments that are known and not among `valid` (container and interface), and, of CNI
    /// 1.1 and later, whatever plugins know of.
    ///
    /// # Errors
    /// The first failure; all are tried.
    pub async fn gc(&self, list: &NetworkList, valid: &[(String, String)]) -> Result<(), CniError> {
        if list.disable_gc {
            return Ok(());
        }
        let mut first = Ok(());
        for entry in cache::of_network(&self.cache, &list.name) {
            let attachment = entry.attachment();
            let known = valid.iter().any(|(c, i)| *c == attachment.container && *i == attachment.interface);
            if !known {
                let deleted = self.del(list, &attachment).await;
                first = first.and(deleted);
            }
        }
        if list.since(STATUS_SINCE) {
            let valid: Vec<Value> = valid.iter().map(|(c, i)| json!({"containerID": c, "ifname": i})).collect();
            for plugin in &list.plugins {
                // Both names are in use: the specification's, and the one that it had by mistake.
                let mut add = Map::new();
                add.insert("cni.dev/valid-attachments".into(), valid.clone().into());
                add.insert("cni.dev/attachments".into(), valid.clone().into());
                let collected = self.one(list, plugin, "GC", &Environment::default(), add).await;
                first = first.and(collected.map(drop));
            }
        }
        first
    }

    /// Whether the network can be given now. Before CNI 1.1 that cannot be asked: programs that are there will do.
    ///
    /// # Errors
    /// A plugin is missing, or says no.
    pub async fn status(&self, list: &NetworkList) -> Result<(), CniError> {
        for plugin in &list.plugins {
            crate::call::program(&self.programs, &plugin.kind)?;
        }
        if list.since(STATUS_SINCE) {
            for plugin in &list.plugins {
                self.one(list, plugin, "STATUS", &Environment::default(), Map::new()).await?;
            }
        }
        Ok(())
    }
}

/// Whether a namespace was mounted on this file and is not any more: plugins refuse such a file, however often they are asked.
fn is_let_go(file: &Path) -> bool {
    /// File system of namespaces (`linux/magic.h`).
    const NSFS_MAGIC: u32 = 0x6e73_6673;
    rustix::fs::statfs(file).is_ok_and(|found| i128::from(found.f_type) != i128::from(NSFS_MAGIC))
}
