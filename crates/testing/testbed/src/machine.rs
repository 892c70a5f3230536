//! What the machine must offer, and what of it is missing. Only looks; never installs.

use std::path::Path;

/// A program that a bed needs and the Debian package that brings it.
#[derive(Debug, Clone, Copy)]
pub struct Requirement {
    /// Debian package name.
    pub package: &'static str,
    /// A file that exists once the package is there.
    pub proof: &'static str,
    /// What the bed does with it.
    pub why: &'static str,
    /// For what.
    pub need: Need,
}

/// What something is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A bed, whatever its runtime.
    Bed,
    /// One with containerd.
    Containerd,
    /// Some tests.
    Tests,
}

/// What images are made of, in a bed and for a guest.
pub(crate) const BUSYBOX: Requirement =
    Requirement { package: "busybox-static", proof: "/bin/busybox", why: "shell image", need: Need::Bed };
/// See [`BUSYBOX`].
pub(crate) const BASH: Requirement = Requirement {
    package: "bash-static",
    proof: "/bin/bash-static",
    why: "image of a shell that keeps odd env names",
    need: Need::Bed,
};
/// See [`BUSYBOX`].
pub(crate) const GCC: Requirement =
    Requirement { package: "gcc", proof: "/usr/bin/gcc", why: "compiles the pause program", need: Need::Containerd };
/// See [`BUSYBOX`].
pub(crate) const LIBC: Requirement = Requirement {
    package: "libc6-dev",
    proof: "/usr/include/stdlib.h",
    why: "static libc of the pause program",
    need: Need::Containerd,
};

/// All that a bed needs beside the kernel.
pub const REQUIRED: &[Requirement] = &[
    Requirement {
        package: "containerd",
        proof: "/usr/bin/containerd",
        why: "the container runtime",
        need: Need::Containerd,
    },
    Requirement { package: "runc", proof: "/usr/sbin/runc", why: "starts containers", need: Need::Bed },
    Requirement {
        package: "containernetworking-plugins",
        proof: "/usr/lib/cni/bridge",
        why: "pod network",
        need: Need::Bed,
    },
    Requirement { package: "iptables", proof: "/usr/sbin/iptables", why: "host ports of pods", need: Need::Bed },
    Requirement { package: "iproute2", proof: "/sbin/ip", why: "bridge of the test node", need: Need::Bed },
    Requirement { package: "conntrack", proof: "/usr/sbin/conntrack", why: "host ports over UDP", need: Need::Bed },
    Requirement { package: "socat", proof: "/usr/bin/socat", why: "port forwarding", need: Need::Containerd },
    BUSYBOX,
    BASH,
    GCC,
    LIBC,
    Requirement {
        package: "dbus-daemon",
        proof: "/usr/bin/dbus-daemon",
        why: "a private bus for tests of the systemd driver",
        need: Need::Tests,
    },
    Requirement {
        package: "docker-registry",
        proof: "/usr/bin/docker-registry",
        why: "registry for pull tests",
        need: Need::Tests,
    },
    Requirement {
        package: "skopeo",
        proof: "/usr/bin/skopeo",
        why: "pushes images into the registry",
        need: Need::Tests,
    },
];

/// Why a bed cannot run here.
#[derive(Debug, Clone)]
pub enum Problem {
    /// Cannot be helped by installing something.
    Unfit(String),
    /// A package is missing.
    Package(Requirement),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Unfit(text) => f.write_str(text),
            Problem::Package(r) => write!(f, "package {} is not installed ({})", r.package, r.why),
        }
    }
}

/// Everything that stands in a bed's way on this machine; empty when what is needed is there.
#[must_use]
pub fn missing(needs: &[Need]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !cfg!(target_os = "linux") {
        problems.push(Problem::Unfit("containers need Linux".into()));
        return problems;
    }
    if !rustix::process::geteuid().is_root() {
        problems.push(Problem::Unfit("containers, bridges and cgroups need root (try sudo)".into()));
    }
    if !Path::new("/sys/fs/cgroup").is_dir() {
        problems.push(Problem::Unfit("no cgroups are mounted at /sys/fs/cgroup".into()));
    }
    problems.extend(
        REQUIRED
            .iter()
            .filter(|r| needs.contains(&r.need) && !Path::new(r.proof).exists())
            .map(|r| Problem::Package(*r)),
    );
    problems
}

/// Whether this process may lower `oom_score_adj`; containers' starts fail without it unless containerd is told.
pub(crate) fn may_lower_oom_score() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bounding = status.lines().find_map(|l| l.strip_prefix("CapBnd:")).map(str::trim).unwrap_or_default();
    u64::from_str_radix(bounding, 16).is_ok_and(|bits| bits & (1 << CAP_SYS_RESOURCE) != 0)
}
