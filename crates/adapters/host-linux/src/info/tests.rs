use super::*;

fn machine() -> (tempfile::TempDir, LinuxInfo) {
    let tmp = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal:       24684092 kB\nMemFree:  1 kB\nSwapTotal:       2048 kB\n"),
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
fn cpu_lists() {
    for (text, cpus) in [("0-3,8\n", vec![0, 1, 2, 3, 8]), ("0", vec![0]), ("", vec![]), ("a-b,2", vec![2])] {
        assert_eq!(cpu_list(text), cpus, "{text:?}");
    }
}
