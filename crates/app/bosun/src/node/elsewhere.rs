//! A manager of this program in a process of its own: it is built as in a node, and only its crew and its journal lead elsewhere.

use bosun_manager_sdk::{Options, Outside, ServeError, serve_each};

use super::{Ports, managers};
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
pub(crate) struct Given<P> {
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    /// What leads outside, for one node that comes.
    pub(crate) ports: P,
}

/// Serves until SIGTERM. What the manager holds beside rows and journal lines ends with the node that it serves: it is told anew by
/// the next one, and must not act for pods of the one before.
pub(crate) async fn serve(
    what: Served,
    options: Options,
    given: Given<impl Fn(&Outside) -> Ports + 'static>,
) -> Result<(), ServeError> {
    let Given { settings, machine, ports } = given;
    match what {
        Served::Images => serve_each(options, move |o| managers::makes_image_manager(&settings, &ports(o))).await,
        Served::Probes => serve_each(options, move |o| managers::makes_probe_manager(&o.kernel, &ports(o))).await,
        Served::Status => serve_each(options, move |o| managers::makes_status_manager(&ports(o))).await,
        Served::Volumes => {
            serve_each(options, move |o| managers::makes_volume_manager(&settings, &machine, &ports(o))).await
        }
    }
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
