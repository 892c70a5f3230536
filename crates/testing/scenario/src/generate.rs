//! A scenario by chance: the same seed gives the same one.

use fastrand::Rng;

use crate::shape::Shape;
use crate::step::{ApiTrouble, DiskTrouble, RuntimeTrouble, Scenario, Step, Timed};

mod mixes;
mod pods;

/// How much happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Pods that are there from the beginning, and about as many as are there all the time.
    pub pods: usize,
    /// Steps after that.
    pub steps: usize,
    /// Minutes until all trouble ends.
    pub minutes: u64,
    /// Of a hundred steps, how many are trouble.
    pub trouble: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { pods: 8, steps: 40, minutes: 30, trouble: 25 }
    }
}

/// Makes a scenario of a seed.
#[must_use]
pub fn generate(seed: u64, mix: Mix) -> Scenario {
    let mut maker = Maker { rng: Rng::with_seed(seed), next: 0, live: Vec::new(), steps: Vec::new(), at_ms: 500 };
    for _ in 0..mix.pods {
        maker.come();
        maker.at_ms += maker.rng.u64(0..2000);
    }
    let calm_ms = mix.minutes * 60_000;
    let pause = (calm_ms.saturating_sub(maker.at_ms)) / u64::try_from(mix.steps.max(1)).unwrap_or(1);
    for _ in 0..mix.steps {
        maker.at_ms += maker.rng.u64(0..=2 * pause);
        if maker.at_ms >= calm_ms {
            break;
        }
        match maker.rng.u32(0..100) {
            n if n < mix.trouble => maker.trouble(mix.pods),
            n if n < mix.trouble + 8 => maker.burst(mix.pods),
            n if n < mix.trouble + 11 => maker.crowd(),
            _ => maker.life(mix.pods),
        }
    }
    // What would end after that ends with all trouble.
    maker.steps.retain(|step| step.at_ms < calm_ms);
    Scenario { seed, steps: maker.steps, calm_ms }.in_order()
}

struct Maker {
    rng: Rng,
    /// Number of the next pod.
    next: usize,
    /// Pods that are there, and whether they are static.
    live: Vec<(Shape, bool)>,
    steps: Vec<Timed>,
    at_ms: u64,
}

/// Calls that trouble strikes.
const CALLS: [&str; 12] = [
    "*",
    "RunPodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "RemoveContainer",
    "StopPodSandbox",
    "RemovePodSandbox",
    "ListContainers",
    "ListPodSandbox",
    "ContainerStatus",
    "PullImage",
];

/// Actors that are killed.
const ACTORS: [&str; 14] = [
    "pod-manager",
    "status-manager",
    "status-syncer",
    "runtime-client",
    "volume-manager",
    "image-manager",
    "probe-manager",
    "cgroup-manager",
    "object-store",
    "api-source",
    "folder-source",
    "node-manager",
    "node-lease",
    "eviction-manager",
];

/// Roles of managers that are swapped.
const ROLES: [&str; 12] = [
    "StatusManager",
    "StatusSyncer",
    "ProbeManager",
    "ImageManager",
    "VolumeManager",
    "CgroupManager",
    "RuntimeClient",
    "ObjectStore",
    "PodManager",
    "PodWorker",
    "PluginManager",
    "EvictionManager",
];

