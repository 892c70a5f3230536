//! Static pod manifests: whatever lies in the folder is read or refused, never more.

#![no_main]

use libfuzzer_sys::fuzz_target;
use static_pod::{Origin, Source, read_manifest};

fuzz_target!(|bytes: &[u8]| {
    let origin = Origin { node_name: "node", source: Source::File("/etc/kubernetes/manifests/x.yaml") };
    if let Ok(read) = read_manifest(bytes, &origin) {
        let name = read.pod.metadata.name.as_deref().unwrap_or_default();
        assert!(name.ends_with("-node"), "a static pod's name ends with its node's: {name}");
        assert!(read.pod.metadata.uid.is_some_and(|uid| !uid.is_empty()));
        assert!(read.pod.spec.is_some_and(|spec| !spec.containers.is_empty()));
    }
});
