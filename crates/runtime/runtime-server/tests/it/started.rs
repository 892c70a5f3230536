//! That a container which its supervisor starts itself is held in as one that `runc` starts: what both say of themselves, and what the
//! node says of them, side by side.

use std::fs;
use std::path::Path;

use cri_api::v1;
use cri_api::v1::security_profile::ProfileType;

use crate::bed::{Bed, until};
use crate::on_runc::{Client, container, exec, exited, profile, running, status, stop_pod};

/// What a process says of itself, of its mounts, of its devices, and of what is hidden from it.
const LOOK: &str = r#"b=/bin/busybox
say() { $b echo "== $1"; }
say status; $b grep -E '^(Cap|NoNew|Seccomp|Groups|Uid|Gid|Umask|SigBlk)' /proc/self/status
$b grep ^SigIgn: /proc/self/status | $b tail -c 9 | $b cut -c2-; $b grep ^NSpid: /proc/1/status
say profile; $b cat /proc/self/attr/current
say calls; $b unshare -U $b true 2>&1; $b echo $?
say groups; $b sort /proc/self/cgroup
say mounts; $b cat /proc/self/mountinfo
say limits; $b cat /proc/self/limits /proc/self/oom_score_adj
say namespaces; for n in net user uts ipc; do $b readlink /proc/self/ns/$n; done
say environment; $b env | $b grep -v -e ^_= -e ^SHLVL= -e ^OLDPWD= | $b sort; $b pwd
say keyring; $b grep _ses /proc/keys | $b sed 's/^[^ ]* //' | $b awk '{ print $1, $4, $5, $6, $7, $8 }'
say devices; $b find /dev -exec $b stat -c '%n %F %a %u %g %t:%T' {} ';' | $b grep -v ' /dev/pts/[0-9]' | $b sort
$b find /dev -type l -exec $b readlink {} ';' | $b sort
say streams; for f in 0 1 2; do $b stat -L -c '%F %a %u %g %t:%T' /proc/self/fd/$f; done
say hidden; for f in /proc/kcore /proc/keys /proc/timer_list /proc/scsi /sys/firmware; do $b stat -c '%n %F %t:%T' $f; $b ls $f 2>/dev/null | $b head -3; done
say writable; for f in / /proc/sys/kernel/hostname /sys/kernel /sys/fs/cgroup /dev /a/rw /a/ro /a/ro/in /a/file /var/run/b /etc/hosts; do [ -w $f ] && $b echo $f; done
say places; $b find /a /var /run /not -exec $b stat -c '%n %F %a %u %g' {} ';' 2>/dev/null | $b sort
"#;
/// What ends one that was looked at.
const WAIT: &str = "until [ -e /tmp/done ]; do sleep 0.02; done";

/// Files of cgroups that say how a container is limited: of version 1, and of version 2.
const LIMITS: [[&str; 9]; 2] = [
    [
        "devices/devices.list",
        "memory/memory.limit_in_bytes",
        "memory/memory.memsw.limit_in_bytes",
        "cpu/cpu.shares",
        "cpu/cpu.cfs_quota_us",
        "cpu/cpu.cfs_period_us",
        "cpuset/cpuset.cpus",
        "cpuset/cpuset.mems",
        "pids/pids.max",
    ],
    [
        "./cgroup.controllers",
        "./memory.max",
        "./memory.swap.max",
        "./memory.oom.group",
        "./cpu.weight",
        "./cpu.max",
        "./cpuset.cpus",
        "./cpuset.mems",
        "./pids.max",
    ],
];
/// Tries to use devices: some that every container may use, and some that none may but a privileged one.
const TRY: &str = "say use; for d in 'c 1 3' 'c 1 1' 'b 7 0' 'c 5 2' 'c 1 11'; do \
    $b mknod /tmp/try $d && { $b dd if=/tmp/try of=/dev/null bs=1 count=0 2>/dev/null; $b echo $d $?; $b rm -f /tmp/try; }; done";

fn is_v2() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

