//! Processes of the system, which are moved out of the root.

use std::time::Duration;

use actor::testing::{run, until};
use fakes::FakeCgroups;

use super::rig::{Bench, config, tree};

const MINUTE: Duration = Duration::from_secs(60);

fn system() -> crate::Config {
    crate::Config { system_cgroup: Some("/system".to_owned()), ..config() }
}

fn calls(tree: &FakeCgroups, call: &str) -> usize {
    tree.calls().iter().filter(|c| *c == call).count()
}

#[test]
fn what_begins_in_the_root_is_moved_within_a_minute() {
    run(1, |kernel| async move {
        let tree = tree();
        for (pid, is_kernel) in [(1, false), (2, true), (50, false), (60, false)] {
            tree.run_process("/", pid, is_kernel);
        }
        let _bench = Bench::start(&kernel, &tree, system());
        until("moved at the start", || tree.pids("/system") == [50, 60]).await;
        assert_eq!(tree.pids("/"), [1, 2]);
        tree.run_process("/", 70, false);
        tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(tree.pids("/system"), [50, 60, 70]);
        assert_eq!(calls(&tree, "move /system"), 2, "nothing is moved that is not there");
    });
}

#[test]
fn processes_that_fork_meanwhile_are_found_in_the_same_minute() {
    run(2, |kernel| async move {
        let tree = tree();
        tree.run_process("/", 50, false);
        tree.fork_processes(9);
        let _bench = Bench::start(&kernel, &tree, system());
        until("all", || tree.pids("/").is_empty()).await;
        assert_eq!(tree.pids("/system").len(), 10);
    });
}

#[test]
fn one_that_cannot_be_moved_is_tried_eleven_times_a_minute_and_holds_up_no_other() {
    run(3, |kernel| async move {
        let tree = tree();
        for pid in [50, 60] {
            tree.run_process("/", pid, false);
        }
        tree.hold(50);
        let bench = Bench::start(&kernel, &tree, system());
        until("given up for now", || calls(&tree, "move /system") == 11).await;
        assert_eq!((tree.pids("/"), tree.pids("/system")), (vec![50], vec![60]));
        tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(calls(&tree, "move /system"), 22);
        assert_eq!(bench.manager.info().generation, 0);
    });
}

#[test]
fn without_a_place_for_them_nobody_is_looked_for() {
    run(4, |kernel| async move {
        let tree = tree();
        tree.run_process("/", 50, false);
        let _bench = Bench::start(&kernel, &tree, config());
        tokio::time::sleep(2 * MINUTE).await;
        assert_eq!((tree.pids("/"), calls(&tree, "processes /")), (vec![50], 0));
    });
}

#[test]
fn a_root_that_cannot_be_read_is_read_again_in_a_minute() {
    run(5, |kernel| async move {
        let tree = tree();
        tree.run_process("/", 50, false);
        tree.fail("processes", "/", true);
        let _bench = Bench::start(&kernel, &tree, system());
        until("tried", || calls(&tree, "processes /") == 11).await;
        tree.fail("processes", "/", false);
        tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(tree.pids("/system"), [50]);
    });
}
