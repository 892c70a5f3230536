//! Folders for plugins, results and notes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use cni::{Attachment, Cni, NetworkList};
use serde_json::{Value, json};

pub(crate) struct Bed {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) cni: Cni,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("folder");
        let programs = dir.path().join("bin");
        fs::create_dir(&programs).expect("folder");
        let cni = Cni { programs: vec![programs], cache: dir.path().join("cache"), limit: Duration::from_secs(20) };
        Self { dir, cni }
    }

    /// A plugin that notes command, environment and standard input, and then does what `script` says.
    pub(crate) fn plugin(&self, name: &str, script: &str) {
        let path = self.cni.programs[0].join(name);
        let notes = self.dir.path().join("notes").display().to_string();
        let text = format!(
            "#!/bin/sh\nconf=$(cat)\n\
             echo \"{name} $CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS $CNI_ARGS $conf\" >> {notes}\n{script}\n"
        );
        fs::write(&path, text).expect("plugin");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
    }

    /// What plugins were told: name and command, the other words, the configuration.
    pub(crate) fn notes(&self) -> Vec<(String, String, Value)> {
        let text = fs::read_to_string(self.dir.path().join("notes")).unwrap_or_default();
        let one = |line: &str| {
            let (words, conf) = line.split_once(" {").expect("configuration");
            let conf = serde_json::from_str(&format!("{{{conf}")).expect("json");
            let mut words = words.splitn(3, ' ');
            let who = format!("{} {}", words.next().expect("plugin"), words.next().expect("command"));
            (who, words.next().unwrap_or_default().to_owned(), conf)
        };
        text.lines().map(one).collect()
    }

    pub(crate) fn who(&self) -> Vec<String> {
        self.notes().into_iter().map(|(who, _, _)| who).collect()
    }

    pub(crate) fn forget_notes(&self) {
        fs::write(self.dir.path().join("notes"), "").expect("notes");
    }

    pub(crate) fn cached(&self) -> PathBuf {
        self.cni.cache.join("results/net-pod1-eth0")
    }
}

pub(crate) fn list(version: &str, plugins: Value) -> NetworkList {
    let conf = json!({"name": "net", "cniVersion": version, "plugins": plugins});
    NetworkList::parse(conf.to_string().as_bytes()).expect("a network")
}

pub(crate) fn pod() -> Attachment {
    Attachment {
        container: "pod1".into(),
        namespace: Some("/run/ns/pod1".into()),
        interface: "eth0".into(),
        args: vec![("IgnoreUnknown".into(), "1".into()), ("K8S_POD_NAME".into(), "web".into())],
        capabilities: [
            ("portMappings".to_owned(), json!([{"hostPort": 80, "containerPort": 8080, "protocol": "tcp"}])),
            ("bandwidth".to_owned(), json!({"ingressRate": 1000})),
        ]
        .into(),
    }
}
