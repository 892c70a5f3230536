//! Devices of a container, and what its cgroup lets it do with them.

use oci_spec::runtime::{
    LinuxDevice, LinuxDeviceBuilder, LinuxDeviceCgroup, LinuxDeviceCgroupBuilder, LinuxDeviceType,
};

use crate::facts::{DeviceKind, DeviceNode, Request};
use crate::{SpecError, context};

/// Nodes to make, and rules of the device cgroup: nothing at first, then what is given. (The OCI runtime adds `/dev/null` and its
/// like by itself.) A privileged container has all devices of the node and may use any.
pub(crate) fn devices(request: &Request<'_>) -> Result<(Vec<LinuxDevice>, Vec<LinuxDeviceCgroup>), SpecError> {
    let mut nodes = Vec::new();
    let mut rules = vec![everything(false)?];
    let given = request.config.devices.iter().zip(request.devices);
    for (asked, found) in given {
        for device in found {
            nodes.push(node(device)?);
            rules.push(rule(device.kind, device.major, device.minor, &asked.permissions)?);
        }
    }
    if context::is_privileged(request.config) {
        let missing = request.node.host_devices.iter().filter(|h| !nodes.iter().any(|n| n.path() == &h.path));
        let missing: Vec<LinuxDevice> = missing.map(node).collect::<Result<_, _>>()?;
        nodes.extend(missing);
        rules.push(everything(true)?);
    }
    Ok((nodes, rules))
}

pub(crate) fn kind(kind: DeviceKind) -> LinuxDeviceType {
    match kind {
        DeviceKind::Char => LinuxDeviceType::C,
        DeviceKind::Block => LinuxDeviceType::B,
        DeviceKind::Fifo => LinuxDeviceType::P,
    }
}

fn node(device: &DeviceNode) -> Result<LinuxDevice, SpecError> {
    Ok(LinuxDeviceBuilder::default()
        .path(device.path.clone())
        .typ(kind(device.kind))
        .major(device.major)
        .minor(device.minor)
        .file_mode(device.mode)
        .uid(device.uid)
        .gid(device.gid)
        .build()?)
}

pub(crate) fn rule(of: DeviceKind, major: i64, minor: i64, access: &str) -> Result<LinuxDeviceCgroup, SpecError> {
    let rule = LinuxDeviceCgroupBuilder::default().allow(true).typ(kind(of)).major(major).minor(minor);
    Ok(rule.access(access).build()?)
}

fn everything(allow: bool) -> Result<LinuxDeviceCgroup, SpecError> {
    let rule = LinuxDeviceCgroupBuilder::default().allow(allow).access("rwm");
    Ok(rule.build()?)
}
