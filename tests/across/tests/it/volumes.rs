//! Our VolumeManager in a process of its own, on a folder of the suite's.

use std::sync::Arc;

use conform::{Choice, Elsewhere, Subject, Way};
use contract::VolumeManager;

#[test]
fn it_keeps_what_every_volume_manager_must_keep_also_in_another_process() {
    let program = Way::Run(vec![env!("CARGO_BIN_EXE_volumes").into()]);
    let subject: Arc<dyn Subject<VolumeManager>> = Arc::new(Elsewhere(program));
    let report = conform::play(&conform::volumes::cases(), &subject, &Choice { core: true, ..Choice::default() });
    assert!(report.cases.len() > 40, "{}", report.table());
    assert_eq!(report.broken(), 0, "{}", report.table());
}
