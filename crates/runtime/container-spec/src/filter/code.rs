//! Programs of the classic packet filter: a tree over numbers of calls, and the conditions on their arguments.

use oci_spec::runtime::LinuxSeccompOperator;
use seccomp_filter::Instruction;

use super::rules::{Condition, Rule};

/// Codes of `linux/bpf_common.h`: load a word, compare with a number, jump, and, answer.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IS_EQUAL: u16 = 0x15;
const IS_GREATER: u16 = 0x25;
const IS_GREATER_OR_EQUAL: u16 = 0x35;
const ANSWER: u16 = 0x06;
/// Where in `struct seccomp_data` it lies.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// What is answered to calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// This, whatever the arguments are.
    Always(u32),
    /// By the arguments, else the other.
    By(Rule, u32),
}

/// Which calls, from a number on to that of the next range.
pub(super) type Range = (u32, Leaf);

const fn load(at: u32) -> Instruction {
    Instruction(LOAD, 0, 0, at)
}

const fn answer(with: u32) -> Instruction {
    Instruction(ANSWER, 0, 0, with)
}

/// The whole: each architecture's part, and what is answered to calls of another.
pub(super) fn program(sections: &[(u32, Vec<Instruction>)], other: u32) -> Vec<Instruction> {
    let mut all = vec![load(ARCHITECTURE)];
    for (audit, section) in sections {
        all.push(Instruction(IS_EQUAL, 1, 0, *audit));
        all.push(jump(section.len()));
        all.extend(section);
    }
    all.push(answer(other));
    all
}

fn jump(over: usize) -> Instruction {
    // Bounded by what the kernel takes; a longer program is not made.
    Instruction(JUMP, 0, 0, u32::try_from(over).unwrap_or(u32::MAX))
}

/// The part of one architecture. Ranges are sorted, and begin at 0. `None`: a rule with too many conditions.
pub(super) fn section(ranges: &[Range]) -> Option<Vec<Instruction>> {
    let mut all = vec![load(NUMBER)];
    all.extend(tree(ranges)?);
    Some(all)
}

fn tree(ranges: &[Range]) -> Option<Vec<Instruction>> {
    if let [(_, leaf)] = ranges {
        return leaf_code(leaf);
    }
    let (below, above) = ranges.split_at(ranges.len() / 2);
    let (from, _) = above.first()?;
    let (below, above) = (tree(below)?, tree(above)?);
    let mut all = match u8::try_from(below.len()) {
        Ok(near) => vec![Instruction(IS_GREATER_OR_EQUAL, near, 0, *from)],
        Err(_) => vec![Instruction(IS_GREATER_OR_EQUAL, 0, 1, *from), jump(below.len())],
    };
    all.extend(below);
    all.extend(above);
    Some(all)
}

fn leaf_code(leaf: &Leaf) -> Option<Vec<Instruction>> {
    let (rule, other) = match leaf {
        Leaf::Always(with) => return Some(vec![answer(*with)]),
        Leaf::By(rule, other) => (rule, other),
    };
    let mut all = Vec::new();
    for case in &rule.cases {
        all.extend(case_code(case, rule.answer)?);
    }
    all.push(answer(*other));
    Some(all)
}

/// Where a comparison leads.
#[derive(Clone, Copy)]
enum To {
    /// On to the next step.
    Next,
    /// Over the rest of this condition, which holds.
    Holds,
    /// To the next case.
    Fails,
}

/// A step of a condition, before it is known where the case ends.
enum Step {
    Plain(Instruction),
    Compare(u16, u32, To, To),
}

/// A case: answers if all of its conditions hold; else what comes after it is next.
fn case_code(case: &[Condition], with: u32) -> Option<Vec<Instruction>> {
    // Each step with where its condition ends.
    let mut steps: Vec<(Step, usize)> = Vec::new();
    for condition in case {
        let of = condition_steps(condition);
        let end = steps.len() + of.len();
        steps.extend(of.into_iter().map(|step| (step, end)));
    }
    let after = steps.len() + 1;
    let mut all = Vec::with_capacity(after);
    for (at, (step, end)) in steps.into_iter().enumerate() {
        let distance = |to: To| match to {
            To::Next => Some(0),
            To::Holds => u8::try_from(end - at - 1).ok(),
            To::Fails => u8::try_from(after - at - 1).ok(),
        };
        all.push(match step {
            Step::Plain(one) => one,
            Step::Compare(code, value, yes, no) => Instruction(code, distance(yes)?, distance(no)?, value),
        });
    }
    all.push(answer(with));
    Some(all)
}

/// Both halves of a number, the upper one first.
fn halves(n: u64) -> [u32; 2] {
    [u32::try_from(n >> 32).unwrap_or_default(), u32::try_from(n & u64::from(u32::MAX)).unwrap_or_default()]
}

/// The upper half of an argument decides, unless it is the same; then the lower one does.
fn condition_steps(c: &Condition) -> Vec<Step> {
    use LinuxSeccompOperator::{ScmpCmpEq, ScmpCmpGe, ScmpCmpGt, ScmpCmpLe, ScmpCmpLt, ScmpCmpMaskedEq, ScmpCmpNe};
    use Step::{Compare, Plain};
    let ([upper, lower], [upper_mask, lower_mask]) = (halves(c.value), halves(c.mask));
    let at = FIRST_ARGUMENT + 8 * c.argument;
    let masked = |mask| Plain(Instruction(AND, 0, 0, mask));
    let mut steps = Vec::new();
    if c.wide {
        steps.push(Plain(load(at + 4)));
        match c.operator {
            ScmpCmpEq => steps.push(Compare(IS_EQUAL, upper, To::Next, To::Fails)),
            ScmpCmpMaskedEq => steps.extend([masked(upper_mask), Compare(IS_EQUAL, upper, To::Next, To::Fails)]),
            ScmpCmpNe => steps.push(Compare(IS_EQUAL, upper, To::Next, To::Holds)),
            ScmpCmpGt | ScmpCmpGe => steps.extend([
                Compare(IS_GREATER, upper, To::Holds, To::Next),
                Compare(IS_EQUAL, upper, To::Next, To::Fails),
            ]),
            ScmpCmpLt | ScmpCmpLe => steps.extend([
                Compare(IS_GREATER, upper, To::Fails, To::Next),
                Compare(IS_EQUAL, upper, To::Next, To::Holds),
            ]),
        }
    }
    steps.push(Plain(load(at)));
    if c.operator == ScmpCmpMaskedEq {
        steps.push(masked(lower_mask));
    }
    let (code, yes, no) = match c.operator {
        ScmpCmpEq | ScmpCmpMaskedEq => (IS_EQUAL, To::Next, To::Fails),
        ScmpCmpNe => (IS_EQUAL, To::Fails, To::Next),
        ScmpCmpGt => (IS_GREATER, To::Next, To::Fails),
        ScmpCmpGe => (IS_GREATER_OR_EQUAL, To::Next, To::Fails),
        ScmpCmpLt => (IS_GREATER_OR_EQUAL, To::Fails, To::Next),
        ScmpCmpLe => (IS_GREATER, To::Fails, To::Next),
    };
    steps.push(Compare(code, lower, yes, no));
    steps
}
