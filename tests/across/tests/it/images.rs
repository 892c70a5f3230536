//! Our ImageManager in a process of its own, with the suite's runtime on a socket.

use std::sync::Arc;

use conform::{Choice, Elsewhere, Subject, Way};
use contract::ImageManager;

#[test]
fn it_keeps_what_every_image_manager_must_keep_also_in_another_process() {
    let program = Way::Run(vec![env!("CARGO_BIN_EXE_images").into()]);
    let subject: Arc<dyn Subject<ImageManager>> = Arc::new(Elsewhere(program));
    let report = conform::play(&conform::images::cases(), &subject, &Choice { core: true, ..Choice::default() });
    assert!(report.cases.len() > 45, "{}", report.table());
    assert_eq!(report.broken(), 0, "{}", report.table());
}
