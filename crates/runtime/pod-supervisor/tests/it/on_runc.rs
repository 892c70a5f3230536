//! Containers, started by a real OCI runtime and by the supervisor itself.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use pod_supervisor::wire::{Answer, Request};
use pod_supervisor::{ExitRecord, NamespacePlan, SOCKET, record};
use rustix::pipe::pipe;

use crate::bed::{Bed, Call, until};

mod crowded;

fn bed() -> Bed {
    let mut bed = Bed::new(NamespacePlan::default());
    bed.start();
    bed
}

/// Each of these holds whoever starts containers.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod by_runc {
            $(#[test]
            fn $name() {
                super::$name(&super::bed());
            })*
        }

        mod by_itself {
            $(#[test]
            fn $name() {
                let mut bed = super::bed();
                bed.by_itself = true;
                super::$name(&bed);
                bed.left_nothing();
            })*
        }
    };
}

both!(
    output_is_logged_and_the_end_is_on_the_disk_before_anybody_is_told,
    what_the_runtime_says_of_a_failure_is_the_answer,
    a_signal_without_a_name_reaches_a_container,
    signals_end_containers_and_the_code_says_which,
    a_container_that_the_kernel_kills_for_memory_says_so,
    a_log_goes_on_in_a_new_file_after_it_was_renamed,
    processes_run_in_a_container_on_passed_descriptors,
    a_process_ends_with_the_connection_that_asked_for_it,
    a_terminal_is_one_stream_with_a_size,
    who_is_attached_has_output_and_gives_input,
    strange_talk_ends_the_connection_and_nothing_else,
    a_start_is_told_to_who_watches_and_a_kill_waits_for_it,
    what_is_no_file_is_no_log_and_stops_nobody,
);

/// Nobody has to move it there, for which the kernel would wait. In a guest it begins there.
#[test]
fn a_supervisor_and_process_1_of_its_pod_are_in_their_cgroup_before_it_takes_commands() {
    let mut bed = Bed::new(NamespacePlan { pid: true, ..NamespacePlan::default() });
    let group = bed.give_group();
    bed.start();
    let inside = fs::read_to_string(group.join("cgroup.procs")).expect("processes");
    // One that becomes its program just now has no words yet.
    let words = |pid: &str| {
        let words = || fs::read_to_string(format!("/proc/{pid}/cmdline")).ok().filter(|words| !words.is_empty());
        until("it has words", words).replace('\0', " ")
    };
    let inside: Vec<_> = inside.lines().map(words).collect();
    let folder = bed.run_dir().display().to_string();
    let has = |verb: &str| inside.iter().any(|words| words.ends_with(&format!("bosun-pod {verb} {folder} ")));
    assert!(inside.len() == 2 && has("run") && has("init"), "{inside:?}");
    assert_eq!(bed.ask(&Request::End), Answer::Done);
    until("all have ended", || fs::remove_dir(&group).ok());
}

