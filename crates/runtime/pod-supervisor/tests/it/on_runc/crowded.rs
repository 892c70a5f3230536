//! Many who want something of one supervisor, and those who break off.

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;

use pod_supervisor::SOCKET;
use pod_supervisor::wire::{Answer, Request};
use rustix::pipe::pipe;

use super::{bed, exit_of};
use crate::bed::until;

/// More than a supervisor has places for.
const MANY: usize = 200;

#[test]
fn a_stop_has_its_place_however_many_are_attached_or_say_nothing() {
    let bed = bed();
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    bed.run(bed.container("c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done", |_| ()));
    until("it runs", || (bed.lines("c") == ["stdout F up"]).then_some(()));
    let attach = Request::Attach { id: "c".into(), stdin: false, stdout: true, stderr: false };
    let (_from, to) = pipe().expect("pipe");
    let mut held = Vec::new();
    let refused = (0..MANY).find_map(|_| {
        let mut call = bed.call_with(&attach, &[&to]);
        match call.answer() {
            Answer::Done => {
                held.push(call);
                None
            }
            Answer::Failed { why, unknown: false } => Some(why),
            other => panic!("{other:?}"),
        }
    });
    assert!(refused.is_some_and(|why| why.contains("too many")), "{} are attached", held.len());
    let idle: Vec<UnixStream> =
        (0..MANY).map(|_| UnixStream::connect(bed.run_dir().join(SOCKET)).expect("connect")).collect();
    assert_eq!(bed.ask(&Request::Signal { id: "c".into(), signal: 15 }), Answer::Done);
    assert_eq!(exit_of(&mut watch).exit_code, 7, "it ended by itself, and whoever follows the pod is told");
    drop((held, idle));
}

#[test]
fn the_input_of_a_container_ends_with_the_one_attached_who_breaks_off() {
    let bed = bed();
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    let mut plan = bed.container("c", "cat; echo end", |_| ());
    (plan.stdin, plan.stdin_once) = (true, true);
    bed.run(plan);
    let (input, to) = pipe().expect("pipe");
    let attach = Request::Attach { id: "c".into(), stdin: true, stdout: false, stderr: false };
    let mut call = bed.call_with(&attach, &[&input]);
    drop(input);
    assert_eq!(call.answer(), Answer::Done);
    let mut to = File::from(to);
    to.write_all(b"last words\n").expect("written");
    // Its end of the pipe is open still, as where a server's other thread holds it.
    drop(call);
    assert_eq!(exit_of(&mut watch).exit_code, 0);
    assert_eq!(bed.lines("c"), ["stdout F last words", "stdout F end"]);
}
