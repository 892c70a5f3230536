//! Which pod and which container is meant.

use std::path::Path;

use anyhow::Result;
use model::core::Pod;
use model::pod::{init_containers, name, namespace, regular_containers};
use server::local::PodDetail;

use crate::args::PodArg;
use crate::client::{Refused, get, segment};

/// What kubectl reads, too.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Asks the daemon for the pod.
pub(crate) async fn find(socket: &Path, asked: &PodArg) -> Result<Pod> {
    let detail: PodDetail = get(socket, &path_of(asked)).await?;
    Ok(detail.pod)
}

pub(crate) fn path_of(asked: &PodArg) -> String {
    path_below("/v1/pods", asked)
}

/// `<place>/<pod>`, for what the daemon tells of one pod.
pub(crate) fn path_below(place: &str, asked: &PodArg) -> String {
    let full = match &asked.namespace {
        Some(namespace) if !asked.pod.contains('/') => format!("{namespace}/{}", asked.pod),
        _ => asked.pod.clone(),
    };
    format!("{place}/{}", segment(&full))
}

/// `/<endpoint>/<namespace>/<pod>[/<container>]`.
pub(crate) fn endpoint(endpoint: &str, pod: &Pod, container: Option<&str>) -> String {
    let mut path = format!("/{endpoint}/{}/{}", segment(namespace(pod)), segment(name(pod)));
    if let Some(container) = container {
        path.push('/');
        path.push_str(&segment(container));
    }
    path
}

/// All containers: name, and what it is when not a regular one. Order of kubectl: regular, ephemeral, init.
fn containers(pod: &Pod) -> impl Iterator<Item = (&str, &'static str)> {
    let regular = regular_containers(pod).iter().map(|c| (c.name.as_str(), ""));
    let ephemeral = pod.spec.iter().flat_map(|s| s.ephemeral_containers.iter().flatten());
    let ephemeral = ephemeral.map(|c| (c.name.as_str(), " (ephem)"));
    regular.chain(ephemeral).chain(init_containers(pod).iter().map(|c| (c.name.as_str(), " (init)")))
}

/// Names of all containers, in the order in which they start.
pub(crate) fn all(pod: &Pod) -> Vec<String> {
    let (init, rest): (Vec<_>, Vec<_>) = containers(pod).partition(|(_, what)| *what == " (init)");
    let (ephemeral, regular): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, what)| !what.is_empty());
    init.into_iter().chain(regular).chain(ephemeral).map(|(name, _)| name.to_owned()).collect()
}

/// `app, setup (init)`.
pub(crate) fn list(pod: &Pod) -> String {
    containers(pod).map(|(name, what)| format!("{name}{what}")).collect::<Vec<_>>().join(", ")
}

/// The container to ask for, and what stderr should say of the choice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) container: String,
    pub(crate) note: Option<String>,
}

/// The one that is asked for, else the pod's default by annotation, else the first.
pub(crate) fn choose(pod: &Pod, asked: Option<&str>) -> Choice {
    if let Some(container) = asked {
        return Choice { container: container.to_owned(), note: None };
    }
    let annotated = pod.metadata.annotations.as_ref().and_then(|a| a.get(DEFAULT_CONTAINER)).filter(|c| !c.is_empty());
    let lost = match annotated {
        Some(wanted) if containers(pod).any(|(name, _)| name == wanted) => {
            return Choice { container: wanted.clone(), note: None };
        }
        Some(wanted) => Some(format!("Default container name {wanted:?} not found in pod {}\n", name(pod))),
        None => None,
    };
    let first = regular_containers(pod).first().map(|c| c.name.clone()).unwrap_or_default();
    let several = (containers(pod).count() > 1).then(|| format!("Defaulted container {first:?} out of: {}", list(pod)));
    let note = lost.unwrap_or_default() + &several.unwrap_or_default();
    Choice { container: first, note: (!note.is_empty()).then(|| note.trim_end().to_owned()) }
}

/// Adds to a refusal what helps: the containers that there are.
pub(crate) fn explain(error: anyhow::Error, pod: &Pod, container: &str) -> anyhow::Error {
    let known = containers(pod).any(|(name, _)| name == container);
    match error.downcast_ref::<Refused>() {
        Some(refused) if !known => {
            anyhow::anyhow!("{refused}; containers of {}/{}: {}", namespace(pod), name(pod), list(pod))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotations: &str) -> Pod {
        let text = format!(
            r#"{{"metadata":{{"name":"web","namespace":"shop","annotations":{annotations}}},"spec":{{
            "initContainers":[{{"name":"setup"}}],"containers":[{{"name":"app"}},{{"name":"proxy"}}],
            "ephemeralContainers":[{{"name":"debug"}}]}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_container_is_the_one_asked_for_or_annotated_or_the_first() {
        let note = "Defaulted container \"app\" out of: app, proxy, debug (ephem), setup (init)";
        let table = [
            ("asked for", Some("proxy"), "{}", "proxy", None),
            ("asked for, though unknown: the daemon says so", Some("x"), "{}", "x", None),
            ("annotated", None, r#"{"kubectl.kubernetes.io/default-container":"proxy"}"#, "proxy", None),
            ("first, said aloud", None, "{}", "app", Some(note.to_owned())),
            (
                "annotation names nobody",
                None,
                r#"{"kubectl.kubernetes.io/default-container":"x"}"#,
                "app",
                Some(format!("Default container name \"x\" not found in pod web\n{note}")),
            ),
        ];
        for (what, asked, annotations, container, note) in table {
            let expected = Choice { container: container.to_owned(), note };
            assert_eq!(choose(&pod(annotations), asked), expected, "{what}");
        }
    }

    #[test]
    fn a_single_container_needs_no_words() {
        let pod = serde_json::from_str(r#"{"metadata":{},"spec":{"containers":[{"name":"app"}]}}"#).unwrap();
        assert_eq!(choose(&pod, None), Choice { container: "app".to_owned(), note: None });
    }

    #[test]
    fn all_containers_come_in_the_order_in_which_they_start() {
        assert_eq!(all(&pod("{}")), ["setup", "app", "proxy", "debug"]);
    }

    #[test]
    fn pods_are_asked_for_by_one_segment() {
        let table = [
            ("web", None, "/v1/pods/web"),
            ("web", Some("shop"), "/v1/pods/shop%2Fweb"),
            ("shop/web", None, "/v1/pods/shop%2Fweb"),
            ("shop/web", Some("other"), "/v1/pods/shop%2Fweb"),
        ];
        for (name, namespace, path) in table {
            let asked = PodArg { pod: name.to_owned(), namespace: namespace.map(str::to_owned) };
            assert_eq!(path_of(&asked), path);
        }
        assert_eq!(endpoint("exec", &pod("{}"), Some("a/b")), "/exec/shop/web/a%2Fb");
    }
}
