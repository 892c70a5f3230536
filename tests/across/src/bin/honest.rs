//! A ProbeManager whose pods say by their names what becomes of a message. Its rows tell how often it was told to start.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bosun_manager_sdk::actor::{Actor, Class, Ctx, Deferred, Handler, supervised};
use bosun_manager_sdk::contract::probe::{PodProbes, RetainProbes, StartProbes, StopProbes};
use bosun_manager_sdk::contract::runtime::ExecSync;
use bosun_manager_sdk::contract::status::StatusEntry;
use bosun_manager_sdk::contract::{Crew, ProbeManager};
use bosun_manager_sdk::ports::journal::Journal;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod;
use model::probe::ProbeKind;

struct Honest {
    crew: Crew<ProbeManager>,
    journal: Arc<dyn Journal>,
    starts: u32,
}

impl Actor for Honest {
    type Context = Ctx<Self>;
}
supervised!(Honest);

impl Honest {
    fn row(words: impl IntoIterator<Item = String>) -> PodProbes {
        let probes = words.into_iter().map(|word| (word, BTreeSet::from([ProbeKind::Readiness]))).collect();
        PodProbes { verdicts: BTreeMap::new(), probes }
    }
}

impl Handler<StartProbes> for Honest {
    type Result = Deferred<Self, ()>;

    fn handle(&mut self, StartProbes { pod }: StartProbes, ctx: &mut Ctx<Self>) -> Self::Result {
        self.starts += 1;
        let (uid, starts) = (pod::uid(&pod), self.starts);
        let labels = ["Readiness", "successful", "c", pod::name(&pod), pod::namespace(&pod), uid.as_str()];
        bosun_manager_sdk::metrics::probes::TOTAL.with_label_values(&labels).inc();
        let (crew, journal) = (self.crew.clone(), self.journal.clone());
        // A node that reads manifests puts its name behind that of the pod.
        match pod::name(&pod).trim_end_matches("-sim") {
            "crashes" => panic!("as it was told"),
            "hangs" => {
                crew.poster().post(uid, Self::row(["hangs".to_owned()]).into());
                Deferred::new(std::future::pending())
            }
            // The same each time: a worker steps when a row changes.
            "steady" => {
                let known = crew.poster::<PodProbes>().snapshot().len();
                crew.poster().post(uid, Self::row([format!("known {known}")]).into());
                Deferred::ready(())
            }
            // What it was told, what it knew before, and what a status says.
            "shows" => {
                let known = crew.poster::<PodProbes>().snapshot().len();
                let status = crew.board::<StatusEntry>().get(&uid).map_or(0, |s| s.version);
                let words = [format!("starts {starts}"), format!("known {known}"), format!("status {status}")];
                crew.poster().post(uid, Self::row(words).into());
                Deferred::ready(())
            }
            "asks" => {
                let message = ExecSync {
                    uid: uid.clone(),
                    container: "c1".into(),
                    command: vec!["true".into()],
                    timeout: Duration::from_secs(1),
                };
                Deferred::new(async move {
                    let said = crew.ask(message).await;
                    let said = said.map(|outcome| outcome.map(|o| o.exit_code));
                    crew.poster().post(uid, Self::row([format!("{said:?}")]).into());
                })
            }
            "tells" => {
                let object = EventObject::Node;
                let reason = "Told".into();
                crew.emit(NodeEvent { kind: EventType::Normal, reason, message: "from afar".to_owned(), object });
                Deferred::ready(())
            }
            "keeps" => {
                let effects = ctx.effects();
                Deferred::new(async move {
                    let words = effects.blocking(Class::Journal, move || {
                        journal.put_soon("probe/soon", Some(b"s".to_vec()));
                        let saved = journal.save("probe/saved", b"v").is_ok();
                        let foreign = journal.save("object/stolen", b"v").is_ok() || journal.load("object/x").is_ok();
                        let keys = journal.keys("probe/").unwrap_or_default();
                        let loaded = journal.load("probe/soon").ok().flatten();
                        let gone = journal.remove("probe/saved").is_ok();
                        vec![format!("saved {saved} foreign {foreign} keys {keys:?} loaded {loaded:?} removed {gone}")]
                    });
                    let words = words.await;
                    crew.poster().post(uid, Self::row(words).into());
                })
            }
            other => panic!("no pod is called {other}"),
        }
    }
}

impl Handler<StopProbes> for Honest {
    type Result = ();

    fn handle(&mut self, StopProbes { uid, .. }: StopProbes, _: &mut Ctx<Self>) {
        self.crew.poster::<PodProbes>().remove(&uid);
    }
}

impl Handler<RetainProbes> for Honest {
    type Result = ();

    fn handle(&mut self, _: RetainProbes, _: &mut Ctx<Self>) {}
}

fn main() -> ExitCode {
    bosun_manager_sdk::main(|crew, outside| Honest { crew, journal: outside.journal.clone(), starts: 0 })
}
