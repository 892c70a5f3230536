//! The process of a container: command line, environment, working directory.

use cri_api::v1;
use oci_spec::runtime::{PosixRlimit, PosixRlimitBuilder, Process, User};

use crate::context::is_privileged;
use crate::facts::{ImageProcess, Request};
use crate::{SpecError, capabilities, context, security, users};

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The process of a container.
///
/// # Errors
/// As [`crate::container_spec`].
pub(crate) fn process(request: &Request<'_>) -> Result<Process, SpecError> {
    let config = request.config;
    let context = context::security(config);
    let asked = context.and_then(|s| s.capabilities.as_ref());
    let names = capabilities::names(asked, is_privileged(config), &request.node.capabilities)?;
    let user = users::container_user(context, &request.image.user, request.users)?;
    let mut oci_user = User::default();
    oci_user.set_uid(user.uid).set_gid(user.gid);
    oci_user.set_additional_gids(Some(user.additional_gids).filter(|g| !g.is_empty()));
    let mut process = Process::default();
    process
        .set_terminal(Some(config.tty))
        .set_user(oci_user)
        .set_args(Some(args(config, request.image)?))
        .set_env(Some(env(request)?))
        .set_cwd(cwd(config, request.image).into())
        .set_capabilities(Some(capabilities::sets(&names, asked)?))
        .set_rlimits(Some(rlimits(request)?).filter(|l| !l.is_empty()))
        .set_no_new_privileges(Some(context.is_some_and(|s| s.no_new_privs)))
        .set_apparmor_profile(security::apparmor(context, &request.node.apparmor)?)
        .set_selinux_label(security::process_label(request))
        .set_oom_score_adj(oom_score_adj(request));
    Ok(process)
}

/// The command line: a command replaces the image's entrypoint and its arguments; arguments alone replace the image's.
fn args(config: &v1::ContainerConfig, image: &ImageProcess) -> Result<Vec<String>, SpecError> {
    let mut args = config.command.clone();
    if args.is_empty() && image.entrypoint != [""] {
        args.clone_from(&image.entrypoint);
    }
    if config.command.is_empty() && config.args.is_empty() {
        args.extend(image.cmd.iter().cloned());
    } else {
        args.extend(config.args.iter().cloned());
    }
    if args.is_empty() { Err(SpecError::NoCommand) } else { Ok(args) }
}

/// `PATH`, `TERM` for a terminal and `HOSTNAME`, then the image's, then the container's own; of a name the last one counts.
fn env(request: &Request<'_>) -> Result<Vec<String>, SpecError> {
    let hostname = match request.sandbox.hostname.as_str() {
        "" => request.node.hostname.as_str(),
        given => given,
    };
    let mut all = vec![PATH.to_owned()];
    if request.config.tty {
        all.push("TERM=xterm".to_owned());
    }
    all.push(format!("HOSTNAME={hostname}"));
    for entry in &request.image.env {
        put(&mut all, entry.clone());
    }
    for pair in &request.config.envs {
        // JSON, in which OCI runtimes take the environment, has no other text.
        let value = std::str::from_utf8(&pair.value).map_err(|_| SpecError::EnvNotText(pair.key.clone()))?;
        put(&mut all, format!("{}={value}", pair.key));
    }
    Ok(all)
}

/// A later value takes the earlier one's place.
fn put(all: &mut Vec<String>, entry: String) {
    let name = |e: &str| e.split('=').next().unwrap_or_default().to_owned();
    match all.iter_mut().find(|e| name(e) == name(&entry)) {
        Some(place) => *place = entry,
        None => all.push(entry),
    }
}

fn cwd(config: &v1::ContainerConfig, image: &ImageProcess) -> String {
    [config.working_dir.as_str(), image.working_dir.as_str()]
        .into_iter()
        .find(|d| !d.is_empty())
        .unwrap_or("/")
        .to_owned()
}

fn rlimits(request: &Request<'_>) -> Result<Vec<PosixRlimit>, SpecError> {
    let limit = |(kind, soft, hard): &(_, u64, u64)| {
        let limit = PosixRlimitBuilder::default().typ(*kind).soft(*soft).hard(*hard);
        limit.build().map_err(SpecError::from)
    };
    request.node.rlimits.iter().map(limit).collect()
}

/// Not lower than what this process may set: without `CAP_SYS_RESOURCE` the kernel refuses, and no container would start.
fn oom_score_adj(request: &Request<'_>) -> Option<i32> {
    let wanted = request.config.linux.as_ref()?.resources.as_ref()?.oom_score_adj;
    let wanted = i32::try_from(wanted.clamp(-1000, 1000)).ok()?;
    Some(request.node.lowest_oom_score_adj.map_or(wanted, |lowest| wanted.max(lowest)))
}
