//! `bosun-pod run|hold|init`: see the crate's documentation.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (verb, dir) = (args.next(), args.next());
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
