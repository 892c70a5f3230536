//! The program of `docs/examples/python-probes`: a ProbeManager in another language, from the proto alone.

use std::sync::Arc;

use conform::{Choice, Elsewhere, Subject, Way};
use contract::ProbeManager;

#[test]
fn a_probe_manager_in_python_keeps_what_every_one_must_keep() {
    let python = std::env::var_os("PYTHON_WITH_GRPC").expect("`cargo xtask e2e` finds it and says where it is");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/python-probes/probes.py");
    let subject: Arc<dyn Subject<ProbeManager>> = Arc::new(Elsewhere(Way::Run(vec![python, program.into()])));
    let report = conform::play(&conform::probes::cases(), &subject, &Choice { core: true, ..Choice::default() });
    assert!(report.cases.len() > 25, "{}", report.table());
    assert_eq!(report.broken(), 0, "{}", report.table());
}
