//! The program as an operator meets it, up to the moment where it would start a node: by the name of kubelet and by its own.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

struct Place {
    dir: tempfile::TempDir,
    kubelet: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let kubelet = dir.path().join("kubelet");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bosun"), &kubelet).expect("a link");
        Self { dir, kubelet }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Runs with `@` in words standing for the folder.
    fn run(&self, program: &Path, words: &[&str]) -> Output {
        let folder = self.dir.path().display().to_string();
        let words = words.iter().map(|w| w.replace('@', &folder));
        Command::new(program)
            .args(words)
            .env_remove("BOSUN_LOG")
            .current_dir(self.dir.path())
            .output()
            .expect("it runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Name and text of a file, more words of the command line, what standard error must hold.
const REFUSED: &[(&str, &str, &[&str], &str)] = &[
    ("c", "", &["--config=@/c"], "@/c: is empty"),
    ("c", "a: [", &["--config=@/c"], "@/c: line 1, column 4: is neither YAML nor JSON"),
    ("c", "kind: Pod", &["--config=@/c"], "@/c: apiVersion: must be given"),
    ("c", "%HEAD%maxPods: many", &["--config=@/c"], "@/c: maxPods: \"many\": has the wrong type"),
    ("c", "%HEAD%maxPods: -1", &["--config=@/c"], "@/c: maxPods: -1: is out of range (allowed: 0 to 2147483647)"),
    ("c", "%HEAD%featureGates: {NotAGate: true}", &["--config=@/c"], "unrecognized feature gate: NotAGate"),
    ("c", "%HEAD%featureGates: {SystemdWatchdog: false}", &["--config=@/c"], "feature is locked to true"),
    ("c", "%HEAD%cgroupsPerQOS: false", &["--config=@/c"], "@/c: enforceNodeAllocatable: the default of [pods] needs"),
    ("d/x.conf", "maxPods: 5", &["--config-dir=@/d"], "@/d/x.conf: apiVersion: must be given"),
    ("d/x.conf", "%HEAD%port: 70000", &["--config-dir=@/d"], "@/d/x.conf: port: 70000: is out of range"),
    ("c", "%HEAD%", &["--config=@/c", "--max-pods=-5"], "--max-pods: maxPods: -5: is out of range"),
    ("c", "%HEAD%", &["--config=@/missing"], "@/missing: cannot be read"),
    ("c", "%HEAD%", &["--config=@/c", "--node-labels=kubernetes.io/x=y"], "unknown 'kubernetes.io' or 'k8s.io' labels"),
    (
        "c",
        "%HEAD%",
        &["--config=@/c", "--cloud-provider=aws"],
        "invalid argument \"aws\" for \"--cloud-provider\" flag",
    ),
    ("c", "%HEAD%", &["--config=@/c", "--network-plugin=cni"], "unknown flag: --network-plugin"),
    ("c", "%HEAD%", &["--config=@/c", "--fail-swap-on", "false"], "unknown command false"),
    (
        "p",
        "providers: []",
        &["--image-credential-provider-config=@/p", "--image-credential-provider-bin-dir=@"],
        "@/p: ",
    ),
    (
        "p/none.txt",
        "",
        &["--image-credential-provider-config=@/p", "--image-credential-provider-bin-dir=@"],
        "@/p: cannot be read: no file in it ends with",
    ),
];

#[test]
fn what_is_broken_is_refused_with_exit_code_1_and_nothing_is_written() {
    for (name, content, words, expected) in REFUSED {
        let place = Place::new();
        place.write(name, &content.replace("%HEAD%", HEAD));
        let expected = expected.replace('@', &place.dir.path().display().to_string());
        let words: Vec<&str> =
            ["--root-dir=@/root", "--cert-dir=@/pki", "--socket=@/s"].iter().chain(*words).copied().collect();
        let output = place.run(&place.kubelet, &words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {error}");
        assert!(error.starts_with("Error: ") || error.contains("\nError: "), "{words:?}: {error}");
        assert!(error.contains(&expected), "{words:?}: {error}");
        for made in ["root", "pki", "s"] {
            assert!(!place.at(made).exists(), "{words:?}: {made}");
        }
        // The same verdict before anything is started.
        let mut asked = vec!["check-config"];
        asked.extend(&words);
        let output = place.run(Path::new(env!("CARGO_BIN_EXE_bosun")), &asked);
        assert_eq!(output.status.code(), Some(1), "{asked:?}: {}", text(&output.stdout));
    }
}

#[test]
fn kubeadm_finds_the_version_that_it_asks_for() {
    let place = Place::new();
    let output = place.run(&place.kubelet, &["--version"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "Kubernetes v1.36.2\n"));
}

#[test]
fn both_names_have_their_help() {
    let place = Place::new();
    let kubelet = place.run(&place.kubelet, &["--help"]);
    let run = place.run(Path::new(env!("CARGO_BIN_EXE_bosun")), &["run", "--help"]);
    for (output, usage) in [(kubelet, "kubelet [flags]"), (run, "bosun run [flags]")] {
        let help = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0));
        assert!(help.contains(usage) && help.contains("--bootstrap-kubeconfig"), "{help}");
    }
    let own = place.run(Path::new(env!("CARGO_BIN_EXE_bosun")), &["--help"]);
    assert!(text(&own.stdout).contains("check-config"));
}

#[test]
fn a_watchdog_that_is_too_short_ends_the_start() {
    let place = Place::new();
    let output = Command::new(&place.kubelet)
        .arg(format!("--root-dir={}", place.at("root").display()))
        .env("WATCHDOG_USEC", "500000")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("configure watchdog timeout too small"), "{}", text(&output.stderr));
    assert!(!place.at("root").exists());
}

/// Waits for what another process brings about.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::time::Instant::now() < end {
        if let Some(found) = look() {
            return found;
        }
        std::thread::yield_now();
    }
    panic!("{what} did not come");
}

