//! The chains of iptables by which other components know a node: which iptables it uses, that its rules were flushed, and no
//! packet from outside for this host's own loopback. As a kubelet makes them; bosun itself needs none of them.

use std::time::Duration;

use ports::iptables::{Family, Iptables, IptablesError};
use tokio::time::{Instant, sleep};

/// Between two looks at the canary, and two tries.
const PERIOD: Duration = Duration::from_secs(60);
/// How long the other tables may take to be flushed when one is, and between two looks at them.
const FLUSH: Duration = Duration::from_secs(5);
const FLUSH_POLL: Duration = Duration::from_millis(100);

/// A chain that lives as long as nobody flushes its table.
const CANARY: &str = "KUBE-KUBELET-CANARY";
/// The first is looked at.
const CANARY_TABLES: [&str; 3] = ["mangle", "nat", "filter"];
const FIREWALL: &str = "KUBE-FIREWALL";

/// One thing that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Chain {
        table: &'static str,
        chain: &'static str,
    },
    /// `how`: `-I` first of its chain, `-A` last.
    Rule {
        how: &'static str,
        chain: &'static str,
        rule: &'static [&'static str],
    },
}

/// What a node has, in the order in which it is made.
fn steps(family: Family) -> Vec<Step> {
    // Its existence, in the old tables or in nftables, tells which of the two this host uses.
    let mut steps = vec![Step::Chain { table: "mangle", chain: "KUBE-IPTABLES-HINT" }];
    // With `route_localnet`, by which kube-proxy serves node ports on the loopback, IPv4 alone lets others in.
    if family == Family::V4 {
        let jump: &[&str] = &["-j", FIREWALL];
        #[rustfmt::skip]
        let martians: &[&str] = &[
            "-m", "comment", "--comment", "block incoming localnet connections",
            "--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
            "-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP",
        ];
        steps.extend([
            Step::Chain { table: "filter", chain: FIREWALL },
            Step::Rule { how: "-I", chain: "OUTPUT", rule: jump },
            Step::Rule { how: "-I", chain: "INPUT", rule: jump },
            Step::Rule { how: "-A", chain: FIREWALL, rule: martians },
        ]);
    }
    steps.extend(CANARY_TABLES.map(|table| Step::Chain { table, chain: CANARY }));
    steps
}

async fn ensure(tool: &dyn Iptables, family: Family, step: &Step) -> Result<(), IptablesError> {
    match step {
        Step::Chain { table, chain } => match tool.run(family, &["-N", chain, "-t", table]).await {
            Err(IptablesError::No(_there_already)) => Ok(()),
            other => other,
        },
        Step::Rule { how, chain, rule } => {
            let call = |how: &'static str| [&[how, *chain, "-t", "filter"], *rule].concat();
            match tool.run(family, &call("-C")).await {
                Err(IptablesError::No(_not_there)) => tool.run(family, &call(how)).await,
                other => other,
            }
        }
    }
}

async fn set_up(tool: &dyn Iptables, family: Family) -> Result<(), IptablesError> {
    // A program may be there without a kernel that knows its tables.
    tool.run(family, &["-S", "POSTROUTING", "-t", "nat"]).await?;
    for step in steps(family) {
        ensure(tool, family, &step).await?;
    }
    Ok(())
}

async fn is_gone(tool: &dyn Iptables, family: Family, table: &str) -> bool {
    matches!(tool.run(family, &["-S", CANARY, "-t", table]).await, Err(IptablesError::No(_)))
}

/// Ends when somebody flushed the tables, and is done with it.
async fn until_flushed(tool: &dyn Iptables, family: Family) {
    let [first, others @ ..] = CANARY_TABLES;
    sleep(PERIOD).await;
    while !is_gone(tool, family, first).await {
        sleep(PERIOD).await;
    }
    let limit = Instant::now() + FLUSH;
    for table in others {
        while !is_gone(tool, family, table).await && Instant::now() < limit {
            sleep(FLUSH_POLL).await;
        }
    }
}

/// Makes the chains and keeps them; ends only when the host has no iptables.
pub(super) async fn keep(tool: impl Iptables, family: Family) {
    let mut last = None;
    loop {
        match set_up(&tool, family).await {
            Ok(()) => {
                tracing::info!(?family, "iptables chains are there");
                last = None;
                until_flushed(&tool, family).await;
                tracing::info!(?family, "iptables was flushed, making the chains anew");
            }
            Err(e @ IptablesError::Missing) => {
                return tracing::warn!(?family, error = %e, "no iptables chains are made for other components");
            }
            Err(e) => {
                if last.as_ref() != Some(&e) {
                    tracing::warn!(?family, error = %e, "iptables chains cannot be made, trying again each minute");
                    last = Some(e);
                }
                sleep(PERIOD).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
