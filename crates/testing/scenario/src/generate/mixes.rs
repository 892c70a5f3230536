//! Several steps that belong together: each of them alone would seldom meet the others.

use super::{Maker, pods};
use crate::check::ALLOCATABLE_M;
use crate::shape::{Shape, Stop};
use crate::step::{ApiTrouble, RuntimeTrouble, Step, Timed};

/// Calls that pods need which come and go.
const WORK: [&str; 6] =
    ["StartContainer", "StopPodSandbox", "CreateContainer", "StopContainer", "RunPodSandbox", "RemoveContainer"];

impl Maker {
    /// A pod as `shape`, under another name.
    pub(super) fn come_instead(&mut self, shape: &Shape) {
        let name = format!("p{}", self.next);
        self.next += 1;
        let mut new = Shape { name: name.clone(), ..shape.clone() };
        for part in new.init.iter_mut().chain(&mut new.containers) {
            let own = part.name.rsplit('-').next().unwrap_or_default();
            part.name = format!("{name}-{own}");
        }
        self.live.push((new.clone(), false));
        self.add(Step::Bind(new));
    }

    /// Much at a time.
    pub(super) fn burst(&mut self, pods: usize) {
        for _ in 0..self.rng.usize(2..7) {
            self.life(pods);
            self.at_ms += [0, 1, 100, 2_000][self.rng.usize(0..4)];
        }
    }

    /// The daemon is away, and meanwhile things happen that it has to find out.
    pub(super) fn away(&mut self, pods: usize) {
        let down_ms = [5_000, 20_000, 60_000][self.rng.usize(0..3)];
        let dies = match self.rng.u8(0..4) {
            0 => Step::Reboot { power: self.rng.bool() },
            _ => Step::KillDaemon { down_ms, turns: 0 },
        };
        self.add(dies);
        for _ in 0..self.rng.usize(1..5) {
            self.at_ms += self.rng.u64(0..down_ms / 4);
            match self.rng.u8(0..10) {
                0..3 => self.edit_static(),
                3..6 => self.go(),
                _ => self.life(pods),
            }
        }
    }

    /// The daemon dies in the midst of something.
    pub(super) fn die_at_work(&mut self, pods: usize) {
        self.life(pods);
        self.at_ms += [0, 0, 1, 50, 1_000][self.rng.usize(0..5)];
        let down_ms = [0, 500, 5_000][self.rng.usize(0..3)];
        let turns = self.rng.u32(0..1_500);
        self.add(Step::KillDaemon { down_ms, turns });
    }

    /// The runtime does badly what pods need that come and go meanwhile.
    pub(super) fn hard_work(&mut self, pods: usize) {
        let (rpc, times) = (WORK[self.rng.usize(0..WORK.len())].to_owned(), self.rng.u32(10..60));
        let badly = match self.rng.u8(0..4) {
            0 => RuntimeTrouble::Error { rpc, times },
            1 => RuntimeTrouble::Lost { rpc, times: times / 4 },
            _ => RuntimeTrouble::Slow { rpc, times },
        };
        self.add(Step::Runtime(badly));
        for _ in 0..self.rng.usize(2..6) {
            self.at_ms += self.rng.u64(0..5_000);
            match self.rng.u8(0..4) {
                0 | 1 => self.come(),
                2 => self.go(),
                _ => self.life(pods),
            }
        }
        let at_ms = self.at_ms + self.rng.u64(20_000..60_000);
        self.steps.push(Timed { at_ms, step: Step::Calm });
    }

    /// The API server is slow, and the daemon dies while pods are being ended.
    pub(super) fn die_while_pods_end(&mut self) {
        let times = self.rng.u32(10..80);
        self.add(Step::Api(ApiTrouble::Slow { times }));
        for _ in 0..self.rng.usize(1..4) {
            self.go();
            self.at_ms += self.rng.u64(0..500);
        }
        self.at_ms += self.rng.u64(500..8_000);
        let down_ms = [0, 500, 5_000][self.rng.usize(0..3)];
        self.add(Step::KillDaemon { down_ms, turns: 0 });
        let at_ms = self.at_ms + self.rng.u64(1_000..60_000);
        self.steps.push(Timed { at_ms, step: Step::Calm });
    }

    /// The node is full; one pod is deleted, and another one comes that needs its room.
    pub(super) fn crowd(&mut self) {
        let used: u32 = self.live.iter().map(|(shape, _)| shape.cpu_m()).sum();
        let mut shape = pods::shape(&mut self.rng, &format!("p{}", self.next), false);
        self.next += 1;
        shape.containers[0].cpu_m = ALLOCATABLE_M.saturating_sub(used).max(800) - 100;
        // Who ends at once is gone before the other one is there.
        shape.containers[0].stop = [Stop::Slow, Stop::Ignored][self.rng.usize(0..2)];
        self.add(Step::Bind(shape.clone()));
        self.at_ms += self.rng.u64(10_000..30_000);
        self.add(Step::Delete { pod: shape.name.clone(), grace_s: None });
        self.at_ms += [0, 100, 2_000][self.rng.usize(0..3)];
        self.come_instead(&shape);
    }
}
