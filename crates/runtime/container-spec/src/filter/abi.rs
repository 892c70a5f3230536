//! Numbers of system calls on the ABIs of an architecture.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Set in the number of each call of x32.
pub(super) const X32: u32 = 1 << 30;
/// Calls of x32 that have other numbers than on x86_64, and those that are not there (`arch/x86/entry/syscalls/syscall_64.tbl`).
const X32_ONLY: [(&str, u32); 36] = [
    ("rt_sigaction", 512),
    ("rt_sigreturn", 513),
    ("ioctl", 514),
    ("readv", 515),
    ("writev", 516),
    ("recvfrom", 517),
    ("sendmsg", 518),
    ("recvmsg", 519),
    ("execve", 520),
    ("ptrace", 521),
    ("rt_sigpending", 522),
    ("rt_sigtimedwait", 523),
    ("rt_sigqueueinfo", 524),
    ("sigaltstack", 525),
    ("timer_create", 526),
    ("mq_notify", 527),
    ("kexec_load", 528),
    ("waitid", 529),
    ("set_robust_list", 530),
    ("get_robust_list", 531),
    ("vmsplice", 532),
    ("move_pages", 533),
    ("preadv", 534),
    ("pwritev", 535),
    ("rt_tgsigqueueinfo", 536),
    ("recvmmsg", 537),
    ("sendmmsg", 538),
    ("process_vm_readv", 539),
    ("process_vm_writev", 540),
    ("setsockopt", 541),
    ("getsockopt", 542),
    ("io_setup", 543),
    ("io_submit", 544),
    ("execveat", 545),
    ("preadv2", 546),
    ("pwritev2", 547),
];
const NOT_X32: [&str; 11] = [
    "_sysctl",
    "create_module",
    "epoll_ctl_old",
    "epoll_wait_old",
    "get_kernel_syms",
    "get_thread_area",
    "nfsservctl",
    "query_module",
    "set_thread_area",
    "uselib",
    "vserver",
];
/// Calls of ARM alone, which stand apart from the others (`arch/arm/include/uapi/asm/unistd.h`).
const ARM_ONLY: [(&str, u32); 6] = [
    ("breakpoint", 0xf_0001),
    ("cacheflush", 0xf_0002),
    ("usr26", 0xf_0003),
    ("usr32", 0xf_0004),
    ("set_tls", 0xf_0005),
    ("get_tls", 0xf_0006),
];
/// `socketcall` and `ipc` of i386, and which of their calls has which number there (`linux/net.h`, `linux/ipc.h`).
const SOCKETCALL: (u32, [&str; 20]) = (
    102,
    [
        "socket",
        "bind",
        "connect",
        "listen",
        "accept",
        "getsockname",
        "getpeername",
        "socketpair",
        "send",
        "recv",
        "sendto",
        "recvfrom",
        "shutdown",
        "setsockopt",
        "getsockopt",
        "sendmsg",
        "recvmsg",
        "accept4",
        "recvmmsg",
        "sendmmsg",
    ],
);
const IPC: (u32, [(&str, u64); 12]) = (
    117,
    [
        ("semop", 1),
        ("semget", 2),
        ("semctl", 3),
        ("semtimedop", 4),
        ("msgsnd", 11),
        ("msgrcv", 12),
        ("msgget", 13),
        ("msgctl", 14),
        ("shmat", 21),
        ("shmdt", 22),
        ("shmget", 23),
        ("shmctl", 24),
    ],
);

type Numbers = HashMap<&'static str, u32>;

/// The calls of one enumeration of `syscalls`, some of whose names are words of Rust.
macro_rules! numbers {
    ($module:ident, $corrected:expr) => {
        LazyLock::new(|| {
            let named = |call: syscalls::$module::Sysno| call.name().trim_start_matches("r#");
            let all = syscalls::$module::Sysno::iter().filter_map(|c| Some((named(c), u32::try_from(c.id()).ok()?)));
            all.filter_map($corrected).collect()
        })
    };
}

/// Of aarch64 `syscalls` 0.8 has names of machines of 32 bits, and one of its calls by another name (`include/uapi/asm-generic/unistd.h`).
fn of_aarch64((name, number): (&'static str, u32)) -> Option<(&'static str, u32)> {
    match name {
        "fstatat" => Some(("newfstatat", number)),
        _ => Some((name, number)).filter(|_| !(403..=423).contains(&number)),
    }
}

static ON_X86_64: LazyLock<Numbers> = numbers!(x86_64, Some);
static ON_I386: LazyLock<Numbers> = numbers!(x86, Some);
static ON_AARCH64: LazyLock<Numbers> = numbers!(aarch64, of_aarch64);
static ON_ARM: LazyLock<Numbers> = numbers!(arm, Some);

/// A way to make system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    X86_64,
    X32,
    I386,
    Aarch64,
    Arm,
}

impl Abi {
    /// The number of a call; `None`: it is not there.
    pub(super) fn number(self, name: &str) -> Option<u32> {
        let listed = |all: &[(&str, u32)]| all.iter().find(|(n, _)| *n == name).map(|(_, number)| *number);
        match self {
            Self::X86_64 => ON_X86_64.get(name).copied(),
            Self::X32 if NOT_X32.contains(&name) => None,
            Self::X32 => listed(&X32_ONLY).or_else(|| ON_X86_64.get(name).copied()).map(|number| number | X32),
            Self::I386 => ON_I386.get(name).copied(),
            Self::Aarch64 => ON_AARCH64.get(name).copied(),
            Self::Arm => listed(&ARM_ONLY).or_else(|| ON_ARM.get(name).copied()),
        }
    }

    /// The call that a call can be made by as well, and its number there, the first argument.
    pub(super) fn multiplexed(self, name: &str) -> Option<(u32, u64)> {
        if self != Self::I386 {
            return None;
        }
        let (sockets, names) = SOCKETCALL;
        let socket = (1..).zip(names).find(|(_, n)| *n == name).map(|(which, _)| (sockets, which));
        socket.or_else(|| IPC.1.iter().find(|(n, _)| *n == name).map(|(_, which)| (IPC.0, *which)))
    }

    /// Whether arguments are of 64 bits.
    pub(super) fn wide(self) -> bool {
        matches!(self, Self::X86_64 | Self::Aarch64)
    }
}
