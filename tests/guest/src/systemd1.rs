//! As much of systemd as its login manager needs to shut a machine down: `systemd1 SCRIPT` has the place of the first process on
//! the system's bus. The unit that logind starts in the end runs the script, once.

#![forbid(unsafe_code)]

use std::process::Command;

use zbus::{OwnedObjectPath, connection, fdo, interface};

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "/org/freedesktop/systemd1";
const UNIT: &str = "/org/freedesktop/systemd1/unit/poweroff_2etarget";
const JOB: &str = "/org/freedesktop/systemd1/job/1";

struct Manager {
    script: String,
}

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn subscribe(&self) {}

    /// The machine goes.
    fn start_unit(&self, unit: String, _mode: String) -> fdo::Result<OwnedObjectPath> {
        let ended = Command::new("bash").args(["-c", &self.script, "systemd1", &unit]).status();
        let ended = ended.map_err(|e| fdo::Error::Failed(e.to_string()))?;
        if !ended.success() {
            return Err(fdo::Error::Failed(format!("{ended}")));
        }
        OwnedObjectPath::try_from(JOB).map_err(|e| fdo::Error::Failed(e.to_string()))
    }
}

struct Target;

#[interface(name = "org.freedesktop.systemd1.Unit")]
impl Target {
    #[zbus(property)]
    fn load_state(&self) -> String {
        "loaded".to_owned()
    }
}

fn main() {
    let script = std::env::args().nth(1).expect("a script");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let builder = connection::Builder::system().name(SERVICE).serve_at(MANAGER, Manager { script });
        let service = builder.serve_at(UNIT, Target).build().await.expect("a place on the bus");
        println!("ready");
        std::future::pending::<()>().await;
        drop(service);
    });
}
