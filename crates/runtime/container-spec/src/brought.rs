//! What devices bring, put into a container's spec.

use oci_spec::runtime::{Hook, LinuxDevice, LinuxIntelRdt, LinuxNamespaceType, Mount, Spec};

use crate::cdi::{HookEdit, HookName, IntelRdt, MountEdit, NodeEdit};
use crate::facts::{Brought, DeviceKind, DeviceNode};
use crate::mounts::depth;
use crate::{SpecError, devices};

/// Puts it into the spec.
///
/// # Errors
/// What cannot be done here: [`SpecError::Cdi`].
pub(crate) fn apply(Brought { edits, found }: &Brought, spec: &mut Spec) -> Result<(), SpecError> {
    if let Some(device) = edits.net_devices.first() {
        let why = "network interfaces cannot be moved into containers by OCI runtimes of specification 1.0";
        return Err(SpecError::Cdi(format!("netDevices: {}: {why}", device.host_interface_name)));
    }
    if edits.intel_rdt.as_ref().is_some_and(|class| class.cmt || class.mbm) {
        // `oci-spec` 0.10 writes both by names that no OCI runtime reads.
        let why = "cannot be told to the OCI runtime (enableMonitoring can)";
        return Err(SpecError::Cdi(format!("intelRdt: enableCMT and enableMBM {why}")));
    }
    put_variables(&edits.env, spec);
    for (at, edit) in edits.device_nodes.iter().enumerate() {
        node(edit, found.get(at).and_then(Option::as_ref), spec)?;
    }
    mounts(&edits.mounts, spec)?;
    for hook in &edits.hooks {
        add_hook(hook, spec);
    }
    groups(&edits.additional_gids, spec);
    if let (Some(class), Some(linux)) = (&edits.intel_rdt, spec.linux_mut().as_mut()) {
        linux.set_intel_rdt(Some(intel_rdt(class)));
    }
    Ok(())
}

/// A variable of the same name is replaced where it stands.
fn put_variables(env: &[String], spec: &mut Spec) {
    let Some(process) = spec.process_mut().as_mut() else { return };
    let all = process.env_mut().get_or_insert_default();
    for variable in env {
        let name = &variable[..=variable.find('=').unwrap_or_default()];
        match all.iter_mut().find(|v| v.starts_with(name)) {
            Some(there) => there.clone_from(variable),
            None => all.push(variable.clone()),
        }
    }
}

/// Kind, major and minor number: what the file does not say is as on the node.
fn numbers(edit: &NodeEdit, found: Option<&DeviceNode>) -> Result<(DeviceKind, i64, i64), SpecError> {
    let refused = |why: String| SpecError::Cdi(format!("{}: {why}", edit.source().display()));
    let said = match edit.kind.as_str() {
        "" => None,
        "b" => Some(DeviceKind::Block),
        "p" => Some(DeviceKind::Fifo),
        // `u` is a character device without a buffer, which Linux does not tell from the others.
        _ => Some(DeviceKind::Char),
    };
    if let (Some(kind), true) = (said, edit.is_complete()) {
        return Ok((kind, edit.major, edit.minor));
    }
    let found = found.ok_or_else(|| refused("no device is there".to_owned()))?;
    if said.is_some_and(|kind| kind != found.kind) {
        return Err(refused(format!("it should be of type {}, and is another", edit.kind)));
    }
    let is_numbered = edit.major != 0 || found.kind == DeviceKind::Fifo;
    let (major, minor) = if is_numbered { (edit.major, edit.minor) } else { (found.major, found.minor) };
    Ok((found.kind, major, minor))
}

