//! What is set up on the host itself.

/// What is set up on the host itself, for everybody on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// `protectKernelDefaults`: refuse to start on a host whose kernel parameters are not those that a node wants; false: set
    /// them.
    pub protect_kernel_defaults: bool,
    /// `makeIPTablesUtilChains`: keep the iptables chains that other components look for.
    pub iptables_util_chains: bool,
}

impl Default for Host {
    fn default() -> Self {
        Self { protect_kernel_defaults: false, iptables_util_chains: true }
    }
}
