//! Programs are run here on calls, and answer what the profile, read rule by rule, says.

use std::collections::BTreeSet;

use oci_spec::runtime::LinuxSeccomp;
use seccomp_filter::{Filter, Instruction};
use serde_json::{Value, json};

use super::abi::Abi;
use super::profile_filter;
use crate::CapabilityNames;
use crate::profile::default_profile;

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const KILL: u32 = 0;
const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;
const AARCH64: u32 = 0xc000_00b7;
const ARM: u32 = 0x4000_0028;
const X32: u32 = 0x4000_0000;

/// A call: architecture, number, arguments.
type Call = (u32, u32, [u64; 6]);

/// What the kernel's machine makes of it; it panics where the kernel would refuse the program.
fn run(filter: &Filter, (architecture, number, args): Call) -> u32 {
    let half = |n: u64, upper: bool| u32::try_from(if upper { n >> 32 } else { n & 0xffff_ffff }).expect("half");
    let word = |at: u32| match at {
        0 => number,
        4 => architecture,
        _ => half(args[((at - 16) / 8) as usize], (at - 16) % 8 == 4),
    };
    let (mut at, mut value) = (0, 0);
    loop {
        let Instruction(code, yes, no, k) = filter.program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { yes } else { no });
        match code {
            0x20 => value = word(k),
            0x54 => value &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(value == k),
            0x25 => at += jump(value > k),
            0x35 => at += jump(value >= k),
            0x06 => return k,
            _ => panic!("instruction {code:#x}"),
        }
    }
}

/// A profile as it is written, for one ABI.
struct Said<'a> {
    usual: u32,
    /// Each rule with the numbers that it is about.
    rules: Vec<(BTreeSet<u32>, &'a Value)>,
    wide: bool,
}

fn answer(action: &Value, errno: &Value) -> u32 {
    match action.as_str().expect("action") {
        "SCMP_ACT_ALLOW" => ALLOW,
        "SCMP_ACT_ERRNO" => 0x0005_0000 | u32::try_from(errno.as_u64().unwrap_or(1)).expect("errno"),
        "SCMP_ACT_LOG" => 0x7ffc_0000,
        "SCMP_ACT_KILL_PROCESS" => 0x8000_0000,
        other => panic!("{other}"),
    }
}

impl<'a> Said<'a> {
    fn of(profile: &'a Value, abi: Abi) -> Self {
        let numbers = |call: &Value| {
            let names = call["names"].as_array().expect("names").iter();
            names.filter_map(|n| abi.number(n.as_str().expect("name"))).collect()
        };
        let rules = profile["syscalls"].as_array().into_iter().flatten().map(|call| (numbers(call), call)).collect();
        let usual = answer(&profile["defaultAction"], &profile["defaultErrnoRet"]);
        Self { usual, rules, wide: matches!(abi, Abi::X86_64 | Abi::Aarch64) }
    }

    /// What is answered, rule by rule.
    fn to(&self, number: u32, args: &[u64; 6]) -> u32 {
        let last = self.rules.iter().flat_map(|(numbers, _)| numbers.last()).max();
        if last.is_some_and(|last| number > *last) && self.usual != ALLOW {
            return ENOSYS;
        }
        let matching = self.rules.iter().find(|(numbers, call)| {
            let conditions = call["args"].as_array().into_iter().flatten();
            numbers.contains(&number) && conditions.into_iter().all(|arg| self.holds(arg, args))
        });
        matching.map_or(self.usual, |(_, call)| answer(&call["action"], &call["errnoRet"]))
    }

    fn holds(&self, arg: &Value, args: &[u64; 6]) -> bool {
        let argument = args[usize::try_from(arg["index"].as_u64().expect("index")).expect("small")];
        let argument = if self.wide { argument } else { argument & 0xffff_ffff };
        let (value, second) = (arg["value"].as_u64().expect("value"), arg["valueTwo"].as_u64().unwrap_or(0));
        match arg["op"].as_str().expect("op") {
            "SCMP_CMP_EQ" => argument == value,
            "SCMP_CMP_NE" => argument != value,
            "SCMP_CMP_LT" => argument < value,
            "SCMP_CMP_LE" => argument <= value,
            "SCMP_CMP_GT" => argument > value,
            "SCMP_CMP_GE" => argument >= value,
            "SCMP_CMP_MASKED_EQ" => argument & value == second,
            other => panic!("{other}"),
        }
    }
}

