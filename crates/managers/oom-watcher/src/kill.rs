//! What lines of the kernel's log say of processes that it killed for lack of memory. Pure.

/// A process that the kernel killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    /// Its name (at most 15 bytes), or nothing when the kernel's words were not understood.
    pub(crate) process: String,
    /// Its id, as the machine's first PID namespace has it.
    pub(crate) pid: i32,
    /// The cgroup whose limit was met; the root (`/`) when the whole machine was short of memory.
    pub(crate) limit_of: String,
}

impl Kill {
    /// The machine itself ran out of memory.
    pub(crate) fn is_of_the_machine(&self) -> bool {
        self.limit_of == "/"
    }

    /// The text of the event, as a kubelet has it.
    pub(crate) fn message(&self) -> String {
        if self.process.is_empty() || self.pid == 0 {
            return "System OOM encountered".to_owned();
        }
        format!("System OOM encountered, victim process: {}, pid: {}", self.process, self.pid)
    }
}

/// Puts together the lines of one kill: `... invoked oom-killer: ...` first, who was killed last.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Within the lines of a kill: the cgroup whose limit was met, as far as it was named.
    limit_of: Option<String>,
}

impl Reader {
    /// The next line; answers with the kill that it completes.
    pub(crate) fn line(&mut self, text: &str) -> Option<Kill> {
        if text.contains("invoked oom-killer:") {
            self.limit_of = Some("/".to_owned());
            return None;
        }
        let limit_of = self.limit_of.as_mut()?;
        if let Some(named) = limit_before_5_0(text) {
            named.clone_into(limit_of);
            return None;
        }
        let kill = constrained(text).or_else(|| killed(text, limit_of))?;
        self.limit_of = None;
        Some(kill)
    }
}

/// Linux 5.0 and later, for a cgroup: `oom-kill:constraint=...,oom_memcg=/a,task_memcg=/a/b,task=name,pid=1,uid=0`. For the whole machine
/// the line has `global_oom` instead of `oom_memcg`, and the one after it tells.
fn constrained(text: &str) -> Option<Kill> {
    let (_, fields) = text.split_once("oom-kill:constraint=")?;
    let (_, fields) = fields.split_once(",oom_memcg=")?;
    let (limit_of, fields) = fields.split_once(",task_memcg=")?;
    let (_, fields) = fields.split_once(",task=")?;
    // A name may hold commas.
    let (fields, _uid) = fields.rsplit_once(",uid=")?;
    let (process, pid) = fields.rsplit_once(",pid=")?;
    Some(Kill { process: process.to_owned(), pid: pid.parse().ok()?, limit_of: limit_of.to_owned() })
}

/// `... Killed process 42 (name) total-vm:...`
fn killed(text: &str, limit_of: &str) -> Option<Kill> {
    let (_, rest) = text.split_once("Killed process ")?;
    let (pid, rest) = rest.split_once(" (")?;
    let process = match rest.split_once(") total-vm") {
        Some((process, _)) => process,
        None => rest.rsplit_once(')')?.0,
    };
    // Some kernels write `42, UID 0,`.
    let pid = pid.split(',').next()?.parse().ok()?;
    Some(Kill { process: process.to_owned(), pid, limit_of: limit_of.to_owned() })
}

/// Before Linux 5.0: `Task in /a/b killed as a result of limit of /a`.
fn limit_before_5_0(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Task in ")?;
    rest.split_once(" killed as a result of limit of ").map(|(_, limit_of)| limit_of.trim_end())
}