impl Maker {
    fn add(&mut self, step: Step) {
        self.steps.push(Timed { at_ms: self.at_ms, step });
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.rng.usize(0..of.len())].clone()) }
    }

    fn come(&mut self) {
        let is_static = self.rng.u8(0..3) == 0;
        let shape = pods::shape(&mut self.rng, &format!("p{}", self.next), is_static);
        self.next += 1;
        self.live.push((shape.clone(), is_static));
        self.add(if is_static { Step::Static(shape) } else { Step::Bind(shape) });
    }

    fn go(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let n = self.rng.usize(0..self.live.len());
        let (shape, is_static) = self.live.remove(n);
        if is_static {
            self.add(Step::Remove { pod: shape.name.clone() });
            if self.rng.u8(0..3) == 0 {
                // The same manifest again, while the pod is still being stopped or some time later.
                let at_ms = self.at_ms + [200, 2_000, 20_000, 90_000][self.rng.usize(0..4)];
                self.steps.push(Timed { at_ms, step: Step::Static(shape) });
            }
            return;
        }
        let grace_s = match self.rng.u8(0..6) {
            0 => Some(0),
            1 => Some(1),
            2 => Some(5),
            _ => None,
        };
        self.add(Step::Delete { pod: shape.name.clone(), grace_s });
        // As controllers do it: at once, while the old one is still being stopped.
        if self.rng.u8(0..3) == 0 {
            self.come_instead(&shape);
        }
    }

    /// What users and programs do.
    fn life(&mut self, pods: usize) {
        let container = |m: &mut Self| {
            let (shape, _) = m.one(&m.live.clone())?;
            let names: Vec<String> = shape.parts().map(|p| p.name.clone()).collect();
            m.one(&names)
        };
        let step = match self.rng.u8(0..100) {
            0..30 if self.live.len() < pods * 3 / 2 => return self.come(),
            0..45 => return self.go(),
            45..60 => container(self)
                .map(|container| Step::Exit { container, code: Some([0, 1, 2, 137][self.rng.usize(0..4)]) }),
            60..65 => container(self).map(|container| Step::Exit { container, code: None }),
            65..70 => container(self).map(|container| Step::LoseContainer { container }),
            70..76 => self
                .pod(|_, is_static| !is_static)
                .map(|pod| Step::SetImage { pod: pod.name, image: "app:2".to_owned() }),
            76..82 => {
                let memory_mi = [32, 64, 96, 128][self.rng.usize(0..4)];
                self.pod(|shape, is_static| !is_static && shape.containers[0].memory_mi > 0)
                    .map(|pod| Step::Resize { pod: pod.name, memory_mi })
            }
            82..87 => self.pod(|_, _| true).map(|pod| Step::KillSandbox { pod: pod.name }),
            87..95 => return self.fail_probes(),
            _ => return self.edit_static(),
        };
        if let Some(step) = step {
            self.add(step);
        }
    }

    fn pod(&mut self, fits: impl Fn(&Shape, bool) -> bool) -> Option<Shape> {
        let fitting: Vec<Shape> = self.live.iter().filter(|(s, is)| fits(s, *is)).map(|(s, _)| s.clone()).collect();
        self.one(&fitting)
    }

    fn fail_probes(&mut self) {
        let probed: Vec<String> = self
            .live
            .iter()
            .flat_map(|(shape, _)| shape.parts())
            .filter(|part| !part.probes.is_empty())
            .map(|part| part.name.clone())
            .collect();
        let Some(container) = self.one(&probed) else { return };
        self.add(Step::Probes { container: container.clone(), fail: true });
        let longest = [120_000, 120_000, 900_000][self.rng.usize(0..3)];
        let at_ms = self.at_ms + self.rng.u64(5_000..longest);
        self.steps.push(Timed { at_ms, step: Step::Probes { container, fail: false } });
    }

    /// The manifest of a static pod is written anew.
    fn edit_static(&mut self) {
        let Some(mut shape) = self.pod(|_, is_static| is_static) else { return };
        shape.grace_s += 1;
        if let Some(known) = self.live.iter_mut().find(|(s, _)| s.name == shape.name) {
            known.0 = shape.clone();
        }
        self.add(Step::Static(shape));
    }

    /// Trouble, and its end.
    fn trouble(&mut self, pods: usize) {
        let times = self.rng.u32(1..12);
        let step = match self.rng.u8(0..100) {
            0..5 => return self.away(pods),
            5..10 => return self.die_at_work(pods),
            10..14 => return self.die_while_pods_end(),
            14..18 => {
                let down_ms = [0, 500, 5_000, 60_000][self.rng.usize(0..4)] + self.rng.u64(0..500);
                Step::KillDaemon { down_ms, turns: 0 }
            }
            18..23 => Step::Reboot { power: self.rng.bool() },
            23..35 => Step::KillActor { actor: ACTORS[self.rng.usize(0..ACTORS.len())].to_owned() },
            35..38 => Step::Swap { role: ROLES[self.rng.usize(0..ROLES.len())].to_owned() },
            38..42 => Step::Clock { by_s: self.jump() },
            42..43 => Step::Shutdown,
            43..45 => Step::Dns,
            45..53 => Step::Fault { rules: self.rules() },
            53..55 => return self.restore(),
            55..70 => Step::Api(self.api(times)),
            70..78 => return self.hard_work(pods),
            78..93 => Step::Runtime(self.runtime(times)),
            _ => {
                let all = [DiskTrouble::Full, DiskTrouble::Broken, DiskTrouble::Short];
                Step::Disk(all[self.rng.usize(0..all.len())])
            }
        };
        let lasts = matches!(step, Step::Fault { .. } | Step::Dns | Step::Api(_) | Step::Runtime(_) | Step::Disk(_));
        self.add(step);
        if lasts {
            let at_ms = self.at_ms + self.rng.u64(1_000..90_000);
            self.steps.push(Timed { at_ms, step: Step::Calm });
        }
    }

    /// Seconds by which a clock is set: often a little, seldom much.
    fn jump(&mut self) -> i64 {
        let by = [2, 30, 600, 3600, 86_400][self.rng.usize(0..5)];
        if self.rng.bool() { by } else { -by }
    }

    /// A backup of the API server, and its restore some time later.
    fn restore(&mut self) {
        self.add(Step::Api(ApiTrouble::Backup));
        let at_ms = self.at_ms + self.rng.u64(5_000..300_000);
        self.steps.push(Timed { at_ms, step: Step::Api(ApiTrouble::Restore) });
        self.steps.push(Timed { at_ms: at_ms + 1_000, step: Step::Calm });
    }

    fn rules(&mut self) -> String {
        let actor = ["*", "pod-worker/*", "volume-manager", "runtime-client", "status-syncer"][self.rng.usize(0..5)];
        let action = ["panic", "kill", "stall(7s)", "delay(40ms)"][self.rng.usize(0..4)];
        let chance = ["0.002", "0.005"][self.rng.usize(0..2)];
        format!("{actor}: {action}#p{chance}")
    }

    fn api(&mut self, times: u32) -> ApiTrouble {
        match self.rng.u8(0..8) {
            0 => ApiTrouble::Unplug,
            1 => ApiTrouble::Answer { status: [429, 500, 503][self.rng.usize(0..3)], times },
            2 => ApiTrouble::Lose { times: times.min(3) },
            3 => ApiTrouble::Hang { times: times.min(3) },
            4 => ApiTrouble::Slow { times },
            5 => ApiTrouble::Compact,
            6 => ApiTrouble::Cut,
            _ => ApiTrouble::Stale,
        }
    }

    fn runtime(&mut self, times: u32) -> RuntimeTrouble {
        let rpc = CALLS[self.rng.usize(0..CALLS.len())].to_owned();
        match self.rng.u8(0..12) {
            0 | 1 => RuntimeTrouble::Error { rpc, times },
            2 | 3 => RuntimeTrouble::Lost { rpc, times: times.min(3) },
            4 => RuntimeTrouble::Hang { rpc, times: times.min(2) },
            5 => RuntimeTrouble::Slow { rpc, times },
            6 => RuntimeTrouble::Late { rpc, times: times.min(3) },
            7 => RuntimeTrouble::Disconnect,
            8 => RuntimeTrouble::Down,
            9 => [RuntimeTrouble::NoNetwork, RuntimeTrouble::Forget][self.rng.usize(0..2)].clone(),
            10 => RuntimeTrouble::Partial { times },
            _ => {
                let all = [RuntimeTrouble::Mute, RuntimeTrouble::Twice, RuntimeTrouble::Tardy, RuntimeTrouble::Reorder];
                all[self.rng.usize(0..4)].clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_scenario_and_its_file_gives_it_back() {
        for seed in 0..50 {
            let scenario = generate(seed, Mix::default());
            assert_eq!(scenario, generate(seed, Mix::default()));
            assert_eq!(Scenario::from_text(&scenario.to_text()), Ok(scenario.clone()));
            assert_ne!(scenario.steps, generate(seed + 1, Mix::default()).steps);
            assert!(scenario.steps.is_sorted_by_key(|step| step.at_ms));
        }
    }

    #[test]
    fn pods_are_edited_and_deleted_while_the_daemon_is_down_and_it_dies_at_work() {
        let (mut edited, mut deleted, mut at_work) = (0, 0, 0);
        for seed in 0..50 {
            let scenario = generate(seed, Mix::default());
            let mut down_until = 0;
            let mut seen = BTreeSet::new();
            for Timed { at_ms, step } in &scenario.steps {
                match step {
                    Step::KillDaemon { down_ms, turns } => {
                        down_until = at_ms + down_ms;
                        at_work += u32::from(*turns > 0);
                    }
                    Step::Static(shape) if !seen.insert(&shape.name) => edited += u32::from(*at_ms < down_until),
                    Step::Delete { .. } => deleted += u32::from(*at_ms < down_until),
                    _ => {}
                }
            }
        }
        assert!(edited > 10 && deleted > 10 && at_work > 10, "{edited} {deleted} {at_work}");
    }

    #[test]
    fn no_two_pods_and_no_two_containers_have_one_name() {
        let scenario = generate(1, Mix { steps: 500, ..Mix::default() });
        let mut names = BTreeSet::new();
        for step in &scenario.steps {
            if let Step::Bind(shape) = &step.step {
                assert!(names.insert(shape.name.clone()));
                assert!(shape.parts().all(|part| names.insert(part.name.clone())));
            }
        }
        assert!(names.len() > 50);
    }
}
