//! What the containers of each recorded pod did, for a fake runtime to do again.

use std::time::Duration;

use fakes::runtime::{ExecReply, Fault, OnTerm, Program, Pull};
use fakes::{FakeNet, FakeRuntime};
use model::probe::ProbeOutcome;
use tonic::Code;

/// An image that no registry has.
const NOPE: &str = "registry.k8s.io/e2e-test-images/nope:1.0";

/// Behaviour beside one recorded pod.
pub(crate) struct Script {
    /// Name of the case.
    pub(crate) case: &'static str,
    /// What containers do, by name; the others sleep and do not heed SIGTERM, as a shell with pid 1 does.
    pub(crate) programs: Vec<(&'static str, Vec<Program>)>,
    /// Faults of single calls.
    pub(crate) faults: Vec<Fault>,
    /// What else is so from the start.
    pub(crate) world: fn(&FakeRuntime, &FakeNet),
    /// What happens half a second after the manifest was put down.
    pub(crate) soon: fn(&FakeRuntime),
    /// When the status was recorded, in seconds after the manifest was put down.
    pub(crate) looked_at: Duration,
    /// When the manifest is taken away, in seconds after it was put down.
    pub(crate) remove_after: Duration,
}

/// Sleeps; ends when it is killed.
pub(crate) fn sleeper() -> Program {
    Program::forever().on_term(OnTerm::Ignore)
}

fn exits(seconds: u64, code: i32) -> Vec<Program> {
    vec![Program::exits(Duration::from_secs(seconds), code)]
}

fn script(case: &'static str, programs: Vec<(&'static str, Vec<Program>)>) -> Script {
    Script {
        case,
        programs,
        faults: Vec::new(),
        world: |_, _| (),
        soon: |_| (),
        looked_at: Duration::from_secs(7),
        // As it was recorded.
        remove_after: Duration::from_millis(if case.starts_with("static-") { 12_100 } else { 7_800 }),
    }
}

/// A runtime of the test bed refused to run commands without a time limit: lifecycle hooks failed in the recording.
fn without_hooks(case: &'static str) -> Script {
    let fault = Fault::error("ExecSync", Code::DeadlineExceeded, "Deadline Exceeded");
    Script { faults: vec![fault], ..script(case, vec![]) }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An agnhost that serves on port 8080.
fn serving(case: &'static str) -> Script {
    let world = |_: &FakeRuntime, net: &FakeNet| net.answer(8080, ProbeOutcome::Success, "");
    Script { world, ..script(case, vec![("http", vec![Program::forever().on_term(OnTerm::Exit(Duration::ZERO, 2))])]) }
}

/// Cases in which more than the containers acts.
fn with_other_worlds() -> Vec<Script> {
    vec![
        Script { looked_at: at(12), remove_after: at(13), ..script("active-deadline", vec![]) },
        script("hostpath-wrong-type", vec![]),
        Script {
            world: |fake, _| {
                let text = "Deadline Exceeded".to_owned();
                fake.registry(NOPE, Pull::Fails(Duration::from_millis(5), Code::DeadlineExceeded, text));
            },
            remove_after: Duration::from_millis(19_800),
            ..script("image-missing", vec![])
        },
        script("image-never", vec![]),
        script("node-selector-mismatch", vec![]),
        Script {
            soon: |fake| {
                for c in fake.containers() {
                    fake.oom(&c.id);
                }
            },
            ..script("oom", vec![])
        },
        serving("probes"),
        serving("static-probes"),
        Script {
            world: |fake, _| {
                fake.on_exec(|_| ExecReply { exit_code: 1, stdout: b"not yet\n".to_vec(), ..ExecReply::default() });
            },
            ..script("readiness-fails", vec![])
        },
    ]
}

/// Every recorded pod that can run as a static pod.
pub(crate) fn scripts() -> Vec<Script> {
    let plain = [
        "bandwidth",
        "burstable",
        "fqdn",
        "guaranteed",
        "plain",
        "ports",
        "readiness-gate",
        "security",
        "static-guaranteed",
        "static-plain",
        "static-ports",
        "static-security",
        "tty-stdin",
    ];
    let mut all: Vec<_> = plain.map(|case| script(case, vec![])).into();
    let start_error = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start \
                       container process: exec: \"/does/not/exist\": stat /does/not/exist: no such file or directory: \
                       unknown";
    let done = Program::exits(Duration::ZERO, 0).message("done\n");
    let boom = Program::exits(Duration::ZERO, 7).output(&["boom"]);
    all.extend([
        script("bad-command", vec![("app", vec![Program::cannot_start(start_error)])]),
        Script {
            looked_at: Duration::from_secs(43),
            remove_after: Duration::from_secs(44),
            ..script("crash-loop", vec![("app", exits(0, 1))])
        },
        without_hooks("hooks"),
        Script { looked_at: Duration::from_millis(11_500), ..without_hooks("static-hooks") },
        // Not pid 1 in the host's namespace: SIGTERM ends it.
        script("host-ns", vec![("app", vec![Program::forever().on_term(OnTerm::Exit(Duration::ZERO, 143))])]),
        script("static-host-ns", vec![("app", vec![Program::forever().on_term(OnTerm::Exit(Duration::ZERO, 143))])]),
        script("init-fails-never", vec![("i1", exits(0, 3))]),
        script("init-two", vec![("i1", exits(0, 0)), ("i2", exits(0, 0))]),
        script("static-init-two", vec![("i1", exits(0, 0)), ("i2", exits(0, 0))]),
        script("pause-no-token", vec![("app", vec![Program::forever()])]),
        script("run-once-ok", vec![("app", vec![done.clone()])]),
        script("static-run-once-ok", vec![("app", vec![done])]),
        Script {
            looked_at: Duration::from_secs(27),
            remove_after: Duration::from_secs(28),
            ..script("static-run-once-fail", vec![("app", vec![boom])])
        },
        script("sidecar", vec![("i1", exits(1, 0))]),
        script("static-sidecar", vec![("i1", exits(1, 0))]),
    ]);
    all.extend(with_other_worlds());
    all.sort_by_key(|s| s.case);
    all
}

#[cfg(test)]
mod tests {
    use super::scripts;
    use golden_compare::recording::{case, names};

    #[test]
    fn every_script_goes_with_a_recording() {
        for script in scripts() {
            let case = case(script.case);
            let manifest = case.static_manifest();
            assert!(manifest.starts_with("apiVersion: v1\n") && !manifest.contains("nodeName:"), "{}", script.case);
            assert!(
                script.remove_after.as_secs_f64() > case.last_start(),
                "{}: gone before its last start",
                script.case
            );
        }
    }

    #[test]
    fn every_recording_has_a_script_or_a_reason_to_have_none() {
        let reasons = [
            ("env-all", "refers to a ConfigMap and a Secret"),
            ("env-missing-cm", "refers to a ConfigMap"),
            ("run-once-fail", "the same as static-run-once-fail"),
            ("too-big", "a static pod is critical and would preempt others first"),
            ("volumes-projected", "refers to a ConfigMap and a Secret"),
        ];
        let mut known: Vec<_> = scripts().iter().map(|s| s.case.to_owned()).collect();
        known.extend(reasons.map(|(case, _)| case.to_owned()));
        known.sort();
        assert_eq!(known, names());
    }
}
