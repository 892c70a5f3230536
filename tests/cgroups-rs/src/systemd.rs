//! systemd over D-Bus, without a bus: what the client does before it has one, and without one.

use std::process::Command;

use cgroups_rs::systemd::SystemdClient;
use cgroups_rs::systemd::props::PropertiesBuilder;

const NO_BUS: (&str, &str) = ("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus");

/// Runs a test of this program anew where no bus is. Answers whether this is that run.
fn without_a_bus(test: &str) -> bool {
    if std::env::var(NO_BUS.0).is_ok_and(|v| v == NO_BUS.1) {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let status = again.args(["--exact", test]).env(NO_BUS.0, NO_BUS.1).status().unwrap();
    assert!(status.success());
    false
}

#[test]
fn cannot_start_a_slice() {
    if !without_a_bus("systemd::cannot_start_a_slice") {
        return;
    }
    let properties = PropertiesBuilder::default_cgroup("kubepods.slice", "kubepods-burstable.slice").build();
    let failed = SystemdClient::new("kubepods-burstable.slice", properties).unwrap().start().unwrap_err();
    // Refused before the bus is asked: it wants processes to put in, and systemd takes those for scopes only.
    assert_eq!(failed.to_string(), "invalid properties");
}

#[test]
fn cannot_tell_a_bus_that_is_gone_from_a_unit_that_is_gone() {
    if !without_a_bus("systemd::cannot_tell_a_bus_that_is_gone_from_a_unit_that_is_gone") {
        return;
    }
    let mut client = SystemdClient::new("kubepods.slice", Vec::new()).unwrap();
    assert!(client.stop().is_err(), "there is no bus");
    assert!(!client.exists());
    client.set_properties(&[("TasksMax", 100_u64.into())]).unwrap();
}
