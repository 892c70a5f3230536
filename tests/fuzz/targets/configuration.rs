//! KubeletConfiguration: read with warnings, or refused with at least one reason that names a place.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(errors) = node_config::parse(text, Path::new("/etc/kubernetes")) {
        assert!(!errors.is_empty(), "a refusal has a reason");
        assert!(errors.iter().all(|e| !e.to_string().is_empty()));
    }
});
