//! The command line against a real daemon and a real runtime, without an API server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use crate::node::{Node, SOON, shell};

/// `bosun WORDS`: options first, so that what follows `--` stays the command's.
fn bosun(node: &Node, words: &[&str]) -> Command {
    let mut command = Command::new(testbed::BosunOptions::default().program);
    command.arg(words[0]).arg("--socket").arg(node.bosun.socket()).args(&words[1..]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(node: &Node, words: &[&str]) -> Output {
    bosun(node, words).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn commands_run_in_containers_and_their_streams_and_exit_codes_come_back() {
    let node = Node::start();
    node.put("web", &format!("  containers:\n{}", shell("main", "exec sleep 1000", "")));
    node.wait_running("web");

    let script = "echo out; echo err >&2; exit 7";
    let ran = run(&node, &["exec", "web", "--", "sh", "-c", script]);
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(7), "out\n"), "{ran:?}");
    assert_eq!(text(&ran.stderr), "err\ncommand terminated with exit code 7\n");

    // The end of input is passed on, and what was sent before it is all there.
    let mut counted = bosun(&node, &["exec", "-i", "web", "--", "sh", "-c", "wc -c; echo end"]);
    let mut child = counted.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(&vec![b'x'; 8 << 20]).expect("taken"));
    let ran = child.wait_with_output().expect("it ends");
    writer.join().expect("all is written");
    assert_eq!((ran.status.code(), text(&ran.stdout).trim()), (Some(0), "8388608\nend"), "{ran:?}");

    let ran = run(&node, &["exec", "web", "-c", "nobody", "--", "ls"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("containers of default/web-bed: main"), "{ran:?}");
    let ran = run(&node, &["exec", "nopod", "--", "ls"]);
    assert!(text(&ran.stderr).contains("`bosun get pods` lists them"), "{ran:?}");
    let ran = run(&node, &["exec", "web", "--", "no-such-program"]);
    assert!(!ran.status.success() && text(&ran.stderr).contains("no-such-program"), "{ran:?}");
}

#[test]
fn a_log_is_followed_to_its_end_and_a_container_is_attached_to() {
    let node = Node::start();
    // The container ends its own processes with it: it waits until the one that stops it is gone.
    let ticks = "i=0; until [ -s /tmp/stop ]; do i=$((i+1)); echo tick $i; sleep 0.1; done; \
                 while [ -e /proc/$(cat /tmp/stop) ]; do sleep 0.1; done; echo last";
    node.put("ticks", &format!("  restartPolicy: Never\n  containers:\n{}", shell("main", ticks, "")));
    node.wait_running("ticks");

    let mut attached = Running(bosun(&node, &["attach", "ticks"]).spawn().expect("it runs"));
    let mut line = String::new();
    let mut shown = BufReader::new(attached.0.stdout.take().expect("a pipe"));
    assert!(shown.read_line(&mut line).expect("a line") > 0 && line.starts_with("tick "), "{line:?}");

    let followed = bosun(&node, &["logs", "ticks", "-f", "--timestamps"]).spawn().expect("it runs");
    let ran = run(&node, &["exec", "ticks", "--", "sh", "-c", "echo $$ > /tmp/stop"]);
    assert!(ran.status.success(), "{ran:?}");
    let ran = followed.wait_with_output().expect("it ends with the container");
    let all = text(&ran.stdout);
    assert!(ran.status.success() && all.contains(" tick 1\n") && all.ends_with(" last\n"), "{ran:?}");
    assert!(attached.0.wait().expect("it ends with the container").success());

    let ran = run(&node, &["logs", "ticks", "--tail", "1"]);
    assert_eq!(text(&ran.stdout), "last\n");
}

/// How many of the file's bytes come back.
fn get(port: u16) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream.set_read_timeout(Some(SOON)).expect("set");
    let asked = stream.write_all(b"GET /f HTTP/1.0\r\n\r\n");
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    if asked.is_ok() && read.is_ok() { all.iter().filter(|b| **b == b'z').count() } else { 0 }
}

#[test]
fn a_port_of_a_pod_is_forwarded_for_many_at_once_and_figures_are_shown() {
    let node = Node::start();
    let serve = "mkdir /tmp/w; head -c 300000 /dev/zero | tr '\\0' z > /tmp/w/f; exec httpd -f -p 8080 -h /tmp/w";
    node.put("web", &format!("  containers:\n{}", shell("main", serve, "")));
    node.wait_running("web");

    let mut child = bosun(&node, &["port-forward", "web", ":8080", ":9", "--address", "127.0.0.1"]);
    let mut child = Running(child.spawn().expect("it runs"));
    let mut shown = BufReader::new(child.0.stdout.take().expect("a pipe"));
    let mut ports = Vec::new();
    for _ in 0..2 {
        let mut line = String::new();
        shown.read_line(&mut line).expect("a line");
        let port = line.strip_prefix("Forwarding from 127.0.0.1:").and_then(|l| l.split(' ').next());
        ports.push(port.unwrap_or_else(|| panic!("{line:?}")).parse::<u16>().expect("a port"));
    }
    // httpd may come up later than the container.
    testbed::wait_until("httpd", SOON, || if get(ports[0]) == 300_000 { Ok(()) } else { Err(node.bosun.log()) })
        .expect("up");
    assert_eq!(get(ports[1]), 0, "nobody listens there");
    let port = ports[0];
    let all: Vec<_> = (0..50).map(|_| std::thread::spawn(move || get(port))).collect();
    assert!(all.into_iter().all(|t| t.join().expect("no panic") == 300_000));
    assert!(child.0.try_wait().expect("asked").is_none(), "a refused connection ended it");

    let ran = run(&node, &["top", "-o", "json"]);
    let top: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    assert_eq!(top["pods"][0]["name"], "web-bed", "{top}");
    assert!(top["pods"][0]["cpuNanoCores"].is_u64(), "{top}");
    assert!(top["pods"][0]["memoryWorkingSetBytes"].as_u64().is_some_and(|n| n > 0), "{top}");
    assert!(top["actors"].as_array().is_some_and(|a| a.iter().any(|a| a["pod"] == "default/web-bed")), "{top}");
    let ran = run(&node, &["get", "node"]);
    assert!(text(&ran.stdout).contains("none (standalone)"), "{ran:?}");
}
