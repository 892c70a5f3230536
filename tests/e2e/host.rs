//! What the daemon sets up on the host itself: iptables chains in a network of their own, kernel parameters in a folder, limits of
//! cgroups for other daemons.

use std::path::PathBuf;
use std::process::Command;

use host_linux::LinuxCgroups;
use ports::host::CgroupFs;
use serde_json::json;
use testbed::{Bosun, BosunOptions, Options, TestBed, wait_until};

use crate::node::{Node, SOON};

/// A network namespace, and programs named `iptables` and `ip6tables` that work in it.
struct Network {
    name: String,
    programs: PathBuf,
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).status().is_ok_and(|s| s.success())
}

impl Network {
    fn make(bed: &TestBed) -> Self {
        let network = Network { name: format!("bosun-{}-host", bed.id()), programs: bed.dir().join("programs") };
        assert!(ip(&["netns", "add", &network.name]), "a network namespace");
        std::fs::create_dir(&network.programs).expect("a folder");
        for program in ["iptables", "ip6tables"] {
            let text =
                format!("#!/bin/sh\nexec nsenter --net=/run/netns/{} /usr/sbin/{program} \"$@\"\n", network.name);
            let path = network.programs.join(program);
            std::fs::write(&path, text).expect("a program");
            assert!(Command::new("chmod").arg("+x").arg(&path).status().expect("chmod").success());
        }
        network
    }

    fn rules(&self, program: &str, table: &str) -> Vec<String> {
        let output = Command::new(self.programs.join(program)).args(["-w", "-t", table, "-S"]).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn has_all(&self) -> Result<(), String> {
        let v4 = [
            ("mangle", "-N KUBE-IPTABLES-HINT"),
            ("mangle", "-N KUBE-KUBELET-CANARY"),
            ("nat", "-N KUBE-KUBELET-CANARY"),
            ("filter", "-N KUBE-KUBELET-CANARY"),
            ("filter", "-A INPUT -j KUBE-FIREWALL"),
            ("filter", "-A OUTPUT -j KUBE-FIREWALL"),
            (
                "filter",
                "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment \
                 \"block incoming localnet connections\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
            ),
        ];
        let missing = |program, (table, rule): &(&str, &str)| {
            self.rules(program, table).iter().filter(|r| r == rule).count() != 1
        };
        let mut left: Vec<_> = v4.iter().filter(|row| missing("iptables", row)).collect();
        left.extend(v4[..4].iter().filter(|row| missing("ip6tables", row)));
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        ip(&["netns", "delete", &self.name]);
    }
}

#[test]
fn chains_for_other_components_are_made_and_come_back_after_a_flush() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let network = Network::make(&bed);
    let path = format!("{}:{}", network.programs.display(), std::env::var("PATH").unwrap_or_default());
    let options = BosunOptions {
        config: json!({"makeIPTablesUtilChains": true}),
        env: vec![("PATH".into(), path)],
        ..BosunOptions::default()
    };
    let bosun = Bosun::start(&mut bed, options).expect("starts");
    let node = Node { bosun, bed };
    wait_until("the chains", SOON, || network.has_all()).unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    for (program, table) in [("iptables", "mangle"), ("iptables", "nat"), ("iptables", "filter")] {
        for how in ["-F", "-X"] {
            let call = Command::new(network.programs.join(program)).args(["-w", "-t", table, how]).status();
            assert!(call.expect("runs").success());
        }
    }
    assert!(network.has_all().is_err());
    // The daemon looks once a minute.
    let a_while = std::time::Duration::from_secs(100);
    wait_until("the chains again", a_while, || network.has_all())
        .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
}

#[test]
fn kernel_parameters_are_set_or_with_protection_only_looked_at() {
    let mut node = Node::start();
    let dir = node.bosun.sysctls().expect("a folder");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).expect("a parameter");
    let all = || ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"].map(read);
    assert_eq!(all(), ["1", "10", "1", "1000000"]);
    node.bosun.kill();
    std::fs::write(dir.join("kernel/panic"), "5").expect("written");
    let mut protected = node.bosun.options_mut().clone();
    protected.config = json!({"protectKernelDefaults": true});
    let Err(refused) = Bosun::start(&mut node.bed, protected) else { panic!("it starts") };
    let refused = refused.to_string();
    assert!(refused.contains("invalid kernel flag: kernel/panic, expected value: 10, actual value: 5"), "{refused}");
    assert_eq!(read("kernel/panic"), "5");
}

/// What a file of a cgroup holds, in the hierarchy of a controller of v1 or in that of v2.
fn cgroup_value(path: &str, (controller, v1): (&str, &str), v2: &str) -> Option<String> {
    let files = [format!("/sys/fs/cgroup/{controller}{path}/{v1}"), format!("/sys/fs/cgroup{path}/{v2}")];
    files.iter().find_map(|file| std::fs::read_to_string(file).ok()).map(|text| text.trim().to_owned())
}

#[test]
fn daemons_of_the_system_get_what_is_set_aside_for_them_and_the_node_goes_where_it_is_told() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let name = format!("{}/system", bed.cgroup_root());
    let config = json!({
        "enforceNodeAllocatable": ["system-reserved"], "systemReservedCgroup": name,
        "systemReserved": {"memory": "64Mi", "cpu": "250m", "pid": "50"},
        "kubeletCgroups": format!("{}/daemon", bed.cgroup_root()),
    });
    let Err(refused) = Bosun::start(&mut bed, BosunOptions { config: config.clone(), ..BosunOptions::default() })
    else {
        panic!("a node starts whose system has no cgroup")
    };
    let words = format!("enforceNodeAllocatable: the cgroup \"{name}\" of System Reserved");
    assert!(refused.to_string().contains(&words), "{refused}");
    let cgroups = LinuxCgroups::detect().expect("cgroups");
    cgroups.create(&name).expect("a cgroup");
    let bosun = Bosun::start(&mut bed, BosunOptions { config, ..BosunOptions::default() }).expect("bosun starts");
    let limit = || cgroup_value(&name, ("memory", "memory.limit_in_bytes"), "memory.max");
    let pids = || cgroup_value(&name, ("pids", "pids.max"), "pids.max");
    wait_until("the cgroup to be limited", SOON, || match (limit(), pids()) {
        (Some(memory), Some(pids)) if memory == (64 << 20).to_string() && pids == "50" => Ok(()),
        found => Err(format!("{found:?}")),
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let own = format!("/proc/{}/cgroup", bosun.pid().expect("it runs"));
    let line = format!(":{}/daemon", bed.cgroup_root());
    wait_until("the daemon to be in its own cgroup", SOON, || {
        let all = std::fs::read_to_string(&own).map_err(|e| e.to_string())?;
        let here = all.lines().filter(|l| l.ends_with(&line)).count();
        if here > 0 && (here == 1 || here > 5) { Ok(()) } else { Err(all) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}
