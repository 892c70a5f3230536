use super::*;

fn write(dir: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn read(dir: &Path, file: &str) -> String {
    fs::read_to_string(dir.join(file)).unwrap()
}

const CONTROLLERS: &str = "cpuset cpu io memory hugetlb pids rdma misc";

/// A unified tree of plain files: what the kernel would answer is laid out before, what is written can be read back.
fn v2_tree() -> (tempfile::TempDir, LinuxCgroups) {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("cgroup");
    write(&root, &[("cgroup.controllers", CONTROLLERS), ("cgroup.subtree_control", "")]);
    let proc = tmp.path().join("proc");
    write(&proc.join("self"), &[("cgroup", "0::/system/bosun\n"), ("oom_score_adj", "0")]);
    let fs = LinuxCgroups::v2_at(&root, &proc);
    (tmp, fs)
}

fn values() -> CgroupValues {
    CgroupValues {
        cpu_shares: Some(1024),
        cpu_quota_us: Some(50_000),
        cpu_period_us: Some(100_000),
        memory_limit_bytes: Some(1 << 30),
        pids_max: Some(100),
        hugetlb_bytes: BTreeMap::from([(2 << 20, 0), (1 << 30, 1 << 30)]),
        ..CgroupValues::default()
    }
}

#[test]
fn v2_creation_enables_every_controller_in_the_parents_and_not_in_the_pod() {
    let (tmp, cgroups) = v2_tree();
    let root = tmp.path().join("cgroup");
    write(&root.join("kubepods"), &[("cgroup.controllers", CONTROLLERS), ("cgroup.subtree_control", "cpu memory")]);
    cgroups.create("/kubepods/poda").unwrap();
    let asked = |dir: &Path| -> BTreeSet<String> {
        read(dir, "cgroup.subtree_control").split(['+', ' ']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let all: BTreeSet<String> = CONTROLLERS.split(' ').map(str::to_owned).collect();
    assert_eq!(asked(&root), all);
    assert_eq!(read(&root.join("kubepods"), "cgroup.subtree_control").matches('+').count(), all.len() - 2);
    assert!(root.join("kubepods/poda").is_dir());
    assert!(!root.join("kubepods/poda/cgroup.subtree_control").exists());
    cgroups.create("/kubepods/poda").unwrap();
}

#[test]
fn v2_existence_needs_the_controllers_that_the_root_has() {
    let (tmp, cgroups) = v2_tree();
    let dir = tmp.path().join("cgroup/kubepods");
    assert!(!cgroups.exists("/kubepods").unwrap());
    for (here, exists) in [
        ("", false),
        ("cpu memory", false),
        ("cpu cpuset memory pids", false),
        ("cpu cpuset memory pids hugetlb", true),
    ] {
        write(&dir, &[("cgroup.controllers", here)]);
        assert_eq!(cgroups.exists("/kubepods").unwrap(), exists, "{here:?}");
    }
    write(&tmp.path().join("cgroup"), &[("cgroup.controllers", "cpu memory io")]);
    write(&dir, &[("cgroup.controllers", "cpu memory")]);
    assert!(cgroups.exists("/kubepods").unwrap(), "what the root lacks is not asked for");
}

#[test]
fn v2_values_are_written_in_the_unified_words() {
    let (tmp, cgroups) = v2_tree();
    let dir = tmp.path().join("cgroup/p");
    write(&dir, &[("hugetlb.2MB.max", "max"), ("hugetlb.1GB.max", "max")]);
    cgroups.set("/p", &values()).unwrap();
    for (file, text) in [
        ("cpu.weight", "39"),
        ("cpu.max", "50000 100000"),
        ("memory.max", "1073741824"),
        ("pids.max", "100"),
        ("hugetlb.2MB.max", "0"),
        ("hugetlb.1GB.max", "1073741824"),
    ] {
        assert_eq!(read(&dir, file), text, "{file}");
    }
    let open = CgroupValues {
        cpu_quota_us: Some(-1),
        memory_limit_bytes: Some(-1),
        pids_max: Some(-1),
        ..CgroupValues::default()
    };
    cgroups.set("/p", &open).unwrap();
    assert_eq!(["cpu.max", "memory.max", "pids.max"].map(|f| read(&dir, f)), ["max", "max", "max"]);
    assert_eq!(read(&dir, "cpu.weight"), "39", "what is not given stays");
}

#[test]
fn memory_is_kept_in_the_unified_hierarchy_alone() {
    let kept = |min, low| CgroupValues { memory_min_bytes: min, memory_low_bytes: low, ..CgroupValues::default() };
    let (tmp, cgroups) = v2_tree();
    let dir = tmp.path().join("cgroup/p");
    write(&dir, &[("memory.min", "4096"), ("memory.low", "4096")]);
    cgroups.set("/p", &kept(Some(0), None)).unwrap();
    assert_eq!(["memory.min", "memory.low"].map(|f| read(&dir, f)), ["0", "4096"]);
    cgroups.set("/p", &kept(None, Some(1 << 20))).unwrap();
    assert_eq!(["memory.min", "memory.low"].map(|f| read(&dir, f)), ["0", "1048576"]);
    let v1 = LinuxCgroups::v1_at(&[("memory", tmp.path())], tmp.path());
    let dir = tmp.path().join("p");
    fs::create_dir(&dir).unwrap();
    v1.set("/p", &kept(Some(1), Some(1))).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is written");
}

#[test]
fn v2_weights_follow_the_table_of_the_book() {
    for (shares, weight) in [
        (2, 1),
        (10, 1),
        (102, 4),
        (256, 10),
        (512, 20),
        (1024, 39),
        (2048, 79),
        (4096, 157),
        (65_536, 2500),
        (262_144, 10_000),
        (900_000, 10_000),
    ] {
        let v = CgroupValues { cpu_shares: Some(shares), ..CgroupValues::default() };
        let cpu = &values::writes(CgroupVersion::V2, &v)[0];
        assert_eq!(cpu.1, [("cpu.weight".to_owned(), weight.to_string())]);
    }
}

#[test]
fn a_page_size_without_its_file_is_left_alone_but_a_missing_memory_file_is_an_error() {
    let (tmp, cgroups) = v2_tree();
    fs::create_dir(tmp.path().join("cgroup/p")).unwrap();
    let v = CgroupValues { hugetlb_bytes: BTreeMap::from([(2 << 20, 0)]), ..CgroupValues::default() };
    cgroups.set("/p", &v).unwrap();
    assert!(!tmp.path().join("cgroup/p/hugetlb.2MB.max").exists());
    let v = CgroupValues { memory_limit_bytes: Some(1), ..CgroupValues::default() };
    assert_eq!(cgroups.set("/gone", &v).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn v2_facts_of_the_tree() {
    let (tmp, cgroups) = v2_tree();
    let root = tmp.path().join("cgroup");
    assert!(!cgroups.has_swap_controller());
    write(&root.join("system/bosun"), &[("memory.swap.max", "max")]);
    assert!(cgroups.has_swap_controller());
    write(&root.join("p"), &[("memory.current", "12345\n")]);
    assert_eq!(cgroups.memory_usage_bytes("/p").unwrap(), 12_345);
    assert_eq!(cgroups.children("/").unwrap(), ["p", "system"]);
    assert!(cgroups.children("/nothing").unwrap().is_empty());
    cgroups.set_own_oom_score_adj(-999).unwrap();
    assert_eq!(read(&tmp.path().join("proc/self"), "oom_score_adj"), "-999");
}

/// A kubelet starts on each of them too.
#[test]
fn v2_makes_do_with_the_controllers_of_the_root() {
    for controllers in ["cpu io memory pids", "cpu memory", "pids"] {
        let (tmp, cgroups) = v2_tree();
        let root = tmp.path().join("cgroup");
        write(&root, &[("cgroup.controllers", controllers)]);
        assert!(cgroups.missing_controllers().is_empty(), "{controllers}");
        // The kernel would lay it out at mkdir.
        let here = [("cgroup.controllers", controllers), ("cgroup.subtree_control", "")];
        write(&root.join("kubepods"), &here);
        cgroups.create("/kubepods/poda").unwrap();
        write(&root.join("kubepods/poda"), &here);
        assert!(cgroups.exists("/kubepods/poda").unwrap(), "{controllers}");
    }
}

#[test]
fn a_limit_of_processes_is_written_where_the_host_can_count_them() {
    let (tmp, cgroups) = v2_tree();
    let (root, pod) = (tmp.path().join("cgroup"), tmp.path().join("cgroup/p"));
    fs::create_dir(&pod).unwrap();
    let v = CgroupValues { pids_max: Some(900), ..CgroupValues::default() };
    cgroups.set("/p", &v).unwrap();
    assert_eq!(read(&pod, "pids.max"), "900");
    fs::remove_file(pod.join("pids.max")).unwrap();
    write(&root, &[("cgroup.controllers", "cpu memory")]);
    cgroups.set("/p", &v).unwrap();
    assert!(!pod.join("pids.max").exists());
}

#[test]
fn removal_takes_the_whole_branch_and_absence_is_success() {
    let (tmp, cgroups) = v2_tree();
    let root = tmp.path().join("cgroup");
    fs::create_dir_all(root.join("kubepods/poda/c1/inner")).unwrap();
    fs::create_dir_all(root.join("kubepods/podb")).unwrap();
    cgroups.remove("/kubepods/poda").unwrap();
    assert!(!root.join("kubepods/poda").exists());
    assert!(root.join("kubepods/podb").is_dir());
    cgroups.remove("/kubepods/poda").unwrap();
}

#[test]
fn paths_that_lead_elsewhere_or_to_the_root_are_refused() {
    let (_tmp, cgroups) = v2_tree();
    for path in ["../etc", "/../etc", "/a/../../etc", "relative", "/a/./b", ""] {
        assert!(cgroups.create(path).is_err(), "create {path}");
        assert!(cgroups.remove(path).is_err(), "remove {path}");
    }
    assert!(cgroups.remove("/").is_err());
    assert!(cgroups.remove("//").is_err());
}

#[test]
fn v1_creation_fills_an_empty_cpuset_from_its_parent() {
    let tmp = tempfile::tempdir().unwrap();
    let (cpuset, memory) = (tmp.path().join("cpuset"), tmp.path().join("memory"));
    write(&cpuset, &[("cpuset.cpus", "0-3\n"), ("cpuset.mems", "0\n")]);
    fs::create_dir_all(&memory).unwrap();
    // The kernel would lay the empty files out at mkdir.
    write(&cpuset.join("kubepods"), &[("cpuset.cpus", "\n"), ("cpuset.mems", "\n")]);
    let cgroups = LinuxCgroups::v1_at(&[("cpuset", &cpuset), ("memory", &memory)], tmp.path());
    cgroups.create("/kubepods").unwrap();
    assert_eq!(read(&cpuset.join("kubepods"), "cpuset.cpus"), "0-3");
    assert_eq!(read(&cpuset.join("kubepods"), "cpuset.mems"), "0");
    assert!(memory.join("kubepods").is_dir());
    assert!(cgroups.exists("/kubepods").unwrap());
    assert_eq!(cgroups.missing_controllers(), ["cpu", "cpuacct"]);
}

#[test]
fn the_process_itself_joins_a_cgroup_in_all_hierarchies_but_that_of_systemd() {
    let own = std::process::id().to_string();
    let tmp = tempfile::tempdir().unwrap();
    let mounts = ["cpu", "memory", SYSTEMD].map(|name| (name, tmp.path().join(name)));
    for (_, mount) in &mounts {
        fs::create_dir_all(mount).unwrap();
    }
    let pairs: Vec<(&str, &Path)> = mounts.iter().map(|(name, mount)| (*name, mount.as_path())).collect();
    LinuxCgroups::v1_at(&pairs, tmp.path()).join("/daemons").unwrap();
    for controller in ["cpu", "memory"] {
        assert_eq!(read(&tmp.path().join(controller).join("daemons"), "cgroup.procs"), own);
    }
    assert!(!tmp.path().join("systemd/daemons/cgroup.procs").exists());
    let (tmp, v2) = v2_tree();
    v2.join("/daemons/kubelet").unwrap();
    assert_eq!(read(&tmp.path().join("cgroup/daemons/kubelet"), "cgroup.procs"), own);
    assert!(v2.join("/../elsewhere").is_err());
}

/// The real v1 tree of this machine under a name of our own, or `None` where it cannot be used.
fn real_v1() -> Option<(LinuxCgroups, String)> {
    let cgroups = LinuxCgroups::detect().ok()?;
    let usable = cgroups.version() == CgroupVersion::V1
        && cgroups.missing_controllers().is_empty()
        && rustix::process::getuid().is_root();
    usable.then(|| (cgroups, format!("/bosun-test-{}", std::process::id())))
}

struct RemoveAtEnd(LinuxCgroups, String);

impl Drop for RemoveAtEnd {
    fn drop(&mut self) {
        let _ = self.0.remove(&self.1);
    }
}

/// Edge 13.
#[test]
fn a_real_v1_tree_takes_values_kills_what_runs_and_goes_away() {
    let Some((cgroups, root)) = real_v1() else {
        eprintln!("skipped: needs root and cgroup v1");
        return;
    };
    let _guard = RemoveAtEnd(cgroups.clone(), root.clone());
    let pod = format!("{root}/kubepods/burstable/pod1");
    cgroups.create(&pod).unwrap();
    cgroups.create(&pod).unwrap();
    assert!(cgroups.exists(&pod).unwrap());
    let v = CgroupValues { hugetlb_bytes: BTreeMap::new(), ..values() };
    cgroups.set(&pod, &v).unwrap();
    let shown = |controller: &str, file: &str| {
        let dir = cgroups.dir_of(controller, &pod).unwrap().unwrap();
        read(&dir, file).trim().to_owned()
    };
    for (controller, file, text) in [
        ("cpu", "cpu.shares", "1024"),
        ("cpu", "cpu.cfs_quota_us", "50000"),
        ("cpu", "cpu.cfs_period_us", "100000"),
        ("memory", "memory.limit_in_bytes", "1073741824"),
        ("pids", "pids.max", "100"),
    ] {
        assert_eq!(shown(controller, file), text, "{file}");
    }
    assert!(!shown("cpuset", "cpuset.cpus").is_empty());
    assert_eq!(cgroups.children(&format!("{root}/kubepods/burstable")).unwrap(), ["pod1"]);
    assert!(cgroups.memory_usage_bytes(&pod).unwrap() < 1 << 30);

    let leaf = format!("{pod}/c");
    cgroups.create(&leaf).unwrap();
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let procs = cgroups.dir_of("memory", &leaf).unwrap().unwrap().join("cgroup.procs");
    fs::write(procs, child.id().to_string()).unwrap();
    let reaper = std::thread::spawn(move || child.wait().unwrap());
    cgroups.remove(&root).unwrap();
    let status = reaper.join().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    assert!(!cgroups.exists(&root).unwrap());
    assert!(cgroups.children(&root).unwrap().is_empty());
}

/// Lays out programs that processes run; one without is a thread of the kernel.
fn running(proc: &Path, pids: &[i32]) {
    for pid in pids {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink("/bin/true", dir.join("exe")).unwrap();
    }
}

#[test]
fn processes_are_told_apart_from_threads_of_the_kernel() {
    let (tmp, cgroups) = v2_tree();
    write(&tmp.path().join("cgroup"), &[("cgroup.procs", "1\n2\n77\n")]);
    running(&tmp.path().join("proc"), &[1, 77]);
    let process = |pid, is_kernel| Process { pid, is_kernel };
    assert_eq!(cgroups.processes("/").unwrap(), [process(1, false), process(2, true), process(77, false)]);
    assert!(cgroups.processes("/none").unwrap_err().is_not_found());
    let devices = tmp.path().join("devices");
    write(&devices, &[("cgroup.procs", "77\n")]);
    let v1 = LinuxCgroups::v1_at(&[("devices", &devices)], &tmp.path().join("proc"));
    assert_eq!(v1.processes("/").unwrap(), [process(77, false)]);
    let without = LinuxCgroups::v1_at(&[("memory", &devices)], tmp.path());
    assert!(without.processes("/").unwrap_err().is_not_found());
}

#[test]
fn processes_are_moved_in_every_tree_but_systemds_and_one_failure_holds_up_nobody() {
    let (tmp, cgroups) = v2_tree();
    cgroups.move_processes("/system", &[77, 88]).unwrap();
    // The kernel takes one number with each write; a plain file keeps the last.
    assert_eq!(read(&tmp.path().join("cgroup/system"), "cgroup.procs"), "88");
    let trees = ["cpu", "memory", "systemd"].map(|name| tmp.path().join(name));
    let [cpu, memory, systemd] = &trees;
    trees.iter().for_each(|dir| fs::create_dir(dir).unwrap());
    let v1 = LinuxCgroups::v1_at(&[("cpu", cpu), ("memory", memory), ("systemd", systemd)], tmp.path());
    fs::create_dir_all(cpu.join("system/cgroup.procs")).unwrap();
    let refused = v1.move_processes("/system", &[77]).unwrap_err();
    assert!(refused.to_string().contains("cpu/system/cgroup.procs"), "{refused}");
    assert_eq!(read(&memory.join("system"), "cgroup.procs"), "77");
    assert!(!systemd.join("system/cgroup.procs").exists());
}

#[test]
fn a_cgroup_that_is_gone_is_told_apart_from_one_that_cannot_be_read() {
    let (tmp, cgroups) = v2_tree();
    assert!(cgroups.memory_usage_bytes("/gone").unwrap_err().is_not_found());
    let dir = tmp.path().join("cgroup/p");
    write(&dir, &[("memory.current", "4096\n")]);
    assert_eq!(cgroups.memory_usage_bytes("/p").unwrap(), 4096);
    write(&dir, &[("memory.current", "many\n")]);
    assert!(!cgroups.memory_usage_bytes("/p").unwrap_err().is_not_found());
    fs::remove_file(dir.join("memory.current")).unwrap();
    assert!(!cgroups.memory_usage_bytes("/p").unwrap_err().is_not_found(), "the cgroup is there");
    fs::create_dir(dir.join("memory.current")).unwrap();
    assert!(!cgroups.memory_usage_bytes("/p").unwrap_err().is_not_found());
}

#[test]
fn what_version_2_beside_version_1_has_of_a_cgroup_goes_with_it() {
    let tmp = tempfile::tempdir().unwrap();
    let (memory, unified) = (tmp.path().join("memory"), tmp.path().join("unified"));
    let plain = LinuxCgroups::v1_at(&[("memory", &memory)], tmp.path());
    let cgroups = LinuxCgroups { beside: Some(unified.clone()), ..plain };
    for dir in [memory.join("pods/a"), unified.join("pods/a/container"), unified.join("pods/b")] {
        fs::create_dir_all(dir).unwrap();
    }
    cgroups.remove("/pods/a").unwrap();
    assert!(!memory.join("pods/a").exists() && !unified.join("pods/a").exists());
    cgroups.remove("/pods/b").unwrap();
    cgroups.remove("/pods/none").unwrap();
    assert!(unified.join("pods").is_dir() && !unified.join("pods/b").exists());
    // A file where no kernel has one: its folder does not go, and the pod is none the worse for it.
    for dir in [memory.join("pods/c"), unified.join("pods/c")] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(unified.join("pods/c/stays"), "").unwrap();
    cgroups.remove("/pods/c").unwrap();
    assert!(!memory.join("pods/c").exists() && unified.join("pods/c/stays").exists());
    fs::create_dir_all(memory.join("pods/d")).unwrap();
    fs::write(memory.join("pods/d/stays"), "").unwrap();
    assert!(cgroups.remove("/pods/d").is_err());
}
