//! What holds containers in, and that commands in them are held as they are, whether the supervisor runs them or the OCI runtime.

use cri_api::v1;
use cri_api::v1::security_profile::ProfileType;

use crate::bed::Bed;
use crate::on_runc::{Client, container, create, exec, exited, profile, run_pod, running, start, stop_pod};

/// What a process says of itself.
const LOOK: &str = "b=/bin/busybox; $b grep -E '^(Cap|NoNew|Seccomp|Groups|Uid|Gid|Umask|SigBlk)' /proc/self/status; \
    $b grep ^SigIgn: /proc/self/status | $b tail -c 9 | $b cut -c2-; \
    $b cat /proc/self/attr/current; $b sort /proc/self/cgroup; $b cat /proc/self/mountinfo /proc/self/limits /proc/self/oom_score_adj; \
    for n in cgroup ipc mnt net pid user uts; do $b readlink /proc/self/ns/$n; done; \
    $b env | $b grep -v -e ^_= -e ^SHLVL= -e ^OLDPWD= | $b sort; $b pwd";

/// What a container's first process says of itself, and what a command in it says; and which descriptors the latter has.
async fn both(client: &mut Client, bed: &Bed, pod: &str, config: v1::ContainerConfig) -> ([Vec<String>; 2], String) {
    let log = config.log_path.clone();
    let id = running(client, pod, config).await;
    let command = exec(client, &id, LOOK, 10).await.expect("a command");
    assert_eq!(command.exit_code, 0, "{}", String::from_utf8_lossy(&command.stderr));
    // What `runc` leaves open at times (CVE-2024-21626) is its own: only here, and with the folder that is listed.
    let open = exec(client, &id, "exec /bin/busybox ls /proc/self/fd", 10).await.expect("a command");
    let open = String::from_utf8_lossy(&open.stdout).into_owned();
    let command = String::from_utf8(command.stdout).expect("text").lines().map(comparable).collect();
    exec(client, &id, "touch /tmp/done", 10).await.expect("told");
    assert_eq!(exited(client, &id).await.exit_code, 0);
    let lines = bed.lines("confined", &log);
    ([lines.iter().filter_map(|l| l.strip_prefix("stdout F ")).map(comparable).collect(), command], open)
}

/// Of limits of open files the higher one alone: Go programs lift the lower one, and runc 1.1 leaves it so for containers.
fn comparable(line: &str) -> String {
    match line.strip_prefix("Max open files") {
        Some(limits) => limits.split_whitespace().skip(1).collect::<Vec<_>>().join(" "),
        None => line.to_owned(),
    }
}

fn context(config: &mut v1::ContainerConfig) -> &mut v1::LinuxContainerSecurityContext {
    config.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("a context")
}

#[tokio::test]
async fn commands_are_confined_as_their_container_is() {
    let bed = Bed::with_noting_runc();
    let mut client = bed.client().await;
    let request = v1::RunPodSandboxRequest { config: Some(bed.pod("confined")), runtime_handler: "other".into() };
    let pod = client.run_pod_sandbox(request).await.expect("a sandbox").into_inner().pod_sandbox_id;
    let tmp = bed.dir.path().join("images/box/rootfs/tmp");
    std::fs::set_permissions(tmp, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).expect("for all");
    let script = format!("{LOOK}; until [ -e /tmp/done ]; do sleep 0.05; done");
    for Kind { name, user, seccomp, by_runtime, change } in KINDS {
        let mut config = container(name, &script);
        config.working_dir = "/not/yet/there".into();
        let resources = config.linux.as_mut().and_then(|l| l.resources.as_mut());
        resources.expect("resources").oom_score_adj = 321;
        let context = context(&mut config);
        context.run_as_user = Some(v1::Int64Value { value: *user });
        context.supplemental_groups = vec![50, 60];
        change(context);
        let no_new_privs = context.no_new_privs;
        let before = bed.calls().matches(" exec ").count();
        let ([first, command], open) = both(&mut client, &bed, &pod, config).await;
        let calls = bed.calls().matches(" exec ").count() - before;
        assert_eq!(calls, if *by_runtime { 3 } else { 0 }, "{name}: calls of runc");
        assert!(calls > 0 || open == "0\n1\n2\n3\n", "{name}: {open}");
        let other: Vec<_> = first.iter().zip(&command).filter(|(a, b)| a != b).collect();
        assert!(other.is_empty() && first.len() == command.len(), "{name}: {other:#?}");
        let has = |line: &str| assert!(first.iter().any(|l| l == line), "{name}: {line} is not in\n{first:#?}");
        has(&format!("Seccomp:\t{seccomp}"));
        has(&format!("NoNewPrivs:\t{}", u8::from(no_new_privs)));
        has("/not/yet/there");
        has("HOME=/");
        has("321");
    }
    stop_pod(&mut client, &pod).await.expect("stopped");
}

