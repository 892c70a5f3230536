//! A private message bus. Never the system's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `dbus-daemon` on a socket in a folder of its own; both go when it is dropped.
#[derive(Debug)]
pub struct BusDaemon {
    daemon: Child,
    dir: PathBuf,
}

impl BusDaemon {
    /// Starts one, and waits until it listens.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start() -> Self {
        let dir = std::env::temp_dir().join(format!("bosun-bus-{:x}-{:08x}", std::process::id(), fastrand::u32(..)));
        std::fs::create_dir(&dir).expect("a folder for temporary files");
        let config = format!(
            "<busconfig><type>custom</type><listen>{}</listen><auth>EXTERNAL</auth><policy context='default'>\
             <allow send_destination='*'/><allow receive_sender='*'/><allow own='*'/></policy></busconfig>",
            address(&dir)
        );
        std::fs::write(dir.join("bus.conf"), config).expect("a folder that takes a file");
        Self { daemon: daemon(&dir), dir }
    }

    /// Where it listens, as `DBUS_SYSTEM_BUS_ADDRESS` has it.
    #[must_use]
    pub fn address(&self) -> String {
        address(&self.dir)
    }

    /// Ends the bus and starts another one at the same address.
    ///
    /// # Panics
    /// It does not start.
    pub fn restart(&mut self, between: impl FnOnce()) {
        self.end();
        between();
        self.daemon = daemon(&self.dir);
    }

    fn end(&mut self) {
        // One that has ended already is as good.
        self.daemon.kill().unwrap_or_default();
        self.daemon.wait().map(drop).unwrap_or_default();
        std::fs::remove_file(self.dir.join("bus")).unwrap_or_default();
    }
}

impl Default for BusDaemon {
    fn default() -> Self {
        Self::start()
    }
}

impl Drop for BusDaemon {
    fn drop(&mut self) {
        self.end();
        // A folder that stays harms nobody.
        std::fs::remove_dir_all(&self.dir).unwrap_or_default();
    }
}

fn address(dir: &Path) -> String {
    format!("unix:path={}/bus", dir.display())
}

fn daemon(dir: &Path) -> Child {
    let config = format!("--config-file={}", dir.join("bus.conf").display());
    let mut command = Command::new("dbus-daemon");
    command.args([&*config, "--nofork", "--nopidfile", "--print-address"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("dbus-daemon is installed (`cargo xtask setup`)");
    // It listens once it has said where.
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert!(line.starts_with("unix:"), "{line}");
    child
}
