//! A manager of this program in a process of its own: it is built as in a node, and only its crew and its journal lead elsewhere.

use anyhow::Result;
use bosun_manager_sdk::{Options, Outside, serve_each};

use super::Ports;
use super::managers::{self, Kept};
use crate::settings::{Machine, Settings};

/// Which manager is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Served {
    /// Pulls, and removal of images.
    Images,
    /// Schedules of probes, and what their outcomes add up to.
    Probes,
    /// The version of each pod's status.
    Status,
    /// Volumes and folders of pods.
    Volumes,
}

/// What it is made with, as the node has it.
pub(crate) struct Given<M, P> {
    pub(crate) settings: Settings,
    /// Reads the machine, for those that need it.
    pub(crate) machine: M,
    /// What leads outside, for one node that comes.
    pub(crate) ports: P,
}

/// Serves until SIGTERM. What the manager holds beside rows and journal lines ends with the node that it serves: it is told anew by
/// the next one, and must not act for pods of the one before. Order among work that goes on (pulls, mounts) is the process's.
pub(crate) async fn serve(
    what: Served,
    options: Options,
    given: Given<impl FnOnce(&Settings) -> Result<Machine>, impl Fn(&Outside) -> Ports + 'static>,
) -> Result<()> {
    let Given { settings, machine, ports } = given;
    let kept = Kept::new(&settings.config);
    match what {
        Served::Images => {
            serve_each(options, move |o| managers::makes_image_manager(&settings, &kept, &ports(o))).await?;
        }
        Served::Probes => serve_each(options, move |o| managers::makes_probe_manager(&o.kernel, &ports(o))).await?,
        Served::Status => serve_each(options, move |o| managers::makes_status_manager(&ports(o))).await?,
        Served::Volumes => {
            let machine = machine(&settings)?;
            let made = move |o: &Outside| managers::makes_volume_manager((&settings, &machine), &kept, &ports(o));
            serve_each(options, made).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn whatever_may_run_elsewhere_is_served() {
        let names = Served::value_variants().iter().filter_map(Served::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        assert_eq!(names, node_config::REMOTE_MANAGERS);
    }
}
