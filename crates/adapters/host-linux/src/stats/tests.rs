//! Against trees of files, and against the machine that the tests run on.

use std::fs;
use std::path::Path;

use model::Timestamp;
use model::reading::{Depth, DiskUse, InterfaceCounters};
use ports::host::CgroupFs;
use ports::stats::StatsSource;

use super::LinuxStats;
use crate::LinuxCgroups;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const V1_STAT: &str = "cache 1\nrss 2\nswap 0\npgfault 5\npgmajfault 6\ntotal_cache 400\ntotal_rss 300\n\
                       total_mapped_file 50\ntotal_swap 70\ntotal_pgfault 15\ntotal_pgmajfault 16\n\
                       total_inactive_file 100\ntotal_active_file 200\n";

fn v1() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for (file, text) in [
        ("cpuacct/pod/cpuacct.usage", "1882520845\n"),
        ("cpuacct/pod/cpuacct.usage_user", "1000\n"),
        ("cpuacct/pod/cpuacct.usage_sys", "2000\n"),
        ("cpuacct/pod/cgroup.procs", "7\n8\n"),
        ("cpu/pod/cpu.shares", "1024\n"),
        ("cpu/pod/cpu.cfs_quota_us", "50000\n"),
        ("cpu/pod/cpu.cfs_period_us", "100000\n"),
        ("cpu/pod/cpu.stat", "nr_periods 10\nnr_throttled 2\nthrottled_time 3000\nnr_bursts 1\nburst_time 4\n"),
        ("memory/pod/memory.usage_in_bytes", "1000\n"),
        ("memory/pod/memory.stat", V1_STAT),
        ("memory/pod/memory.limit_in_bytes", "2000\n"),
        ("memory/pod/memory.memsw.limit_in_bytes", "2500\n"),
        ("memory/pod/memory.soft_limit_in_bytes", "9223372036854771712\n"),
        ("memory/pod/memory.failcnt", "9\n"),
        ("memory/pod/memory.max_usage_in_bytes", "1500\n"),
        ("memory/pod/memory.kmem.usage_in_bytes", "77\n"),
        ("memory/pod/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ("pids/pod/pids.current", "12\n"),
        ("pids/pod/pids.max", "max\n"),
        (
            "blkio/pod/blkio.throttle.io_service_bytes_recursive",
            "253:0 Read 4096\n253:0 Write 8192\n253:0 Total 12288\nTotal 12288\n",
        ),
        ("blkio/pod/blkio.throttle.io_serviced_recursive", "253:0 Read 1\n253:0 Write 2\nTotal 3\n"),
    ] {
        write(&root.join("cgroup"), file, text);
    }
    fs::create_dir_all(root.join("sys/dev/block")).unwrap();
    std::os::unix::fs::symlink("../../devices/virtual/block/vda", root.join("sys/dev/block/253:0")).unwrap();
    dir
}

const PSI: &str = "some avg10=1.50 avg60=0.25 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";

fn v2() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        (
            "pod/cpu.stat",
            "usage_usec 30\nuser_usec 10\nsystem_usec 20\nnr_periods 4\nnr_throttled 1\nthrottled_usec 5\nnr_bursts 0\n\
             burst_usec 0\n",
        ),
        ("pod/cpu.max", "max 100000\n"),
        ("pod/cpu.weight", "39\n"),
        ("pod/cpu.pressure", PSI),
        ("pod/memory.pressure", PSI),
        ("pod/io.pressure", PSI),
        ("pod/memory.current", "1000\n"),
        ("pod/memory.max", "max\n"),
        ("pod/memory.low", "0\n"),
        ("pod/memory.peak", "1100\n"),
        ("pod/memory.swap.current", "0\n"),
        ("pod/memory.swap.max", "64\n"),
        ("pod/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\noom_group_kill 0\n"),
        (
            "pod/memory.stat",
            "anon 300\nfile 400\nkernel 55\nfile_mapped 50\ninactive_file 1200\nactive_file 200\npgfault 5\npgmajfault 6\n",
        ),
        ("pod/io.stat", "253:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n8:0 \n"),
        ("pod/pids.current", "12\n"),
        ("pod/pids.max", "99\n"),
        ("pod/cgroup.procs", "\n"),
    ] {
        write(&dir.path().join("cgroup"), file, text);
    }
    dir
}

