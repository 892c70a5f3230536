//! The program keeps the contract of its role: what every ProbeManager must do, with kills in the middle of it. `cargo xtask conform
//! probes --remote` plays all of the suite.

use std::sync::Arc;

use conform::{Choice, Elsewhere, Subject, Way, play, probes};
use contract::ProbeManager;

#[test]
fn it_keeps_what_every_probe_manager_must_keep() {
    let program = Way::Run(vec![env!("CARGO_BIN_EXE_remote-probes").into()]);
    let subject: Arc<dyn Subject<ProbeManager>> = Arc::new(Elsewhere(program));
    let report = play(&probes::cases(), &subject, &Choice { core: true, ..Choice::default() });
    assert!(report.cases.len() > 25, "{}", report.table());
    assert_eq!(report.broken(), 0, "{}", report.table());
}
