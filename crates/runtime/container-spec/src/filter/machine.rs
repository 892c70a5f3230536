//! The ABIs behind one architecture of the kernel's, and what is answered to all numbers that their calls can have.

use oci_spec::runtime::Arch;

use super::abi::{Abi, X32};
use super::code::{Leaf, Range};
use super::rules::{Answers, KILL_THREAD};

/// `AUDIT_ARCH_*` of `linux/audit.h`.
const AUDIT_X86_64: u32 = 0xc000_003e;
const AUDIT_I386: u32 = 0x4000_0003;
const AUDIT_AARCH64: u32 = 0xc000_00b7;
const AUDIT_ARM: u32 = 0x4000_0028;

/// What a filter is told apart by, and the ABIs behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) audit: u32,
    abi: Abi,
    /// x86_64 alone: whether calls of x32 are made, or kill.
    x32: bool,
}

impl Machine {
    /// Those that a profile for nodes of this architecture lists, its own first. `None`: one that is not known here.
    pub(super) fn of(architecture: &str, listed: &[Arch]) -> Option<Vec<Self>> {
        let (own, other, beside): (Self, Self, &[Arch]) = match architecture {
            "x86_64" => (
                Self { audit: AUDIT_X86_64, abi: Abi::X86_64, x32: listed.contains(&Arch::ScmpArchX32) },
                Self { audit: AUDIT_I386, abi: Abi::I386, x32: false },
                &[Arch::ScmpArchX86_64, Arch::ScmpArchX86, Arch::ScmpArchX32],
            ),
            "aarch64" => (
                Self { audit: AUDIT_AARCH64, abi: Abi::Aarch64, x32: false },
                Self { audit: AUDIT_ARM, abi: Abi::Arm, x32: false },
                &[Arch::ScmpArchAarch64, Arch::ScmpArchArm],
            ),
            _ => return None,
        };
        let known = |arch: &Arch| *arch == Arch::ScmpArchNative || beside.contains(arch);
        let is_other = listed.iter().any(|arch| *arch == beside[1]);
        listed.iter().all(known).then(|| if is_other { vec![own, other] } else { vec![own] })
    }

    /// What is answered to all numbers that calls can have.
    pub(super) fn ranges(self, answers: impl Fn(Abi) -> Option<Answers>) -> Option<Vec<Range>> {
        let own = answers(self.abi)?;
        let mut all = vec![(0, Leaf::Always(own.usual))];
        fill(&mut all, &own);
        if self.abi == Abi::X86_64 {
            // Bit 30 tells x32 apart, also where the one above it is set.
            let behind = (X32 * 2, Leaf::Always(own.behind));
            if self.x32 {
                let x32 = answers(Abi::X32)?;
                all.push((X32, Leaf::Always(x32.usual)));
                fill(&mut all, &x32);
                all.extend([behind, (X32 * 3, Leaf::Always(x32.behind))]);
            } else {
                let killed = Leaf::Always(KILL_THREAD);
                all.push((X32, killed.clone()));
                // Where nothing answers for numbers that nobody knows, those with the highest bit are taken for x32's, too.
                all.extend((own.behind != own.usual).then_some(behind));
                all.push((X32 * 3, killed));
                // By it a tracer says that a call is left out (seccomp(2)).
                all.push((u32::MAX, Leaf::Always(own.usual)));
            }
        }
        debug_assert!(all.is_sorted_by(|one, next| one.0 < next.0), "{all:?}");
        all.dedup_by(|next, before| next.1 == before.1);
        Some(all)
    }
}

/// The calls of an ABI, whose first number is in the ranges already, to the last one and what is behind it.
fn fill(ranges: &mut Vec<Range>, answers: &Answers) {
    let is_stubbed = answers.behind != answers.usual;
    // Behind the last one nobody asks for rules, not even for those by which sockets are made otherwise.
    for (number, rule) in answers.rules.iter().filter(|(number, _)| !is_stubbed || **number <= answers.last) {
        let leaf = match rule.is_always() {
            true => Leaf::Always(rule.answer),
            false => Leaf::By(rule.clone(), answers.usual),
        };
        // What was said from here on was the usual answer.
        if ranges.last().is_some_and(|(from, _)| from == number) {
            ranges.pop();
        }
        ranges.push((*number, leaf));
        ranges.push((number + 1, Leaf::Always(answers.usual)));
    }
    if is_stubbed {
        if ranges.last().is_some_and(|(from, _)| *from == answers.last + 1) {
            ranges.pop();
        }
        ranges.push((answers.last + 1, Leaf::Always(answers.behind)));
    }
}
