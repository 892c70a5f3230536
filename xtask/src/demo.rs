//! What does bosun do, seen in a minute? Real pods, a killed manager, and nobody who notices.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use testbed::{Bosun, BosunOptions, Options, RuntimeKind, TestBed, wait_until};

use crate::{setup, workspace};

/// The actor that the demo kills.
const VICTIM: &str = "pod-manager";

/// Runs the pods of `config/examples/` in a test bed, kills a manager actor, shows that nothing restarted, cleans up.
///
/// bosun runs them itself, on its own runtime; `--containerd` has a containerd do it. Sets up the machine first (Debian packages,
/// as `cargo xtask setup`). Under a minute once everything is built.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs the pods on a containerd.
    #[arg(long)]
    containerd: bool,
    /// Leaves bosun, the pods and containerd running, and says how to reach and to remove them.
    #[arg(long)]
    keep: bool,
    /// So many pods beside them, each with a readiness probe every second.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    pods: u32,
    /// Runs the release build, which takes long to make.
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::run(&if args.containerd { setup::Args::default() } else { setup::Args::bed() })?;
    title("build");
    let program = workspace::build_bosun_and_runtime(args.release)?;
    let runtime = if args.containerd { RuntimeKind::Containerd } else { RuntimeKind::Own(program.clone()) };
    title("test bed");
    let say = |step: &str| println!("  {step}");
    let mut bed = TestBed::start(Options { runtime, keep: args.keep, say, ..Options::default() })?;
    title("bosun run");
    let by_hand = program.display().to_string();
    let options = BosunOptions { program, faults: true, hostname: "demo".into(), ..BosunOptions::default() };
    let mut bosun = Bosun::start(&mut bed, options)?;
    println!("  pid {}, socket {}", bosun.pid().unwrap_or_default(), bosun.socket().display());
    let shown = show(&bosun, args.pods);
    if args.keep {
        bosun.keep();
        println!("\nstill running; for example:\n  {by_hand} get pods --socket {}", bosun.socket().display());
        match args.containerd {
            true => println!("  ctr -a {} -n k8s.io tasks ls", bed.socket().display()),
            false => println!("  crictl --runtime-endpoint unix://{} ps", bed.socket().display()),
        }
        println!("  cargo xtask bed --remove {}", bed.dir().display());
        return shown;
    }
    title("clean up");
    drop(bosun);
    let left = bed.close();
    if left.is_empty() {
        println!("  nothing is left")
    } else {
        println!("  left: {}", left.join(", "))
    }
    shown
}

fn title(text: &str) {
    println!("\n── {text}");
}

/// A pod that is probed all the time.
fn probed(name: &str) -> String {
    let image = testbed::BUSYBOX_IMAGES[0];
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: {image}
    command: [sh, -c, exec sleep 100000]
    readinessProbe: {{exec: {{command: ['true']}}, periodSeconds: 1, timeoutSeconds: 10}}
"
    )
}

fn show(bosun: &Bosun, more: u32) -> anyhow::Result<()> {
    title("pods of config/examples come up");
    let begin = Instant::now();
    let mut count = 0;
    for n in 1..=more {
        let name = format!("probed-{n}");
        bosun.put(&format!("{name}.yaml"), &probed(&name))?;
        count += 1;
    }
    for entry in std::fs::read_dir(workspace::root().join("config/examples"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".yaml") || name.ends_with(".json") {
            bosun.put(&name, &std::fs::read_to_string(&path)?)?;
            count += 1;
        }
    }
    ensure!(count > 0, "config/examples holds no manifest");
    follow(bosun, count, begin)?;
    title("bosun get pods -o wide");
    print!("{}", bosun.cli(&["get", "pods", "-o", "wide"])?);
    title(&format!("a fault kills the actor {VICTIM}"));
    kill(bosun)
}

