//! `bosun-pod run|hold|init|start|exec`: see the crate's documentation.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn done(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    // Else it is called as the descriptor is that it was started by.
    let named = rustix::thread::set_name(c"bosun-pod");
    debug_assert!(named.is_ok());
    let mut args = std::env::args_os().skip(1);
    let (verb, dir) = (args.next(), args.next());
    // Why these failed has been told, and their streams may be a command's.
    match verb.as_deref().and_then(|v| v.to_str()) {
        Some("start") => return done(pod_supervisor::start().is_ok()),
        Some("exec") => return done(pod_supervisor::exec().is_ok()),
        _ => {}
    }
    let done = match (verb.as_deref().and_then(|v| v.to_str()), &dir) {
        (Some("run"), Some(dir)) => pod_supervisor::supervise(Path::new(dir)),
        (Some("hold"), Some(dir)) => pod_supervisor::hold(Path::new(dir)),
        (Some("init"), _) => pod_supervisor::init(),
        _ => {
            eprintln!("usage: bosun-pod run FOLDER (started by bosun's container runtime, with FOLDER/pod.json)");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bosun-pod: {e}");
            ExitCode::FAILURE
        }
    }
}