/// The next end; starts are told too.
fn exit_of(watch: &mut Call) -> ExitRecord {
    loop {
        match watch.answer() {
            Answer::Event { exit, .. } => return exit,
            Answer::Began { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

fn output_is_logged_and_the_end_is_on_the_disk_before_anybody_is_told(bed: &Bed) {
    let mut watch = bed.call(&Request::Watch);
    assert_eq!(watch.answer(), Answer::State { containers: Vec::new() });
    bed.run(bed.container("c", "echo one; echo two >&2; echo -n three; exit 3", |_| ()));
    let exit = exit_of(&mut watch);
    let on_disk: ExitRecord = record::read_record(&bed.dir.path().join("state/c/exit.json")).expect("record");
    assert_eq!((exit.exit_code, exit.oom), (3, false));
    assert_eq!(on_disk, exit);
    let mut lines = bed.lines("c");
    lines.sort();
    assert_eq!(lines, ["stderr F two", "stdout F one", "stdout F three"]);
    let Answer::State { containers } = bed.ask(&Request::State) else { panic!("no state") };
    assert_eq!((containers.len(), containers[0].exit.as_ref()), (1, Some(&exit)));
    // The runtime keeps nothing of it; the supervisor forgets it when it is told to.
    until("runc's state goes", || (!bed.dir.path().join("oci/c").exists()).then_some(()));
    assert_eq!(bed.ask(&Request::Forget { id: "c".into() }), Answer::Done);
    assert_eq!(bed.ask(&Request::State), Answer::State { containers: Vec::new() });
    assert_eq!(bed.ask(&Request::End), Answer::Done);
    until("the socket goes", || (!bed.run_dir().join(SOCKET).exists()).then_some(()));
}

fn what_the_runtime_says_of_a_failure_is_the_answer(bed: &Bed) {
    let missing = bed.container("c", "", |spec| spec["process"]["args"] = serde_json::json!(["/bin/none"]));
    match bed.ask(&Request::Run { container: missing }) {
        Answer::Failed { why, unknown: false } => assert!(why.contains("/bin/none"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.ask(&Request::State), Answer::State { containers: Vec::new() });
    let none = Request::Signal { id: "none".into(), signal: 9 };
    assert_eq!(bed.ask(&none), Answer::Failed { why: "no container none".into(), unknown: true });
}

#[test]
fn containers_outlive_whoever_started_the_supervisor() {
    let mut bed = Bed::new(NamespacePlan::default());
    // A shell starts it, and ends: nobody is the parent any more.
    let program = env!("CARGO_BIN_EXE_bosun-pod");
    let script = format!("'{program}' run '{}' >/dev/null 2>&1 & echo $!", bed.run_dir().display());
    let shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().expect("sh");
    let pid: u32 = String::from_utf8_lossy(&shell.stdout).trim().parse().expect("number");
    until("it answers", || std::os::unix::net::UnixStream::connect(bed.run_dir().join(SOCKET)).ok());
    bed.run(bed.container("c", "while [ ! -e /dev/go ]; do sleep 0.02; done; echo late; exit 7", |_| ()));
    let session = fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let after_name = session.rsplit(") ").next().expect("fields").split(' ').nth(3).expect("session").to_owned();
    assert_eq!(after_name, pid.to_string(), "a session of its own");
    let Answer::State { containers } = bed.ask(&Request::State) else { panic!("no state") };
    let root = format!("/proc/{}/root/dev/go", containers[0].pid);
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    File::create(root).expect("go");
    assert_eq!(exit_of(&mut watch).exit_code, 7);
    assert_eq!(bed.lines("c"), ["stdout F late"]);
    assert_eq!(bed.ask(&Request::End), Answer::Done);
    until("it ends", || (!bed.run_dir().join(SOCKET).exists()).then_some(()));
    bed.plan.id.clear();
}

/// The C library would have it run by a shell.
#[test]
fn what_is_no_program_is_told_as_such() {
    let mut bed = bed();
    bed.by_itself = true;
    let script = bed.dir.path().join("root/bin/script");
    fs::write(&script, "echo a shell would run this\n").expect("file");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    bed.run(bed.container("c", "sleep 1000", |_| ()));
    let process = bed.process(&["/bin/script"], false);
    let exec = Request::Exec { id: "c".into(), process, console: None, direct: true };
    let container = bed.container("d", "", |spec| spec["process"]["args"] = serde_json::json!(["/bin/script"]));
    for request in [exec, Request::Run { container }] {
        match bed.ask(&request) {
            Answer::Failed { why, unknown: false } => assert!(why.contains("exec format error"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    bed.left_nothing();
}

/// A container ends when all in its PID namespace are reaped: its kill would have waited for the next time that strays are looked for.
#[test]
fn commands_that_cannot_begin_are_reaped_though_nothing_else_happens() {
    let mut bed = bed();
    bed.by_itself = true;
    bed.run(bed.container("c", "sleep 1000", |_| ()));
    let process = bed.process(&["/bin/none"], false);
    for _ in 0..10 {
        let exec = || Request::Exec { id: "c".into(), process: process.clone(), console: None, direct: true };
        let mut calls: Vec<Call> = (0..4).map(|_| bed.call(&exec())).collect();
        assert!(calls.iter_mut().all(|call| matches!(call.answer(), Answer::Failed { .. })));
        until("all are reaped", || bed.zombies().is_empty().then_some(()));
    }
    bed.left_nothing();
}

fn a_signal_without_a_name_reaches_a_container(bed: &Bed) {
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    bed.run(bed.container("c", "trap 'exit 6' 37; echo up; while :; do sleep 0.02; done", |_| ()));
    until("the trap is set", || (bed.lines("c") == ["stdout F up"]).then_some(()));
    assert_eq!(bed.ask(&Request::Signal { id: "c".into(), signal: 37 }), Answer::Done);
    assert_eq!(exit_of(&mut watch).exit_code, 6);
}

fn signals_end_containers_and_the_code_says_which(bed: &Bed) {
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    bed.run(bed.container("c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.02; done", |_| ()));
    until("the trap is set", || (bed.lines("c") == ["stdout F up"]).then_some(()));
    assert_eq!(bed.ask(&Request::End), Answer::failed("containers of the pod run"));
    assert_eq!(bed.ask(&Request::Signal { id: "c".into(), signal: 15 }), Answer::Done);
    assert_eq!(exit_of(&mut watch).exit_code, 5);
    assert_eq!(bed.ask(&Request::Signal { id: "c".into(), signal: 15 }), Answer::Done);
    bed.run(bed.container("d", "sleep 1000", |_| ()));
    assert_eq!(bed.ask(&Request::Signal { id: "d".into(), signal: 9 }), Answer::Done);
    assert_eq!(exit_of(&mut watch).exit_code, 137);
}

fn a_container_that_the_kernel_kills_for_memory_says_so(bed: &Bed) {
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    let script = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo $x";
    let limited = bed.container("c", script, |spec| {
        spec["linux"]["resources"] = serde_json::json!({"memory": {"limit": 16 << 20}});
    });
    bed.run(limited);
    let exit = exit_of(&mut watch);
    assert!(exit.oom && exit.exit_code != 0, "{exit:?}");
}

fn a_log_goes_on_in_a_new_file_after_it_was_renamed(bed: &Bed) {
    let pid = bed.run(bed.container(
        "c",
        "echo old; while [ ! -e /dev/go ]; do sleep 0.02; done; echo new; sleep 1000",
        |_| (),
    ));
    until("the first line", || (bed.lines("c") == ["stdout F old"]).then_some(()));
    let rotated = bed.dir.path().join("rotated");
    fs::rename(bed.log("c"), &rotated).expect("rename");
    assert_eq!(bed.ask(&Request::Reopen { id: "c".into() }), Answer::Done);
    File::create(format!("/proc/{pid}/root/dev/go")).expect("go");
    until("the second line", || (bed.lines("c") == ["stdout F new"]).then_some(()));
    assert!(fs::read_to_string(rotated).expect("old log").ends_with("stdout F old\n"));
}

fn processes_run_in_a_container_on_passed_descriptors(bed: &Bed) {
    bed.run(bed.container("c", "sleep 1000", |_| ()));
    // What the supervisor starts the OCI runtime knows nothing of.
    passed_descriptors(bed, bed.by_itself);
    passed_descriptors(bed, true);
}

/// `direct`: by the supervisor itself, and not by the OCI runtime.
fn passed_descriptors(bed: &Bed, direct: bool) {
    let process = bed.process(&["/bin/sh", "-c", "cat; echo err >&2; exit 4"], false);
    let (input, to) = pipe().expect("pipe");
    let (from, output) = pipe().expect("pipe");
    let (from_err, errors) = pipe().expect("pipe");
    let request = Request::Exec { id: "c".into(), process, console: None, direct };
    let mut call = bed.call_with(&request, &[&input, &output, &errors]);
    drop((input, output, errors));
    assert!(matches!(call.answer(), Answer::Started { .. }));
    let mut to = File::from(to);
    to.write_all(b"through").expect("write");
    drop(to);
    let mut text = String::new();
    File::from(from).read_to_string(&mut text).expect("read");
    File::from(from_err).read_to_string(&mut text).expect("read");
    assert_eq!((text.as_str(), call.answer()), ("througherr\n", Answer::Exited { exit_code: 4 }));
    // What cannot be started is told in the runtime's words.
    let words = "unable to start container process: exec: \"/bin/none\": stat /bin/none: no such file or directory";
    let process = bed.process(&["/bin/none"], false);
    match bed.ask(&Request::Exec { id: "c".into(), process, console: None, direct }) {
        Answer::Failed { why, .. } => assert!(why.contains(words), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn a_process_ends_with_the_connection_that_asked_for_it(bed: &Bed) {
    bed.run(bed.container("c", "sleep 1000", |_| ()));
    for direct in [bed.by_itself, true] {
        let process = bed.process(&["/bin/sleep", "1000"], false);
        let mut call = bed.call(&Request::Exec { id: "c".into(), process, console: None, direct });
        let Answer::Started { pid, .. } = call.answer() else { panic!("not started") };
        assert!(fs::exists(format!("/proc/{pid}")).expect("proc"));
        drop(call);
        until("it ends", || (!fs::exists(format!("/proc/{pid}")).expect("proc")).then_some(()));
    }
}

fn a_terminal_is_one_stream_with_a_size(bed: &Bed) {
    let script = "while [ ! -e /dev/go ]; do sleep 0.02; done; stty size; echo err >&2; exec sleep 1000";
    let pid = bed.run(bed.container("c", script, |spec| spec["process"]["terminal"] = true.into()));
    let resize = Request::Resize { id: "c".into(), width: 91, height: 17 };
    until("the terminal", || (bed.ask(&resize) == Answer::Done).then_some(()));
    File::create(format!("/proc/{pid}/root/dev/go")).expect("go");
    until("two lines", || (bed.lines("c").len() == 2).then_some(()));
    assert_eq!(bed.lines("c"), ["stdout F 17 91", "stdout F err"]);
    // A process with a terminal: it is passed to whoever listens, here us.
    for (number, direct) in [bed.by_itself, true].into_iter().enumerate() {
        let path = bed.dir.path().join(format!("console-{number}"));
        let listener = UnixListener::bind(&path).expect("listen");
        let process = bed.process(&["/bin/sh", "-c", "echo hello; tty; exit 2"], true);
        let mut call = bed.call(&Request::Exec { id: "c".into(), process, console: Some(path), direct });
        let (stream, _) = listener.accept().expect("a terminal");
        let mut passed = Vec::new();
        pod_supervisor::fds::receive(&stream, &mut [0; 4096], &mut passed).expect("terminal");
        assert!(matches!(call.answer(), Answer::Started { .. }));
        assert_eq!(call.answer(), Answer::Exited { exit_code: 2 });
        let mut got = Vec::new();
        let mut piece = [0; 64];
        while let Ok(count) = rustix::io::read(&passed[0], &mut piece) {
            got.extend_from_slice(&piece[..count]);
        }
        assert_eq!(String::from_utf8_lossy(&got), "hello\r\n/dev/pts/1\r\n");
    }
}

fn who_is_attached_has_output_and_gives_input(bed: &Bed) {
    let mut plan = bed.container("c", "cat; echo end", |_| ());
    (plan.stdin, plan.stdin_once) = (true, true);
    bed.run(plan);
    let (input, to) = pipe().expect("pipe");
    let (from, output) = pipe().expect("pipe");
    let attach = Request::Attach { id: "c".into(), stdin: true, stdout: true, stderr: false };
    let mut call = bed.call_with(&attach, &[&input, &output]);
    drop((input, output));
    assert_eq!(call.answer(), Answer::Done);
    let mut to = File::from(to);
    to.write_all(b"spoken\n").expect("write");
    until("an echo", || (bed.lines("c") == ["stdout F spoken"]).then_some(()));
    drop(to); // with `stdin_once`, the container's input ends here
    let mut text = String::new();
    File::from(from).read_to_string(&mut text).expect("read");
    assert_eq!((text.as_str(), call.answer()), ("spoken\nend\n", Answer::Exited { exit_code: 0 }));
}

#[test]
fn a_pod_has_namespaces_without_a_process_that_holds_them() {
    let namespaces = NamespacePlan {
        network: true,
        ipc: true,
        uts: true,
        hostname: "pod-1".into(),
        sysctls: vec![("net.ipv4.ip_unprivileged_port_start".into(), "7".into())],
        ..NamespacePlan::default()
    };
    let mut bed = Bed::new(namespaces);
    bed.start();
    let children = format!("/proc/{0}/task/{0}/children", bed.pid());
    assert_eq!(fs::read_to_string(&children).expect("children"), "", "nobody holds namespaces");
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    let script = "hostname; ip -o addr show lo; cat /proc/sys/net/ipv4/ip_unprivileged_port_start";
    bed.run(bed.container("c", script, |_| ()));
    assert_eq!(exit_of(&mut watch).exit_code, 0);
    let lines = bed.lines("c");
    assert_eq!(lines.first().map(String::as_str), Some("stdout F pod-1"));
    assert!(lines[1].contains("127.0.0.1/8"), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("stdout F 7"));
    assert_eq!(bed.ask(&Request::End), Answer::Done);
    until("mounts go", || {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        (!mounts.contains(&*bed.run_dir().to_string_lossy())).then_some(())
    });
}

#[test]
fn containers_that_share_processes_see_each_other_and_end_with_process_one() {
    let mut bed = Bed::new(NamespacePlan { pid: true, ..NamespacePlan::default() });
    bed.start();
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    bed.run(bed.container("c", "exec sleep 1000", |_| ()));
    bed.run(bed.container("d", "cat /proc/1/comm /proc/2/comm /proc/[0-9]*/comm", |_| ()));
    exit_of(&mut watch);
    let lines = bed.lines("d");
    assert!(
        lines.iter().any(|l| l.ends_with("F bosun-pod")) && lines.iter().any(|l| l.ends_with("F sleep")),
        "{lines:?}"
    );
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", bed.pid())).expect("children");
    let init = children
        .split_whitespace()
        .find(|c| fs::read_to_string(format!("/proc/{c}/comm")).is_ok_and(|name| name == "bosun-pod\n"));
    let init = init.expect("process 1").parse().ok().and_then(rustix::process::Pid::from_raw).expect("number");
    rustix::process::kill_process(init, rustix::process::Signal::KILL).expect("kill");
    assert_eq!(exit_of(&mut watch).exit_code, 137);
}

#[test]
fn users_of_a_pod_are_mapped() {
    let range = pod_supervisor::IdRange { container_id: 0, host_id: 100_000, length: 65_536 };
    let plan = NamespacePlan { network: true, uids: vec![range], gids: vec![range], ..NamespacePlan::default() };
    let mut bed = Bed::new(plan);
    bed.start();
    let user = bed.run_dir().join("ns/user");
    let out =
        Command::new("nsenter").arg(format!("--user={}", user.display())).args(["cat", "/proc/self/uid_map"]).output();
    let map = String::from_utf8_lossy(&out.expect("nsenter").stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(map, "0 100000 65536");
}

fn strange_talk_ends_the_connection_and_nothing_else(bed: &Bed) {
    let path = bed.run_dir().join(SOCKET);
    for bytes in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\x02{}", b"\0\0\0\x05hello"] {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("connect");
        stream.write_all(bytes).expect("write");
        assert_eq!(stream.read(&mut [0; 16]).expect("end"), 0);
    }
    assert_eq!(bed.ask(&Request::State), Answer::State { containers: Vec::new() });
}

fn a_start_is_told_to_who_watches_and_a_kill_waits_for_it(bed: &Bed) {
    let mut watch = bed.call(&Request::Watch);
    watch.answer();
    let run = bed.call(&Request::Run { container: bed.container("c", "sleep 1000", |_| ()) });
    // Whoever asked dies; somebody else sees that it starts, and wants it to end.
    drop(run);
    let mut kill = bed.call(&Request::Signal { id: "c".into(), signal: 9 });
    let Answer::Began { id, pid, started_at } = watch.answer() else { panic!("not begun") };
    assert!(id == "c" && pid > 0 && started_at > 0);
    assert_eq!(kill.answer(), Answer::Done);
    assert_eq!(exit_of(&mut watch).exit_code, 137);
    // One that cannot be started is not there afterwards.
    let missing = bed.container("d", "", |spec| spec["process"]["args"] = serde_json::json!(["/bin/none"]));
    let mut run = bed.call(&Request::Run { container: missing });
    let mut kill = bed.call(&Request::Signal { id: "d".into(), signal: 9 });
    assert!(matches!(run.answer(), Answer::Failed { unknown: false, .. }));
    assert!(matches!(kill.answer(), Answer::Failed { unknown: true, .. }));
}

fn what_is_no_file_is_no_log_and_stops_nobody(bed: &Bed) {
    std::os::unix::fs::symlink("/dev/null", bed.log("link")).expect("link");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bed.log("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("FIFO");
    for id in ["link", "fifo"] {
        match bed.ask(&Request::Run { container: bed.container(id, "true", |_| ()) }) {
            Answer::Failed { why, .. } => assert!(why.contains("not a regular file"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    bed.run(bed.container("c", "sleep 1000", |_| ()));
    fs::remove_file(bed.log("c")).expect("removed");
    fs::rename(bed.log("fifo"), bed.log("c")).expect("renamed");
    assert!(matches!(bed.ask(&Request::Reopen { id: "c".into() }), Answer::Failed { .. }));
}
