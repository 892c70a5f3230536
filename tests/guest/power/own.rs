//! What the power must not take from bosun's own runtime: exit codes, the store of images; and what it must not leave behind.

use std::fmt::Write as _;

use serde_json::json;
use testbed::{Image, state};

use crate::node::{Node, shell, uid};

/// An image that is being imported whenever the power goes.
const IMAGE: &str = "docker.io/library/cut:1";
const ARCHIVE: &str = "/share/docker-io-library-cut-1.tar";
/// What the layers of all images are made of, by name and content.
const LAYERS: &str =
    "cd /var/lib/bosun/runtime/images/layers; find . -type f -o -type l | LC_ALL=C sort | xargs sha256sum | sha256sum";

/// What the runtime has of pods that run, a line per thing: folders, namespaces, addresses, what network plugins answered, links.
const HAS: &str = "cd /run/bosun/runtime; ls | sed -n '/^[0-9a-f]\\{64\\}$/s/.*/folder/p'
    awk '$2 ~ \"^/run/bosun/runtime/.*/ns/net$\" { print \"namespace\" }' /proc/self/mounts
    ls /var/lib/cni/networks/pods | sed -n '/^10/s/.*/address/p'
    ls /var/lib/cni/results | sed 's/.*/result/'
    ls /sys/class/net/pods0/brif | sed 's/.*/link/'";
const KINDS: [&str; 5] = ["folder", "namespace", "address", "result", "link"];

/// What the store held before the first cut.
pub(super) struct Own {
    layers: String,
}

/// A pod that has ended, and was told to have, before the power goes.
pub(super) struct Ended {
    name: String,
    code: u64,
    uid: String,
    finished: String,
}

impl Own {
    /// The image is there, and taken away again.
    pub(super) fn prepare(node: &Node) -> Self {
        let files = (0..40).fold(Image::scratch(IMAGE), |image, n| {
            let text = (0..2000).fold(String::new(), |mut text, line| {
                writeln!(text, "{n} {line}").expect("memory");
                text
            });
            image.file(&format!("etc/f{n}"), text.into_bytes(), 0o644)
        });
        files.write_archive(&node.guest.share_dir()).unwrap_or_else(|e| panic!("{e}"));
        let own = Own { layers: Self::import(node) };
        Self::forget(node);
        own
    }

    /// Takes the image in; answers what all images are made of then.
    fn import(node: &Node) -> String {
        node.sh(&format!("set -e; bosun image import {ARCHIVE} > /dev/null; {LAYERS}"))
    }

    fn forget(node: &Node) {
        node.sh(&format!("bosun image rm {IMAGE}"));
    }

    /// The power is to go meanwhile, or a moment later.
    pub(super) fn import_meanwhile(node: &Node) {
        node.sh(&format!("setsid bosun image import {ARCHIVE} > /dev/null 2>&1 < /dev/null &"));
    }

    /// What is there of the image is whole: a second import, which takes what is there, ends with the same files.
    pub(super) fn check(&self, node: &Node) {
        assert_eq!(Self::import(node), self.layers, "files of images are as they were");
        Self::forget(node);
    }
}

impl Ended {
    /// A pod that ends with a code of its own, once it was told.
    pub(super) fn wait(node: &Node, cut: u64) -> Self {
        let (name, code) = (format!("ends-{cut}"), 1 + cut % 100);
        node.put(
            &name,
            &format!("  restartPolicy: Never\n  containers:\n{}", shell("main", &format!("exit {code}"), "")),
        );
        let (uid, finished) = Self::told(node, &name, code);
        Ended { name, code, uid, finished }
    }

    /// UID of the pod and when its container ended, once that is told.
    fn told(node: &Node, name: &str, code: u64) -> (String, String) {
        node.wait("the end of a pod to be told", || {
            let pod = node.pod(name)?.ok_or("no such pod")?;
            let end = state(&pod, "terminated");
            if end.is_null() || pod["status"]["phase"] != "Failed" {
                return Err(pod["status"].to_string());
            }
            assert_eq!(
                (&end["exitCode"], &pod["status"]["containerStatuses"][0]["restartCount"]),
                (&json!(code), &json!(0)),
                "{pod}"
            );
            Ok((uid(&pod).to_owned(), end["finishedAt"].to_string()))
        })
    }

    /// It is told as before. Then it goes.
    pub(super) fn check(self, node: &Node) {
        let again = Self::told(node, &self.name, self.code);
        assert_eq!(again, (self.uid, self.finished), "{} ended once", self.name);
        node.remove(&self.name);
    }
}

/// There is one of everything for each of so many pods, and of nothing else.
pub(super) fn has_only(node: &Node, pods: usize) {
    node.wait("what the runtime had of pods that went to be gone", || {
        let all = node.sh(HAS);
        let right = KINDS.iter().all(|kind| all.lines().filter(|line| line == kind).count() == pods);
        if right { Ok(()) } else { Err(format!("of {pods} pods:\n{all}")) }
    });
}
