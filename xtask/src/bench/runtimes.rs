//! bosun with the runtime of its own, and bosun with containerd: the same pods on both, in turns.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use testbed::{Bosun, BosunOptions, Cri, Image, Login, Options, PAUSE_IMAGE, Registry, RuntimeKind, TestBed};
use tokio::runtime::Runtime;

use super::pods::{idle, manifest, now, running, talker, wait_gone, wait_running};
use super::report::{Report, Unit, percentile};

/// Pods that start one after the other.
const SINGLES: usize = 20;
/// Commands in a container.
const COMMANDS: usize = 50;
/// Images that are pulled, each by one and then by the other, and the other way round.
const PULLS: u64 = 2;
const LAYERS: usize = 10;
/// How long a daemon that starts a pod is left alone.
const UNASKED: Duration = Duration::from_millis(200);
/// Pause between pods: what the other runtime, and the kernel, leave for later is done then.
const PAUSE: Duration = Duration::from_secs(1);
/// Where the registry of each is for its runtime.
const HOST: &str = "bench.example";

/// What is tried.
pub(super) struct Given<'a> {
    /// Both daemons.
    pub(super) program: &'a Path,
    /// Starts the containers of bosun's own runtime; `None`: what it takes by itself.
    pub(super) oci_runtime: Option<&'a Path>,
    /// How many pods there are at once.
    pub(super) pods: usize,
}

/// A bed with a daemon.
struct Side {
    name: &'static str,
    bosun: Bosun,
    registry: Registry,
    cri: Cri,
    bed: TestBed,
}

impl Side {
    fn start(name: &'static str, kind: RuntimeKind, given: &Given<'_>, runtime: &Runtime) -> anyhow::Result<Self> {
        let mut bed = TestBed::start(Options { runtime: kind, say: |s| eprintln!("  {s}"), ..Options::default() })?;
        // The containers of the rounds run it on both; as an image for sandboxes containerd alone has it.
        bed.import(&Image::pause(PAUSE_IMAGE, bed.dir())?)?;
        let registry = Registry::start(&mut bed, HOST, Login::Open)?;
        if let (true, Some(oci)) = (bed.has_own_runtime(), given.oci_runtime) {
            // The daemon reads it when it takes the place of who has served so far.
            let told = std::fs::read_to_string(bed.dir().join("runtime.toml"))?;
            bed.write("runtime.toml", &format!("oci-runtime = \"{}\"\n{told}", oci.display()))?;
        }
        let options = BosunOptions {
            program: given.program.to_owned(),
            log: "warn".into(),
            config: serde_json::json!({ "healthzPort": 0 }),
            ..BosunOptions::default()
        };
        let bosun = Bosun::start(&mut bed, options)?;
        let _inside = runtime.enter();
        let cri = Cri::new(&bed.socket(), bed.cgroup_root(), &bed.dir().join("logs"));
        Ok(Self { name, bosun, registry, cri, bed })
    }

    /// Puts a pod, and answers the milliseconds until the runtime had started its container, by the runtime's own account.
    fn one(&self, runtime: &Runtime, name: &str, text: &str) -> anyhow::Result<f64> {
        let put = now();
        self.bosun.put(&format!("{name}.yaml"), text)?;
        // Who asks takes processor time from the start.
        idle(UNASKED);
        wait_running(&self.bosun, 1, Duration::from_secs(30))?;
        let started = self.started(runtime)?;
        self.bosun.remove(&format!("{name}.yaml"))?;
        wait_gone(&self.bosun, Duration::from_secs(30))?;
        Ok((started - put) * 1e3)
    }

    /// When the last of all containers started, in seconds since 1970.
    fn started(&self, runtime: &Runtime) -> anyhow::Result<f64> {
        let mut last = f64::NAN;
        for id in running(&self.bosun)?.into_values() {
            let id = testbed::plain_id(&id);
            let status = runtime.block_on(self.cri.container_status(id))?;
            last = last.max(status.context("the runtime forgot a container")?.started_at as f64 / 1e9);
        }
        Ok(last)
    }

    /// MiB of the daemon, the runtime and what that keeps beside each pod; what pods share counts once.
    fn memory(&self) -> anyhow::Result<f64> {
        let daemons = [self.bosun.pid(), self.bed.runtime_pid()].into_iter().flatten();
        let daemons = daemons.filter_map(|pid| i32::try_from(pid).ok());
        let all = daemons.chain(self.bed.keepers()).map(|pid| testbed::proportional_kib(pid).context("it is gone"));
        Ok(all.sum::<anyhow::Result<u64>>()? as f64 / 1024.0)
    }
}

/// What a figure of ours must be.
#[derive(Clone, Copy)]
enum Must {
    /// No more than this.
    AtMost(f64),
    /// No more than this part of containerd's.
    PartOf(f64),
    /// Told alone.
    Any,
}

/// Adds a figure of both, containerd's first.
fn add(report: &mut Report, what: &str, unit: Unit, [theirs, ours]: [f64; 2], must: Must) {
    let told = format!("containerd {theirs:.2}");
    let most = match must {
        Must::PartOf(part) => {
            let told = format!("{told}, own {ours:.2} {}", unit.name());
            return report.add(&format!("{what}, own over containerd"), ours / theirs, Unit::Ratio, Some(part), told);
        }
        Must::AtMost(most) => Some(most),
        Must::Any => None,
    };
    report.add(&format!("{what}, own runtime"), ours, unit, most, told);
}

