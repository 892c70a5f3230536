//! What the host must be like, and what is made on it before the node starts.

use anyhow::{Context, Result, bail};
use model::node::{CgroupDriver, SwapBehavior};
use node_config::NodeConfig;
use ports::host::{CgroupFs, CgroupVersion, HostInfo, HostResult};

use crate::settings::{Settings, reserved_cgroups};

/// Waits for `--lock-file`; it is let go when the process ends.
pub(super) fn lock(path: &std::path::Path) -> Result<std::fs::File> {
    let open = || std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = open().with_context(|| format!("--lock-file {} cannot be opened", path.display()))?;
    if file.try_lock().is_err() {
        tracing::info!(file = %path.display(), "somebody else holds the lock file, waiting for it");
        file.lock().with_context(|| format!("--lock-file {} cannot be locked", path.display()))?;
    }
    Ok(file)
}

/// Refusals of the host that a kubelet makes too, before anything is touched.
pub(super) fn check(
    config: &NodeConfig,
    cgroups: &dyn CgroupFs,
    swap_bytes: impl FnOnce() -> HostResult<u64>,
) -> Result<()> {
    if config.cgroups.fail_cgroup_v1 && cgroups.version() == CgroupVersion::V1 {
        bail!(
            "this host runs cgroup v1 and failCgroupV1 is true (the default): set failCgroupV1: false to run all the same"
        );
    }
    if cgroups.version() == CgroupVersion::V1 {
        // A kubelet refuses both too: v1 has neither per-container swap nor a kill of single processes to switch off.
        if config.limits.swap_behavior == SwapBehavior::LimitedSwap {
            bail!("memorySwap.swapBehavior: LimitedSwap needs cgroup v2, this host runs v1 (allowed: NoSwap)");
        }
        if config.limits.single_process_oom_kill == Some(false) {
            bail!("singleProcessOOMKill: false needs cgroup v2, this host runs v1 (allowed: true, or leave it out)");
        }
    }
    if config.cgroups.fail_swap_on && swap_bytes()? > 0 {
        bail!("swap is on and failSwapOn is true (the default): turn swap off (swapoff -a) or set failSwapOn: false");
    }
    let missing = cgroups.missing_controllers();
    if config.cgroups.per_qos && !missing.is_empty() {
        bail!("cgroup controllers are not mounted: {}", missing.join(", "));
    }
    Ok(())
}

/// What a host makes of MemoryQoS, as a kubelet warns of it.
pub(super) fn warn_of_memory_qos(settings: &Settings, cgroups: &dyn CgroupFs, info: &dyn HostInfo) {
    if settings.config.limits.memory_qos.is_none() {
        return;
    }
    let kernel = info.kernel_version();
    if cgroups.version() == CgroupVersion::V1 {
        tracing::warn!("the feature gate MemoryQoS has no effect: this host runs cgroup v1");
    } else if is_before(&kernel, (5, 9)) {
        tracing::warn!(kernel, "MemoryQoS: processes may hang at memory.high before Linux 5.9");
    }
}

/// Whether a kernel's release is before `major.minor`; one that cannot be read is not.
fn is_before(release: &str, than: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < than)
}

/// Refuses to start without the cgroups that are to be limited: nobody but the operator makes them.
pub(super) fn check_reserved(config: &NodeConfig, driver: CgroupDriver, cgroups: &dyn CgroupFs) -> Result<()> {
    for reserved in reserved_cgroups(config, driver) {
        if !cgroups.exists(&reserved.path)? {
            bail!(
                "enforceNodeAllocatable: the cgroup {:?} of {} ({} for this cgroup driver) does not exist, or lacks a controller: \
                 make it before the node starts, or leave this out of enforceNodeAllocatable",
                reserved.name,
                reserved.what,
                reserved.path
            );
        }
    }
    Ok(())
}

/// The daemon's own folders, with their modes.
pub(super) fn make_dirs(settings: &Settings) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let make = |path: &std::path::Path, mode: u32| {
        let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
        made.with_context(|| format!("{} cannot be made", path.display()))
    };
    make(&settings.root_dir, 0o750)?;
    make(&settings.root_dir.join("pods"), 0o750)?;
    let own = settings.root_dir.join("bosun");
    make(&own, 0o700)?;
    tighten(&own)?;
    make(&settings.config.pods.logs_dir, 0o750)?;
    make(&settings.container_logs_dir, 0o755)
}

