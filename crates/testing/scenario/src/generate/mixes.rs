//! Several steps that belong together: each of them alone would seldom meet the others.

use super::Maker;
use crate::shape::Shape;
use crate::step::Step;

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
}
