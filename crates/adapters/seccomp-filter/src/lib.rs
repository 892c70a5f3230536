//! A seccomp filter as the kernel takes it (`seccomp(2)`): the program, how it is kept in a file, and the call that loads it.
//!
//! Who makes one of a profile is `container-spec`, who loads it `pod-supervisor`, in the process that becomes the container or a command in it. It
//! stands apart from `host-linux`, as it is to be in a program that is small. No library has that call without setting `no_new_privs`, which would
//! take from a container what its pod does not ask for.

#![deny(missing_docs)]

use std::io;

use serde::{Deserialize, Serialize};

/// Instructions of a program, at most. The kernel takes twice as many.
pub const MAX_PROGRAM: usize = 2048;

/// One instruction of a program (`struct sock_filter`): code, how far to jump when true and when not, number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction(pub u16, pub u8, pub u8, pub u32);

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// `SECCOMP_FILTER_FLAG_*`.
    pub flags: u32,
    /// What decides; the kernel refuses what could read or jump elsewhere, or would not end.
    pub program: Vec<Instruction>,
}

impl Filter {
    /// Has the kernel hold the calling thread, and what it becomes and starts, to this filter, for good.
    ///
    /// # Errors
    /// The kernel has no filters or refuses this one (`EINVAL`), or the thread neither may administer the node nor has `no_new_privs` (`EACCES`).
    pub fn load(&self) -> io::Result<()> {
        let program: Vec<libc::sock_filter> =
            self.program.iter().map(|i| libc::sock_filter { code: i.0, jt: i.1, jf: i.2, k: i.3 }).collect();
        let len = u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let call = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
        let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::c_ulong::from(self.flags));
        // SAFETY: the structure and the `len` instructions that it points to outlive the call, which only reads them.
        let code = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, std::ptr::from_ref(&call)) };
        let loaded = if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // To give memory back is a call that the filter may refuse, and the thread becomes another program soon.
        std::mem::forget(program);
        loaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_in_a_file_is_lists_of_numbers() {
        let filter = Filter { flags: 4, program: vec![Instruction(0x20, 0, 0, 4), Instruction(6, 0, 0, 0x7fff_0000)] };
        let text = serde_json::to_string(&filter).expect("text");
        assert_eq!(text, r#"{"flags":4,"program":[[32,0,0,4],[6,0,0,2147418112]]}"#);
        assert_eq!(serde_json::from_str::<Filter>(&text).expect("a filter"), filter);
    }

    /// One that is loaded stays: this one lets all through, on a thread that ends.
    #[test]
    fn the_kernel_takes_a_filter_and_refuses_what_is_none() {
        let held = || {
            let thread = std::fs::read_to_string("/proc/thread-self/status").expect("status");
            thread.lines().any(|line| line == "Seccomp:\t2")
        };
        let all = |program| Filter { flags: 0, program }.load().map_err(|e| e.raw_os_error());
        std::thread::spawn(move || {
            assert_eq!(all(Vec::new()), Err(Some(libc::EINVAL)));
            assert_eq!(all(vec![Instruction(0x20, 0, 0, 4)]), Err(Some(libc::EINVAL)), "it does not end");
            let before = held();
            match all(vec![Instruction(6, 0, 0, 0x7fff_0000)]) {
                // Who runs the tests is not root.
                Err(Some(libc::EACCES)) => assert_eq!(held(), before),
                other => assert!(other.is_ok() && held(), "{other:?}"),
            }
        })
        .join()
        .expect("held");
    }
}
