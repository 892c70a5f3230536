use crate::kill::{Kill, Reader};

fn kills(lines: &[&str]) -> Vec<(String, i32, String)> {
    let mut reader = Reader::default();
    let kills = lines.iter().filter_map(|line| reader.line(line));
    kills.map(|k| (k.process, k.pid, k.limit_of)).collect()
}

const BEGIN: &str = "stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000";

/// Name, lines, and of each kill: process, its id, whose limit it was.
type Case = (&'static str, &'static [&'static str], &'static [(&'static str, i32, &'static str)]);

#[test]
fn each_kernels_words_are_understood() {
    let cases: &[Case] = &[
        (
            "6.1, a cgroup's limit",
            &[
                BEGIN,
                "CPU: 1 PID: 4242 Comm: stress Not tainted 6.1.0 #1",
                "memory: usage 65536kB, limit 65536kB, failcnt 33",
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c,task=stress,pid=4242,uid=0",
                "Memory cgroup out of memory: Killed process 4242 (stress) total-vm:70000kB, anon-rss:64000kB",
                "oom_reaper: reaped process 4242 (stress), now anon-rss:0kB",
            ],
            &[("stress", 4242, "/kubepods/pod1")],
        ),
        (
            "6.1, the whole machine",
            &[
                BEGIN,
                "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods/pod1/c,task=stress,pid=7,uid=0",
                "Out of memory: Killed process 7 (stress) total-vm:70000kB, anon-rss:64000kB, file-rss:0kB, UID:0 pgtables:100kB oom_score_adj:1000",
            ],
            &[("stress", 7, "/")],
        ),
        (
            "6.1, memory.oom.group: the others of the group follow without a beginning",
            &[
                BEGIN,
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=one,pid=1,uid=0",
                "Memory cgroup out of memory: Killed process 1 (one) total-vm:1kB",
                "Tasks in /a are going to be killed due to memory.oom.group set",
                "Memory cgroup out of memory: Killed process 2 (two) total-vm:1kB",
            ],
            &[("one", 1, "/a")],
        ),
        (
            "4.19, a cgroup's limit",
            &[
                BEGIN,
                "Task in /a/b killed as a result of limit of /a",
                "Memory cgroup out of memory: Kill process 9 (stress) score 1000 or sacrifice child",
                "Killed process 9 (stress) total-vm:70000kB, anon-rss:64000kB",
            ],
            &[("stress", 9, "/a")],
        ),
        ("4.19, the whole machine", &[BEGIN, "Killed process 9 (stress) total-vm:70000kB"], &[("stress", 9, "/")]),
        ("3.10", &[BEGIN, "Killed process 9, UID 0, (stress) total-vm:70000kB"], &[("stress", 9, "/")]),
        (
            "a name with brackets and commas",
            &[BEGIN, "Killed process 9 ((sd) (x), a) total-vm:7kB"],
            &[("(sd) (x), a", 9, "/")],
        ),
        (
            "a name with commas and fields",
            &[
                BEGIN,
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=x,pid=1,uid=0,pid=9,uid=0",
            ],
            &[("x,pid=1,uid=0", 9, "/a")],
        ),
        (
            "a kill whose end was lost, and another one",
            &[BEGIN, "Task in /a killed as a result of limit of /a", BEGIN, "Killed process 9 (b) total-vm:7kB"],
            &[("b", 9, "/")],
        ),
        ("an end without its beginning", &["Out of memory: Killed process 7 (stress) total-vm:70000kB"], &[]),
        (
            "a number that is none",
            &[BEGIN, "Killed process x (stress) total-vm:7kB", "Killed process 8 (y) total-vm:7kB"],
            &[("y", 8, "/")],
        ),
    ];
    for (name, lines, expected) in cases {
        let got = kills(lines);
        let got: Vec<(&str, i32, &str)> =
            got.iter().map(|(p, pid, limit)| (p.as_str(), *pid, limit.as_str())).collect();
        assert_eq!(got, *expected, "{name}");
    }
}

#[test]
fn the_event_says_what_a_kubelets_says() {
    let kill = |process: &str, pid| Kill { process: process.to_owned(), pid, limit_of: "/".to_owned() };
    assert_eq!(kill("stress", 7).message(), "System OOM encountered, victim process: stress, pid: 7");
    assert_eq!(kill("", 7).message(), "System OOM encountered");
    assert_eq!(kill("stress", 0).message(), "System OOM encountered");
}
