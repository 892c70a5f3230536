//! Resizes by chance: what is asked of a pod, what it may get of it, and whether what its container had was right at every moment.

use fastrand::Rng;
use serde_json::{Value, json};

mod notes;

pub use notes::{Note, failed_starts, granted, notes, write_noting_runc};

/// What becomes of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It can be had at once.
    Granted,
    /// It needs what others have: `Deferred`. So is what no node can have, unless the API server refuses it.
    Waits,
}

/// Resources that are asked for one container. No two wishes of a pod have the same limit of anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// What becomes of it.
    pub fate: Fate,
    /// Thousandths of a processor.
    pub cpu_request: i64,
    /// Thousandths of a processor.
    pub cpu_limit: i64,
    /// MiB.
    pub memory_request: i64,
    /// MiB.
    pub memory_limit: i64,
}

impl Wish {
    /// As `v1.ResourceRequirements`.
    #[must_use]
    pub fn resources(&self) -> Value {
        let list = |cpu: i64, memory: i64| json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
        json!({
            "requests": list(self.cpu_request, self.memory_request), "limits": list(self.cpu_limit, self.memory_limit),
        })
    }

    /// Bytes of memory, microseconds of processor in 100 ms and shares of it, as the kernel is told.
    #[must_use]
    pub fn kernel(&self) -> [i64; 3] {
        [self.memory_limit << 20, self.cpu_limit * 100, (self.cpu_request * 1024 / 1000).max(2)]
    }

    /// The same on cgroup v2, where shares are a weight.
    #[must_use]
    pub fn kernel_v2(&self) -> [i64; 3] {
        let [memory, quota, shares] = self.kernel();
        [memory, quota, 1 + (shares - 2) * 9999 / 262_142]
    }
}

/// What a node has for pods that are resized, in thousandths of a processor and MiB.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// All that pods may request.
    pub cpu: i64,
    /// Most that one of them asks for, so that all fit beside one another.
    pub cpu_each: i64,
    /// The same of memory.
    pub memory_each: i64,
}

/// All that was asked of a pod, and how it wants to be given it.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// A change of memory, of processor, ends the container (`RestartContainer`).
    pub restarts: [bool; 2],
    /// Containers that were killed.
    pub crashes: u64,
    all: Vec<Wish>,
}

/// What came of the wishes of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Containers that started.
    pub starts: u64,
    /// Of these, those that started with what had been replaced a moment ago.
    pub late: u64,
    /// Starts in the place of another one that the policy asks for.
    pub by_policy: u64,
    /// Changes in place.
    pub updates: u64,
}

impl Tally {
    /// Counts another pod.
    pub fn add(&mut self, other: Tally) {
        self.starts += other.starts;
        self.late += other.late;
        self.by_policy += other.by_policy;
        self.updates += other.updates;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { starts, late, by_policy, updates } = self;
        write!(
            f,
            "{starts} starts, {by_policy} of them by policy, {late} with what had just been replaced; {updates} changes in place"
        )
    }
}

impl Wishes {
    /// A pod's, with the first one, which it is created with. Memory or processor, or neither, ends the container, by its number.
    #[must_use]
    pub fn of(number: usize, room: Room, random: &mut Rng) -> Self {
        let restarts = [number % 8 == 1, number % 8 == 3];
        let mut out = Wishes { restarts, crashes: 0, all: Vec::new() };
        out.add(Fate::Granted, room, random);
        out
    }

    /// Another wish.
    pub fn next(&mut self, room: Room, random: &mut Rng) -> Wish {
        let fate = if random.u32(0..6) == 0 { Fate::Waits } else { Fate::Granted };
        self.add(fate, room, random)
    }

    /// Another wish, which can be had.
    pub fn next_granted(&mut self, room: Room, random: &mut Rng) -> Wish {
        self.add(Fate::Granted, room, random)
    }

    fn add(&mut self, fate: Fate, room: Room, random: &mut Rng) -> Wish {
        let mut wish = Wish {
            fate,
            cpu_request: random.i64(5..=room.cpu_each),
            cpu_limit: self.fresh(|w| w.cpu_limit, 500..1000, random),
            memory_request: random.i64(4..=room.memory_each.min(32)),
            memory_limit: self.fresh(|w| w.memory_limit, 33..512, random),
        };
        if fate == Fate::Waits {
            wish.cpu_request = room.cpu;
            wish.cpu_limit += room.cpu + 1000;
        }
        self.all.push(wish);
        wish
    }

    fn fresh(&self, of: fn(&Wish) -> i64, range: std::ops::Range<i64>, random: &mut Rng) -> i64 {
        loop {
            let value = random.i64(range.clone());
            if self.all.iter().all(|w| of(w) % 1000 != value) {
                return value;
            }
        }
    }

    /// What was asked for last.
    ///
    /// # Panics
    /// Never: there is the first one.
    #[must_use]
    pub fn last(&self) -> Wish {
        *self.all.last().expect("the one of creation")
    }

    /// The wish that has these limits, if it can be had.
    #[must_use]
    pub fn granted(&self, resources: &Value) -> Option<Wish> {
        self.all.iter().find(|w| w.fate == Fate::Granted && w.resources() == *resources).copied()
    }

    /// Whether this pod's container had only what was granted when it started or was changed, was changed only where it may be,
    /// and was started anew only where it died or its policy asks for it. `failed`: starts that the runtime gave up.
    ///
    /// # Errors
    /// The first thing that was wrong.
    pub fn judge(&self, notes: &[Note], failed: u64) -> Result<Tally, String> {
        let mut tally = Tally::default();
        let mut has: Option<[i64; 2]> = None;
        for note in notes {
            let at = |of: fn(&Wish) -> i64, value: i64| {
                let found = self.all.iter().position(|w| of(w) == value && w.fate == Fate::Granted);
                found.ok_or_else(|| format!("{value} was never to be had: {note:?}"))
            };
            let granted = if note.granted.is_null() {
                // A pod that begins is written down a moment later.
                0
            } else {
                let found = self.all.iter().position(|w| w.resources() == note.granted);
                found.ok_or_else(|| format!("nobody wished what was granted: {note:?}"))?
            };
            let before = has.unwrap_or_default();
            let now = [note.memory.unwrap_or(before[0]), note.quota.unwrap_or(before[1])];
            let places = [at(|w| w.memory_limit << 20, now[0])?, at(|w| w.cpu_limit * 100, now[1])?];
            if places.iter().any(|place| *place > granted) {
                return Err(format!("wishes {places:?} reached it when {granted} was granted: {note:?}"));
            }
            let changed = [before[0] != now[0], before[1] != now[1]];
            let by_policy = changed.iter().zip(self.restarts).any(|(changed, restarts)| *changed && restarts);
            if note.is_start {
                tally.starts += 1;
                tally.late += u64::from(places.iter().any(|place| *place < granted));
                tally.by_policy += u64::from(has.is_some() && by_policy);
            } else {
                tally.updates += 1;
                if by_policy {
                    return Err(format!("changed in place from {before:?}, against its policy: {note:?}"));
                }
            }
            has = Some(now);
        }
        let unexplained = tally.starts.saturating_sub(1 + tally.by_policy);
        if unexplained > self.crashes + failed {
            let crashes = self.crashes;
            return Err(format!("{crashes} crashes, {failed} starts given up, but {tally:?}: {notes:#?}"));
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests;
