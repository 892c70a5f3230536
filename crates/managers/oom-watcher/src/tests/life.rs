use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle, until};
use actor::{ActorRef, Kernel};
use contract::Wiring;
use fakes::{Events, FakeKernelLog, MemoryJournal};

use crate::{Deps, OomWatcher};

/// The lines of a kill for lack of the machine's memory.
fn of_the_machine(log: &FakeKernelLog, pid: u32) {
    let end = format!("Out of memory: Killed process {pid} (hog) total-vm:7kB");
    log.say(&["hog invoked oom-killer: gfp_mask=0xcc0, order=0", "Mem-Info:", &end]);
}

fn of_a_pod(log: &FakeKernelLog) {
    log.say(&["hog invoked oom-killer: gfp_mask=0xcc0, order=0", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1,task=hog,pid=1,uid=0"]);
}

fn told(pid: u32) -> String {
    format!("Warning SystemOOM: System OOM encountered, victim process: hog, pid: {pid}")
}

struct Rig {
    log: Arc<FakeKernelLog>,
    journal: Arc<MemoryJournal>,
    wiring: Wiring,
    events: Events,
}

impl Rig {
    fn new() -> Self {
        let wiring = Wiring::default();
        let events = Events::on(&wiring);
        Self { log: Arc::default(), journal: Arc::default(), wiring, events }
    }

    fn start(&self, kernel: &Kernel, boot_id: &str) -> ActorRef<OomWatcher> {
        let boot_id = boot_id.to_owned();
        let deps = Arc::new(Deps { log: self.log.clone(), journal: self.journal.clone(), boot_id });
        fakes::start(kernel, &self.wiring, move |crew| OomWatcher::new(crew, deps.clone()))
    }
}

/// Lets everything happen that is going to.
async fn rest() {
    for _ in 0..50 {
        settle().await;
    }
}

#[test]
fn the_machine_out_of_memory_is_an_event_of_the_node_and_a_containers_limit_is_none() {
    run(1, |kernel| async move {
        let rig = Rig::new();
        of_the_machine(&rig.log, 41);
        rig.start(&kernel, "boot");
        until("what happened before the start", || rig.events.lines() == [told(41)]).await;
        of_a_pod(&rig.log);
        rig.log.say(&["usb 1-1: new device"]);
        of_the_machine(&rig.log, 42);
        until("the other one", || rig.events.lines() == [told(41), told(42)]).await;
        rest().await;
        assert_eq!(rig.events.lines().len(), 2);
    });
}

#[test]
fn what_was_told_is_not_told_again_in_the_same_boot() {
    run(2, |kernel| async move {
        let rig = Rig::new();
        of_the_machine(&rig.log, 41);
        let watcher = rig.start(&kernel, "boot");
        until("told", || rig.events.lines() == [told(41)]).await;
        watcher.kill();
        rest().await;
        of_the_machine(&rig.log, 42);
        until("the next", || rig.events.lines() == [told(41), told(42)]).await;
        // The next daemon.
        rig.events.forget();
        rig.start(&kernel, "boot");
        rest().await;
        assert_eq!(rig.events.lines(), [] as [String; 0]);
        // The next boot, in which the lines are numbered anew.
        rig.log.boot();
        of_the_machine(&rig.log, 7);
        rig.start(&kernel, "another boot");
        until("told", || rig.events.lines() == [told(7)]).await;
    });
}

#[test]
fn a_machine_that_does_not_say_which_boot_it_is_tells_again() {
    run(3, |kernel| async move {
        let rig = Rig::new();
        of_the_machine(&rig.log, 41);
        rig.start(&kernel, "");
        until("told", || rig.events.taken().len() == 1).await;
        rig.start(&kernel, "");
        until("told again", || rig.events.lines() == [told(41)]).await;
    });
}

#[test]
fn a_log_that_cannot_be_read_is_tried_again_with_longer_pauses() {
    run(4, |kernel| async move {
        let rig = Rig::new();
        rig.log.refuse(9);
        of_the_machine(&rig.log, 41);
        rig.start(&kernel, "boot");
        tokio::time::sleep(Duration::from_secs(520)).await;
        // After 1, 2, 4 ... 256 seconds.
        assert_eq!((rig.log.opens(), rig.events.lines()), (10, vec![told(41)]));
        rig.log.fail();
        of_the_machine(&rig.log, 42);
        until("opened anew, a second later", || rig.events.lines() == [told(41), told(42)]).await;
        assert_eq!(rig.log.opens(), 11);
    });
}

#[test]
fn a_death_at_any_point_loses_no_kill() {
    for point in ["open", "kill"] {
        run(5, move |kernel| async move {
            kernel.faults().add_text(&format!("oom-watcher: panic@{point}#1")).expect("a rule");
            kernel.faults().enable();
            let rig = Rig::new();
            of_the_machine(&rig.log, 41);
            rig.start(&kernel, "boot");
            until("told", || rig.events.lines() == [told(41)]).await;
            rest().await;
            assert_eq!((rig.events.lines().len(), kernel.faults().log().len()), (1, 1), "{point}");
        });
    }
}

#[test]
fn a_broken_line_of_the_journal_counts_as_none() {
    for line in [&b"boot"[..], b"boot x", b"\xff 1", b""] {
        run(6, move |kernel| async move {
            let rig = Rig::new();
            ports::journal::Journal::save(&*rig.journal, "oom/told", line).expect("a journal in memory");
            of_the_machine(&rig.log, 41);
            rig.start(&kernel, "boot");
            until("told", || rig.events.lines() == [told(41)]).await;
        });
    }
}