/// A container that is looked into.
struct Kind {
    name: &'static str,
    user: i64,
    /// Mode of seccomp: 0 is none, and 2 a filter.
    seccomp: u8,
    /// Its commands are left to `runc`.
    by_runtime: bool,
    change: fn(&mut v1::LinuxContainerSecurityContext),
}

const fn kind(name: &'static str, user: i64, change: fn(&mut v1::LinuxContainerSecurityContext)) -> Kind {
    Kind { name, user, seccomp: 0, by_runtime: false, change }
}

const fn guarded(name: &'static str, user: i64, change: fn(&mut v1::LinuxContainerSecurityContext)) -> Kind {
    Kind { name, user, seccomp: 2, by_runtime: false, change }
}

fn by_default(context: &mut v1::LinuxContainerSecurityContext) {
    context.seccomp = Some(profile(ProfileType::RuntimeDefault));
}

const KINDS: &[Kind] = &[
    guarded("guarded-root", 0, by_default),
    guarded("guarded-user", 1000, by_default),
    guarded("restricted", 1000, |c| {
        by_default(c);
        c.no_new_privs = true;
        c.capabilities = Some(v1::Capability { drop_capabilities: vec!["ALL".into()], ..Default::default() });
    }),
    Kind {
        name: "traces",
        user: 0,
        seccomp: 0,
        by_runtime: true,
        change: |c| {
            let add_capabilities = vec!["SYS_PTRACE".into()];
            c.capabilities = Some(v1::Capability { add_capabilities, ..Default::default() });
        },
    },
    kind("root", 0, |_| ()),
    kind("user", 1000, |_| ()),
    kind("unknown-user", 4711, |_| ()),
    kind("bare-root", 0, |c| c.no_new_privs = true),
    kind("bare-user", 1000, |c| c.no_new_privs = true),
    kind("without", 0, |c| {
        c.capabilities = Some(v1::Capability { drop_capabilities: vec!["ALL".into()], ..Default::default() })
    }),
    kind("more", 0, |c| {
        c.capabilities = Some(v1::Capability { add_capabilities: vec!["NET_ADMIN".into()], ..Default::default() })
    }),
    kind("ambient", 1000, |c| {
        let add_ambient_capabilities = vec!["NET_BIND_SERVICE".into()];
        c.capabilities = Some(v1::Capability { add_ambient_capabilities, ..Default::default() });
    }),
    kind("of-the-node", 0, |c| {
        let options = c.namespace_options.as_mut().expect("options");
        options.set_pid(v1::NamespaceMode::Node);
    }),
];

/// Whoever shapes the files of a container must not have them loaded by who enters it, nor keep that one busy.
#[tokio::test]
async fn files_of_a_container_do_nothing_to_who_enters_it() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("traps")).await.expect("a sandbox");
    let config = container("main", "exec sleep 1000");
    let id = running(&mut client, &pod, config).await;
    let set = "b=/bin/busybox; $b rm /etc/passwd; $b mkfifo /etc/passwd; echo 'passwd: evil' > /etc/nsswitch.conf; \
        $b mkdir -p /lib; $b mkfifo /lib/libnss_evil.so.2; $b mkfifo /pipe; $b chmod 755 /pipe";
    assert_eq!(exec(&mut client, &id, set, 10).await.expect("a command").exit_code, 0);
    let seen = exec(&mut client, &id, "echo $HOME; readlink /proc/self/exe", 10).await.expect("a command");
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "/\n/bin/busybox\n");
    for (program, words) in [
        ("/pipe", "permission denied"),
        ("nothing", "exec: \"nothing\": executable file not found in $PATH"),
        ("/nothing", "exec: \"/nothing\": stat /nothing: no such file or directory"),
        ("/etc", "exec: \"/etc\": is a directory"),
    ] {
        let request = v1::ExecSyncRequest { container_id: id.clone(), cmd: vec![program.into()], timeout: 10 };
        let refused = client.exec_sync(request).await.expect_err("no program");
        assert!(refused.message().contains("exec failed: unable to start container process: "), "{refused}");
        assert!(refused.message().contains(words), "{refused}");
    }
    // What would run as the interpreter of a script that names `/proc/self/exe`, and could be written to, is on a read-only mount.
    let program = format!("/proc/{}/exe", bed.supervisor_of(&pod).as_raw_nonzero());
    let failed = std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o000));
    assert_eq!(failed.expect_err("read-only").kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let still = exec(&mut client, &id, "echo fine", 10).await.expect("a command");
    assert_eq!(still.stdout, b"fine\n");
    stop_pod(&mut client, &pod).await.expect("stopped");
}

