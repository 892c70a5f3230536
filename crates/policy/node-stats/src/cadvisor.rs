//! `/metrics/cadvisor` (interfaces 5.4).
//!
//! One row per cgroup: the root, slices of the system, tiers and pods, sandboxes (which carry the network) and containers.
//! Rows that interfaces 5.4 lists and that no file of the kernel backs are left out (docs/compat.md names them).

use crate::text::{Kind, Text, labels};

mod disk;
mod families;
mod row;

use row::Labelled;
pub use row::{Input, Row};

/// The text.
#[must_use]
pub fn render(input: &Input) -> String {
    let mut text = Text::with_capacity(16_384 + input.rows.len() * 12_000);
    let rows: Vec<Labelled<'_>> = input.rows.iter().map(|row| Labelled::new(row, &input.disks)).collect();
    for family in families::ALL.iter().chain(disk::ALL) {
        text.family(family.name, family.help, family.kind);
        for l in &rows {
            (family.values)(l, &mut |extra: &str, value: f64| {
                text.sample([&l.container, extra, &l.rest], value, Some(l.row.reading.at));
            });
        }
    }
    machine(&mut text, input);
    text.done()
}

fn machine(text: &mut Text, input: &Input) {
    let m = &*input.machine;
    let version = labels(&[
        ("cadvisorRevision", ""),
        ("cadvisorVersion", ""),
        ("dockerVersion", ""),
        ("kernelVersion", &m.kernel_version),
        ("osVersion", &m.os_image),
    ]);
    text.family(
        "cadvisor_version_info",
        "Versions of the kernel and of the operating system, with the value 1",
        Kind::Gauge,
    );
    text.sample([&version, "", ""], 1.0, None);
    let failed = f64::from(u8::from(input.failed));
    text.family("container_scrape_error", "1 when cgroups could not be read, else 0", Kind::Gauge);
    text.sample([""; 3], failed, None);
    text.family("machine_scrape_error", "1 when the machine could not be read, else 0", Kind::Gauge);
    text.sample([""; 3], failed, None);
    let of = labels(&[("boot_id", &m.boot_id), ("machine_id", &m.machine_id), ("system_uuid", &m.system_uuid)]);
    #[allow(clippy::cast_precision_loss, reason = "metrics are floats")]
    let bytes = |n: u64| Some(n as f64);
    let table = [
        ("machine_cpu_cores", "Logical processors of the machine", Some(f64::from(m.cpus)).filter(|n| *n > 0.0)),
        ("machine_cpu_physical_cores", "Cores of the machine", m.cores.map(f64::from)),
        ("machine_cpu_sockets", "Processor sockets of the machine", m.sockets.map(f64::from)),
        ("machine_memory_bytes", "Memory of the machine in bytes", bytes(m.memory_bytes).filter(|n| *n > 0.0)),
        ("machine_swap_bytes", "Swap of the machine in bytes", bytes(m.swap_bytes)),
    ];
    for (name, help, value) in table {
        text.family(name, help, Kind::Gauge);
        if let Some(value) = value {
            text.sample([&of, "", ""], value, Some(input.at));
        }
    }
}
