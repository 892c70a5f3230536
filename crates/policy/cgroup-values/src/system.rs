//! Processes that do not belong into the root of the tree (`systemCgroups`, node-and-resources 1.1).

use model::cgroup::Process;

/// What is moved out of the root: not the kernel's own threads, whose work nobody may slow down, nor the first process.
#[must_use]
pub fn movable(processes: &[Process]) -> Vec<i32> {
    processes.iter().filter(|p| p.pid > 1 && !p.is_kernel).map(|p| p.pid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_the_first_process_and_what_has_no_number_here_stay() {
        let process = |pid, is_kernel| Process { pid, is_kernel };
        // 0 is how a process of another PID namespace shows; written back, it would be this very process.
        let all = [process(0, false), process(1, false), process(2, true), process(7, false), process(9, true)];
        assert_eq!(movable(&all), [7]);
        assert!(movable(&all[..3]).is_empty());
        assert_eq!(movable(&[process(300, false), process(200, false)]), [300, 200]);
    }
}