fn has_cpusets() -> bool {
    let all = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    all.map_or(true, |all| all.split_whitespace().any(|c| c == "cpuset"))
}

fn context(config: &mut v1::ContainerConfig) -> &mut v1::LinuxContainerSecurityContext {
    config.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("a context")
}

fn resources(config: &mut v1::ContainerConfig) -> &mut v1::LinuxContainerResources {
    config.linux.as_mut().and_then(|l| l.resources.as_mut()).expect("resources")
}

/// A line without what is each container's own, or its pod's: ids, numbers of mounts and of devices that are made with them.
fn plain(bed: &Bed, line: &str, id: &str, pod: &str) -> String {
    let line = line.replace(id, "ID").replace(pod, "POD");
    if let Some(number) = line.strip_prefix("ipc:") {
        let pods = fs::metadata(bed.dir.path().join("run").join(pod).join("ns/ipc"));
        let is_pods = pods.is_ok_and(|facts| number == format!("[{}]", std::os::unix::fs::MetadataExt::ino(&facts)));
        return if is_pods { "ipc: the pod's".to_owned() } else { line };
    }
    // Go programs lift the lower of the two, and runc 1.1 leaves it so for containers.
    if line.starts_with("Max open files") {
        return line.split_whitespace().skip(4).collect::<Vec<_>>().join(" ");
    }
    let fields: Vec<&str> = line.split(' ').collect();
    // A line of mountinfo.
    if fields.len() > 8 && fields.contains(&"-") {
        // The root is private, as with runc since 1.2; before, it was a slave of the node's.
        let kept = fields[3..].iter().filter(|f| !(f.starts_with("master:") && fields[4] == "/"));
        return kept.map(|f| if f.starts_with("master:") { "master" } else { f }).collect::<Vec<_>>().join(" ");
    }
    line
}

/// What the node says of a container.
async fn outside(bed: &Bed, id: &str, pid: i32, by_itself: bool) -> Vec<String> {
    let below = Path::new(&bed.cgroup[1..]).join(id);
    let mut said: Vec<String> = LIMITS[usize::from(is_v2())]
        .iter()
        .map(|file| {
            let (controller, file) = file.split_once('/').expect("two parts");
            let text = fs::read_to_string(Path::new("/sys/fs/cgroup").join(controller).join(&below).join(file));
            let mut lines: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
            lines.sort();
            format!("{file}: {}", lines.join(", "))
        })
        .collect();
    let mut hierarchies: Vec<String> = fs::read_dir("/sys/fs/cgroup")
        .expect("hierarchies")
        .flatten()
        .filter(|h| {
            fs::read_to_string(h.path().join(&below).join("cgroup.procs")).is_ok_and(|p| p.contains(&pid.to_string()))
        })
        .map(|h| h.file_name().to_string_lossy().into_owned())
        .collect();
    hierarchies.sort();
    said.push(format!("in {hierarchies:?}"));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    if by_itself {
        // While it looks around it has pipes, too; what runc leaves open at times (CVE-2024-21626) is its own.
        let open = || fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        until("nothing else is open", || async { (open() == 3).then_some(()) }).await;
    }
    said.push(format!("leads group {} and session {}", fields[2] == pid.to_string(), fields[3] == pid.to_string()));
    said
}

/// All that is said of a container, in a pod of one OCI runtime or without.
async fn said(client: &mut Client, bed: &Bed, pod: &str, config: v1::ContainerConfig, by_itself: bool) -> Vec<String> {
    let log = config.log_path.clone();
    let of = config.metadata.as_ref().map(|m| m.name.clone()).unwrap_or_default();
    let id = running(client, pod, config).await;
    let own = bed.dir.path().join("run/oci").join(&id);
    assert!(!by_itself || !own.exists(), "{of}: it was started by runc");
    let pid = pid_of(bed, &id);
    let mut said = outside(bed, &id, pid, by_itself).await;
    assert_eq!(status(client, &id).await.state(), v1::ContainerState::ContainerRunning, "{of}");
    exec(client, &id, "touch /tmp/done", 10).await.expect("told");
    assert_eq!(exited(client, &id).await.exit_code, 0, "{of}");
    let lines = bed.lines("started", &log);
    let lines = lines.iter().filter_map(|l| l.strip_prefix("stdout F "));
    // Whoever may sees keyrings of others, too.
    let lines = lines.filter(|l| !l.contains("_ses.") || l.contains(&id));
    said.extend(lines.map(|l| plain(bed, l.trim_end_matches('\r'), &id, pod)));
    said
}

