//! Programs of the host that know about disks. The daemon's `PATH` says where they are.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ports::host::{HostError, HostResult};

/// What is kept of a program's complaint, in bytes.
const MAX_WORDS: usize = 1000;

/// Runs a program to its end, for `path`. Its exit code is the caller's to judge.
///
/// # Errors
/// It cannot be started; `NotFound`: the host has none.
pub(super) fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> io::Result<Output> {
    // The words that are looked for are not translated ones.
    Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output()
}

/// As [`run`], for programs that fail with any code but 0.
pub(super) fn done<S: AsRef<OsStr>>(program: &'static str, arguments: &[S], path: &Path) -> HostResult<()> {
    let out = run(program, arguments).map_err(|e| HostError::new(program, path, e))?;
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
