//! The node's face as the API server and kubectl see it: logs, exec, attach, cp, port-forward, debug, stats, metrics.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use testbed::ClusterNode;

use crate::node::{LASTS, SOON, create, kubectl, lasting, pod, shell, start, wait, wait_running};

mod access;
mod forward;
mod numbers;
mod stands;

/// Runs kubectl to its end with `input` on its standard input; answers everything.
fn kubectl_with(node: &ClusterNode, args: &[&str], input: &[u8]) -> Output {
    finish(
        node.cluster.kubectl_command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()),
        input,
    )
}

fn finish(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("ends");
    // A program that ended without reading everything closes the pipe.
    let _written = writer.join().expect("no panic");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// kubectl in the background, its standard output piped.
struct Running(Child);

impl Running {
    fn start(node: &ClusterNode, args: &[&str]) -> Self {
        let mut command = node.cluster.kubectl_command(args);
        Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("starts"))
    }

    /// Reads standard output until it holds `wanted`.
    fn read_until(&mut self, wanted: &str) -> String {
        let stdout = self.0.stdout.as_mut().expect("piped");
        let mut seen = Vec::new();
        let mut byte = [0];
        while !text(&seen).contains(wanted) {
            let n = stdout.read(&mut byte).expect("readable");
            assert!(n > 0, "ended before {wanted:?}: {}", text(&seen));
            seen.extend_from_slice(&byte);
        }
        text(&seen)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A container that runs may not have spoken yet.
fn wait_logs(node: &ClusterNode, args: &[&str], wanted: &str) {
    testbed::wait_until(&format!("{args:?} to be {wanted:?}"), SOON, || {
        let said = node.cluster.kubectl(args).map_err(|e| e.to_string())?;
        if said == wanted { Ok(()) } else { Err(said) }
    })
    .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn logs_of_running_crashed_and_waiting_containers() {
    let node = start();
    let script = "echo one; echo two; echo three; trap 'exit 0' TERM; while :; do sleep 0.1; done";
    create(&node, &pod("talks", json!({"containers": [shell("main", script, json!({}))]})));
    wait_running(&node, "talks");
    wait_logs(&node, &["logs", "talks"], "one\ntwo\nthree\n");
    assert_eq!(kubectl(&node, &["logs", "talks", "--tail=1"]), "three\n");
    assert_eq!(kubectl(&node, &["logs", "talks", "--limit-bytes=5"]), "one\nt");
    assert_eq!(kubectl(&node, &["logs", "talks", "--since=1h", "-c", "main"]), "one\ntwo\nthree\n");
    let stamped = kubectl(&node, &["logs", "talks", "--timestamps"]);
    let first = stamped.lines().next().unwrap_or_default();
    let (stamp, line) = first.split_once(' ').expect("a stamp and the line");
    assert!(line == "one" && stamp.len() >= "2026-11-20T15:43:32.123456789Z".len(), "{first}");
    let refused = node.cluster.kubectl(&["logs", "talks", "--previous"]).expect_err("it never ended").to_string();
    assert!(refused.contains(r#"previous terminated container "main" in pod "talks" not found"#), "{refused}");

    let crash = "if [ -e /state/seen ]; then echo second life; trap 'exit 0' TERM; while :; do sleep 0.1; done; else touch /state/seen; echo first life; exit 3; fi";
    let mounts = json!({"volumeMounts": [{"name": "state", "mountPath": "/state"}]});
    let spec = json!({"containers": [shell("main", crash, mounts)], "volumes": [{"name": "state", "emptyDir": {}}]});
    create(&node, &pod("crashes", spec));
    wait(&node, "crashes", "to live again", |p| {
        (p["status"]["containerStatuses"][0]["restartCount"] == 1).then_some(())
    });
    wait_running(&node, "crashes");
    assert_eq!(kubectl(&node, &["logs", "crashes", "--previous"]), "first life\n");
    wait_logs(&node, &["logs", "crashes"], "second life\n");

    let mut missing = shell("main", LASTS, json!({}));
    missing["image"] = json!("registry.invalid/none:1");
    missing["imagePullPolicy"] = json!("Never");
    create(&node, &pod("waits", json!({"containers": [missing]})));
    wait(&node, "waits", "to wait", |p| {
        p["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str().map(drop)
    });
    let refused = node.cluster.kubectl(&["logs", "waits"]).expect_err("no container yet").to_string();
    assert!(refused.contains(r#"container "main" in pod "waits" is waiting to start"#), "{refused}");
}

#[test]
fn logs_are_followed_to_the_end_of_their_container() {
    let node = start();
    // The container ends its own processes with it: it waits until the one that gives the sign is gone.
    let script = "echo ready; until [ -s /tmp/go ]; do sleep 0.1; done; \
                  while [ -e /proc/$(cat /tmp/go) ]; do sleep 0.1; done; echo last; exit 0";
    create(&node, &pod("ends", json!({"restartPolicy": "Never", "containers": [shell("main", script, json!({}))]})));
    wait_running(&node, "ends");
    let mut follow = Running::start(&node, &["logs", "-f", "ends"]);
    assert_eq!(follow.read_until("ready\n"), "ready\n");
    kubectl(&node, &["exec", "ends", "--", "sh", "-c", "echo $$ > /tmp/go"]);
    assert_eq!(follow.read_until("last\n"), "last\n");
    let status = follow.0.wait().expect("ends with the container");
    assert!(status.success(), "{status}");
}

#[test]
fn exec_carries_input_output_errors_exit_codes_and_the_size_of_the_terminal() {
    let node = start();
    create(&node, &lasting("box"));
    wait_running(&node, "box");
    let out = kubectl_with(&node, &["exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7"], b"");
    assert_eq!((text(&out.stdout).as_str(), out.status.code()), ("out\n", Some(7)), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).starts_with("err\n") && text(&out.stderr).contains("exit code 7"),
        "{}",
        text(&out.stderr)
    );
    // The end of the input reaches the command.
    let big: Vec<u8> = (0..3_000_000u32).map(|n| b'a' + (n % 26) as u8).collect();
    let out = kubectl_with(&node, &["exec", "-i", "box", "--", "cat"], &big);
    assert!(out.status.success() && out.stdout == big, "{} of {} came back", out.stdout.len(), big.len());
    let out = kubectl_with(&node, &["exec", "box", "-c", "nobody", "--", "true"], b"");
    assert!(
        !out.status.success() && text(&out.stderr).contains("container nobody is not valid for pod box"),
        "{out:?}"
    );
    let out = kubectl_with(&node, &["exec", "box", "--", "no-such-program"], b"");
    assert!(!out.status.success() && text(&out.stderr).contains("no-such-program"), "{out:?}");

    // script(1) gives kubectl a terminal; its size is told to the container, and told again when it changes.
    let kubectl = node.cluster.kubectl_command(&[]);
    let words: Vec<String> = kubectl.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    let kubectl = format!("{} {}", kubectl.get_program().to_string_lossy(), words.join(" "));
    let inner = format!(
        "stty rows 40 cols 100; \
         (until {kubectl} exec box -- test -e /tmp/shown; do sleep 0.1; done; stty rows 50 cols 120 < /dev/tty) & \
         {kubectl} exec -it box -- sh -c 'tty; \
         until [ \"$(stty size)\" = \"40 100\" ]; do sleep 0.1; done; stty size; touch /tmp/shown; \
         until [ \"$(stty size)\" = \"50 120\" ]; do sleep 0.1; done; stty size; exit 5'"
    );
    let mut command = Command::new("timeout");
    command.args(["60", "script", "-qec", &inner, "/dev/null"]).env("HOME", node.bed.dir()).env("SHELL", "/bin/sh");
    let out = finish(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()), b"");
    let shown = text(&out.stdout);
    assert!(shown.contains("40 100") && shown.contains("/dev/pts/") && shown.contains("50 120"), "{shown}");
    assert_eq!(out.status.code(), Some(5), "{shown}");
}

#[test]
fn attach_joins_a_running_process_and_cp_copies_both_ways() {
    let node = start();
    let script = "echo hello; while read line; do echo \"got $line\"; [ \"$line\" = end ] && exit 0; done";
    let spec = json!({"restartPolicy": "Never", "containers": [shell("main", script, json!({"stdin": true, "stdinOnce": true}))]});
    create(&node, &pod("listens", spec));
    wait_running(&node, "listens");
    let out = kubectl_with(&node, &["attach", "-i", "listens"], b"first\nend\n");
    assert!(text(&out.stdout).contains("got first\ngot end\n"), "{out:?}");

    create(&node, &lasting("box"));
    wait_running(&node, "box");
    let (from, back) = (node.bed.dir().join("from"), node.bed.dir().join("back"));
    let content: Vec<u8> = (0..2_000_000u32).flat_map(|n| n.to_le_bytes()).collect();
    std::fs::write(&from, &content).expect("written");
    kubectl(&node, &["cp", &from.to_string_lossy(), "box:/tmp/copy"]);
    kubectl(&node, &["cp", "box:/tmp/copy", &back.to_string_lossy()]);
    assert!(std::fs::read(&back).expect("copied back") == content, "both ways unchanged");
}

#[test]
fn debug_puts_a_container_into_a_running_pod() {
    let node = start();
    create(&node, &lasting("box"));
    wait_running(&node, "box");
    let image = testbed::BUSYBOX_IMAGES[0];
    let script = "echo looked at $(hostname); trap 'exit 0' TERM; while :; do sleep 0.1; done";
    kubectl(&node, &["debug", "box", "--image", image, "--container", "look", "--", "sh", "-c", script]);
    let running =
        |p: &Value| p["status"]["ephemeralContainerStatuses"][0]["state"]["running"]["startedAt"].as_str().map(drop);
    wait(&node, "box", "to have its debugger", running);
    wait_logs(&node, &["logs", "box", "-c", "look"], "looked at box\n");
    let out = kubectl_with(&node, &["exec", "-i", "box", "-c", "look", "--", "cat"], b"within\n");
    assert_eq!(text(&out.stdout), "within\n", "{out:?}");
}
