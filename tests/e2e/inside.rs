//! What a container sees: environment, names, files, user, resources; and what its log and the command line show.

use crate::node::{Node, shell, state};

/// Runs a script that writes to its termination message, and answers that.
fn told(node: &Node, name: &str, script: &str, extra: &str, pod: &str) -> String {
    let script = format!("({script}) > /dev/termination-log 2>&1");
    node.put(name, &format!("  restartPolicy: Never\n{pod}  containers:\n{}", shell("main", &script, extra)));
    let pod = node.wait_phase(name, "Succeeded");
    state(&pod, "terminated")["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn environment_with_downward_fields_and_expansion() {
    let node = Node::start();
    let env = "    env:\n    - {name: A, value: one}\n    - {name: B, value: $(A)-two-$$(A)}\n    \
               - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n    \
               - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}\n    \
               - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}\n    \
               - {name: MEM, valueFrom: {resourceFieldRef: {resource: limits.memory}}}\n    \
               resources: {limits: {memory: 64Mi}}\n";
    let text = told(&node, "env", "echo $B $NAME $NODE $IP $MEM", env, "");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..3], ["one-two-$(A)", "env-bed", "bed"], "{text}");
    assert!(words[3].starts_with("10."), "{text}");
    assert_eq!(words[4], "67108864", "{text}");
}

#[test]
fn host_name_hosts_file_and_resolver_are_the_pods_own() {
    let node = Node::start();
    let pod = "  hostname: alice\n  hostAliases: [{ip: 10.9.8.7, hostnames: [friend]}]\n  dnsPolicy: None\n  \
               dnsConfig: {nameservers: [10.1.1.1], searches: [example.org]}\n";
    let text = told(&node, "names", "hostname; cat /etc/hosts /etc/resolv.conf", "", pod);
    assert!(text.starts_with("alice\n"), "{text}");
    for want in ["10.9.8.7\tfriend", "nameserver 10.1.1.1", "search example.org"] {
        assert!(text.contains(want), "{want} is missing:\n{text}");
    }
}

#[test]
fn an_empty_dir_is_shared_between_containers_and_goes_with_the_pod() {
    let node = Node::start();
    let mount = "    volumeMounts: [{name: work, mountPath: /work}]\n";
    let spec = format!(
        "  restartPolicy: Never\n  initContainers:\n{}  containers:\n{}  volumes: [{{name: work, emptyDir: {{}}}}]\n",
        shell("write", "echo handed-over > /work/f", mount),
        shell("main", "cat /work/f > /dev/termination-log", mount)
    );
    node.put("shares", &spec);
    let pod = node.wait_phase("shares", "Succeeded");
    assert_eq!(state(&pod, "terminated")["message"], "handed-over\n");
    let dir = node.bed.dir().join("node/pods").join(pod["metadata"]["uid"].as_str().expect("uid"));
    assert!(dir.exists(), "{} is there while the pod is", dir.display());
    node.remove("shares");
    node.wait_gone("shares");
    testbed::wait_until("the pod's folder to go", crate::node::SOON, || {
        if dir.exists() { Err(dir.display().to_string()) } else { Ok(()) }
    })
    .expect("removed");
}

