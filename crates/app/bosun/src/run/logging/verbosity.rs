//! `-v` and `--vmodule`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use node_config::FileVerbosity;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

use super::klog::{klog_verbosity, stem};

/// Libraries speak from this verbosity on of what they call debug, so that 4 shows what bosun does and no frames of HTTP/2.
const LIBRARIES: u32 = 8;

/// Lets lines pass by verbosity, per source file where the operator says so.
pub(super) struct Verbosity {
    all: Arc<AtomicU32>,
    files: Vec<FileVerbosity>,
}

impl Verbosity {
    pub(super) fn new(all: Arc<AtomicU32>, files: Vec<FileVerbosity>) -> Self {
        Self { all, files }
    }

    fn passes(&self, meta: &Metadata<'_>) -> bool {
        let file = meta.file().unwrap_or_default();
        let of_library = file.contains("/registry/src/");
        let needed = match klog_verbosity(*meta.level()) {
            0 => return true,
            v if of_library => v - 4 + LIBRARIES,
            v => v,
        };
        needed <= self.verbosity_of(file)
    }

    fn verbosity_of(&self, file: &str) -> u32 {
        let path = file.strip_suffix(".rs").unwrap_or(file);
        let fits = |f: &&FileVerbosity| {
            let whole = f.file_pattern.contains('/');
            glob(f.file_pattern.as_bytes(), if whole { path } else { stem(file) }.as_bytes())
        };
        self.files.iter().find(fits).map_or_else(|| self.all.load(Ordering::Relaxed), |f| f.verbosity)
    }
}

/// `*` stands for any text, `?` for one character.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => glob(rest, text) || text.split_first().is_some_and(|(_, t)| glob(pattern, t)),
        (Some((b'?', rest)), Some((_, t))) => glob(rest, t),
        (Some((p, rest)), Some((c, t))) => p == c && glob(rest, t),
        _ => false,
    }
}

impl<S: Subscriber> Filter<S> for Verbosity {
    fn enabled(&self, meta: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.passes(meta)
    }

    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        if self.passes(meta) { Interest::always() } else { Interest::never() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_names() {
        for (pattern, text, fits) in [
            ("sync", "sync", true),
            ("sync", "syncs", false),
            ("pod_*", "pod_worker", true),
            ("*", "", true),
            ("s?nc", "sync", true),
            ("s?nc", "snc", false),
            ("*/pod-worker/*", "crates/managers/pod-worker/src/sync", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_file_that_is_named_has_its_own_verbosity() {
        let own = FileVerbosity { file_pattern: "sync".to_owned(), verbosity: 6 };
        let v = Verbosity::new(Arc::new(AtomicU32::new(2)), vec![own]);
        assert_eq!(v.verbosity_of("crates/managers/pod-worker/src/sync.rs"), 6);
        assert_eq!(v.verbosity_of("crates/managers/pod-worker/src/other.rs"), 2);
    }
}
