//! `bosun serve`: from flags to one manager in a process of its own.

use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;

use actor::run_system;
use anyhow::{Context, Result};
use bosun_manager_sdk::{Options, Outside};
use host_linux::{LinuxCgroups, LinuxInfo};
use model::unix_address::UnixAddress;
use node_config::Flags;
use ports::api::ApiServer;

use super::begin::{Begun, begin};
use super::outside::{Counters, connect, handshake, machine, ports_to};
use super::{cluster, host, logging};
use crate::node::Ports;
use crate::node::elsewhere::{Given, Served, serve};
use crate::own_runtime::OwnRuntime;
use crate::settings::Settings;

/// Serves the manager at `at` until SIGTERM, with what the flags of the node say.
pub(crate) fn run(what: Served, at: &UnixAddress, flags: &Flags) -> Result<ExitCode> {
    let Begun { settings, .. } = begin(flags, "bosun serve")?;
    let options = Options { socket: at.socket().to_owned(), program: "bosun".to_owned() };
    let ended = run_system(|| attend(what, options, settings));
    logging::flush();
    ended??;
    Ok(ExitCode::SUCCESS)
}

async fn attend(what: Served, options: Options, mut settings: Settings) -> Result<()> {
    let beside = cluster::beside(&settings.flags, &settings.config)?;
    let cgroups = LinuxCgroups::detect()?;
    host::make_dirs(&settings)?;
    // The daemon serves it; this process asks it as any other one.
    let own = OwnRuntime::socket_of_daemon(&settings.config)?;
    let client = connect(&settings.config.runtime, own.as_deref())?;
    if what == Served::Images {
        // The others ask nothing of the runtime, and none of them touches a cgroup: its driver is of no concern.
        let _who_it_is = handshake(&client).await?;
    }
    let here = tokio::runtime::Handle::current();
    let counters = Counters::new(cgroups, None, &mut settings, &here);
    let counted = counters.clone();
    let machine = move |settings: &Settings| machine(settings, &LinuxInfo::new(), &counted);
    let api = beside.as_ref().map(|(_, api)| Arc::new(api.clone()) as Arc<dyn ApiServer>);
    let unfollowed = Cell::new(beside);
    let ports = move |outside: &Outside| {
        let Outside { kernel, journal } = outside;
        // The kernel is there with the first node, and the same for all.
        if let Some((credentials, api)) = unfollowed.take() {
            drop(tokio::task::spawn_local(cluster::follow(credentials, api, kernel.effects("kubeconfig"))));
        }
        let ports = ports_to(kernel, client.clone(), counters.clone(), journal.clone(), &here);
        Ports { api: api.clone(), ..ports }
    };
    let socket = options.socket.display().to_string();
    serve(what, options, Given { settings, machine, ports }).await.with_context(|| socket)
}
