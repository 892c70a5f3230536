//! A step's output: on the terminal, and kept in a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::workspace;

/// How long the output of a program that has ended is waited for: what it left running may hold it open for ever.
const LINGERING: Duration = Duration::from_secs(10);

/// The output of one step.
pub(super) struct Log(PathBuf);

impl Log {
    /// An empty one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(super) fn new(folder: &Path, step: &str) -> anyhow::Result<Self> {
        let path = folder.join(format!("{step}.log"));
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        File::create(&path).with_context(|| path.display().to_string())?;
        Ok(Log(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// All that was said so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        let bytes = std::fs::read(&self.0).with_context(|| self.0.display().to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Runs a program in the root of the repository; what it says goes to the terminal and into the log, in its order.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub(super) fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<()> {
        let log = File::options().append(true).open(&self.0).with_context(|| self.0.display().to_string())?;
        let (said, both) = std::io::pipe()?;
        let mut command = workspace::command(program);
        command.args(args).stdout(both.try_clone()?).stderr(both);
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        // Our copies of the writing end go, so that the pipe ends with the child.
        drop(command);
        let (done, copied) = mpsc::channel();
        std::thread::spawn(move || done.send(copy(said, log)));
        let status = child.wait()?;
        match copied.recv_timeout(LINGERING) {
            Ok(result) => result?,
            Err(_) => println!("(something that `{program}` has started holds its output still)"),
        }
        if !status.success() {
            bail!("`{program} {}` ended with {status}", args.join(" "));
        }
        Ok(())
    }
}

fn copy(said: impl Read, mut log: File) -> std::io::Result<()> {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    while said.read_until(b'\n', &mut line)? > 0 {
        log.write_all(&line)?;
        std::io::stdout().write_all(&line)?;
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_program_says_is_kept_and_its_failure_is_told() {
        let folder = std::env::temp_dir().join(format!("xtask-log-{}", std::process::id()));
        let log = Log::new(&folder, "step").unwrap();
        log.run("sh", &["-c", "echo out; echo err >&2"]).unwrap();
        let error = log.run("sh", &["-c", "printf 'no end of line' >&2; exit 3"]).unwrap_err().to_string();
        assert!(error.ends_with("exit status: 3"), "{error}");
        assert_eq!(log.text().unwrap(), "out\nerr\nno end of line");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
