//! The whole program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use contract::{Answers, Crew, Role};

use crate::outside::Outside;
use crate::serve::{Options, serve};

/// Serves a manager at the address of `--at unix:///PATH`, the program's one argument, until SIGTERM. `factory` is called for
/// each generation, as in a node. Log lines go to stderr; `BOSUN_LOG` filters them.
pub fn main<R: Role, A: Answers<R>>(factory: impl Fn(Crew<R>, &Outside) -> A + Send + Sync + 'static) -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let socket = match socket(words.collect()) {
        Ok(socket) => socket,
        Err(why) => {
            eprintln!("Error: {why}\nUsage: {program} --at unix:///PATH");
            return ExitCode::FAILURE;
        }
    };
    let filter = std::env::var("BOSUN_LOG").ok().filter(|f| !f.is_empty()).unwrap_or_else(|| "info".to_owned());
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    let _is_the_first = lines.with_env_filter(filter).try_init();
    match serve(Options { socket, program }, factory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("Error: {}", actor::chain(&e));
            ExitCode::FAILURE
        }
    }
}

fn socket(words: Vec<OsString>) -> Result<PathBuf, String> {
    let [flag, address] = words.as_slice() else { return Err("one flag with its value is wanted".to_owned()) };
    if flag != "--at" {
        return Err(format!("unknown word {flag:?}"));
    }
    let path = address.to_str().and_then(|a| a.strip_prefix("unix://")).map(PathBuf::from);
    let path = path.filter(|path| path.is_absolute());
    path.ok_or_else(|| format!("--at: {address:?} is no address (allowed: unix:///PATH)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_flag_names_a_socket() {
        let read = |words: &[&str]| socket(words.iter().map(OsString::from).collect());
        assert_eq!(read(&["--at", "unix:///run/a.sock"]), Ok(PathBuf::from("/run/a.sock")));
        for words in
            [&[][..], &["--at"], &["--to", "unix:///a"], &["--at", "/a"], &["--at", "unix://a"], &["a", "b", "c"]]
        {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
