//! Which devices the processes of a cgroup of version 2 may use: a program of the kernel's own kind, as version 2 has no files for it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use ports::host::{HostError, HostResult};

use crate::At;

mod kernel;

use kernel::Instruction;

/// Kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Of blocks.
    Block,
    /// Of characters.
    Char,
}

/// One that is let through or kept from devices that others are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRule {
    /// Let through.
    pub allow: bool,
    /// `None`: of any kind.
    pub kind: Option<DeviceKind>,
    /// `None`: all.
    pub major: Option<u32>,
    /// `None`: all.
    pub minor: Option<u32>,
    /// To make one.
    pub make: bool,
    /// To read.
    pub read: bool,
    /// To write.
    pub write: bool,
}

/// `BPF_DEVCG_DEV_*` and `BPF_DEVCG_ACC_*` of `linux/bpf.h`.
const BLOCK: i32 = 1;
const CHAR: i32 = 2;
const MAKE: i32 = 1;
const READ: i32 = 2;
const WRITE: i32 = 4;

/// Codes of instructions, of those that are used.
const LOAD: u8 = 0x61;
const AND: u8 = 0x54;
const SHIFT_RIGHT: u8 = 0x74;
const COPY: u8 = 0xbc;
const SET: u8 = 0xb4;
const UNLESS: u8 = 0x55;
const UNLESS_SAME: u8 = 0x5d;
const IF: u8 = 0x15;
const END: u8 = 0x95;

/// Registers: what is answered, what is asked about, and what is in that.
const ANSWER: u8 = 0;
const ASKED: u8 = 1;
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

/// Lets a cgroup of version 2 use the devices of `rules`, of which a later one counts more, and else none, or all. It holds until the cgroup is
/// gone.
///
/// # Errors
/// The kernel refuses the program, or has no such programs.
pub fn allow_devices(folder: &Path, rules: &[DeviceRule], else_all: bool) -> HostResult<()> {
    let dir: OwnedFd = File::open(folder).at("open", folder)?.into();
    let done = kernel::attach(&dir, &program(rules, else_all));
    done.map_err(|e: io::Error| HostError::new("set rules for devices of", folder, e))
}

/// The program: 1 is yes.
fn program(rules: &[DeviceRule], else_all: bool) -> Vec<Instruction> {
    let mut all = vec![
        (LOAD, ASKED << 4 | KIND, 0, 0),
        (AND, KIND, 0, 0xffff),
        (LOAD, ASKED << 4 | ACCESS, 0, 0),
        (SHIFT_RIGHT, ACCESS, 0, 16),
        (LOAD, ASKED << 4 | MAJOR, 4, 0),
        (LOAD, ASKED << 4 | MINOR, 8, 0),
    ];
    for rule in rules.iter().rev() {
        all.extend(block(rule));
    }
    all.extend(answer(else_all));
    all
}

fn answer(yes: bool) -> [Instruction; 2] {
    [(SET, ANSWER, 0, i32::from(yes)), (END, 0, 0, 0)]
}

/// Answers what the rule says of what it is about, and goes on with what it is not.
fn block(rule: &DeviceRule) -> Vec<Instruction> {
    let mut checks: Vec<Instruction> = Vec::new();
    if let Some(kind) = rule.kind {
        checks.push((UNLESS, KIND, 0, if kind == DeviceKind::Block { BLOCK } else { CHAR }));
    }
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    checks.extend(rule.major.map(|n| (UNLESS, MAJOR, 0, number(n))));
    checks.extend(rule.minor.map(|n| (UNLESS, MINOR, 0, number(n))));
    let access = [(rule.make, MAKE), (rule.read, READ), (rule.write, WRITE)];
    let access = access.into_iter().filter(|(has, _)| *has).fold(0, |all, (_, bit)| all | bit);
    if access != MAKE | READ | WRITE {
        checks.extend([(COPY, ACCESS << 4 | ASKED, 0, 0), (AND, ASKED, 0, access)]);
        // Let through is what asks for no more; kept from it is what asks for any of it.
        checks.push(match rule.allow {
            true => (UNLESS_SAME, ACCESS << 4 | ASKED, 0, 0),
            false => (IF, ASKED, 0, 0),
        });
    }
    let end = checks.len() + 2;
    for (at, check) in checks.iter_mut().enumerate().filter(|(_, c)| [UNLESS, UNLESS_SAME, IF].contains(&c.0)) {
        check.2 = i16::try_from(end - at - 1).unwrap_or(i16::MAX);
    }
    checks.extend(answer(rule.allow));
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs it as the kernel does.
    fn asked(program: &[Instruction], kind: i32, access: i32, major: i32, minor: i32) -> bool {
        let words = [access << 16 | kind, major, minor];
        let (mut registers, mut at) = ([0_i64; 11], 0);
        loop {
            let (code, both, distance, number) = program[at];
            let (to, from) = (usize::from(both & 15), usize::from(both >> 4));
            at += 1;
            let jump = usize::try_from(distance).expect("forwards");
            match code {
                0x61 => registers[to] = words[jump / 4].into(),
                0x54 => registers[to] &= i64::from(number),
                0x74 => registers[to] >>= number,
                0xbc => registers[to] = registers[from],
                0xb4 => registers[to] = number.into(),
                0x55 if registers[to] != i64::from(number) => at += jump,
                0x15 if registers[to] == i64::from(number) => at += jump,
                0x5d if registers[to] != registers[from] => at += jump,
                0x55 | 0x15 | 0x5d => {}
                0x95 => return registers[0] == 1,
                other => panic!("{other:#x}"),
            }
        }
    }

    fn rule(allow: bool, kind: Option<DeviceKind>, major: Option<u32>, minor: Option<u32>, access: &str) -> DeviceRule {
        let has = |c| access.contains(c);
        DeviceRule { allow, kind, major, minor, make: has('m'), read: has('r'), write: has('w') }
    }

    #[test]
    fn the_last_rule_that_is_about_a_device_counts() {
        let rules = [
            rule(true, Some(DeviceKind::Char), None, None, "m"),
            rule(true, Some(DeviceKind::Char), Some(1), Some(3), "rwm"),
            rule(true, Some(DeviceKind::Block), Some(8), None, "r"),
            rule(false, Some(DeviceKind::Char), Some(1), Some(5), "w"),
        ];
        let program = program(&rules, false);
        for (kind, access, major, minor, want) in [
            (CHAR, MAKE, 9, 9, true),
            (CHAR, READ, 9, 9, false),
            (CHAR, READ | MAKE, 9, 9, false),
            (CHAR, READ | WRITE, 1, 3, true),
            (BLOCK, READ, 1, 3, false),
            (BLOCK, READ, 8, 16, true),
            (BLOCK, READ | WRITE, 8, 16, false),
            (BLOCK, MAKE, 8, 16, false),
            (CHAR, WRITE, 1, 5, false),
            (CHAR, MAKE, 1, 5, true),
        ] {
            assert_eq!(asked(&program, kind, access, major, minor), want, "{kind} {access} {major}:{minor}");
        }
    }

    #[test]
    fn without_a_rule_all_is_answered_alike() {
        for yes in [true, false] {
            assert_eq!(asked(&program(&[], yes), CHAR, READ, 1, 3), yes);
        }
        let but = program(&[rule(false, Some(DeviceKind::Block), None, None, "rwm")], true);
        assert!(asked(&but, CHAR, WRITE, 4, 4) && !asked(&but, BLOCK, READ, 8, 0));
    }
}
