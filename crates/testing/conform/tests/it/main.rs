//! Ours keep their contracts; one that does nothing is found out, and so is one that is not there.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::{Actor, Ctx, Handler, supervised};
use conform::{Case, Choice, Elsewhere, InProcess, Subject, Way, images, ours, play, probes, status, volumes};
use contract::probe::{RetainProbes, StartProbes, StopProbes};
use contract::{Crew, ProbeManager, Role};

#[test]
fn our_probe_manager_keeps_its_contract() {
    let report = play(&probes::cases(), &ours::probes(), &Choice::default());
    assert!(report.cases.len() > 70, "{}", report.cases.len());
    assert_eq!(report.broken(), 0, "{}", report.table());
}

#[test]
fn our_image_manager_keeps_its_contract() {
    let report = play(&images::cases(), &ours::images(), &Choice::default());
    assert!(report.cases.len() > 95, "{}", report.cases.len());
    assert_eq!(report.broken(), 0, "{}", report.table());
}

#[test]
fn our_status_manager_keeps_its_contract() {
    let report = play(&status::cases(), &ours::status(), &Choice::default());
    assert!(report.cases.len() > 35, "{}", report.cases.len());
    assert_eq!(report.broken(), 0, "{}", report.table());
}

#[test]
fn our_volume_manager_keeps_its_contract() {
    let report = play(&volumes::cases(), &ours::volumes(), &Choice::default());
    assert!(report.cases.len() > 70, "{}", report.cases.len());
    assert_eq!(report.broken(), 0, "{}", report.table());
}

/// Answers, and does nothing.
struct Idle;

impl Actor for Idle {
    type Context = Ctx<Self>;
}
supervised!(Idle);

impl Handler<StartProbes> for Idle {
    type Result = ();

    fn handle(&mut self, _: StartProbes, _: &mut Ctx<Self>) {}
}

impl Handler<StopProbes> for Idle {
    type Result = ();

    fn handle(&mut self, _: StopProbes, _: &mut Ctx<Self>) {}
}

impl Handler<RetainProbes> for Idle {
    type Result = ();

    fn handle(&mut self, _: RetainProbes, _: &mut Ctx<Self>) {}
}

/// A case that one passes who does nothing tries nothing but what must not happen.
#[test]
fn a_manager_that_does_nothing_is_found_out() {
    let idle: Arc<dyn Subject<ProbeManager>> = Arc::new(InProcess::new("idle", |_: &_| |_: Crew<ProbeManager>| Idle));
    let report = play(&probes::cases(), &idle, &Choice::default());
    let kept: Vec<_> = report.cases.iter().filter(|v| v.broken.is_none()).map(|v| v.case).collect();
    assert_eq!(kept, ["no-probes-no-row"], "{}", report.table());
}

#[test]
fn a_program_that_does_not_start_breaks_every_rule_and_says_why() {
    let nobody: Arc<dyn Subject<ProbeManager>> = Arc::new(Elsewhere(Way::Run(vec!["/no/such/program".into()])));
    let choice = Choice { only: Some("stop".to_owned()), core: true };
    let report = play(&probes::cases(), &nobody, &choice);
    assert!(report.cases.len() > 2 && report.broken() == report.cases.len(), "{}", report.table());
    let why = report.cases[0].broken.clone().unwrap();
    assert!(why.contains("/no/such/program: No such file"), "{why}");
}

fn are_told_apart<R: Role>(cases: &[Case<R>]) {
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    assert!(cases.iter().all(|case| !case.rule.is_empty() && !case.source.is_empty()));
    assert!(cases.iter().any(|case| case.is_core) && cases.iter().any(|case| !case.is_core));
}

#[test]
fn cases_are_told_apart_by_their_names() {
    are_told_apart(&images::cases());
    are_told_apart(&probes::cases());
    are_told_apart(&status::cases());
    are_told_apart(&volumes::cases());
}
