//! `bpf(2)`, which neither the standard library nor rustix has.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// One instruction (`struct bpf_insn`): code, registers (the source in the upper half), distance, number.
pub(super) type Instruction = (u8, u8, i16, i32);

/// Of `enum bpf_cmd`, `bpf_prog_type` and `bpf_attach_type` of `linux/bpf.h`.
const PROGRAM_LOAD: libc::c_int = 5;
const PROGRAM_ATTACH: libc::c_int = 8;
const KIND_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
/// `BPF_F_ALLOW_MULTI`: groups below may have programs of their own, and this one holds for them, too.
const ALLOW_MULTI: u32 = 2;
/// What is told of its licence: none that the kernel asks for.
const LICENSE: &std::ffi::CStr = c"Apache";
/// Bytes of an instruction.
const SIZE: usize = 8;

/// The beginning of `union bpf_attr` for a load; what is not given is zero to the kernel.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

/// And for an attachment.
#[repr(C)]
struct Attach {
    cgroup: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

fn bpf<T>(command: libc::c_int, of: &T) -> io::Result<libc::c_int> {
    // SAFETY: `T` is one of the two structures above, of numbers alone, and outlives the call; the kernel reads no more of it than its size.
    let code = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(of), size_of::<T>()) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(libc::c_int::try_from(code).unwrap_or(-1)) }
}

fn bytes(program: &[Instruction]) -> Vec<u8> {
    let mut all = Vec::with_capacity(program.len() * SIZE);
    for (code, registers, distance, number) in program {
        all.extend([*code, *registers]);
        all.extend(distance.to_ne_bytes());
        all.extend(number.to_ne_bytes());
    }
    all
}

/// Loads a program and has it decide for a cgroup, which keeps it.
pub(super) fn attach(cgroup: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let code = bytes(program);
    let load = Load {
        kind: KIND_CGROUP_DEVICE,
        count: u32::try_from(program.len()).unwrap_or(u32::MAX),
        instructions: code.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
    };
    let loaded = bpf(PROGRAM_LOAD, &load).or_else(|e| match e.raw_os_error() {
        // Before Linux 5.11 such programs count as locked memory.
        Some(libc::EPERM) => with_memory(|| bpf(PROGRAM_LOAD, &load)),
        _ => Err(e),
    })?;
    // SAFETY: the kernel has just given this descriptor to this process, and nobody else knows of it.
    let loaded = unsafe { OwnedFd::from_raw_fd(loaded) };
    let number = |fd: &OwnedFd| u32::try_from(fd.as_raw_fd()).unwrap_or_default();
    let attach =
        Attach { cgroup: number(cgroup), program: number(&loaded), kind: ATTACH_CGROUP_DEVICE, flags: ALLOW_MULTI };
    bpf(PROGRAM_ATTACH, &attach).map(drop)
}

/// With as much locked memory as there is, for a moment, in which nobody else changes that.
fn with_memory<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = getrlimit(Resource::Memlock);
    // If that is refused, so is the call, which says why.
    let _ = setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None });
    let done = call();
    let _ = setrlimit(Resource::Memlock, before);
    done
}
