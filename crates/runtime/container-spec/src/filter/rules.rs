//! What a profile answers to the calls of one ABI, by their numbers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use oci_spec::runtime::{LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompOperator};

use super::abi::Abi;

/// `SECCOMP_RET_*`.
pub(super) const KILL_THREAD: u32 = 0;
const KILL_PROCESS: u32 = 0x8000_0000;
const TRAP: u32 = 0x0003_0000;
const ERRNO: u32 = 0x0005_0000;
const LOG: u32 = 0x7ffc_0000;
const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
/// The kernel makes no larger ones of what is (`MAX_ERRNO`).
const MAX_ERRNO: u32 = 4095;
/// Arguments of a call.
const ARGUMENTS: usize = 6;

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) argument: u32,
    pub(super) operator: LinuxSeccompOperator,
    /// What it is compared with.
    pub(super) value: u64,
    /// Of which bits, for `SCMP_CMP_MASKED_EQ`.
    pub(super) mask: u64,
    /// Arguments are of 64 bits, else of 32.
    pub(super) wide: bool,
}

impl Condition {
    /// Whether it asks which number is larger.
    fn orders(&self) -> bool {
        use LinuxSeccompOperator::{ScmpCmpGe, ScmpCmpGt, ScmpCmpLe, ScmpCmpLt};
        matches!(self.operator, ScmpCmpGe | ScmpCmpGt | ScmpCmpLe | ScmpCmpLt)
    }
}

/// When a call is answered so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) answer: u32,
    /// Any of these has to hold; of each all parts. An empty one always does.
    pub(super) cases: Vec<Vec<Condition>>,
}

/// What is answered to the calls of an ABI.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// To all that no rule is about.
    pub(super) usual: u32,
    /// To those behind the last one that is named.
    pub(super) behind: u32,
    pub(super) last: u32,
    pub(super) rules: BTreeMap<u32, Rule>,
}

impl Answers {
    /// `None`: what libseccomp makes of it is not known.
    pub(super) fn of(profile: &LinuxSeccomp, abi: Abi) -> Option<Self> {
        let usual = answer(profile.default_action(), profile.default_errno_ret())?;
        let mut all = Self { usual, behind: usual, last: 0, rules: BTreeMap::new() };
        for call in profile.syscalls().iter().flatten() {
            let answer = answer(call.action(), call.errno_ret())?;
            let cases = cases(call.args().as_deref().unwrap_or_default(), abi.wide())?;
            for name in call.names() {
                // Those that can be made by another call libseccomp knows by numbers below zero there.
                if let Some(number) = abi.number(name).filter(|_| abi.multiplexed(name).is_none()) {
                    all.last = all.last.max(number);
                }
                // Nothing else, and runc leaves such a rule out.
                if answer != usual {
                    all.add(abi, name, answer, &cases)?;
                }
            }
        }
        if all.last > 0 && refuses(profile.default_action()) {
            all.behind = ERRNO | ENOSYS;
        }
        all.rules.values().all(Rule::is_usual).then_some(all)
    }

    fn add(&mut self, abi: Abi, name: &str, answer: u32, cases: &[Vec<Condition>]) -> Option<()> {
        if let Some((number, which)) = abi.multiplexed(name) {
            // What the conditions are about is behind a pointer there.
            if cases.iter().any(|case| !case.is_empty()) {
                let all = self.rules.get(&number)?;
                (all.answer == answer && all.is_always()).then_some(())?;
            } else {
                let operator = LinuxSeccompOperator::ScmpCmpEq;
                let is_this = Condition { argument: 0, operator, value: which, mask: u64::MAX, wide: abi.wide() };
                self.insert(number, answer, &[vec![is_this]])?;
            }
        }
        match abi.number(name) {
            Some(number) => self.insert(number, answer, cases),
            None => Some(()),
        }
    }

    /// Rules of one call that answer differently depend on their order in ways that are libseccomp's own.
    fn insert(&mut self, number: u32, answer: u32, cases: &[Vec<Condition>]) -> Option<()> {
        match self.rules.entry(number) {
            Entry::Vacant(free) => {
                free.insert(Rule { answer, cases: cases.to_vec() });
            }
            Entry::Occupied(there) if there.get().answer == answer => {
                there.into_mut().cases.extend_from_slice(cases);
            }
            Entry::Occupied(_) => return None,
        }
        Some(())
    }
}

impl Rule {
    pub(super) fn is_always(&self) -> bool {
        self.cases.iter().any(Vec::is_empty)
    }

    /// Whether libseccomp makes of it what is written. Of several rules of one call it joins what they compare, and does not come out right where one has
    /// several conditions, or where they ask which of two numbers of more than 32 bits is larger.
    fn is_usual(&self) -> bool {
        let is_single = |case: &Vec<Condition>| case.len() == 1 && !(case[0].orders() && case[0].value >> 32 != 0);
        self.is_always() || self.cases.len() == 1 || self.cases.iter().all(is_single)
    }
}

/// Those after which `runc` answers ENOSYS to calls that nobody knows.
fn refuses(usual: LinuxSeccompAction) -> bool {
    !matches!(
        usual,
        LinuxSeccompAction::ScmpActAllow | LinuxSeccompAction::ScmpActLog | LinuxSeccompAction::ScmpActTrace
    )
}

fn answer(action: LinuxSeccompAction, errno: Option<u32>) -> Option<u32> {
    Some(match action {
        LinuxSeccompAction::ScmpActKill | LinuxSeccompAction::ScmpActKillThread => KILL_THREAD,
        LinuxSeccompAction::ScmpActKillProcess => KILL_PROCESS,
        LinuxSeccompAction::ScmpActTrap => TRAP,
        LinuxSeccompAction::ScmpActErrno => ERRNO | errno.or(Some(EPERM)).filter(|errno| *errno <= MAX_ERRNO)?,
        LinuxSeccompAction::ScmpActLog => LOG,
        LinuxSeccompAction::ScmpActAllow => ALLOW,
        // Somebody else is asked, whom the OCI runtime has to tell.
        LinuxSeccompAction::ScmpActTrace | LinuxSeccompAction::ScmpActNotify => return None,
    })
}

/// The cases of a rule: one, unless two conditions are on one argument.
fn cases(args: &[LinuxSeccompArg], wide: bool) -> Option<Vec<Vec<Condition>>> {
    let all: Vec<Condition> = args.iter().map(|arg| condition(arg, wide)).collect::<Option<_>>()?;
    let is_twice = |c: &Condition| all.iter().filter(|other| other.argument == c.argument).count() > 1;
    Some(if all.iter().any(is_twice) { all.into_iter().map(|c| vec![c]).collect() } else { vec![all] })
}

fn condition(arg: &LinuxSeccompArg, wide: bool) -> Option<Condition> {
    let operator = arg.op();
    let (value, mask) = match operator {
        // The first number is the mask.
        LinuxSeccompOperator::ScmpCmpMaskedEq => (arg.value_two().unwrap_or(0) & arg.value(), arg.value()),
        _ => (arg.value(), u64::MAX),
    };
    let fits = |n: u64| wide || u32::try_from(n).is_ok();
    let argument = u32::try_from(Some(arg.index()).filter(|index| *index < ARGUMENTS)?).ok()?;
    fits(arg.value()).then_some(Condition { argument, operator, value, mask, wide })
}