/// One request, as kubeadm sends it.
fn healthz(port: u16) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn health_is_told_while_the_runtime_is_away_and_sigterm_ends_with_code_0() {
    // Only root gets as far as this; the folder of root is closed to others.
    if std::fs::read_dir("/root").is_err() {
        return;
    }
    let place = Place::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let at = |name: &str| place.at(name).display().to_string();
    let logs = format!("podLogsDir: {}\n", at("logs"));
    place.write("c", &format!("{HEAD}failCgroupV1: false\nfailSwapOn: false\nhealthzPort: {port}\n{logs}"));
    let mut child = Command::new(&place.kubelet)
        .args([format!("--config={}", at("c")), format!("--root-dir={}", at("root")), format!("--socket={}", at("s"))])
        .args([format!("--container-logs-dir={}", at("links")), "--logging-format=json".to_owned()])
        .arg(format!("--container-runtime-endpoint=unix://{}", at("none.sock")))
        .stderr(std::fs::File::create(place.at("log")).expect("a file"))
        .spawn()
        .expect("it runs");
    let answer = until("healthz", || healthz(port));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\nok"), "{answer}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|s| s.success()));
    let status = until("the end", || child.try_wait().ok().flatten());
    let log = std::fs::read_to_string(place.at("log")).expect("a log");
    assert_eq!(status.code(), Some(0), "{log}");
    for line in log.lines().filter(|l| !l.starts_with("Flag --")) {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        assert!(line["ts"].is_f64() && line["msg"].is_string() && line["caller"].is_string(), "{line}");
    }
}

#[test]
fn check_config_tells_a_script_what_it_found() {
    let place = Place::new();
    place.write("c", &format!("{HEAD}maxPods: -1\ncpuManagerPolicy: static\n"));
    place.write("env", "KUBELET_KUBEADM_ARGS=\"--containerd=/x\"\n");
    let words = ["check-config", "@/c", "--env-file", "@/env", "-o", "json"];
    let output = place.run(Path::new(env!("CARGO_BIN_EXE_bosun")), &words);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["ok"], false);
    assert_eq!(answer["findings"][0]["key"], "maxPods");
    place.write("c", &format!("{HEAD}cpuManagerPolicy: static\n"));
    let output = place.run(Path::new(env!("CARGO_BIN_EXE_bosun")), &words);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((answer["ok"].as_bool(), output.status.code()), (Some(true), Some(0)));
    let levels: Vec<&str> =
        answer["findings"].as_array().expect("a list").iter().filter_map(|f| f["level"].as_str()).collect();
    assert_eq!(levels, ["warning", "warning"]);
}