#[test]
fn security_context_reaches_the_process() {
    let node = Node::start();
    let context = "    securityContext: {runAsUser: 1000, runAsGroup: 1000, readOnlyRootFilesystem: true, \
                   capabilities: {drop: [ALL]}, allowPrivilegeEscalation: false}\n";
    let text = told(
        &node,
        "bound",
        "id -u; id -g; touch /x || true; grep -E 'CapEff|NoNewPrivs' /proc/self/status",
        context,
        "",
    );
    assert!(text.starts_with("1000\n1000\n"), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
    assert!(text.contains("NoNewPrivs:\t1"), "{text}");
}

fn number(file: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    text.trim().parse().unwrap_or_else(|_| panic!("{file}: {text:?} is no number"))
}

#[test]
fn cgroups_hang_below_the_pod_and_its_class() {
    let node = Node::start();
    let limits = "    resources: {limits: {memory: 64Mi, cpu: 100m}, requests: {memory: 64Mi, cpu: 100m}}\n";
    node.put(
        "bounded",
        &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", limits)),
    );
    let pod = node.wait_running("bounded");
    assert_eq!(pod["status"]["qosClass"], "Guaranteed", "{pod}");
    let uid = pod["metadata"]["uid"].as_str().expect("uid");
    // On cgroup v1 each controller has a tree of its own.
    let v1 = std::path::Path::new("/sys/fs/cgroup/memory").exists();
    let kubepods = |controller: &str| {
        let tree = if v1 { format!("/{controller}") } else { String::new() };
        format!("/sys/fs/cgroup{tree}{}/kubepods", node.bed.cgroup_root())
    };
    let dir = format!("{}/pod{uid}", kubepods("memory"));
    assert_eq!(number(&format!("{dir}/{}", if v1 { "memory.limit_in_bytes" } else { "memory.max" })), 67_108_864);
    // All pods together may have as many processes as the machine can.
    let most = ["pid_max", "threads-max"].map(|name| number(&format!("/proc/sys/kernel/{name}")));
    assert_eq!(Some(number(&format!("{}/pids.max", kubepods("pids")))), most.into_iter().min());
    node.remove("bounded");
    node.wait_gone("bounded");
    testbed::wait_until("the pod's cgroup to go", crate::node::SOON, || {
        if std::path::Path::new(&dir).exists() { Err(dir.clone()) } else { Ok(()) }
    })
    .expect("removed");
}

#[test]
fn logs_and_tables_are_shown() {
    let node = Node::start();
    node.put("talks", &format!("  containers:\n{}", shell("main", "echo first; echo second; exec sleep 1000", "")));
    node.wait_running("talks");
    let logs = testbed::wait_until("both lines", crate::node::SOON, || {
        let text = node.bosun.cli(&["logs", "talks-bed"]).map_err(|e| e.to_string())?;
        if text.lines().count() >= 2 { Ok(text) } else { Err(text) }
    });
    assert_eq!(logs.expect("logs").lines().collect::<Vec<_>>(), ["first", "second"]);
    let table = node.bosun.cli(&["get", "pods", "-o", "wide"]).expect("table");
    assert!(table.contains("talks-bed") && table.contains("Running"), "{table}");
    let actors = node.bosun.cli(&["get", "actors"]).expect("table");
    assert!(actors.contains("pod-manager"), "{actors}");
    let yaml = node.bosun.cli(&["get", "pods", "-o", "yaml"]).expect("yaml");
    assert!(yaml.contains("name: talks-bed"), "{yaml}");
}

#[test]
fn container_changes_are_told_by_events_and_not_by_the_relist() {
    let node = Node::start();
    node.put("ends", &format!("  restartPolicy: Never\n  containers:\n{}", shell("main", "exit 0", "")));
    node.wait_phase("ends", "Succeeded");
    let info = node.bosun.get("node").expect("node");
    let version = info["runtime"].as_str().expect("runtime");
    let want = if version.contains(" 1.6.") || version.contains(" v1.6.") { "containerd-events" } else { "cri-stream" };
    assert_eq!(info["events"], want, "{info}");
    assert_eq!(info["divergences"], 0, "{info}");
}

#[test]
fn a_host_port_leads_to_the_container() {
    let node = Node::start();
    let serve = "while :; do echo -e 'HTTP/1.0 200 OK\\r\\n\\r\\nhello' | nc -l -p 80; done";
    let ports = "    ports: [{containerPort: 80, hostPort: 31948}]\n";
    node.put("served", &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", serve, ports)));
    node.wait_running("served");
    let address = format!("{}:31948", node.bed.node_ip());
    let ask = || testbed::http_get(&address).map_err(|e| e.to_string());
    let answer = testbed::wait_until("the host port to answer", crate::node::SOON, ask);
    assert!(answer.expect("an answer").contains("hello"));
}
