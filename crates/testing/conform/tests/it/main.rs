//! Ours keep their contracts; one that does nothing is found out, and so is one that is not there.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::{Actor, Ctx, Handler, MessageResult, supervised};
use conform::{
    Broken, Case, Choice, Elsewhere, Given, InProcess, Subject, Way, images, ours, play, probes, reach, status, volumes,
};
use contract::image::{EnsureImage, EnsuredImage, RemoveUnusedImages};
use contract::probe::{RetainProbes, StartProbes, StopProbes};
use contract::volume::{
    AssignUserNamespace, ExpectVolumes, ListVolumes, MakePodDirs, MountVolumes, PrepareSubPath, ReleaseUserNamespace,
    RemovePodDir, UnmountVolumes,
};
use contract::{Answers, Crew, ProbeManager, Role};
use model::userns::UserNamespace;

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

/// Says that all is done, and does nothing.
struct Idle;

impl Actor for Idle {
    type Context = Ctx<Self>;
}
supervised!(Idle);

macro_rules! answers {
    ($($message:ty => $answer:expr;)*) => {
        $(impl Handler<$message> for Idle {
            type Result = MessageResult<$message>;

            fn handle(&mut self, _: $message, _: &mut Ctx<Self>) -> Self::Result {
                MessageResult($answer)
            }
        })*
    };
}

answers! {
    StartProbes => ();
    StopProbes => ();
    RetainProbes => ();
    EnsureImage => Ok(EnsuredImage::default());
    RemoveUnusedImages => Ok(0);
    MakePodDirs => Ok(());
    AssignUserNamespace => Ok(UserNamespace { host_id: 65_536, length: 65_536 });
    ExpectVolumes => ();
    MountVolumes => Ok(Arc::default());
    PrepareSubPath => Ok("/".into());
    UnmountVolumes => Ok(());
    ReleaseUserNamespace => Ok(());
    RemovePodDir => Ok(());
    ListVolumes => Arc::default();
}

/// Who says that all is done and does nothing passes these cases and no others.
fn idle_passes<R: Role>(cases: &[Case<R>], names: &[&str])
where
    Idle: Answers<R>,
{
    let idle: Arc<dyn Subject<R>> = Arc::new(InProcess::new("idle", |_: &Given| |_: Crew<R>| Idle));
    let report = play(cases, &idle, &Choice::default());
    let kept: Vec<_> = report.cases.iter().filter(|v| v.broken.is_none()).map(|v| v.case).collect();
    assert_eq!(kept, names, "{}", report.table());
}

#[test]
fn a_probe_manager_that_does_nothing_is_found_out() {
    idle_passes(&probes::cases(), &["no-probes-no-row"]);
}

/// Those cases have images that are there, or only ask that nothing goes wrong.
#[test]
fn an_image_manager_that_does_nothing_is_found_out() {
    let passed = [
        "two-hundred-pods",
        "asked-twice",
        "clock-set-back-and-the-rate",
        "dockercfg",
        "opened-for-all",
        "preloaded",
        "removed-is-forgotten",
        "room-enough",
        "many-crashes",
        "slow-inspection",
    ];
    idle_passes(&images::cases(), &passed);
}

/// Those cases have no volumes, or ask for the same ids again.
#[test]
fn a_volume_manager_that_does_nothing_is_found_out() {
    let passed =
        ["no-volumes", "ids-twice", "ids-after-a-swap", "ids-after-a-restart", "ids-are-released", "gone-by-hand"];
    idle_passes(&volumes::cases(), &passed);
}

#[test]
fn a_program_that_does_not_start_breaks_every_rule_and_says_why() {
    let nobody: Arc<dyn Subject<ProbeManager>> = Arc::new(Elsewhere(Way::Run(vec!["/no/such/program".into()])));
    let choice = Choice { only: Some("stop".to_owned()), core: true };
    let report = play(&probes::cases(), &nobody, &choice);
    assert!(report.cases.len() > 2 && report.broken() == report.cases.len(), "{}", report.table());
    let why = report.cases[0].broken.clone().unwrap();
    assert!(why.contains("/no/such/program: No such file"), "{why}");
    let found = reach(&nobody);
    assert!(matches!(&found, Err(Broken(why)) if why.contains("/no/such/program: No such file")), "{found:?}");
    assert!(reach(&ours::probes()).is_ok());
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