#[test]
fn v1_files_give_each_number_of_the_book() {
    let dir = v1();
    let source = LinuxStats::v1_in(dir.path());
    source.freeze(Timestamp(5));
    let r = source.cgroup("/pod", Depth::Full).unwrap();
    assert_eq!(r.at, Timestamp(5));
    assert!(r.created.is_set());
    let c = r.cpu;
    assert_eq!((c.usage_ns, c.user_ns, c.system_ns), (Some(1_882_520_845), Some(1000), Some(2000)));
    assert_eq!((c.shares, c.quota_us, c.period_us), (Some(1024), Some(50_000), Some(100_000)));
    assert_eq!((c.periods, c.throttled_periods, c.throttled_ns), (Some(10), Some(2), Some(3000)));
    assert_eq!((c.bursts, c.burst_ns, c.psi), (Some(1), Some(4), None));
    let m = r.memory;
    assert_eq!((m.usage, m.working_set(), m.rss, m.cache), (Some(1000), Some(900), Some(300), Some(400)));
    assert_eq!((m.page_faults, m.major_page_faults), (Some(5), Some(6)), "its own, not the children's");
    assert_eq!((m.tree_page_faults, m.tree_major_page_faults), (Some(15), Some(16)));
    assert_eq!((m.swap, m.limit, m.swap_limit), (Some(70), Some(2000), Some(500)));
    assert_eq!((m.reservation, m.limit_hits, m.max_usage), (None, Some(9), Some(1500)));
    assert_eq!((m.kernel, m.oom_kills), (Some(77), Some(3)));
    assert_eq!((r.tasks.processes, r.tasks.threads, r.tasks.threads_max), (Some(2), Some(12), None));
    let [disk] = &r.disks[..] else { panic!("{:?}", r.disks) };
    assert_eq!((disk.device.as_str(), disk.read_bytes, disk.write_bytes), ("/dev/vda", Some(4096), Some(8192)));
    assert_eq!((disk.reads, disk.writes), (Some(1), Some(2)));
}

#[test]
fn v2_files_give_each_number_of_the_book() {
    let dir = v2();
    let r = LinuxStats::v2_in(dir.path()).cgroup("/pod", Depth::Full).unwrap();
    let c = r.cpu;
    assert_eq!((c.usage_ns, c.user_ns, c.system_ns), (Some(30_000), Some(10_000), Some(20_000)));
    assert_eq!((c.shares, c.quota_us, c.period_us), (Some(998), None, Some(100_000)));
    assert_eq!((c.periods, c.throttled_periods, c.throttled_ns), (Some(4), Some(1), Some(5000)));
    let psi = c.psi.unwrap();
    assert_eq!((psi.some.avg10, psi.some.avg60, psi.some.total, psi.full.total), (1.5, 0.25, 7, 3));
    assert!(r.memory.psi.is_some() && r.io_psi.is_some());
    let m = r.memory;
    assert_eq!((m.usage, m.working_set()), (Some(1000), Some(0)), "the working set is never below zero");
    assert_eq!((m.rss, m.cache, m.kernel, m.mapped_file), (Some(300), Some(400), Some(55), Some(50)));
    assert_eq!((m.limit, m.swap, m.swap_limit, m.max_usage), (None, Some(0), Some(64), Some(1100)));
    assert_eq!((m.limit_hits, m.oom_kills), (Some(4), Some(1)));
    assert_eq!((r.tasks.threads, r.tasks.threads_max), (Some(12), Some(99)));
    assert_eq!((r.disks[0].read_bytes, r.disks[1].read_bytes), (Some(4096), None));
}

#[test]
fn what_is_not_there_is_absent_and_never_zero() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "cgroup/memory/bare/cgroup.procs", "");
    let source = LinuxStats::v1_in(dir.path());
    let r = source.cgroup("/bare", Depth::Full).unwrap();
    assert_eq!((r.cpu, r.memory, r.io_psi), (Default::default(), Default::default(), None));
    assert_eq!(r.tasks.threads, None);
    for path in ["/gone", "gone", "/../etc", "/bare/../bare"] {
        assert!(source.cgroup(path, Depth::Full).is_none(), "{path}");
        assert!(LinuxStats::v2_in(dir.path()).cgroup(path, Depth::Usage).is_none(), "{path}");
    }
    assert!(source.network(Some(1)).is_none());
    assert!(source.own_cgroup().is_none());
    assert!(source.tree(&dir.path().join("gone"), 10).is_none());
    assert!(source.files_in(&dir.path().join("gone")).is_none());
}

