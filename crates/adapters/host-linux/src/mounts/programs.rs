//! Programs of the host that know about disks and shares. The daemon's `PATH` says where they are.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ports::host::{HostError, HostResult};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

/// More mounts on one directory than anybody makes by design.
pub(super) const MAX_STACKED: usize = 32;
/// What is kept of a program's complaint, in bytes.
const MAX_WORDS: usize = 1000;
/// What is kept of all that a program says, in bytes.
const MAX_OUTPUT: usize = 64 << 10;
/// Between the first two looks whether a program has ended; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long the end of a program that was killed is waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most programs about one thing (a disk, a server) that were killed and hang in the kernel all the same; with so many no other one
/// about it is begun.
const MAX_STUCK: usize = 8;
/// The same, about all things.
const MAX_STUCK_IN_ALL: usize = 256;

/// Programs that were killed and had not ended when they were looked at last, with what they are about.
static STUCK: Mutex<Vec<(String, Child)>> = Mutex::new(Vec::new());

/// Runs a program to its end; its exit code is the caller's to judge. After `limit` it is killed, with all that it started. The
/// answer has all its words in `stdout`. `about`: the disk or server that may not answer.
///
/// # Errors
/// It cannot be started; `NotFound`: the host has none; `TimedOut`: it was killed.
pub(super) fn run_within<S: AsRef<OsStr>>(
    limit: Duration,
    about: &str,
    program: &OsStr,
    arguments: &[S],
) -> io::Result<Output> {
    bury(about)?;
    // A file, no pipe: what it leaves running in the background may hold that open.
    let said = File::from(memfd_create("words", MemfdFlags::CLOEXEC)?);
    let mut command = command(program, arguments);
    let mut child = command.stdout(said.try_clone()?).stderr(said.try_clone()?).process_group(0).spawn()?;
    if let Some(status) = ends_within(&mut child, limit)? {
        let mut stdout = vec![0; MAX_OUTPUT];
        let length = said.read_at(&mut stdout, 0)?;
        stdout.truncate(length);
        return Ok(Output { status, stdout, stderr: Vec::new() });
    }
    let killed = kill_process_group(Pid::from_child(&child), Signal::KILL);
    if ends_within(&mut child, LAST_WORDS)?.is_none() {
        STUCK.lock().unwrap_or_else(PoisonError::into_inner).push((about.to_owned(), child));
    }
    killed?;
    let text = format!("{} has not ended within {} s and was killed", program.display(), limit.as_secs_f64());
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
}

fn command<S: AsRef<OsStr>>(program: &OsStr, arguments: &[S]) -> Command {
    let mut command = Command::new(program);
    // The words that are looked for are not translated ones.
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Takes note of programs that have ended at last. Refuses another one about what too many hang over.
fn bury(about: &str) -> io::Result<()> {
    let mut stuck = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    stuck.retain_mut(|(_, child)| matches!(child.try_wait(), Ok(None)));
    let (all, of_it) = (stuck.len(), stuck.iter().filter(|(other, _)| other == about).count());
    drop(stuck);
    let text = match () {
        () if of_it >= MAX_STUCK => format!("{of_it} programs about {about} were killed and hang in the kernel"),
        () if all >= MAX_STUCK_IN_ALL => format!("{all} programs of this node were killed and hang in the kernel"),
        () => return Ok(()),
    };
    Err(io::Error::other(text + ": no other one is begun"))
}

/// How a program ended; `None`: not yet.
fn ends_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let (begun, mut wait) = (Instant::now(), FIRST_PAUSE);
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || begun.elapsed() >= limit {
            return Ok(ended);
        }
        pause(wait);
        wait = (wait * 2).min(LONGEST_PAUSE);
    }
}

#[allow(clippy::disallowed_methods, reason = "on a blocking thread, never on an arbiter")]
fn pause(wait: Duration) {
    thread::sleep(wait);
}

/// As [`run_within`], for programs that fail with any code but 0.
pub(super) fn done<S: AsRef<OsStr>>(
    program: &'static str,
    limit: Duration,
    arguments: &[S],
    path: &Path,
) -> HostResult<()> {
    let out = run_within(limit, &path.to_string_lossy(), OsStr::new(program), arguments)
        .map_err(|e| HostError::new(program, path, e))?;
    if out.status.success() { Ok(()) } else { Err(failed(program, path, &out)) }
}

/// That a program failed, with what it said.
pub(super) fn failed(program: &'static str, path: &Path, out: &Output) -> HostError {
    HostError::new(program, path, io::Error::other(format!("{}: {}", out.status, words(out))))
}

/// What a program said, in both its streams.
pub(super) fn words(out: &Output) -> String {
    let both = [out.stdout.as_slice(), out.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both[..both.len().min(MAX_WORDS)]).trim().to_owned()
}

/// As Go's library says it, whose words stand in events.
pub(super) fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal: {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(limit: Duration, text: &str) -> io::Result<Output> {
        run_within(limit, "a test", OsStr::new("sh"), &["-c", text])
    }

    #[test]
    fn a_program_is_heard_to_its_end_whatever_it_leaves_running() {
        let begun = Instant::now();
        let out = shell(Duration::from_secs(20), "echo one; echo two >&2; sleep 30 & exit 3").unwrap();
        assert_eq!((words(&out).as_str(), ended(out.status).as_str()), ("one\ntwo", "exit status 3"));
        assert!(begun.elapsed() < Duration::from_secs(20));
        let much = shell(Duration::from_secs(20), "head -c 300000 /dev/zero").unwrap();
        assert_eq!((much.stdout.len(), much.status.success()), (MAX_OUTPUT, true));
    }

    #[test]
    fn programs_that_hang_over_one_thing_hold_up_no_other() {
        let sleeper = || Command::new("sleep").arg("100").spawn().unwrap();
        STUCK.lock().unwrap().extend((0..MAX_STUCK).map(|_| ("srv".to_owned(), sleeper())));
        let e = run_within(LAST_WORDS, "srv", OsStr::new("true"), &[""; 0]).unwrap_err();
        assert_eq!(e.to_string(), "8 programs about srv were killed and hang in the kernel: no other one is begun");
        run_within(Duration::from_secs(20), "other", OsStr::new("true"), &[""; 0]).unwrap();
        for (_, child) in STUCK.lock().unwrap().iter_mut() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        run_within(Duration::from_secs(20), "srv", OsStr::new("true"), &[""; 0]).unwrap();
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed_with_its_children() {
        let tmp = tempfile::tempdir().unwrap();
        let pid = tmp.path().join("pid");
        let text = format!("sleep 300 & echo $! > {}; wait", pid.display());
        let e = shell(Duration::from_millis(500), &text).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::TimedOut);
        assert_eq!(e.to_string(), "sh has not ended within 0.5 s and was killed");
        let pid = std::fs::read_to_string(pid).unwrap();
        let state = |pid: &str| std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok();
        let is_gone = |stat: Option<String>| stat.is_none_or(|stat| stat.contains(") Z "));
        let begun = Instant::now();
        while !is_gone(state(&pid)) {
            assert!(begun.elapsed() < Duration::from_secs(20), "the child lives on");
            thread::yield_now();
        }
    }
}