/// Numbers that differ in each half and in single bits, and those that the default profile looks at.
fn values() -> Vec<u64> {
    let small = [0, 1, 2, 7, 8, 9, 37, 38, 39, 40, 41, 0x2_0000, 0x2_0008, 0x0200_0000, 0x7e02_0000, 0xffff_ffff];
    let all = small.iter().flat_map(|n| [*n, n | 1 << 32, n | 0x8000_0000_0000_0000, n | 0x1000_0000]);
    all.chain([u64::MAX]).collect()
}

/// Compares program and profile on all numbers that are anybody's, with many arguments.
fn compare(profile: &Value, architecture: &str, abis: &[(u32, Abi, u32)]) {
    let read: LinuxSeccomp = serde_json::from_value(profile.clone()).expect("a profile");
    let filter = profile_filter(&read, architecture).expect("a filter");
    for (audit, abi, bit) in abis {
        let said = Said::of(profile, *abi);
        for number in (0..1100).chain([0xf_0000, 0xf_0002, 0xf_0005, 0xf_0007]) {
            let number = number | bit;
            for first in values() {
                for second in [0, 5, 1 << 33, u64::MAX] {
                    let args = [first, second, first ^ second, 0, first, 3];
                    let (got, want) = (run(&filter, (*audit, number, args)), said.to(number, &args));
                    assert_eq!(got, want, "{abi:?} {number} {args:x?}");
                }
                // Most calls are not asked for their arguments.
                if run(&filter, (*audit, number, [1 << 40; 6])) == run(&filter, (*audit, number, [0; 6])) && first > 50
                {
                    break;
                }
            }
        }
    }
}

fn default(capabilities: &[&str], architecture: &str) -> Value {
    let names: CapabilityNames = capabilities.iter().map(|c| (*c).to_owned()).collect();
    serde_json::to_value(default_profile(&names, architecture).expect("a profile")).expect("JSON")
}

const ON_X86_64: &[(u32, Abi, u32)] = &[(X86_64, Abi::X86_64, 0), (X86_64, Abi::X32, X32), (I386, Abi::I386, 0)];
const ON_AARCH64: &[(u32, Abi, u32)] = &[(AARCH64, Abi::Aarch64, 0), (ARM, Abi::Arm, 0)];

#[test]
fn the_default_profile_is_what_its_program_does() {
    for capabilities in [&[][..], &["CAP_SYS_ADMIN", "CAP_BPF", "CAP_SYS_PTRACE"]] {
        compare(&default(capabilities, "x86_64"), "x86_64", ON_X86_64);
        compare(&default(capabilities, "aarch64"), "aarch64", ON_AARCH64);
    }
}

/// Facts of the kernel's tables, and what the program that `runc` 1.1.5 (libseccomp 2.5.4) loads of the same profile answers.
#[test]
fn calls_that_everybody_knows() {
    let facts = [
        (X86_64, 0, 0, ALLOW),             // read
        (X86_64, 165, 0, EPERM),           // mount
        (X86_64, 41, 2, ALLOW),            // socket(AF_INET)
        (X86_64, 41, 38, EPERM),           // socket(AF_ALG)
        (X86_64, 41, 40, EPERM),           // socket(AF_VSOCK)
        (X86_64, 56, 0x11, ALLOW),         // clone(SIGCHLD)
        (X86_64, 56, 1 << 28, EPERM),      // clone(CLONE_NEWUSER)
        (X86_64, 435, 0, ENOSYS),          // clone3
        (X86_64, 135, 0xffff_ffff, ALLOW), // personality, only asked
        (X86_64, 135, 0x0040_0000, EPERM), // personality(ADDR_NO_RANDOMIZE)
        (X86_64, 900, 0, ENOSYS),
        (I386, 3, 0, ALLOW),           // read
        (I386, 21, 0, EPERM),          // mount
        (I386, 11, 0, ALLOW),          // execve
        (X86_64, X32 + 520, 0, ALLOW), // execve
        (X86_64, X32 + 59, 0, EPERM),  // execve of x86_64
        (X86_64, X32 + 900, 0, ENOSYS),
        (X86_64, u32::MAX, 0, ENOSYS),
        (X86_64, 2 * X32, 0, ENOSYS),
        (I386, u32::MAX, 0, ENOSYS),
        (AARCH64, 0, 0, KILL),
    ];
    known("x86_64", &facts);
}