#[test]
fn garbage_in_files_is_absent() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("memory.current", "-1"),
        ("memory.stat", "anon\nfile x\n inactive_file 3\npgfault 18446744073709551616\n"),
        ("cpu.stat", "usage_usec 18446744073709551615\n"),
        ("cpu.pressure", "none"),
        ("memory.pressure", "some avg10=NaN avg60=inf total=-3\n"),
        ("io.stat", "x:y rbytes=1\n8:0 rbytes=z\n"),
    ] {
        write(dir.path(), &format!("cgroup/pod/{file}"), text);
    }
    fs::write(dir.path().join("cgroup/pod/cgroup.procs"), [0xff, 0xfe, b'\n']).unwrap();
    let r = LinuxStats::v2_in(dir.path()).cgroup("/pod", Depth::Full).unwrap();
    assert_eq!((r.memory.usage, r.memory.rss, r.memory.page_faults), (None, None, None));
    assert_eq!(r.cpu.usage_ns, Some(u64::MAX));
    assert_eq!(r.cpu.psi, None);
    assert_eq!(r.memory.psi.map(|p| (p.some.avg10, p.some.total)), Some((0.0, 0)));
    assert_eq!(r.tasks.processes, None);
    assert_eq!(r.disks.len(), 1);
}

#[test]
fn a_device_has_the_size_that_the_kernel_shows() {
    let dir = tempfile::tempdir().unwrap();
    let source = LinuxStats::v1_in(dir.path());
    write(dir.path(), "file", "");
    let error = source.device_size(&dir.path().join("file")).unwrap_err();
    assert!(error.source.to_string().contains("no block device"), "{error}");
    assert_eq!(source.device_size(&dir.path().join("gone")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to make a device");
        return;
    }
    let (device, number) = (dir.path().join("device"), rustix::fs::makedev(240, 7));
    let made = rustix::fs::mknodat(rustix::fs::CWD, &device, rustix::fs::FileType::BlockDevice, 0o600.into(), number);
    made.unwrap();
    assert!(source.device_size(&device).is_err(), "a device that no driver has");
    write(dir.path(), "sys/dev/block/240:7/size", "2048\n");
    assert_eq!(source.device_size(&device).unwrap(), 1024 * 1024);
    write(dir.path(), "sys/dev/block/240:7/size", "many\n");
    assert!(source.device_size(&device).is_err());
}

#[test]
fn a_container_is_found_under_the_name_that_its_runtime_gives() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["pod1/abc", "pod2/cri-containerd-abc.scope", "pod3/crio-abc.scope", "pod4/docker-abc.scope"] {
        write(dir.path(), &format!("cgroup/{name}/cgroup.procs"), "1\n");
    }
    let source = LinuxStats::v2_in(dir.path());
    let found = |pod: &str| source.container_cgroup(pod, "abc");
    assert_eq!(found("/pod1").as_deref(), Some("/pod1/abc"));
    assert_eq!(found("/pod2/").as_deref(), Some("/pod2/cri-containerd-abc.scope"));
    assert_eq!(found("/pod3").as_deref(), Some("/pod3/crio-abc.scope"));
    assert_eq!(found("/pod4").as_deref(), Some("/pod4/docker-abc.scope"));
    assert_eq!(found("/pod5"), None);
    assert_eq!(source.container_cgroup("/pod1", "../pod1"), None);
}

#[test]
fn a_process_is_found_in_a_cgroup_or_below_it() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "cgroup/pod/cgroup.procs", "");
    write(dir.path(), "cgroup/pod/a/cgroup.procs", "0\n");
    write(dir.path(), "cgroup/pod/a/container/cgroup.procs", "42\n43\n");
    let source = LinuxStats::v2_in(dir.path());
    assert_eq!(source.any_process("/pod"), Some(42));
    assert_eq!(source.any_process("/gone"), None);
}