/// The first process of a container: the others are its children.
fn pid_of(bed: &Bed, id: &str) -> i32 {
    let all = Path::new(if is_v2() { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/memory" })
        .join(&bed.cgroup[1..])
        .join(id)
        .join("cgroup.procs");
    let all = fs::read_to_string(&all).expect("a cgroup");
    all.lines().filter_map(|line| line.parse().ok()).min().expect("a process")
}

async fn pod(client: &mut Client, bed: &Bed, handler: &str, privileged: bool) -> String {
    let mut config = bed.pod("started");
    let metadata = config.metadata.as_mut().expect("metadata");
    metadata.uid = format!("{handler}-{privileged}");
    metadata.namespace.clone_from(&metadata.uid);
    let context = config.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("a context");
    context.privileged = privileged;
    let request = v1::RunPodSandboxRequest { config: Some(config), runtime_handler: handler.into() };
    client.run_pod_sandbox(request).await.expect("a sandbox").into_inner().pod_sandbox_id
}

/// A container of some kind.
struct Kind {
    name: &'static str,
    privileged: bool,
    change: fn(&mut v1::ContainerConfig, &Path),
}

const fn kind(name: &'static str, change: fn(&mut v1::ContainerConfig, &Path)) -> Kind {
    Kind { name, privileged: false, change }
}

fn mount(from: &Path, to: &str, readonly: bool) -> v1::Mount {
    let host_path = from.to_string_lossy().into_owned();
    v1::Mount { host_path, container_path: to.into(), readonly, ..Default::default() }
}

const KINDS: &[Kind] = &[
    kind("plain", |_, _| ()),
    kind("user", |c, _| {
        context(c).run_as_user = Some(v1::Int64Value { value: 1000 });
        context(c).run_as_group = Some(v1::Int64Value { value: 1001 });
        context(c).supplemental_groups = vec![50, 60];
        context(c).no_new_privs = true;
    }),
    kind("guarded", |c, _| context(c).seccomp = Some(profile(ProfileType::RuntimeDefault))),
    kind("restricted", |c, _| {
        context(c).seccomp = Some(profile(ProfileType::RuntimeDefault));
        context(c).no_new_privs = true;
        context(c).run_as_user = Some(v1::Int64Value { value: 1000 });
        context(c).capabilities = Some(v1::Capability { drop_capabilities: vec!["ALL".into()], ..Default::default() });
    }),
    kind("few", |c, _| {
        let all = vec!["ALL".to_owned()];
        let add = vec!["NET_BIND_SERVICE".to_owned()];
        context(c).capabilities =
            Some(v1::Capability { drop_capabilities: all, add_capabilities: add, ..Default::default() });
    }),
    kind("read-only", |c, dir| {
        context(c).readonly_rootfs = true;
        c.mounts.push(mount(&dir.join("volume"), "/tmp", false));
    }),
    kind("mounts", |c, dir| {
        let volume = dir.join("volume");
        c.mounts = vec![
            mount(&volume, "/a/rw", false),
            mount(&volume, "/a/ro", true),
            mount(&volume.join("in"), "/a/ro/in", false),
            mount(&volume.join("file"), "/a/file", true),
            mount(&volume, "/var/run/b", false),
            mount(&volume.join("file"), "/etc/resolv.conf", false),
        ];
    }),
    kind("limits", |c, _| {
        let limits = resources(c);
        (limits.cpu_shares, limits.cpu_quota, limits.cpu_period) = (512, 25_000, 50_000);
        if has_cpusets() {
            (limits.cpuset_cpus, limits.cpuset_mems) = ("0".into(), "0".into());
        }
        (limits.memory_limit_in_bytes, limits.oom_score_adj) = (48 << 20, 321);
        if is_v2() {
            limits.unified.insert("memory.oom.group".into(), "1".into());
        }
    }),
    kind("devices", |c, _| {
        let device = |path: &str, access: &str| v1::Device {
            host_path: "/dev/null".into(),
            container_path: path.into(),
            permissions: access.into(),
        };
        c.devices = vec![device("/dev/nothing", "r"), device("/opt/deep/nothing", "rw")];
    }),
    kind("terminal", |c, _| (c.tty, c.stdin) = (true, true)),
    kind("input", |c, _| c.stdin = true),
    kind("folder", |c, _| {
        c.working_dir = "/not/yet/there".into();
        c.envs = vec![v1::KeyValue { key: "A".into(), value: b"b c".to_vec() }];
    }),
    kind("node's", |c, _| {
        let options = context(c).namespace_options.as_mut().expect("options");
        options.set_ipc(v1::NamespaceMode::Node);
    }),
    Kind { name: "privileged", privileged: true, change: |c, _| context(c).privileged = true },
];

#[tokio::test]
async fn what_a_supervisor_starts_is_held_in_as_what_runc_starts() {
    let bed = Bed::with_noting_runc();
    let mut client = bed.client().await;
    let dir = bed.dir.path();
    fs::create_dir_all(dir.join("volume/in")).expect("folders");
    fs::write(dir.join("volume/file"), "words").expect("file");
    let image = dir.join("images/box/rootfs");
    fs::create_dir(image.join("var")).expect("folder");
    // To a folder that the image lacks.
    std::os::unix::fs::symlink("/run", image.join("var/run")).expect("link");
    for open in [image.join("tmp"), dir.join("volume")] {
        fs::set_permissions(open, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).expect("for all");
    }
    let mut pods = Vec::new();
    for privileged in [false, true] {
        pods.push([pod(&mut client, &bed, "", privileged).await, pod(&mut client, &bed, "other", privileged).await]);
    }
    let mut other = Vec::new();
    for Kind { name, privileged, change } in KINDS {
        let mut config = container(name, &format!("{LOOK}{TRY}\n{WAIT}"));
        context(&mut config).masked_paths =
            ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware", "/proc/none"]
                .map(str::to_owned)
                .to_vec();
        context(&mut config).readonly_paths =
            ["/proc/bus", "/proc/fs", "/proc/sys", "/proc/none"].map(str::to_owned).to_vec();
        if *name == "plain" {
            context(&mut config).masked_paths.retain(|p| p != "/proc/keys");
        }
        change(&mut config, dir);
        let [own, theirs] = &pods[usize::from(*privileged)];
        // Who may trace is started by runc, always.
        let own = said(&mut client, &bed, own, config.clone(), !privileged).await;
        let _ = fs::remove_file(dir.join("volume/done"));
        config.log_path += "-runc";
        let theirs = said(&mut client, &bed, theirs, config, false).await;
        let _ = fs::remove_file(dir.join("volume/done"));
        assert!(own.len() > 60, "{name}: {own:#?}");
        // Asked for as read-only, and left writable by runc 1.1.
        let (rw, ro) = ("/ /sys/fs/cgroup rw,", "/ /sys/fs/cgroup ro,");
        let theirs: Vec<String> = theirs.into_iter().map(|l| if *privileged { l } else { l.replace(rw, ro) }).collect();
        for line in theirs.iter().filter(|l| !own.contains(l)) {
            other.push(format!("{name}: runc's alone: {line}"));
        }
        for line in own.iter().filter(|l| !theirs.contains(l)) {
            other.push(format!("{name}: own alone:    {line}"));
        }
    }
    assert!(other.is_empty(), "{}", other.join("\n"));
    for pod in pods.iter().flatten() {
        stop_pod(&mut client, pod).await.expect("stopped");
    }
}