/// All rounds.
pub(super) fn rounds(given: &Given<'_>, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let sides = [
        Side::start("containerd", RuntimeKind::Containerd, given, &runtime)?,
        Side::start("own", RuntimeKind::Own(given.program.to_owned()), given, &runtime)?,
    ];
    singles(&sides, &runtime, report)?;
    commands(&sides, &runtime, report)?;
    pulls(&sides, &runtime, report)?;
    many(&sides, &runtime, given.pods, report)?;
    for side in sides {
        let Side { bosun, bed, .. } = side;
        drop(bosun);
        let left = bed.close();
        anyhow::ensure!(left.is_empty(), "could not be removed:\n  {}", left.join("\n  "));
    }
    Ok(())
}

fn on_host(name: &str) -> String {
    manifest(name).replace("spec:\n", "spec:\n  hostNetwork: true\n")
}

/// On the node's network, so that what the profile costs is not lost in what a network does.
fn guarded(name: &str) -> String {
    on_host(name).replace("spec:\n", "spec:\n  securityContext: {seccompProfile: {type: RuntimeDefault}}\n")
}

/// Pods one after the other, in turns.
fn singles(sides: &[Side; 2], runtime: &Runtime, report: &mut Report) -> anyhow::Result<()> {
    type Make = fn(&str) -> String;
    let kinds: [(&str, Make, f64); 3] = [
        ("a pod with a network of its own", manifest, 45.0),
        ("a pod on the node's network", on_host, 20.0),
        ("one with the default seccomp profile", guarded, 20.0),
    ];
    for (what, make, most) in kinds {
        let mut took = [const { Vec::new() }; 2];
        for n in 0..SINGLES {
            for (side, took) in sides.iter().zip(&mut took) {
                let name = format!("single-{n}");
                took.push(side.one(runtime, &name, &make(&name)).with_context(|| format!("{what}, {}", side.name))?);
                idle(PAUSE);
            }
        }
        for (name, share, must) in [("p50", 0.5, Must::AtMost(most)), ("p90", 0.9, Must::Any)] {
            let values = took.each_ref().map(|took| percentile(took, share));
            add(report, &format!("{what}, manifest to container started, {name}"), Unit::Ms, values, must);
        }
    }
    Ok(())
}

/// Round trips of a command that does nothing, in turns.
fn commands(sides: &[Side; 2], runtime: &Runtime, report: &mut Report) -> anyhow::Result<()> {
    let mut ids = BTreeMap::new();
    for side in sides {
        side.bosun.put("asked.yaml", &talker("asked", "sleep 3600"))?;
        wait_running(&side.bosun, 1, Duration::from_secs(30))?;
        ids.extend(running(&side.bosun)?.into_values().map(|id| (side.name, testbed::plain_id(&id).to_owned())));
    }
    let mut took = [const { Vec::new() }; 2];
    for _ in 0..COMMANDS {
        for (side, took) in sides.iter().zip(&mut took) {
            let begun = Instant::now();
            let code = runtime.block_on(side.cri.exec_sync(&ids[side.name], &["true"]))?;
            anyhow::ensure!(code == 0, "true ended with {code} on {}", side.name);
            took.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let values = took.each_ref().map(|took| percentile(took, 0.5));
    add(report, "a command in a container, p50", Unit::Ms, values, Must::PartOf(0.5));
    for side in sides {
        side.bosun.remove("asked.yaml")?;
        wait_gone(&side.bosun, Duration::from_secs(30))?;
    }
    Ok(())
}

fn pulls(sides: &[Side; 2], runtime: &Runtime, report: &mut Report) -> anyhow::Result<()> {
    let mut took = [0.0; 2];
    for seed in 0..PULLS {
        let image = Image::of_layers(&format!("{HOST}/app:{seed}"), LAYERS, seed);
        for side in sides {
            side.registry.push(&image, &format!("app:{seed}"))?;
        }
        idle(Duration::from_secs(2));
        // Whoever is second finds a machine that still writes down what the first one unpacked.
        let order = if seed % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            crate::workspace::run("sync", &[])?;
            let begun = Instant::now();
            runtime.block_on(sides[at].cri.pull(image.name(), None))?;
            took[at] += begun.elapsed().as_secs_f64() / PULLS as f64;
        }
        for side in sides {
            runtime.block_on(side.cri.remove_image(image.name()))?;
        }
    }
    add(report, "a pull of 200 MB in ten layers", Unit::Seconds, took, Must::PartOf(0.8));
    Ok(())
}

/// All at once, and what there is in memory then.
fn many(sides: &[Side; 2], runtime: &Runtime, pods: usize, report: &mut Report) -> anyhow::Result<()> {
    let (mut took, mut memory) = ([0.0; 2], [0.0; 2]);
    for (at, side) in sides.iter().enumerate() {
        let begin = now();
        for n in 0..pods {
            side.bosun.put(&format!("many-{n}.yaml"), &manifest(&format!("many-{n}")))?;
        }
        wait_running(&side.bosun, pods, Duration::from_secs(180)).with_context(|| side.name)?;
        took[at] = side.started(runtime)? - begin;
        idle(Duration::from_secs(5));
        memory[at] = side.memory()?;
        for n in 0..pods {
            side.bosun.remove(&format!("many-{n}.yaml"))?;
        }
        wait_gone(&side.bosun, Duration::from_secs(180))?;
    }
    add(report, &format!("{pods} pods at once"), Unit::Seconds, took, Must::AtMost(3.5));
    let what = format!("memory of all that {pods} pods need (PSS)");
    add(report, &what, Unit::MiB, memory, Must::PartOf(1.0 / 6.0));
    Ok(())
}
