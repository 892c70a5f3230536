use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::*;

/// Tables in memory: rules by table and chain.
#[derive(Clone, Default)]
struct Tables(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    chains: BTreeMap<(String, String), Vec<String>>,
    calls: usize,
    /// What every call answers instead.
    trouble: Option<IptablesError>,
}

impl Tables {
    fn fresh() -> Self {
        let tables = Tables::default();
        tables.flush();
        tables
    }

    /// As a firewall does that loads its own rules: all of others is gone.
    fn flush(&self) {
        let own = [("nat", "POSTROUTING"), ("filter", "INPUT"), ("filter", "OUTPUT")];
        let own = own.map(|(table, chain)| ((table.to_owned(), chain.to_owned()), vec!["--own".to_owned()]));
        self.0.lock().unwrap().chains = own.into();
    }

    fn trouble(&self, trouble: Option<IptablesError>) {
        self.0.lock().unwrap().trouble = trouble;
    }

    fn calls(&self) -> usize {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    fn shown(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let line = |((table, chain), rules): (&(String, String), &Vec<String>)| {
            format!("{table} {chain}: {}", rules.join(" | "))
        };
        state.chains.iter().map(line).collect()
    }
}

#[async_trait]
impl Iptables for Tables {
    async fn run(&self, _: Family, args: &[&str]) -> Result<(), IptablesError> {
        let mut state = self.0.lock().unwrap();
        state.calls += 1;
        if let Some(trouble) = state.trouble.clone() {
            return Err(trouble);
        }
        let [how, chain, "-t", table, rule @ ..] = args else { panic!("{args:?}") };
        let no = || IptablesError::No("no".to_owned());
        let rule = rule.join(" ");
        let place = ((*table).to_owned(), (*chain).to_owned());
        if *how == "-N" {
            return match state.chains.insert(place.clone(), Vec::new()) {
                None => Ok(()),
                Some(old) => {
                    state.chains.insert(place, old);
                    Err(no())
                }
            };
        }
        let rules = state.chains.get_mut(&place).ok_or_else(no)?;
        match *how {
            "-S" => {}
            "-C" => return rules.contains(&rule).then_some(()).ok_or_else(no),
            "-I" => rules.insert(0, rule),
            "-A" => rules.push(rule),
            other => panic!("{other}"),
        }
        Ok(())
    }
}

const DONE: [&str; 8] = [
    "filter INPUT: -j KUBE-FIREWALL | --own",
    "filter KUBE-FIREWALL: -m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 \
     -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
    "filter KUBE-KUBELET-CANARY: ",
    "filter OUTPUT: -j KUBE-FIREWALL | --own",
    "mangle KUBE-IPTABLES-HINT: ",
    "mangle KUBE-KUBELET-CANARY: ",
    "nat KUBE-KUBELET-CANARY: ",
    "nat POSTROUTING: --own",
];

#[tokio::test(start_paused = true)]
async fn chains_are_made_once_and_again_after_a_flush() {
    let tables = Tables::fresh();
    tokio::spawn(keep(tables.clone(), Family::V4));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(tables.shown(), DONE);
    tables.calls();
    sleep(PERIOD * 10).await;
    assert_eq!(tables.calls(), 10, "one look a minute");
    tables.flush();
    sleep(PERIOD).await;
    assert_eq!(tables.shown(), DONE);
    // What is there already is not made twice.
    tables.0.lock().unwrap().chains.remove(&("mangle".to_owned(), CANARY.to_owned()));
    sleep(PERIOD + FLUSH * 2).await;
    assert_eq!(tables.shown(), DONE);
}

#[tokio::test(start_paused = true)]
async fn ipv6_has_no_martians() {
    let tables = Tables::fresh();
    tokio::spawn(keep(tables.clone(), Family::V6));
    sleep(Duration::from_secs(1)).await;
    let own = [0, 3].map(|i: usize| DONE[i].replace("-j KUBE-FIREWALL | ", ""));
    assert_eq!(tables.shown(), [&own[0], DONE[2], &own[1], DONE[4], DONE[5], DONE[6], DONE[7]]);
}

#[tokio::test(start_paused = true)]
async fn trouble_is_tried_again_and_a_host_without_iptables_is_left_alone() {
    let tables = Tables::fresh();
    tables.trouble(Some(IptablesError::Failed("locked".to_owned())));
    let kept = tokio::spawn(keep(tables.clone(), Family::V4));
    sleep(PERIOD * 3).await;
    assert!((3..=4).contains(&tables.calls()));
    tables.trouble(None);
    sleep(PERIOD).await;
    assert_eq!(tables.shown(), DONE);
    // Trouble is no flush.
    tables.trouble(Some(IptablesError::Failed("locked".to_owned())));
    sleep(PERIOD * 3).await;
    assert_eq!(tables.shown(), DONE);
    assert!(!kept.is_finished());
    tables.trouble(Some(IptablesError::Missing));
    keep(tables, Family::V4).await;
}
