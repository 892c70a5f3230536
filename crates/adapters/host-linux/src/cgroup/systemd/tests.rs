use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::*;

mod fake;
use fake::PrivateBus;

/// A real message bus with a service manager in memory, and a tree of plain files.
struct Bed {
    dir: tempfile::TempDir,
    bus: PrivateBus,
    cgroups: SystemdCgroups,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("cgroup");
        fs::create_dir(&root).unwrap();
        for file in ["cgroup.controllers", "cgroup.subtree_control"] {
            fs::write(root.join(file), "pids").unwrap();
        }
        let bus = PrivateBus::start();
        let ours = Bus::new(bus.runtime.handle().clone(), Some(bus.address.clone()));
        let cgroups = SystemdCgroups { files: LinuxCgroups::v2_at(&root, &root), bus: Arc::new(ours) };
        Self { dir, bus, cgroups }
    }

    fn cgroup(&self, path: &str) -> PathBuf {
        self.dir.path().join("cgroup").join(path)
    }
}

const POD: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_b.slice";

#[test]
fn a_slice_is_started_once_limited_and_stopped() {
    let bed = Bed::new();
    bed.cgroups.create(POD).unwrap();
    bed.cgroups.create(POD).unwrap();
    assert!(bed.cgroup(&POD[1..]).is_dir());
    // The kernel's own files go with their directory; these are plain.
    fs::remove_dir_all(bed.cgroup("kubepods.slice")).unwrap();
    bed.cgroups.remove(POD).unwrap();
    bed.cgroups.remove(POD).unwrap();
    let start = "start kubepods-burstable-poda_b.slice replace Description=s:bosun kubepods-burstable-poda_b.slice \
                 Wants=as:s:kubepods-burstable.slice CPUAccounting=b:true MemoryAccounting=b:true TasksAccounting=b:true \
                 IOAccounting=b:true DefaultDependencies=b:false 0";
    let stop = "stop kubepods-burstable-poda_b.slice replace";
    assert_eq!(bed.bus.calls(), [start, start, stop, stop]);
}

#[test]
fn a_slice_that_systemd_refuses_is_an_error_with_its_words() {
    let bed = Bed::new();
    let e = bed.cgroups.create("/broken.slice").unwrap_err();
    assert_eq!((e.to_string().as_str(), e.source.to_string().as_str()), ("systemd broken.slice", "Access denied"));
    assert!(!bed.cgroup("broken.slice").exists());
}

#[test]
fn a_scope_is_started_with_its_process_and_waited_for() {
    let mut bed = Bed::new();
    let scopes = SystemdScopes { bus: Arc::clone(&bed.cgroups.bus) };
    scopes.start("kubepods-poda.slice", "cri-containerd-1.scope", 7).unwrap();
    scopes.start("kubepods-poda.slice", "cri-containerd-1.scope", 7).unwrap();
    let start = "start cri-containerd-1.scope replace Description=s:bosun cri-containerd-1.scope \
                 Slice=s:kubepods-poda.slice Delegate=b:true DefaultDependencies=b:false CollectMode=s:inactive-or-failed PIDs=au:u:7 0";
    assert_eq!(bed.bus.calls(), [start, start, "attach cri-containerd-1.scope \"\" [7]"]);
    let e = scopes.start("a.slice", "broken.scope", 7).unwrap_err();
    assert_eq!(e.source.to_string(), "Access denied");
    let e = scopes.start("a.slice", "failing.scope", 7).unwrap_err();
    assert_eq!(e.source.to_string(), "the job of its start: failed");
    bed.bus.restart();
    scopes.start("a.slice", "other.scope", 7).unwrap();
}

#[test]
fn a_bus_that_was_started_anew_is_connected_to_again() {
    let mut bed = Bed::new();
    bed.cgroups.create("/a.slice").unwrap();
    bed.bus.restart();
    bed.cgroups.create("/a.slice").unwrap();
    assert_eq!(bed.bus.calls().len(), 2);
}

#[test]
fn no_bus_is_an_error() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let bus = Bus::new(runtime.handle().clone(), Some("unix:path=/nonexistent/bus".to_owned()));
    assert!(bus.start("a.slice", &[]).is_err() && bus.set("a.slice", &[]).is_err());
    assert!(bus.stop("a.slice").is_err(), "nobody knows that it is stopped");
}

#[test]
fn only_slices_are_handed_to_systemd() {
    let bed = Bed::new();
    for path in ["/", "/kubepods", "/a.slice/b.scope", "/-.slice", "/.slice", "/a b.slice"] {
        assert!(bed.cgroups.create(path).is_err() && bed.cgroups.remove(path).is_err(), "{path}");
    }
    assert!(bed.bus.calls().is_empty());
}

#[test]
fn limits_go_to_systemd_and_to_the_files() {
    let bed = Bed::new();
    bed.cgroups.create("/a.slice").unwrap();
    let values = CgroupValues {
        cpu_shares: Some(1024),
        cpu_quota_us: Some(12_345),
        cpu_period_us: Some(100_000),
        memory_limit_bytes: Some(1 << 30),
        memory_min_bytes: Some(0),
        memory_low_bytes: Some(1 << 20),
        pids_max: Some(-1),
        hugetlb_bytes: BTreeMap::new(),
    };
    bed.cgroups.set("/a.slice", &values).unwrap();
    bed.cgroups.set("/a.slice", &CgroupValues::default()).unwrap();
    let told = "set a.slice true CPUWeight=t:39 CPUQuotaPerSecUSec=t:130000 CPUQuotaPeriodUSec=t:100000 \
                MemoryMax=t:1073741824 MemoryMin=t:0 MemoryLow=t:1048576 TasksMax=t:18446744073709551615";
    assert_eq!(bed.bus.calls()[1..], [told.to_owned()], "nothing is said when nothing is set");
    assert_eq!(fs::read_to_string(bed.cgroup("a.slice/cpu.max")).unwrap(), "12345 100000");
    let names = |v: &CgroupValues| properties(CgroupVersion::V1, v).iter().map(fake::shown).collect::<Vec<_>>();
    assert_eq!(
        names(&values),
        [
            "CPUShares=t:1024",
            "CPUQuotaPerSecUSec=t:130000",
            "MemoryLimit=t:1073741824",
            "TasksMax=t:18446744073709551615"
        ]
    );
    let open = CgroupValues { cpu_quota_us: Some(-1), ..CgroupValues::default() };
    assert_eq!(names(&open), ["CPUQuotaPerSecUSec=t:18446744073709551615"]);
}

#[test]
fn parents_are_read_from_the_name() {
    for (unit, above) in
        [("kubepods.slice", "-.slice"), ("kubepods-burstable.slice", "kubepods.slice"), ("a-b-c_d.slice", "a-b.slice")]
    {
        assert_eq!(parent(unit), above);
    }
}
