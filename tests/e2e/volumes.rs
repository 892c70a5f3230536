//! Volumes of the host in containers: mounts that pass between them, read-only ones with mounts in them, and a writer that
//! exchanges directories for links while pods with subPaths start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use testbed::wait_until;

use crate::node::{Node, SOON, shell, state};
use crate::users::is_new;

/// What the writer runs: it exchanges two names, a burst at a time, and says how often it did. Between bursts a pod may start.
const FLIP: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count != 4) return 2;
    for (unsigned long done = 1;; done++) {
        if (renameat2(AT_FDCWD, words[1], AT_FDCWD, words[2], RENAME_EXCHANGE) != 0) { perror("exchange"); return 1; }
        if (done % 100 == 0) {
            int file = open(words[3], O_WRONLY | O_CREAT | O_TRUNC, 0644);
            if (file < 0 || dprintf(file, "%lu\n", done) < 0) { perror(words[3]); return 1; }
            close(file);
        }
        usleep(done % 64 == 0 ? 30000 + rand() % 30000 : rand() % 200);
    }
}
"#;

fn run(program: &str, words: &[&str]) {
    let out = Command::new(program).args(words).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Volumes of the test and the folder of traces, as YAML of a pod.
fn volumes(node: &Node, path: &Path) -> String {
    let (path, traces) = (path.display(), node.traces().display().to_string());
    format!("  volumes:\n  - {{name: v, hostPath: {{path: {path}}}}}\n  - {{name: t, hostPath: {{path: {traces}}}}}\n")
}

fn lasting(containers: &str, volumes: &str) -> String {
    format!("  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers:\n{containers}{volumes}")
}

#[test]
fn a_writer_that_exchanges_directories_for_links_while_pods_start_leads_none_of_them_out_of_the_volume() {
    let wanted: u64 = std::env::var("SUB_PATH_FLIPS").map_or(10_000, |n| n.parse().expect("a number"));
    let node = Node::start();
    let (base, outside) = (node.bed.dir().join("attacked"), node.bed.dir().join("outside"));
    for dir in [base.join("a/deep"), outside.join("deep")] {
        fs::create_dir_all(dir).expect("a folder");
    }
    fs::write(base.join("a/deep/own"), "").expect("a file");
    fs::write(outside.join("deep/secret"), "").expect("a file");
    std::os::unix::fs::symlink(&outside, base.join("b")).expect("a link");
    let source = node.traces().join("flip.c");
    fs::write(&source, FLIP).expect("a source");
    let (source, program) = (source.display().to_string(), node.traces().join("flip").display().to_string());
    run("gcc", &["-static", "-O1", "-o", &program, &source]);
    let mounts = "    volumeMounts: [{name: v, mountPath: /v}, {name: t, mountPath: /traces}]\n";
    let writer = shell("main", "exec /traces/flip /v/a /v/b /traces/flips", mounts);
    node.put("writer", &lasting(&writer, &volumes(&node, &base)));
    node.wait_running("writer");

    let flips = || -> u64 {
        let text = fs::read_to_string(node.traces().join("flips")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    let (begun, mut started, mut refused) = (Instant::now(), 0, 0);
    while flips() < wanted || started < 2 {
        let name = format!("user-{}", started + refused);
        // One that is there, and one that is made.
        let mounts = format!(
            "    volumeMounts: [{{name: v, mountPath: /deep, subPath: a/deep}}, {{name: v, mountPath: /made, subPath: a/{name}/x}}, \
             {{name: t, mountPath: /traces}}]\n"
        );
        let script =
            "ls /deep > /traces/$HOSTNAME.ls; touch /deep/mark /made/mark; exec sleep 1000".replace("$HOSTNAME", &name);
        node.put(&name, &lasting(&shell("main", &script, &mounts), &volumes(&node, &base)));
        let came = node.wait(&name, "to start or to be refused", |pod| {
            let (runs, waits) = (state(pod, "running"), state(pod, "waiting"));
            let refused = waits["reason"] == "CreateContainerConfigError" || waits["reason"] == "CreateContainerError";
            (runs.is_object() || refused).then(|| runs.is_object())
        });
        if came {
            started += 1
        } else {
            refused += 1
        }
        node.remove(&name);
        node.wait_gone(&name);
        assert_eq!(below(&outside), [outside.join("deep"), outside.join("deep/secret")], "made outside by {name}");
    }
    let listed = fs::read_dir(node.traces()).expect("traces").flatten().map(|e| e.path());
    let listed = listed.filter(|at| at.extension().is_some_and(|e| e == "ls"));
    let seen: Vec<String> = listed.map(|at| fs::read_to_string(at).expect("what was listed")).collect();
    assert!(seen.iter().all(|text| !text.contains("secret")), "a pod saw what is outside: {seen:?}");
    println!("{} flips in {:?}: {started} pods started, {refused} were refused first", flips(), begun.elapsed());
    node.remove("writer");
    node.wait_gone("writer");
}

/// Everything below a folder.
fn below(at: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut left = vec![at.to_owned()];
    while let Some(dir) = left.pop() {
        let found = fs::read_dir(&dir).expect("a folder").flatten();
        for path in found.map(|e| e.path()) {
            if path.is_dir() && !path.is_symlink() {
                left.push(path.clone());
            }
            all.push(path);
        }
    }
    all.sort();
    all
}

/// A directory whose mounts pass to others. It is unmounted with all that is in it when this goes.
struct Shared(PathBuf);

impl Shared {
    fn new(node: &Node) -> Self {
        let at = node.bed.dir().join("shared");
        fs::create_dir_all(&at).expect("a folder");
        let path = at.display().to_string();
        run("mount", &["--bind", &path, &path]);
        run("mount", &["--make-rshared", &path]);
        Self(at)
    }

    /// Mounts a memory file system below it, with a file in it.
    fn mount(&self, name: &str) {
        let at = self.0.join(name);
        fs::create_dir_all(&at).expect("a folder");
        run("mount", &["-t", "tmpfs", "none", &at.display().to_string()]);
        fs::write(at.join("word"), name).expect("a file");
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _best_effort = Command::new("umount").args(["--recursive", "--lazy"]).arg(&self.0).status();
    }
}

#[test]
fn mounts_pass_between_the_host_and_containers_as_their_pods_say() {
    let node = Node::start();
    let shared = Shared::new(&node);
    let mounts = |more: &str| {
        format!("{more}    volumeMounts: [{{name: v, mountPath: /p MODE}}, {{name: t, mountPath: /traces}}]\n")
    };
    // Each says once what it sees of a file.
    let says = |who: &str, file: &str| {
        format!(
            "until [ -e /p/{file} ] || [ -e /traces/over ]; do sleep 0.1; done; cat /p/{file} >> /traces/{who} 2>/dev/null; "
        )
    };
    let put = |name: &str, script: &str, mode: &str, more: &str| {
        let mounts = mounts(more).replace(" MODE", mode);
        node.put(
            name,
            &lasting(&shell("main", &format!("{script} exec sleep 1000"), &mounts), &volumes(&node, &shared.0)),
        );
        node.wait_running(name);
    };
    let slave = ", mountPropagation: HostToContainer";
    put("follows", &(says("follows", "host/word") + &says("follows", "giver/word")), slave, "");
    put("alone", &(says("alone", "host/word") + &says("alone", "giver/word")), "", "");
    shared.mount("host");
    let giver =
        "mkdir /p/giver && mount -t tmpfs none /p/giver && echo giver > /p/giver/word; echo done > /traces/given;";
    let privileged = "    securityContext: {privileged: true}\n";
    put("giver", giver, ", mountPropagation: Bidirectional", privileged);
    let trace = |who: &str| fs::read_to_string(node.traces().join(who)).unwrap_or_default();
    let all = || {
        let seen = trace("follows");
        if seen == "hostgiver\n" { Ok(()) } else { Err(format!("{seen:?}, given: {:?}", trace("given"))) }
    };
    wait_until("both mounts to be seen", SOON, all).unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    assert_eq!(fs::read_to_string(shared.0.join("giver/word")).unwrap_or_default(), "giver\n", "the host has it, too");
    assert_eq!(trace("alone"), "", "who does not ask gets none");
    fs::write(node.traces().join("over"), "").expect("a file");
    for name in ["follows", "alone", "giver"] {
        node.remove(name);
        node.wait_gone(name);
    }
}

#[test]
fn a_read_only_volume_is_so_with_all_mounts_in_it_where_the_runtime_can_or_its_pod_is_told() {
    let node = Node::start();
    let shared = Shared::new(&node);
    shared.mount("inner");
    let put = |name: &str, mode: &str| {
        let mounts = format!(
            "    volumeMounts: [{{name: v, mountPath: /p, readOnly: true{mode}}}, {{name: t, mountPath: /traces}}]\n"
        );
        let script = format!(
            "touch /p/mine 2>/dev/null && echo outer >> /traces/{name}; touch /p/inner/mine 2>/dev/null && echo inner >> /traces/{name}; \
             echo end >> /traces/{name}; exec sleep 1000"
        );
        node.put(name, &lasting(&shell("main", &script, &mounts), &volumes(&node, &shared.0)));
    };
    let wrote = |name: &str| {
        let told = || {
            let text = fs::read_to_string(node.traces().join(name)).unwrap_or_default();
            if text.ends_with("end\n") { Ok(text.trim_end_matches("end\n").to_owned()) } else { Err(text) }
        };
        wait_until("what it could write", SOON, told).unwrap_or_else(|e| panic!("{name}: {e}\n{}", node.bosun.log()))
    };
    put("plain", "");
    assert_eq!(wrote("plain"), "inner\n", "the mounts in it are as they were");
    put("possible", ", recursiveReadOnly: IfPossible");
    let can = node.bed.has_own_runtime() || is_new(&node);
    assert_eq!(wrote("possible"), if can { "" } else { "inner\n" });
    put("enabled", ", recursiveReadOnly: Enabled");
    if can {
        assert_eq!(wrote("enabled"), "");
    } else {
        println!("this containerd has no recursive read-only mounts (`cargo xtask e2e --newer` brings one that has)");
        let waits = node.wait("enabled", "to be told why it waits", |pod| {
            let waits = state(pod, "waiting");
            (waits["reason"] == "CreateContainerConfigError").then(|| waits.clone())
        });
        let why = "volume \"v\" requested recursive read-only mode, but it is not supported by the runtime";
        assert!(waits["message"].as_str().unwrap_or_default().contains(why), "{waits}");
    }
}
