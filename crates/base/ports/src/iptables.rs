//! The host's iptables.

use async_trait::async_trait;

/// Of which addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// `iptables`.
    V4,
    /// `ip6tables`.
    V6,
}

/// Why a call did not do what it should.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IptablesError {
    /// The host has no such program.
    #[error("there is no such program on this host")]
    Missing,
    /// What was to be made is there, or what was asked about is not (exit code 1).
    #[error("{0}")]
    No(String),
    /// Anything else: the lock was not had, the kernel has no such table, no answer in time.
    #[error("{0}")]
    Failed(String),
}

/// Runs the host's own program, which knows whether this host uses the old tables or nftables.
#[async_trait]
pub trait Iptables: Send + Sync + 'static {
    /// One call; waits for the lock of other calls, and ends within some seconds.
    async fn run(&self, family: Family, args: &[&str]) -> Result<(), IptablesError>;
}
