//! What the program says to who does not know it. That it is here has the whole program built with the workspace, for the
//! end-to-end test that runs it.

use std::process::Command;

#[test]
fn who_names_no_socket_is_told_how_to() {
    let output = Command::new(env!("CARGO_BIN_EXE_remote-probes")).args(["--at", "/run/a.sock"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Usage: remote-probes --at unix:///PATH"), "{said}");
}