/// Nodes belong to the container's user where the file does not say to whom.
fn node(edit: &NodeEdit, found: Option<&DeviceNode>, spec: &mut Spec) -> Result<(), SpecError> {
    let (kind, major, minor) = numbers(edit, found)?;
    let user = spec.process().as_ref().map(|p| (p.user().uid(), p.user().gid()));
    let (uid, gid) = user.unwrap_or_default();
    let mut made = LinuxDevice::default();
    made.set_path(edit.path.clone()).set_typ(devices::kind(kind)).set_major(major).set_minor(minor);
    made.set_file_mode(edit.file_mode);
    made.set_uid(edit.uid.or((uid > 0).then_some(uid))).set_gid(edit.gid.or((gid > 0).then_some(gid)));
    let Some(linux) = spec.linux_mut() else { return Ok(()) };
    let nodes = linux.devices_mut().get_or_insert_default();
    nodes.retain(|n| *n.path() != edit.path);
    nodes.push(made);
    if kind != DeviceKind::Fifo {
        let access = match edit.permissions.as_str() {
            "" => "rwm",
            "none" => "",
            some => some,
        };
        let rules = linux.resources_mut().get_or_insert_default().devices_mut().get_or_insert_default();
        rules.push(devices::rule(kind, major, minor, access)?);
    }
    Ok(())
}

/// In the place of a mount of the same destination; then those that lie in others come after them.
fn mounts(edits: &[MountEdit], spec: &mut Spec) -> Result<(), SpecError> {
    if edits.is_empty() {
        return Ok(());
    }
    if let (true, Some(first)) = (has_users(spec), edits.first()) {
        // Their owners would have to be mapped, mount by mount, which runc 1.1 cannot and nobody has tried with others.
        let why = "mounts of devices are not made in pods with users of their own";
        return Err(SpecError::Cdi(format!("{}: {why}", first.container_path.display())));
    }
    let all = spec.mounts_mut().get_or_insert_default();
    for edit in edits {
        all.retain(|m| *m.destination() != edit.container_path);
        let mut mount = Mount::default();
        mount
            .set_destination(edit.container_path.clone())
            .set_source(Some(edit.host_path.clone()))
            .set_typ(Some(edit.kind.clone()).filter(|kind| !kind.is_empty()))
            .set_options(Some(edit.options.clone()).filter(|options| !options.is_empty()));
        all.push(mount);
    }
    all.sort_by_key(|m| depth(m.destination()));
    Ok(())
}

fn has_users(spec: &Spec) -> bool {
    let namespaces = spec.linux().as_ref().and_then(|l| l.namespaces().as_ref());
    namespaces.is_some_and(|all| all.iter().any(|n| n.typ() == LinuxNamespaceType::User))
}

#[allow(deprecated, reason = "files name the hook `prestart`, which OCI runtimes still run")]
fn add_hook(edit: &HookEdit, spec: &mut Spec) {
    let mut hook = Hook::default();
    hook.set_path(edit.path.clone())
        .set_args(Some(edit.args.clone()).filter(|a| !a.is_empty()))
        .set_env(Some(edit.env.clone()).filter(|e| !e.is_empty()))
        .set_timeout(edit.timeout);
    let hooks = spec.hooks_mut().get_or_insert_default();
    let those = match edit.hook_name {
        HookName::Prestart => hooks.prestart_mut(),
        HookName::CreateRuntime => hooks.create_runtime_mut(),
        HookName::CreateContainer => hooks.create_container_mut(),
        HookName::StartContainer => hooks.start_container_mut(),
        HookName::Poststart => hooks.poststart_mut(),
        HookName::Poststop => hooks.poststop_mut(),
    };
    those.get_or_insert_default().push(hook);
}

/// Root's group, which everybody in the container may have by other means, is not given (as CDI's own library has it).
fn groups(gids: &[u32], spec: &mut Spec) {
    let Some(process) = spec.process_mut().as_mut().filter(|_| !gids.is_empty()) else { return };
    let mut user = process.user().clone();
    let mut all = user.additional_gids().clone().unwrap_or_default();
    for gid in gids {
        if *gid != 0 && !all.contains(gid) {
            all.push(*gid);
        }
    }
    user.set_additional_gids(Some(all).filter(|a| !a.is_empty()));
    process.set_user(user);
}

fn intel_rdt(class: &IntelRdt) -> LinuxIntelRdt {
    let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut made = LinuxIntelRdt::default();
    made.set_clos_id(said(&class.clos_id))
        .set_schemata(Some(class.schemata.clone()).filter(|s| !s.is_empty()))
        .set_l3_cache_schema(said(&class.l3_cache_schema))
        .set_mem_bw_schema(said(&class.mem_bw_schema))
        .set_enable_monitoring(class.monitoring.then_some(true));
    made
}
