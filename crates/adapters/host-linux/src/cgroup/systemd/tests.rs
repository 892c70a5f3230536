use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

/// Stand-ins for `busctl` and `systemctl` that write down how they were called. A unit runs when a file of its name is in
/// the folder.
struct Bed {
    dir: tempfile::TempDir,
    cgroups: SystemdCgroups,
}

const BUSCTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >>calls
unit=$8
case $6 in
StartTransientUnit) [ -e "$unit" ] && { echo "Call failed: Unit $unit was already loaded or has a fragment file." >&2; exit 1; }
  case $unit in broken*) echo "Call failed: Access denied" >&2; exit 1;; esac; : >"$unit" ;;
StopUnit) [ -e "$unit" ] || { echo "Call failed: Unit $unit not loaded." >&2; exit 1; }; rm "$unit" ;;
esac
"#;
const SYSTEMCTL: &str = "#!/bin/sh\ncd \"$(dirname \"$0\")\" && [ -e \"$3\" ]\n";

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("busctl", BUSCTL), ("systemctl", SYSTEMCTL)] {
            let file = dir.path().join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let root = dir.path().join("cgroup");
        fs::create_dir(&root).unwrap();
        for file in ["cgroup.controllers", "cgroup.subtree_control"] {
            fs::write(root.join(file), "").unwrap();
        }
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
        let systemd = Systemd { arguments: vec![], environment: vec![("PATH".into(), path)] };
        let cgroups = SystemdCgroups { files: LinuxCgroups::v2_at(&root, &root), systemd };
        Self { dir, cgroups }
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        let prefix =
            "--timeout=30 call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager ";
        text.lines().map(|l| l.strip_prefix(prefix).unwrap().to_owned()).collect()
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
    bed.cgroups.remove(POD).unwrap();
    bed.cgroups.remove(POD).unwrap();
    assert!(!bed.cgroup(&POD[1..]).exists());
    let start = "StartTransientUnit ssa(sv)a(sa(sv)) kubepods-burstable-poda_b.slice replace 7 \
                 Description s bosun kubepods-burstable-poda_b.slice Wants as 1 kubepods-burstable.slice \
                 CPUAccounting b true MemoryAccounting b true TasksAccounting b true IOAccounting b true \
                 DefaultDependencies b false 0";
    let stop = "StopUnit ss kubepods-burstable-poda_b.slice replace";
    assert_eq!(bed.calls(), [start, start, stop, stop]);
}

#[test]
fn a_slice_that_systemd_refuses_is_an_error_with_its_words() {
    let bed = Bed::new();
    let e = bed.cgroups.create("/broken.slice").unwrap_err();
    assert_eq!(
        (e.to_string().as_str(), e.source.to_string().as_str()),
        ("systemd broken.slice", "Call failed: Access denied")
    );
    assert!(!bed.cgroup("broken.slice").exists());
}

#[test]
fn only_slices_are_handed_to_systemd() {
    let bed = Bed::new();
    for path in ["/", "/kubepods", "/a.slice/b.scope", "/-.slice", "/.slice", "/a b.slice"] {
        assert!(bed.cgroups.create(path).is_err() && bed.cgroups.remove(path).is_err(), "{path}");
    }
    assert!(bed.calls().is_empty());
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
        pids_max: Some(-1),
        hugetlb_bytes: BTreeMap::new(),
    };
    bed.cgroups.set("/a.slice", &values).unwrap();
    bed.cgroups.set("/a.slice", &CgroupValues::default()).unwrap();
    let told = "SetUnitProperties sba(sv) a.slice true 5 CPUWeight t 39 CPUQuotaPerSecUSec t 130000 \
                CPUQuotaPeriodUSec t 100000 MemoryMax t 1073741824 TasksMax t 18446744073709551615";
    assert_eq!(bed.calls()[1..], [told.to_owned()], "nothing is said when nothing is set");
    assert_eq!(fs::read_to_string(bed.cgroup("a.slice/cpu.max")).unwrap(), "12345 100000");
    let names =
        |v: &CgroupValues| properties(CgroupVersion::V1, v).into_iter().map(|p| p.join(" ")).collect::<Vec<_>>();
    assert_eq!(
        names(&values),
        [
            "CPUShares t 1024",
            "CPUQuotaPerSecUSec t 130000",
            "MemoryLimit t 1073741824",
            "TasksMax t 18446744073709551615"
        ]
    );
    let open = CgroupValues { cpu_quota_us: Some(-1), ..CgroupValues::default() };
    assert_eq!(names(&open), ["CPUQuotaPerSecUSec t 18446744073709551615"]);
}

#[test]
fn parents_are_read_from_the_name() {
    for (unit, above) in
        [("kubepods.slice", "-.slice"), ("kubepods-burstable.slice", "kubepods.slice"), ("a-b-c_d.slice", "a-b.slice")]
    {
        assert_eq!(parent(unit), above);
    }
}
