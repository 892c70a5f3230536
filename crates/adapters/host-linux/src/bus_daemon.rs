//! A private message bus for tests. Never the system's.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// `dbus-daemon` on a socket in a folder of its own; ended when dropped.
pub(crate) struct BusDaemon {
    daemon: Child,
    dir: tempfile::TempDir,
}

impl BusDaemon {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "<busconfig><type>custom</type><listen>{}</listen><auth>EXTERNAL</auth><policy context='default'>\
             <allow send_destination='*'/><allow receive_sender='*'/><allow own='*'/></policy></busconfig>",
            address(&dir)
        );
        std::fs::write(dir.path().join("bus.conf"), config).unwrap();
        Self { daemon: daemon(&dir), dir }
    }

    pub(crate) fn address(&self) -> String {
        address(&self.dir)
    }

    /// Ends the bus and starts another one at the same address.
    pub(crate) fn restart(&mut self, between: impl FnOnce()) {
        self.end();
        between();
        self.daemon = daemon(&self.dir);
    }

    fn end(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        let _socket = std::fs::remove_file(self.dir.path().join("bus"));
    }
}

impl Drop for BusDaemon {
    fn drop(&mut self) {
        self.end();
    }
}

fn address(dir: &tempfile::TempDir) -> String {
    format!("unix:path={}/bus", dir.path().display())
}

fn daemon(dir: &tempfile::TempDir) -> Child {
    let config = format!("--config-file={}", dir.path().join("bus.conf").display());
    let mut command = Command::new("dbus-daemon");
    command.args([&*config, "--nofork", "--nopidfile", "--print-address"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("dbus-daemon is installed (`cargo xtask setup`)");
    // It listens once it has said where.
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("unix:"), "{line}");
    child
}