#[test]
fn interfaces_are_those_of_the_process_without_loopback_and_host_ends() {
    let dir = tempfile::tempdir().unwrap();
    let table = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n\
                 \x20   lo: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n  eth0: 10 11 12 13 0 0 0 0 20 21 22 23 0 0 0 0\n\
                 veth12:1 2 3 4 0 0 0 0 1 2 3 4 0 0 0 0\n  odd:x: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\nshort: 1 2 3\nlo1: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n";
    write(dir.path(), "proc/7/net/dev", table);
    let found = LinuxStats::v2_in(dir.path()).network(Some(7)).unwrap();
    let names: Vec<&str> = found.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["eth0", "odd:x", "lo1"]);
    assert_eq!(found[0].received, InterfaceCounters { bytes: 10, packets: 11, errors: 12, dropped: 13 });
    assert_eq!(found[0].sent, InterfaceCounters { bytes: 20, packets: 21, errors: 22, dropped: 23 });
}

#[test]
fn who_is_on_the_network_of_the_node_says_nothing_of_a_pods() {
    let dir = tempfile::tempdir().unwrap();
    for (process, namespace) in [("self", "net:[1]"), ("7", "net:[1]"), ("8", "net:[2]")] {
        write(dir.path(), &format!("proc/{process}/net/dev"), "a\nb\n eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
        std::fs::create_dir_all(dir.path().join("proc").join(process).join("ns")).unwrap();
        std::os::unix::fs::symlink(namespace, dir.path().join("proc").join(process).join("ns/net")).unwrap();
    }
    let source = LinuxStats::v2_in(dir.path());
    assert!(source.network(Some(7)).is_none());
    assert_eq!(source.network(Some(8)).map(|all| all.len()), Some(1));
    assert_eq!(source.network(None).map(|all| all.len()), Some(1));
}

#[test]
fn open_files_are_counted_as_far_as_that_is_cheap() {
    let dir = v2();
    write(dir.path(), "cgroup/pod/cgroup.procs", "7\n8\n");
    write(
        dir.path(),
        "proc/7/limits",
        "Limit  Soft  Hard\nMax open files            1024                 4096                 files\n",
    );
    fs::create_dir_all(dir.path().join("proc/7/fd")).unwrap();
    for (fd, target) in [("0", "/dev/null"), ("1", "socket:[5]"), ("2", "pipe:[6]")] {
        std::os::unix::fs::symlink(target, dir.path().join("proc/7/fd").join(fd)).unwrap();
    }
    let source = LinuxStats::v2_in(dir.path());
    let t = source.cgroup("/pod", Depth::Full).unwrap().tasks;
    assert_eq!(
        (t.processes, t.one, t.files, t.sockets, t.files_limit),
        (Some(2), Some(7), Some(3), Some(1), Some(1024))
    );
    let many: String = (1..=200).map(|n| format!("{n}\n")).collect();
    write(dir.path(), "cgroup/pod/cgroup.procs", &many);
    let t = source.cgroup("/pod", Depth::Full).unwrap().tasks;
    assert_eq!((t.processes, t.files), (Some(200), None));
}

#[test]
fn a_tree_is_measured_without_links_other_names_and_beyond_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let (root, source) = (dir.path(), LinuxStats::v2_in(dir.path()));
    write(root, "v/a/one", &"x".repeat(10_000));
    fs::hard_link(root.join("v/a/one"), root.join("v/two")).unwrap();
    write(root, "elsewhere/big", &"x".repeat(100_000));
    std::os::unix::fs::symlink(root.join("elsewhere"), root.join("v/link")).unwrap();
    let whole = source.tree(&root.join("v"), 100).unwrap();
    assert_eq!(whole.inodes, 4, "v, a, one of two names, the link itself");
    let single = source.file(&root.join("v/a/one")).unwrap();
    assert!(whole.bytes >= single.bytes && whole.bytes < 60_000, "{whole:?}");
    let part = source.tree(&root.join("v"), 2).unwrap();
    assert!((1..whole.inodes).contains(&part.inodes), "no more entries than allowed: {part:?} of {whole:?}");
    assert!(source.tree(&root.join("v/link"), 100).is_none(), "a link is no tree");
    let flat = source.files_in(&root.join("v")).unwrap();
    assert_eq!(flat, DiskUse { bytes: single.bytes, inodes: 1 }, "regular files right in it");
}