/// Who is in a container can stop what enters it. The pod's other containers, and its end, must not notice.
#[tokio::test]
async fn a_container_that_stops_what_enters_it_holds_nobody_up() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("stops")).await.expect("a sandbox");
    let mut ids = Vec::new();
    for (name, script) in [("stops", "while :; do kill -STOP -1; done 2>/dev/null"), ("beside", "exec sleep 1000")] {
        ids.push(running(&mut client, &pod, container(name, script)).await);
    }
    let mut stopped = 0;
    for _ in 0..5 {
        let entered = exec(&mut client, &ids[0], "while :; do :; done", 1).await.expect_err("it never ends by itself");
        stopped += usize::from(entered.code() == tonic::Code::DeadlineExceeded);
        let beside = exec(&mut client, &ids[1], "echo fine", 10).await.expect("a command beside it");
        assert_eq!(beside.stdout, b"fine\n");
    }
    assert!(stopped > 0);
    stop_pod(&mut client, &pod).await.expect("stopped");
}

/// A command comes on top of the processes that a container may have, as with `runc`: else a probe would fail for what the container has too many of. But
/// it can start no others.
#[tokio::test]
async fn a_container_that_has_all_its_processes_still_runs_commands() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("full")).await.expect("a sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    let below = format!("{}/{id}", bed.cgroup.trim_start_matches('/'));
    let places =
        ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(|hierarchy| std::path::Path::new(hierarchy).join(&below));
    let group = places.iter().find(|group| group.join("pids.max").exists()).expect("processes are counted");
    std::fs::write(group.join("pids.max"), "1").expect("a limit");
    assert_eq!(std::fs::read_to_string(group.join("pids.current")).expect("count"), "1\n");
    let one = exec(&mut client, &id, "echo fine", 10).await.expect("a command");
    assert_eq!(one.stdout, b"fine\n");
    let more = exec(&mut client, &id, "/bin/busybox true; echo never", 10).await.expect("a command");
    assert_ne!((more.exit_code, &more.stdout[..]), (0, &b"never\n"[..]), "{more:?}");
    stop_pod(&mut client, &pod).await.expect("stopped");
}

/// What enters a container, or becomes its first process, has this and that open until its program takes over; the paths of the program and of its
/// interpreter are looked up before (CVE-2024-21626).
#[tokio::test]
async fn nothing_that_is_open_before_a_program_begins_leads_out() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let outside = bed.dir.path().join("true");
    std::fs::copy("/bin/busybox", &outside).expect("busybox-static is installed");
    let pod = run_pod(&mut client, bed.pod("leads")).await.expect("a sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    for number in 3..24 {
        let path = format!("/proc/self/fd/{number}{}{}", "/..".repeat(14), outside.display());
        let script = bed.dir.path().join(format!("images/box/rootfs/script-{number}"));
        std::fs::write(&script, format!("#!{path}\n")).expect("script");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
        for program in [path, format!("/script-{number}")] {
            let request = v1::ExecSyncRequest { container_id: id.clone(), cmd: vec![program.clone()], timeout: 10 };
            let why = client.exec_sync(request).await.expect_err(&program).to_string();
            assert!(why.contains("exec failed: ") && !why.contains("folder"), "{why}");
            let mut config = container(&format!("c{}-{number}", program.len()), "");
            config.command = vec![program.clone()];
            let begins = create(&mut client, &pod, config).await.expect("created");
            let why = start(&mut client, &begins).await.expect_err(&program).to_string();
            assert!(why.contains("container start failed: ") && !why.contains("folder"), "{why}");
        }
    }
    // Not refused for anything else.
    running(&mut client, &pod, container("last", "exec sleep 1000")).await;
    stop_pod(&mut client, &pod).await.expect("stopped");
}

/// Root in a container may change the mode of what its streams are, without any capability. The node's null device is everybody's.
#[tokio::test]
async fn a_command_has_a_null_device_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("null")).await.expect("a sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    let looks = "b=/bin/busybox; $b cat; $b stat -L -c '%F %a %t:%T' /proc/self/fd/0; $b chmod 600 /proc/self/fd/0";
    let done = exec(&mut client, &id, looks, 10).await.expect("a command");
    let changed = std::fs::metadata("/dev/null").expect("there").permissions().mode() & 0o777;
    // Whatever comes of it here, nobody else is to suffer.
    std::fs::set_permissions("/dev/null", PermissionsExt::from_mode(0o666)).expect("as it was");
    assert_eq!((done.exit_code, String::from_utf8_lossy(&done.stdout).trim()), (0, "character special file 666 1:3"));
    assert_eq!(changed, 0o666);
    stop_pod(&mut client, &pod).await.expect("stopped");
}
