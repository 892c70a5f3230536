//! Pure: what `[LOCAL:]REMOTE` means.

use std::str::FromStr;

use anyhow::{Result, bail};
use model::core::Pod;

/// A local port, 0 for any that is free, and the pod's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) local: u16,
    pub(crate) remote: u16,
}

/// As it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// `None`: as the remote one.
    local: Option<u16>,
    remote: Remote,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Remote {
    Number(u16),
    Name(String),
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "allowed: REMOTE, LOCAL:REMOTE, :REMOTE; ports are 1 to 65535";
        let (local, remote) = match text.split_once(':') {
            None => (None, text),
            Some(("", remote)) => (Some(0), remote),
            Some((local, remote)) => {
                (Some(local.parse().map_err(|_| format!("no local port {local:?}; {FORM}"))?), remote)
            }
        };
        let numeric = !remote.is_empty() && remote.bytes().all(|b| b.is_ascii_digit());
        let remote = match remote.parse() {
            Ok(0) => return Err(format!("no port of a pod: 0; {FORM}")),
            Ok(number) => Remote::Number(number),
            Err(_) if numeric || remote.is_empty() || remote.contains(':') => {
                return Err(format!("no port of a pod: {remote:?}; {FORM}"));
            }
            Err(_) => Remote::Name(remote.to_owned()),
        };
        Ok(Self { local, remote })
    }
}

impl Spec {
    /// With names looked up in the pod's containers.
    pub(crate) fn resolve(&self, pod: &Pod) -> Result<Mapping> {
        let remote = match &self.remote {
            Remote::Number(number) => *number,
            Remote::Name(name) => named(pod, name)?,
        };
        Ok(Mapping { local: self.local.unwrap_or(remote), remote })
    }
}

fn named(pod: &Pod, name: &str) -> Result<u16> {
    let all = model::pod::regular_containers(pod).iter().chain(model::pod::init_containers(pod));
    let ports: Vec<_> = all.flat_map(|c| c.ports.iter().flatten()).collect();
    let found =
        ports.iter().find(|p| p.name.as_deref() == Some(name)).and_then(|p| u16::try_from(p.container_port).ok());
    let Some(port) = found else {
        let known: Vec<&str> = ports.iter().filter_map(|p| p.name.as_deref()).collect();
        let known = if known.is_empty() { "none has a name".to_owned() } else { known.join(", ") };
        bail!("pod {} has no port named {name:?}; ports of its spec: {known}", model::pod::name(pod));
    };
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        let text = r#"{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app","ports":[{"name":"http","containerPort":8080},
            {"containerPort":9}]}]}}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn ports_are_written_in_these_ways() {
        let table = [
            ("80", (80, 80)),
            ("8080:80", (8080, 80)),
            (":80", (0, 80)),
            ("0:80", (0, 80)),
            ("http", (8080, 8080)),
            ("1234:http", (1234, 8080)),
            (":http", (0, 8080)),
        ];
        for (text, (local, remote)) in table {
            let mapping = text.parse::<Spec>().unwrap().resolve(&pod()).unwrap();
            assert_eq!(mapping, Mapping { local, remote }, "{text}");
        }
    }

    #[test]
    fn other_ways_are_refused_with_what_is_allowed() {
        for text in ["", ":", "80:", "0", "65536", "x:80", "1:2:3", "70000:80", "-1"] {
            let refused = text.parse::<Spec>().map(|spec| spec.resolve(&pod()));
            let words = match refused {
                Err(words) => words,
                Ok(Err(e)) => e.to_string(),
                Ok(Ok(mapping)) => panic!("{text} is taken for {mapping:?}"),
            };
            assert!(words.contains("allowed") || words.contains("ports of its spec: http"), "{text}: {words}");
        }
    }
}
