//! Where manifests come from.

/// Where a manifest was found; part of the identity of its pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source<'a> {
    /// A file, by its path. Its pods tolerate every NoExecute taint.
    File(&'a str),
    /// A URL. Its pods get no extra toleration.
    Url(&'a str),
}

/// What the defaults need to know beside the manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin<'a> {
    /// Name of this node as the API knows it.
    pub node_name: &'a str,
    /// Where the manifest was found.
    pub source: Source<'a>,
}