/// A folder that was there may be open to others, and holds the journal and sealed objects.
fn tighten(own: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let cannot = || format!("{} cannot be closed to others", own.display());
    if std::fs::metadata(own).with_context(cannot)?.permissions().mode() & 0o777 != 0o700 {
        tracing::warn!(folder = %own.display(), "was open to others, closing it");
        std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o700)).with_context(cannot)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use fakes::FakeCgroups;
    use node_config::Enforce;

    use super::*;

    /// Edge 16, and what v1 has not.
    #[test]
    fn a_machine_that_is_not_as_configured_is_refused_with_the_way_out() {
        use CgroupVersion::{V1, V2};
        type Edit = fn(&mut NodeConfig);
        let table: [(&str, Edit, CgroupVersion, u64, &str); 9] = [
            ("as it is by default", |_| (), V2, 0, ""),
            ("v1", |_| (), V1, 0, "failCgroupV1 is true"),
            ("v1 that is wanted", |c| c.cgroups.fail_cgroup_v1 = false, V1, 0, ""),
            ("swap", |_| (), V2, 4096, "swap is on and failSwapOn is true"),
            ("swap that is wanted", |c| c.cgroups.fail_swap_on = false, V2, 4096, ""),
            (
                "swap for pods",
                |c| (c.cgroups.fail_swap_on, c.limits.swap_behavior) = (false, SwapBehavior::LimitedSwap),
                V2,
                4096,
                "",
            ),
            (
                "swap for pods on v1",
                |c| (c.cgroups.fail_cgroup_v1, c.limits.swap_behavior) = (false, SwapBehavior::LimitedSwap),
                V1,
                0,
                "LimitedSwap needs cgroup v2",
            ),
            (
                "a kill of whole containers on v1",
                |c| (c.cgroups.fail_cgroup_v1, c.limits.single_process_oom_kill) = (false, Some(false)),
                V1,
                0,
                "singleProcessOOMKill: false needs cgroup v2",
            ),
            (
                "a kill of single processes on v1",
                |c| (c.cgroups.fail_cgroup_v1, c.limits.single_process_oom_kill) = (false, Some(true)),
                V1,
                0,
                "",
            ),
        ];
        for (what, edit, version, swap, refused) in table {
            let (mut config, cgroups) = (NodeConfig::default(), FakeCgroups::default());
            edit(&mut config);
            cgroups.set_version(version);
            let told = check(&config, &cgroups, || Ok(swap)).map_or_else(|e| e.to_string(), |()| String::new());
            assert!(told.contains(refused) && told.is_empty() == refused.is_empty(), "{what}: {told}");
        }
    }

    /// Edge 15.
    #[test]
    fn a_cgroup_that_is_to_be_limited_must_be_there() {
        let mut config = NodeConfig::default();
        config.allocatable.enforce = vec![Enforce::Pods, Enforce::SystemReserved];
        config.allocatable.system_reserved_cgroup = "/system".to_owned();
        config.allocatable.kube_reserved_cgroup = "/nobody-limits-it".to_owned();
        let cgroups = FakeCgroups::default();
        let of = |driver| check_reserved(&config, driver, &cgroups).map_err(|e| e.to_string());
        let told = of(CgroupDriver::Cgroupfs).unwrap_err();
        assert!(
            told.contains("\"/system\" of System Reserved (/system for this cgroup driver) does not exist"),
            "{told}"
        );
        cgroups.put("/system");
        assert_eq!(of(CgroupDriver::Cgroupfs), Ok(()));
        let told = of(CgroupDriver::Systemd).unwrap_err();
        assert!(told.contains("(/system.slice for this cgroup driver)"), "{told}");
        cgroups.fail("exists", "/system", true);
        assert!(of(CgroupDriver::Cgroupfs).is_err(), "it is not known whether it is there");
    }

    #[test]
    fn releases_of_kernels_are_compared_by_number() {
        let before = |release| super::is_before(release, (5, 9));
        assert!(before("5.8.18-generic") && before("4.19") && before("5.4.0-150"));
        assert!(!before("5.9.0") && !before("5.10.0-18-amd64") && !before("6.1") && !before("") && !before("linux"));
    }

    #[test]
    fn an_own_folder_that_is_open_to_others_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("bosun");
        std::fs::create_dir(&own).unwrap();
        for mode in [0o755, 0o777, 0o700] {
            std::fs::set_permissions(&own, std::fs::Permissions::from_mode(mode)).unwrap();
            super::tighten(&own).unwrap();
            assert_eq!(std::fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
}
