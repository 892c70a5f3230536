//! The parts of a host that a test cannot have for real: cgroups, the machine.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ports::host::{Addresses, FsStat, HostError, HostResult, Identity, MemoryUse, NodeHost};

mod cgroups;
mod quotas;

pub use cgroups::FakeCgroups;
pub use quotas::FakeQuotas;

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine with plenty of everything; [`FakeMachine::change`] takes it away.
#[derive(Clone, Debug)]
pub struct Machine {
    /// By what it is told apart.
    pub identity: Identity,
    /// Addresses, whatever name is looked up.
    pub addresses: Addresses,
    /// Memory; `None`: cannot be read.
    pub memory: Option<MemoryUse>,
    /// Every disk; `None`: cannot be read.
    pub disk: Option<FsStat>,
    /// Processes that there are, and the most there can be.
    pub processes: (u64, u64),
    /// Who looks a name up is never answered.
    pub names_hang: bool,
}

impl Default for Machine {
    fn default() -> Self {
        let gib = 1 << 30;
        let ip = std::net::IpAddr::from([10, 0, 0, 1]);
        let disk = FsStat {
            magic: 0xef53,
            total_bytes: 100 * gib,
            available_bytes: 90 * gib,
            total_inodes: 1_000_000,
            free_inodes: 900_000,
        };
        Self {
            identity: Identity {
                machine_id: "machine-1".to_owned(),
                system_uuid: "uuid-1".to_owned(),
                boot_id: "boot-1".to_owned(),
                kernel_version: "6.1.0".to_owned(),
                os_image: "Fake Linux".to_owned(),
            },
            addresses: Addresses { interfaces: vec![ip], resolved: vec![], default_route: vec![ip] },
            memory: Some(MemoryUse { total_bytes: 8 * gib, working_set_bytes: gib }),
            disk: Some(disk),
            processes: (100, 32_768),
            names_hang: false,
        }
    }
}

/// What a Node object tells of a machine that is not there.
#[derive(Debug, Default)]
pub struct FakeMachine {
    machine: Mutex<Machine>,
}

impl FakeMachine {
    /// Looks at the machine.
    pub fn peek<T>(&self, look: impl FnOnce(&Machine) -> T) -> T {
        look(&lock(&self.machine))
    }

    /// Changes the machine.
    pub fn change(&self, edit: impl FnOnce(&mut Machine)) {
        edit(&mut lock(&self.machine));
    }
}

impl NodeHost for FakeMachine {
    fn identity(&self) -> Identity {
        lock(&self.machine).identity.clone()
    }

    fn addresses(&self, _name: &str) -> Addresses {
        if lock(&self.machine).names_hang {
            actor::testing::hang();
        }
        lock(&self.machine).addresses.clone()
    }

    fn memory_use(&self) -> HostResult<MemoryUse> {
        lock(&self.machine).memory.ok_or_else(|| HostError::new("read", "/proc/meminfo", io::ErrorKind::NotFound))
    }

    fn disk(&self, path: &Path) -> HostResult<FsStat> {
        lock(&self.machine).disk.ok_or_else(|| HostError::new("statfs", path, io::ErrorKind::NotFound))
    }

    fn processes(&self) -> HostResult<(u64, u64)> {
        Ok(lock(&self.machine).processes)
    }
}
