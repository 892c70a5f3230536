//! Services and runtime classes: followed as whole lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::watch;
use model::core::Service;
use ports::api::{ApiError, Followed, Object};

use crate::services::Services;

/// What is known of both lists.
#[derive(Debug)]
pub(crate) struct Lists {
    pub(crate) services: Services,
    /// The services have been read once.
    pub(crate) services_synced: watch::Sender<bool>,
    /// Handler by name of the class.
    pub(crate) classes: BTreeMap<String, String>,
    /// The classes have been read once.
    pub(crate) classes_synced: watch::Sender<bool>,
    /// Classes are followed from the first question on: most nodes never need them.
    pub(crate) classes_followed: bool,
    /// The API server cannot select services by their address (before 1.31): all are followed.
    pub(crate) all_services: bool,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            services: Services::default(),
            services_synced: watch::channel(false).0,
            classes: BTreeMap::new(),
            classes_synced: watch::channel(false).0,
            classes_followed: false,
            all_services: false,
        }
    }
}

impl Lists {
    /// Whether the server does not know the selector of services, and nobody noticed yet.
    pub(crate) fn must_follow_all(&mut self, error: &ApiError) -> bool {
        let unknown = error.code() == Some(400) && !self.all_services;
        self.all_services |= unknown;
        unknown
    }

    pub(crate) fn apply_services(&mut self, step: Followed) {
        let service = |o| match o {
            Object::Service(service) => Some(service),
            _ => None,
        };
        match step {
            Followed::All(all) => self.set_services(all.into_iter().filter_map(service)),
            Followed::Applied(o) => service(o).iter().for_each(|s| self.services.put(s)),
            Followed::Deleted(o) => service(o).iter().for_each(|s| self.services.remove(s)),
            Followed::Failed(_) => {}
        }
    }

    pub(crate) fn set_services(&mut self, all: impl Iterator<Item = Arc<Service>>) {
        self.services.replace(all);
        self.services_synced.send_replace(true);
    }

    pub(crate) fn apply_classes(&mut self, step: Followed) {
        let class = |o| match o {
            Object::RuntimeClass(c) => Some((c.metadata.name.clone().unwrap_or_default(), c.handler.clone())),
            _ => None,
        };
        match step {
            Followed::All(all) => self.set_classes(all.into_iter().filter_map(class).collect()),
            Followed::Applied(o) => self.classes.extend(class(o)),
            Followed::Deleted(o) => {
                if let Some((name, _)) = class(o) {
                    self.classes.remove(&name);
                }
            }
            Followed::Failed(_) => {}
        }
    }

    pub(crate) fn set_classes(&mut self, all: BTreeMap<String, String>) {
        self.classes = all;
        self.classes_synced.send_replace(true);
    }
}
