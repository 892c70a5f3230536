//! The pods of the rounds: such as run all the while and note each probe, and such as come and go.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::Place;
use crate::{BUSYBOX_IMAGES, BedError, Image, Login, Registry, TestBed, state, wait_until};

const SOON: Duration = Duration::from_secs(60);
/// The image of pods that come and go is pulled anew by each.
const PULLED: &str = "pull.example/app:1";

/// Pods that run all the while. Each notes the machine's uptime with each probe.
pub struct Lasting {
    names: Vec<String>,
    traces: PathBuf,
    before: Vec<Value>,
}

impl Lasting {
    /// Makes so many of them, and waits until all are ready.
    ///
    /// # Panics
    /// When they do not become so.
    pub fn start(place: &impl Place, pods: usize) -> Self {
        let traces = place.bed().dir().join("traces");
        std::fs::create_dir_all(&traces).unwrap_or_else(|e| panic!("{}: {e}", traces.display()));
        let names: Vec<String> = (0..pods).map(|n| format!("web{n}")).collect();
        for (n, name) in names.iter().enumerate() {
            // A process a second for each pod is more than the machine has for many.
            place.create(name, web(name, &traces, n < 5));
        }
        for name in &names {
            place.wait(name, "to be ready", &is_ready);
        }
        let lasting = Lasting { before: names.iter().map(|name| marks(place, name)).collect(), names, traces };
        for name in &lasting.names {
            std::fs::write(lasting.trace(name), "").unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        lasting
    }

    fn trace(&self, name: &str) -> PathBuf {
        self.traces.join(name)
    }

    fn traced(&self, name: &str) -> String {
        std::fs::read_to_string(self.trace(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Waits until one of them was probed again.
    pub(super) fn probed_again(&self, place: &impl Place, which: usize, times: usize) {
        let name = &self.names[which % self.names.len()];
        let lines = || self.traced(name).lines().count();
        let before = lines();
        wait_until("a pod to be probed", SOON, || match lines() {
            now if now >= before + times => Ok(()),
            now => Err(format!("{now} lines in {}", self.trace(name).display())),
        })
        .unwrap_or_else(|e| {
            let said = [vec!["manager", "list"], vec!["why", name]].map(|words| place.bosun().cli(&words));
            panic!("{e}\n{said:?}\n{}", place.bosun().log())
        });
    }

    /// Nobody was started again or unready for a moment, probes went on, and the runtime has these pods alone.
    ///
    /// # Panics
    /// When it is otherwise.
    pub fn are_as_before(&self, place: &impl Place) {
        (0..self.names.len()).for_each(|which| self.probed_again(place, which, 2));
        let mut longest = (0, 0);
        for (name, before) in self.names.iter().zip(&self.before) {
            assert_eq!(&marks(place, name), before, "{name}\n{}", place.bosun().log());
            let pause = longest_pause(&self.traced(name));
            // A period of one second, and late by at most one; where the process was killed the one that is built in waits for a second
            // whether it comes back. The rest is for a machine that starts processes late.
            assert!(pause.0 <= 500, "{name}: {} hundredths of a second between probes, until {}", pause.0, pause.1);
            longest = longest.max(pause);
        }
        let (pause, at) = longest;
        eprintln!(
            "{} pods: at most {pause} hundredths of a second between two probes of one, until {at}",
            self.names.len()
        );
        let mut wanted: Vec<_> = self.names.iter().map(|name| (place.full_name(name), 0, 1)).collect();
        wanted.sort();
        // The sandbox of a pod that is gone is cleared away a moment later.
        wait_until("the runtime to have what the statuses say, and nothing else", SOON, || {
            let told = |e: BedError| e.to_string();
            let all = place.bed().containers().map_err(told)?;
            let run: Vec<_> = all.into_iter().map(|(pod, _, attempt, state)| (pod, attempt, state)).collect();
            let sandboxes = place.bed().sandboxes().map_err(told)?;
            let same = run == wanted && sandboxes.iter().eq(wanted.iter().map(|(name, ..)| name));
            if same { Ok(()) } else { Err(format!("containers {run:?}\nsandboxes {sandboxes:?}")) }
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }
}

/// A server whose answer to a probe leaves a trace; some have a probe that is a process, too.
fn web(name: &str, traces: &std::path::Path, alive: bool) -> Value {
    let serve = format!(
        "mkdir -p /www/cgi-bin; cd /www; printf '#!/bin/sh\\ncat /proc/uptime >> /traces/{name}\\nprintf \"Content-Type: text/plain\\\\r\\\\n\\\\r\\\\n\"\\n' > cgi-bin/p; chmod +x cgi-bin/p; exec httpd -f -p 8080 -h /www"
    );
    let probe = |by: Value| {
        let mut probe = json!({"periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 1});
        probe.as_object_mut().into_iter().zip(by.as_object()).for_each(|(all, by)| all.extend(by.clone()));
        probe
    };
    let mut container = json!({
        "name": "main", "image": BUSYBOX_IMAGES[0], "command": ["sh", "-c", serve],
        "volumeMounts": [{"name": "t", "mountPath": "/traces"}],
        "readinessProbe": probe(json!({"httpGet": {"path": "/cgi-bin/p", "port": 8080}})),
    });
    if alive {
        container["livenessProbe"] = probe(json!({"exec": {"command": ["true"]}}));
    }
    json!({
        "terminationGracePeriodSeconds": 0, "containers": [container],
        "volumes": [{"name": "t", "hostPath": {"path": traces}}],
    })
}

/// Whether a pod says Ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    ready(pod).is_some_and(|c| c["status"] == "True")
}

fn ready(pod: &Value) -> Option<&Value> {
    pod["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == "Ready")
}

/// What must stay the same: the container, its restarts, and since when the pod is ready.
fn marks(place: &impl Place, name: &str) -> Value {
    let pod = place.wait(name, "to be there", &|pod| ready(pod).is_some());
    let (container, ready) = (&pod["status"]["containerStatuses"][0], ready(&pod));
    let ready = ready.map(|c| (&c["status"], &c["lastTransitionTime"]));
    json!([container["containerID"], container["restartCount"], ready])
}

/// The longest time between two probes of a pod, and when it was over, in hundredths of a second: each leaves the machine's uptime.
fn longest_pause(text: &str) -> (u64, u64) {
    let hundredths = |line: &str| -> Option<u64> { line.split(' ').next()?.replace('.', "").parse().ok() };
    let times: Vec<u64> = text.lines().filter_map(hundredths).collect();
    assert!(times.len() > 1, "it was probed: {text}");
    times.windows(2).map(|two| (two[1].saturating_sub(two[0]), two[1])).max().unwrap_or_default()
}

/// A pod that comes and goes: its image is pulled, its volumes are made, and every second one ends by itself.
pub(super) struct Passing(pub(super) usize);

impl Passing {
    pub(super) fn name(&self) -> String {
        format!("guest{}", self.0)
    }

    fn ends(&self) -> bool {
        self.0 % 2 == 1
    }

    pub(super) fn comes(&self, place: &impl Place) {
        let then = if self.ends() { "exit 3" } else { "touch /room/up; exec sleep 1000" };
        let script = format!("grep -q '^{}$' /info/name || exit 9; {then}", place.full_name(&self.name()));
        let name = json!({"path": "name", "fieldRef": {"fieldPath": "metadata.name"}});
        let spec = json!({
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": PULLED, "imagePullPolicy": "Always", "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "info", "mountPath": "/info"}, {"name": "room", "mountPath": "/room"}],
                "readinessProbe": {"exec": {"command": ["cat", "/room/up"]}, "periodSeconds": 1, "timeoutSeconds": 10},
            }],
            "volumes": [{"name": "info", "downwardAPI": {"items": [name]}}, {"name": "room", "emptyDir": {}}],
        });
        place.create(&self.name(), spec);
    }

    /// Waits until the status says what is true of it at last.
    pub(super) fn is_told_of(&self, place: &impl Place) {
        if self.ends() {
            let pod = place.wait(&self.name(), "to have failed", &|p| p["status"]["phase"] == "Failed");
            assert_eq!(state(&pod, "terminated")["exitCode"], 3, "{pod}");
        } else {
            place.wait(&self.name(), "to be ready", &is_ready);
        }
    }
}

/// The registry that those pods' image comes from.
pub(super) fn registry(bed: &mut TestBed) -> Registry {
    let registry = Registry::start(bed, "pull.example", Login::Open).unwrap_or_else(|e| panic!("{e}"));
    let image = Image::busybox("app:1").unwrap_or_else(|e| panic!("{e}"));
    registry.push(&image, "app:1").unwrap_or_else(|e| panic!("{e}"));
    registry
}
