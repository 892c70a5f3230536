//! Running a short-lived helper program (`ip`, `ctr`, `skopeo` ...) and keeping what it printed.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::BedError;
use crate::error::file;

/// Runs `program` to its end and returns what it printed on stdout.
pub(crate) fn run<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Result<String, BedError> {
    let mut command = Command::new(program);
    command.args(args);
    run_command(&mut command)
}

/// Runs a prepared command to its end and returns what it printed on stdout.
pub(crate) fn run_command(command: &mut Command) -> Result<String, BedError> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| BedError::Command { command: shown.clone(), output: format!("cannot start: {e}") })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = [output.stderr.as_slice(), output.stdout.as_slice()].concat();
    let text = String::from_utf8_lossy(&text);
    Err(BedError::Command { command: shown, output: format!("{}: {}", output.status, text.trim()) })
}

/// Starts a program whose output goes to `log`.
pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Child, BedError> {
    let out = file("open", log, std::fs::OpenOptions::new().create(true).append(true).open(log))?;
    let err = file("open", log, out.try_clone())?;
    // A process group of its own: ctrl-c in a terminal reaches us, and we end the children in order.
    let child = command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0).spawn();
    child.map_err(|e| BedError::Command { command: show(command), output: e.to_string() })
}

/// The command line as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