#[test]
fn the_root_of_v2_is_completed_from_proc() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "cgroup/cpu.stat", "usage_usec 1\n");
    write(dir.path(), "cgroup/memory.stat", "anon 10\nfile 20\ninactive_file 5\n");
    write(
        dir.path(),
        "proc/meminfo",
        &crate::info::tests::meminfo(&[("MemTotal", 100), ("SwapTotal", 10), ("SwapFree", 4)]),
    );
    write(dir.path(), "proc/pressure/io", PSI);
    let r = LinuxStats::v2_in(dir.path()).cgroup("/", Depth::Summary).unwrap();
    assert_eq!((r.memory.usage, r.memory.working_set(), r.memory.swap), (Some(30), Some(25), Some(6 * 1024)));
    assert_eq!((r.io_psi.map(|p| p.some.total), r.cpu.psi), (Some(7), None));
}

#[test]
fn own_cgroup_is_known_when_the_hierarchies_agree() {
    for (text, v1, v2) in [
        (
            "4:memory:/system.slice/x.service\n2:cpu,cpuacct:/system.slice/x.service\n",
            Some("/system.slice/x.service"),
            None,
        ),
        ("4:memory:/a\n2:cpuacct:/b\n", None, None),
        ("4:memory:/\n2:cpuacct:/\n0::/\n", None, None),
        ("0::/system.slice/x.service\n", None, Some("/system.slice/x.service")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "proc/self/cgroup", text);
        assert_eq!(LinuxStats::v1_in(dir.path()).own_cgroup().as_deref(), v1, "{text}");
        assert_eq!(LinuxStats::v2_in(dir.path()).own_cgroup().as_deref(), v2, "{text}");
    }
}

#[test]
fn disks_are_those_with_a_block_device_each_once() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap();
    let mounts = format!(
        "22 27 0:21 / /proc rw - proc proc rw\n27 1 254:0 / {here} rw shared:1 - ext4 /dev/root rw\n\
         28 1 254:0 /x /nowhere rw - ext4 /dev/vda rw\n29 1 7:0 / {here} ro - squashfs /dev/loop0 ro\n\
         30 1 8:1 / {here}/with\\040blank rw - ext4 /dev/sda1 rw\n"
    );
    write(dir.path(), "proc/self/mountinfo", &mounts);
    std::fs::create_dir(dir.path().join("with blank")).unwrap();
    write(
        dir.path(),
        "proc/diskstats",
        " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n   8 1 sda1 0 0 0 0 0 0 0 0 0 0 0\n",
    );
    let disks = LinuxStats::v2_in(dir.path()).disks();
    let [other, disk] = &disks[..] else { panic!("{disks:?}") };
    assert_eq!(other.device, "/dev/sda1");
    assert_eq!(disk.device, "/dev/vda");
    assert!(disk.fs.total_bytes > 0);
    let t = disk.traffic.unwrap();
    assert_eq!((t.reads, t.sectors_read, t.write_ms, t.in_flight, t.weighted_ms), (1, 3, 8, 9, 11));
}

#[test]
fn this_machine_can_be_read() {
    let source = LinuxStats::new(&LinuxCgroups::detect().unwrap());
    let root = source.cgroup("/", Depth::Full).unwrap();
    assert!(root.cpu.usage_ns.unwrap() > 0);
    assert!(root.memory.working_set().unwrap() > 0);
    assert!(root.at.is_set());
    assert!(!source.network(None).unwrap().is_empty());
    let machine = source.machine().unwrap();
    assert!(machine.booted.is_set() && machine.memory_bytes > 0 && machine.cpus > 0);
    assert!(machine.booted < root.at);
    let (running, most) = source.processes().unwrap();
    assert!(running > 0 && running <= most);
    // Cgroups of others come and go: one that is there can be read, whatever it holds.
    for name in LinuxCgroups::detect().unwrap().children("/").unwrap() {
        if let Some(r) = source.cgroup(&format!("/{name}"), Depth::Full) {
            assert!(r.cpu.usage_ns.is_some() || r.memory.usage.is_some(), "{name}: {r:?}");
        }
    }
    let fs = source.fs(Path::new("/")).unwrap();
    assert!(fs.total_bytes >= fs.free_bytes && fs.free_bytes >= fs.available_bytes);
}
