//! Services, for environment variables: as little of each as those need.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::core::{Service, ServicePort, ServiceSpec};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// By namespace and name.
#[derive(Debug, Default)]
pub(crate) struct Services(BTreeMap<(String, String), Arc<Service>>);

impl Services {
    pub(crate) fn replace(&mut self, all: impl Iterator<Item = Arc<Service>>) {
        self.0.clear();
        all.for_each(|s| self.put(&s));
    }

    pub(crate) fn put(&mut self, service: &Service) {
        self.0.insert(key(service), Arc::new(slim(service)));
    }

    pub(crate) fn remove(&mut self, service: &Service) {
        self.0.remove(&key(service));
    }

    pub(crate) fn all(&self) -> Vec<&Service> {
        self.0.values().map(|s| &**s).collect()
    }

    /// Services of one namespace, and the API server's own.
    pub(crate) fn of(&self, namespace: &str) -> Vec<Arc<Service>> {
        let own = self.0.range((namespace.to_owned(), String::new())..).take_while(|((ns, _), _)| ns == namespace);
        let mut out: Vec<Arc<Service>> = own.map(|(_, s)| s.clone()).collect();
        if namespace != "default" {
            out.extend(self.0.get(&("default".to_owned(), "kubernetes".to_owned())).cloned());
        }
        out
    }
}

fn key(service: &Service) -> (String, String) {
    let m = &service.metadata;
    (m.namespace.clone().unwrap_or_default(), m.name.clone().unwrap_or_default())
}

fn slim(service: &Service) -> Service {
    let port = |p: &ServicePort| ServicePort {
        name: p.name.clone(),
        port: p.port,
        protocol: p.protocol.clone(),
        ..ServicePort::default()
    };
    let spec = service.spec.as_ref().map(|s| ServiceSpec {
        cluster_ip: s.cluster_ip.clone(),
        ports: s.ports.as_ref().map(|ports| ports.iter().map(port).collect()),
        ..ServiceSpec::default()
    });
    let metadata = ObjectMeta {
        name: service.metadata.name.clone(),
        namespace: service.metadata.namespace.clone(),
        ..ObjectMeta::default()
    };
    Service { metadata, spec, ..Service::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(namespace: &str, name: &str) -> Arc<Service> {
        let mut s = Service::default();
        s.metadata.namespace = Some(namespace.to_owned());
        s.metadata.name = Some(name.to_owned());
        s.metadata.labels = Some([("much".to_owned(), "text".to_owned())].into());
        Arc::new(s)
    }

    fn names(services: &Services, namespace: &str) -> Vec<String> {
        let name = |s: &Arc<Service>| format!("{}/{}", key(s).0, key(s).1);
        services.of(namespace).iter().map(name).collect()
    }

    #[test]
    fn a_namespace_sees_its_own_services_and_the_api_server() {
        let mut services = Services::default();
        let all = [("default", "kubernetes"), ("default", "web"), ("a", "x"), ("ab", "y")];
        services.replace(all.into_iter().map(|(ns, n)| service(ns, n)));
        assert_eq!(names(&services, "default"), ["default/kubernetes", "default/web"]);
        assert_eq!(names(&services, "a"), ["a/x", "default/kubernetes"]);
        assert_eq!(names(&services, "none"), ["default/kubernetes"]);
        services.remove(&service("a", "x"));
        assert_eq!(names(&services, "a"), ["default/kubernetes"]);
        assert!(services.of("a").iter().all(|s| s.metadata.labels.is_none()));
    }
}