/// Prints every change until each pod has left Pending and those that run to an end have ended.
fn follow(bosun: &Bosun, count: usize, begin: Instant) -> anyhow::Result<()> {
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    let patience = Duration::from_secs(40) + Duration::from_secs(1) * u32::try_from(count).unwrap_or(u32::MAX);
    wait_until("the pods to come up", patience, || {
        let pods = bosun.pods().map_err(|e| e.to_string())?;
        for pod in &pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let line = story(pod);
            if before.get(&name) != Some(&line) {
                println!("  {:>5.1} s  {name:<24} {line}", begin.elapsed().as_secs_f64());
                before.insert(name, line);
            }
        }
        let settled = pods.len() >= count && pods.iter().all(settled);
        if settled { Ok(()) } else { Err(format!("{before:#?}\n{}", bosun.log())) }
    })?;
    Ok(())
}

fn statuses<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["status"][list].as_array().into_iter().flatten()
}

/// One line: phase, and each container's state.
fn story(pod: &Value) -> String {
    let all = statuses(pod, "initContainerStatuses").chain(statuses(pod, "containerStatuses"));
    let containers: Vec<String> = all
        .map(|c| {
            let state = c["state"].as_object().and_then(|s| s.iter().next());
            let word = match state {
                Some((kind, detail)) => detail["reason"].as_str().unwrap_or(kind).to_owned(),
                None => "-".to_owned(),
            };
            let restarts = c["restartCount"].as_u64().filter(|n| *n > 0).map_or(String::new(), |n| format!(" x{n}"));
            format!("{}: {word}{restarts}", c["name"].as_str().unwrap_or_default())
        })
        .collect();
    format!("{:<10} {}", pod["status"]["phase"].as_str().unwrap_or("-"), containers.join(", "))
}

/// Nothing more to wait for: ended, all ready, or seen to be restarted.
fn settled(pod: &Value) -> bool {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let mut containers = statuses(pod, "containerStatuses").peekable();
    let known = containers.peek().is_some();
    let ends = pod["spec"]["restartPolicy"].as_str().is_some_and(|p| p != "Always");
    let fine = |c: &Value| c["restartCount"].as_u64() > Some(0) || (!ends && c["ready"] == true);
    ended || (known && containers.all(fine))
}

/// Containers that run to stay: the ids of which must not change.
fn lasting(bosun: &Bosun) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for pod in bosun.pods()? {
        let sidecars = statuses(&pod, "initContainerStatuses").filter(|c| c["state"]["running"].is_object());
        for c in statuses(&pod, "containerStatuses").filter(|c| c["ready"] == true).chain(sidecars) {
            let key = format!(
                "{}/{}",
                pod["metadata"]["name"].as_str().unwrap_or_default(),
                c["name"].as_str().unwrap_or_default()
            );
            // A container that crashes by itself proves nothing.
            if c["restartCount"] == 0 {
                found.insert(key, c["containerID"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    Ok(found)
}

fn kill(bosun: &Bosun) -> anyhow::Result<()> {
    let before = lasting(bosun)?;
    let pid = bosun.pid();
    bosun.cli(&["fault", &format!("{VICTIM}: panic#1")])?;
    let victim = wait_until(&format!("{VICTIM} to be rebuilt"), Duration::from_secs(15), || {
        let all = bosun.actors().map_err(|e| e.to_string())?;
        let victim = all.into_iter().find(|a| a["name"] == VICTIM).ok_or("no such actor")?;
        let back = victim["restarts"].as_u64() > Some(0) && victim["state"] == "running";
        if back { Ok(victim) } else { Err(victim.to_string()) }
    })?;
    print!("{}", bosun.cli(&["get", "actors"])?);
    println!("  {VICTIM}: {} restart, cause: {}", victim["restarts"], victim["last_cause"].as_str().unwrap_or("?"));
    ensure!(bosun.pid() == pid, "the daemon itself was restarted");
    let after = lasting(bosun).context("pods after the fault")?;
    if !before.iter().all(|(name, id)| after.get(name) == Some(id)) {
        bail!("containers changed:\nbefore {before:#?}\nafter {after:#?}");
    }
    println!(
        "  same process, and the same containers as before ({}): nothing restarted",
        before.keys().cloned().collect::<Vec<_>>().join(", ")
    );
    Ok(())
}
