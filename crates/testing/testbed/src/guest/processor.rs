//! Whether the guest's kernel can run on this processor.

/// Why Debian 12's user-mode-linux, version 6.1, cannot run on this machine, if so. It keeps the registers of its processes in an area of a fixed
/// size, and the machine's kernel takes them back only whole (`PTRACE_SETREGSET` of `NT_X86_XSTATE`): with AMX they are larger.
#[must_use]
pub fn unfit_processor() -> Option<&'static str> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    has_amx(&cpuinfo)
        .then_some("this processor has AMX, and the guest's kernel (user-mode-linux 6.1) cannot hold its registers")
}

fn has_amx(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "amx_tile")
}

#[cfg(test)]
mod tests {
    use super::has_amx;

    #[test]
    fn amx_is_a_flag_of_the_processor() {
        let of =
            |flags: &str| format!("processor\t: 0\nmodel name\t: amx_tile\nflags\t\t: {flags}\nbugs\t\t: amx_tile\n");
        assert!(has_amx(&of("fpu avx512f amx_bf16 amx_tile amx_int8")));
        assert!(!has_amx(&of("fpu avx512f")));
        assert!(!has_amx(""));
    }
}