/// As libseccomp's table has them (`src/syscalls.csv`, 2.6); no machine of this kind was at hand.
#[test]
fn calls_that_everybody_knows_on_arm() {
    let facts = [
        (AARCH64, 63, 0, ALLOW),        // read
        (AARCH64, 79, 0, ALLOW),        // newfstatat
        (AARCH64, 221, 0, ALLOW),       // execve
        (AARCH64, 40, 0, EPERM),        // mount
        (AARCH64, 198, 38, EPERM),      // socket(AF_ALG)
        (AARCH64, 220, 0x11, ALLOW),    // clone(SIGCHLD)
        (AARCH64, 220, 1 << 28, EPERM), // clone(CLONE_NEWUSER)
        (AARCH64, 435, 0, ENOSYS),      // clone3
        (AARCH64, 422, 0, EPERM),       // futex_time64 of others
        (AARCH64, 436, 0, ALLOW),       // close_range
        (AARCH64, 900, 0, ENOSYS),
        (ARM, 195, 0, ALLOW),      // stat64
        (ARM, 21, 0, EPERM),       // mount
        (ARM, 422, 0, ALLOW),      // futex_time64
        (ARM, 0xf_0002, 0, ALLOW), // cacheflush
        (ARM, 0xf_0005, 0, ALLOW), // set_tls
        (ARM, 0xf_0009, 0, ENOSYS),
        (X86_64, 0, 0, KILL),
    ];
    known("aarch64", &facts);
}

fn known(architecture: &str, facts: &[(u32, u32, u64, u32)]) {
    let read: LinuxSeccomp = serde_json::from_value(default(&["CAP_CHOWN"], architecture)).expect("a profile");
    let filter = profile_filter(&read, architecture).expect("a filter");
    for (of, number, first, want) in facts {
        let got = run(&filter, (*of, *number, [*first, 0, 0, 0, 0, 0]));
        assert_eq!(got, *want, "{of:#x} {number}");
    }
}

#[test]
fn each_comparison_is_one_of_whole_numbers() {
    for op in ["EQ", "NE", "LT", "LE", "GT", "GE"] {
        for value in [0, 39, 0xffff_ffff, 1 << 32, (1 << 32) | 39, u64::MAX] {
            let args = json!([{"index": 0, "value": value, "op": format!("SCMP_CMP_{op}")},
                {"index": 1, "value": 5, "op": "SCMP_CMP_LE"}]);
            let rules = json!([{"names": ["read", "mount"], "action": "SCMP_ACT_LOG", "args": args}]);
            for usual in ["SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"] {
                let profile = json!({"defaultAction": usual, "syscalls": rules});
                compare(&profile, "x86_64", &ON_X86_64[..1]);
            }
        }
    }
    let masked = json!([{"index": 2, "value": 0x1_0000_0001_u64, "valueTwo": 1, "op": "SCMP_CMP_MASKED_EQ"}]);
    let rules = json!([{"names": ["write"], "action": "SCMP_ACT_KILL_PROCESS", "args": masked}]);
    compare(&json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules}), "x86_64", &ON_X86_64[..1]);
}

#[test]
fn two_conditions_on_one_argument_are_two_rules() {
    let args = json!([{"index": 0, "value": 3, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 4, "op": "SCMP_CMP_EQ"}]);
    let rules = json!([{"names": ["close"], "action": "SCMP_ACT_ALLOW", "args": args}]);
    let read = json!({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 13, "syscalls": rules});
    let filter = profile_filter(&serde_json::from_value(read).expect("a profile"), "x86_64").expect("a filter");
    let of = |first| run(&filter, (X86_64, 3, [first, 0, 0, 0, 0, 0]));
    assert_eq!([of(3), of(4), of(5)], [ALLOW, ALLOW, 0x0005_000d]);
}

/// What is not listed is killed, but for the number by which a tracer leaves a call out.
#[test]
fn only_listed_architectures_may_call() {
    let rules = json!([{"names": ["read", "socket"], "action": "SCMP_ACT_ALLOW"}]);
    for (usual, behind) in [("SCMP_ACT_ERRNO", ENOSYS), ("SCMP_ACT_LOG", 0x7ffc_0000)] {
        let read = json!({"defaultAction": usual, "syscalls": rules});
        let filter = profile_filter(&serde_json::from_value(read).expect("a profile"), "x86_64").expect("a filter");
        let of = |architecture, number| run(&filter, (architecture, number, [0; 6]));
        assert_eq!([of(X86_64, 0), of(I386, 3), of(X86_64, X32)], [ALLOW, KILL, KILL]);
        assert_eq!(of(X86_64, X32 - 1), behind);
        assert_eq!(of(X86_64, 3 * X32), KILL);
        assert_ne!(of(X86_64, u32::MAX), KILL);
    }
}

