//! What the host must be like, and what is made on it before the node starts.

use anyhow::{Context, Result, bail};
use model::node::SwapBehavior;
use ports::host::{CgroupFs, CgroupVersion, HostInfo};

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
pub(super) fn check(settings: &Settings, cgroups: &dyn CgroupFs, info: &dyn HostInfo) -> Result<()> {
    let config = &settings.config;
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
    if config.cgroups.fail_swap_on && info.swap_total_bytes()? > 0 {
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
pub(super) fn check_reserved(settings: &Settings, cgroups: &dyn CgroupFs) -> Result<()> {
    for reserved in reserved_cgroups(&settings.config, settings.cgroup_driver) {
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
