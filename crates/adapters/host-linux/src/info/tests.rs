use super::*;

/// `/proc/meminfo` with these values in KiB, and every other line that each kernel has.
pub(crate) fn meminfo(values: &[(&str, u64)]) -> String {
    const ALWAYS: [&str; 17] = [
        "MemTotal",
        "MemFree",
        "Buffers",
        "Cached",
        "SwapCached",
        "Active",
        "Inactive",
        "SwapTotal",
        "SwapFree",
        "Dirty",
        "Writeback",
        "Mapped",
        "Slab",
        "Committed_AS",
        "VmallocTotal",
        "VmallocUsed",
        "VmallocChunk",
    ];
    let given = values.iter().map(|(name, kib)| format!("{name}:  {kib} kB\n"));
    let rest = ALWAYS.iter().filter(|name| values.iter().all(|(given, _)| given != *name));
    given.chain(rest.map(|name| format!("{name}:  0 kB\n"))).collect()
}

fn machine() -> (tempfile::TempDir, LinuxInfo) {
    let tmp = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", &*meminfo(&[("MemTotal", 24_684_092), ("MemFree", 1), ("SwapTotal", 2048)])),
        ("proc/sys/kernel/pid_max", "4194304\n"),
        ("proc/sys/kernel/threads-max", "32768\n"),
        ("proc/sys/kernel/random/boot_id", "2f1e-4\n"),
        ("sys/devices/system/cpu/online", "0-1,4\n"),
        ("sys/devices/system/cpu/possible", "0-5\n"),
        ("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "0"),
        ("sys/devices/system/cpu/cpu5/thermal_throttle/core_throttle_count", "0"),
        ("sys/devices/system/cpu/cpu2/online", "0"),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n"),
    ] {
        let file = tmp.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let info = LinuxInfo::at(tmp.path());
    (tmp, info)
}

#[test]
fn facts_are_read_from_proc_and_sys() {
    let (tmp, info) = machine();
    assert_eq!(info.cpu_count(), 3);
    assert_eq!(info.memory_total_bytes().unwrap(), 24_684_092 * 1024);
    assert_eq!(info.swap_total_bytes().unwrap(), 2 << 20);
    assert_eq!(info.pid_capacity().unwrap(), 32_768);
    assert_eq!(info.boot_id().unwrap(), "2f1e-4");
    assert_eq!(info.huge_pages().unwrap(), BTreeMap::from([(2 << 20, 8), (1 << 30, 0)]));
    let cpu = tmp.path().join("sys/devices/system/cpu");
    assert_eq!(info.thermal_throttle_paths(), [cpu.join("cpu1/thermal_throttle"), cpu.join("cpu5/thermal_throttle")]);
}

#[test]
fn a_machine_without_huge_pages_or_swap_line_is_told_apart() {
    let (tmp, info) = machine();
    fs::remove_dir_all(tmp.path().join("sys/kernel")).unwrap();
    fs::write(tmp.path().join("proc/meminfo"), "MemTotal: x kB\n").unwrap();
    assert!(info.huge_pages().unwrap().is_empty());
    assert_eq!(info.swap_total_bytes().unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert!(info.memory_total_bytes().is_err());
}

#[test]
fn this_machine_answers() {
    let info = LinuxInfo::new();
    assert!(info.cpu_count() >= 1);
    assert!(info.memory_total_bytes().unwrap() > 1 << 20);
    assert!(!info.kernel_version().is_empty() && !info.hostname().is_empty());
    assert!(!info.boot_id().unwrap().is_empty());
}

#[test]
fn a_node_tells_who_it_is() {
    use ports::host::NodeHost;
    let (tmp, info) = machine();
    let put = |path: &str, text: &str| {
        let file = tmp.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put("var/lib/dbus/machine-id", "old\n");
    put("usr/lib/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    let told = info.identity();
    assert_eq!((told.machine_id.as_str(), told.system_uuid.as_str()), ("old", "old"));
    assert_eq!((told.os_image.as_str(), told.boot_id.as_str()), ("Debian GNU/Linux 12 (bookworm)", "2f1e-4"));
    put("etc/machine-id", "new\n");
    put("sys/class/dmi/id/product_uuid", "1234-5\n");
    put("etc/os-release", "PRETTY_NAME=Alpine\n");
    let told = info.identity();
    assert_eq!(
        (told.machine_id.as_str(), told.system_uuid.as_str(), told.os_image.as_str()),
        ("new", "1234-5", "Alpine")
    );
}

#[test]
fn what_may_run_short_is_read_from_proc() {
    use ports::host::{MemoryUse, NodeHost};
    let (tmp, info) = machine();
    let put = |path: &str, text: &str| fs::write(tmp.path().join("proc").join(path), text).unwrap();
    put("meminfo", &meminfo(&[("MemTotal", 1000), ("MemFree", 300), ("Inactive(file)", 200)]));
    let expected = MemoryUse { total_bytes: 1000 << 10, working_set_bytes: 500 << 10 };
    assert_eq!(info.memory_use().unwrap(), expected);
    put("meminfo", &meminfo(&[("MemTotal", 1000), ("MemFree", 900), ("Inactive(file)", 200)]));
    assert_eq!(info.memory_use().unwrap().working_set_bytes, 0, "never below nothing");
    put("loadavg", "0.20 0.18 0.12 1/80 11206\n");
    assert_eq!(info.processes().unwrap(), (80, 32_768));
    put("loadavg", "broken");
    assert!(info.processes().is_err());
}

#[test]
fn own_addresses_are_those_of_the_routing_table() {
    use ports::host::NodeHost;
    let (tmp, info) = machine();
    fs::create_dir_all(tmp.path().join("proc/net")).unwrap();
    let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.90.0.0\n        /24 link UNICAST\n     |-- 10.90.0.1\n        /32 host LOCAL\n\
                |-- 10.90.0.255\n        /32 link BROADCAST\nLocal:\n     |-- 10.90.0.1\n        /32 host LOCAL\n\
                |-- 127.0.0.1\n        /32 host LOCAL\n";
    fs::write(tmp.path().join("proc/net/fib_trie"), trie).unwrap();
    let inet6 = "fd000000000000000000000000000001 02 40 00 80     eth0\nshort 01\n";
    fs::write(tmp.path().join("proc/net/if_inet6"), inet6).unwrap();
    let own: Vec<String> = info.addresses("").interfaces.iter().map(ToString::to_string).collect();
    assert_eq!(own, ["10.90.0.1", "127.0.0.1", "fd00::1"]);
    assert!(info.addresses("").resolved.is_empty());
    assert_eq!(info.addresses("127.0.0.9").resolved, ["127.0.0.9".parse::<std::net::IpAddr>().unwrap()]);
}

#[test]
fn cpu_lists() {
    for (text, cpus) in [("0-3,8\n", vec![0, 1, 2, 3, 8]), ("0", vec![0]), ("", vec![]), ("a-b,2", vec![2])] {
        assert_eq!(cpu_list(text), cpus, "{text:?}");
    }
}

#[test]
fn the_policy_of_selinux_is_where_the_host_has_it() {
    let (tmp, info) = machine();
    let write = |path: &str, text: &str| {
        let file = tmp.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write("etc/selinux/targeted/contexts/lxc_contexts", "of targeted");
    assert_eq!(info.selinux_contexts().unwrap(), None, "it is off");
    write("sys/fs/selinux/enforce", "1");
    let is = |text: &str| assert_eq!(info.selinux_contexts().unwrap().as_deref(), Some(text));
    is("of targeted");
    write("etc/selinux/config", "# which\nSELINUX=enforcing\nSELINUXTYPE=mls\n");
    is("");
    write("etc/selinux/mls/contexts/lxc_contexts", "of mls");
    is("of mls");
    write("usr/share/containers/selinux/contexts", "of containers");
    is("of containers");
}