/// On i386 sockets are made by another call, too; and none of the calls that can be is the last one that is named.
#[test]
fn calls_of_i386_that_can_be_made_by_another() {
    let of = |names: &[&str], number, first| {
        let rules = json!([{"names": names, "action": "SCMP_ACT_ALLOW"}]);
        let read = json!({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"], "syscalls": rules});
        let filter = profile_filter(&serde_json::from_value(read).expect("a profile"), "x86_64").expect("a filter");
        run(&filter, (I386, number, [first, 0, 0, 0, 0, 0]))
    };
    let statx = |number, first| of(&["read", "socket", "semop", "statx"], number, first);
    assert_eq!([statx(359, 2), statx(102, 1), statx(102, 2), statx(3, 0)], [ALLOW, ALLOW, EPERM, ALLOW]);
    assert_eq!([statx(117, 1), statx(117, 2), statx(383, 0), statx(384, 0)], [ALLOW, EPERM, ALLOW, ENOSYS]);
    let early = |number, first| of(&["read", "accept", "socket"], number, first);
    assert_eq!([early(3, 0), early(2, 0), early(50, 0)], [ALLOW, EPERM, ENOSYS]);
    assert_eq!([early(359, 2), early(102, 1), early(102, 5), early(11, 0)], [ENOSYS; 4]);
}

#[test]
fn what_only_libseccomp_knows_is_left_to_the_oci_runtime() {
    let calls = |rules: Value| json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules});
    let on_socket = json!([{"index": 0, "value": 40, "op": "SCMP_CMP_NE"}]);
    let wide = json!([{"index": 0, "value": 1_u64 << 40, "op": "SCMP_CMP_EQ"}]);
    let below = json!([{"index": 0, "value": 1_u64 << 40, "op": "SCMP_CMP_LT"}]);
    let both = json!([{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}, {"index": 1, "value": 1, "op": "SCMP_CMP_EQ"}]);
    for (profile, architecture, why) in [
        (json!({"defaultAction": "SCMP_ACT_TRACE"}), "x86_64", "a tracer"),
        (calls(json!([{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}])), "x86_64", "an agent"),
        (json!({"defaultAction": "SCMP_ACT_ERRNO"}), "riscv64", "another machine"),
        (json!({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_S390X"]}), "x86_64", "one beside it"),
        (json!({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 5000}), "x86_64", "no error"),
        (
            calls(
                json!([{"names": ["read"], "action": "SCMP_ACT_ALLOW"}, {"names": ["read"], "action": "SCMP_ACT_LOG"}]),
            ),
            "x86_64",
            "two answers",
        ),
        (
            calls(json!([{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": both},
            {"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": wide}])),
            "x86_64",
            "several conditions beside others",
        ),
        (
            calls(json!([{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": below},
            {"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": wide}])),
            "x86_64",
            "which of large numbers is larger",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"],
            "syscalls": [{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": on_socket}]}),
            "x86_64",
            "what is behind a pointer",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"],
            "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": wide}]}),
            "x86_64",
            "a number too large",
        ),
    ] {
        let read: LinuxSeccomp = serde_json::from_value(profile).expect("a profile");
        assert_eq!(profile_filter(&read, architecture), None, "{why}");
    }
}

/// A program whose jumps are long has them still where they should be: each second call is answered otherwise.
#[test]
fn long_programs_are_no_other_programs() {
    let all: Vec<&str> = syscalls::x86_64::Sysno::iter().map(|c| c.name()).collect();
    let rule = |(n, name): (usize, &&str)| {
        json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [
            {"index": 0, "value": n, "op": "SCMP_CMP_GT"}, {"index": 1, "value": 5, "op": "SCMP_CMP_NE"}]})
    };
    let profile = |names: &[&str]| {
        let rules: Vec<Value> = names.iter().enumerate().map(rule).collect();
        json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules})
    };
    let (many, profile) = (profile(&all), profile(&all[..100]));
    let read: LinuxSeccomp = serde_json::from_value(profile.clone()).expect("a profile");
    assert!(profile_filter(&read, "x86_64").expect("a filter").program.len() > 1000);
    compare(&profile, "x86_64", &ON_X86_64[..1]);
    // Too long for what is passed on with an order.
    assert_eq!(profile_filter(&serde_json::from_value(many).expect("a profile"), "x86_64"), None);
}
