//! Words that must not stand in certain places, each with the reason and what to do instead.

use super::tree::Source;

struct Ban {
    word: &'static str,
    /// Whether a file may hold it all the same.
    fine: fn(&Source<'_>) -> bool,
    /// Looks at tests too.
    in_tests: bool,
    reason: &'static str,
}

/// `grpc` and `seam` are what adapters share.
fn outside_the_node(s: &Source<'_>) -> bool {
    ["adapters", "runtime", "xtask", "testing", "tests"].contains(&s.layer())
        || ["actor", "grpc", "seam"].contains(&s.krate())
}

fn app_too(s: &Source<'_>) -> bool {
    outside_the_node(s) || s.layer() == "app"
}

fn not_policy(s: &Source<'_>) -> bool {
    s.layer() != "policy" && s.krate() != "model"
}

fn no_part_of_the_node(s: &Source<'_>) -> bool {
    ["xtask", "testing", "tests"].contains(&s.layer())
}

/// The runtime has no kernel of actors: its blocking work has a bound of its own (`runtime-server/src/blocking.rs`).
fn behind_the_cri(s: &Source<'_>) -> bool {
    no_part_of_the_node(s) || s.path == "crates/runtime/runtime-server/src/blocking.rs"
}

/// The client of the API server reads its token before there is a kernel, too.
fn before_the_kernel(s: &Source<'_>) -> bool {
    no_part_of_the_node(s) || s.krate() == "api-client"
}

fn nowhere(_: &Source<'_>) -> bool {
    false
}

/// Code that runs on threads of its own.
fn beside_arbiters(s: &Source<'_>) -> bool {
    ["adapters", "runtime", "xtask", "testing"].contains(&s.layer())
}

const CLOCK: &str = "the clock comes from the kernel (`ctx.clock()`), so that a node can run in simulated time";
const DOOR: &str =
    "blocking work goes through the kernel (`ctx.blocking`, `Effects`): bounded, counted, inline in simulated time";
const NAMES: &str =
    "names are looked up with crate `resolver`: getaddrinfo holds a thread for as long as its servers are silent";
const PURE: &str = "decisions are pure: no waiting, no I/O, no clock, no logging";

/// Real time for histograms, by which nobody may decide.
fn clock_of_metrics(s: &Source<'_>) -> bool {
    app_too(s) || s.path == "crates/base/metrics/src/stopwatch.rs"
}

/// Asked by a class of blocking work, as a kubelet on glibc would.
fn the_hosts_own_name(s: &Source<'_>) -> bool {
    s.path == "crates/adapters/host-linux/src/info/node.rs"
}

const BANS: &[Ban] = &[
    Ban { word: "Instant::now()", fine: clock_of_metrics, in_tests: false, reason: CLOCK },
    Ban { word: "SystemTime::now()", fine: app_too, in_tests: false, reason: CLOCK },
    Ban {
        word: "thread::sleep(",
        fine: beside_arbiters,
        in_tests: true,
        reason: "sleeping blocks an arbiter; wait for the event",
    },
    Ban {
        word: "tokio::spawn(",
        fine: app_too,
        in_tests: false,
        reason: "a task of nobody: its panic is lost; use `ctx.run` or a detached reply",
    },
    Ban { word: "spawn_blocking", fine: behind_the_cri, in_tests: false, reason: DOOR },
    Ban { word: "tokio::fs::", fine: before_the_kernel, in_tests: false, reason: DOOR },
    Ban { word: "lookup_host", fine: nowhere, in_tests: false, reason: NAMES },
    Ban { word: "HttpConnector::new(", fine: nowhere, in_tests: false, reason: NAMES },
    Ban { word: "to_socket_addrs", fine: the_hosts_own_name, in_tests: false, reason: NAMES },
    Ban { word: ".await", fine: not_policy, in_tests: true, reason: PURE },
    Ban { word: "std::fs::", fine: not_policy, in_tests: false, reason: PURE },
    Ban { word: "std::env::", fine: not_policy, in_tests: false, reason: PURE },
    Ban { word: "#[ignore", fine: nowhere, in_tests: true, reason: "a test that does not run proves nothing" },
    Ban { word: "dbg!(", fine: nowhere, in_tests: true, reason: "left over from a debugging session" },
    Ban { word: "todo!(", fine: nowhere, in_tests: true, reason: "a panic in waiting" },
    Ban { word: "unimplemented!(", fine: nowhere, in_tests: true, reason: "a panic in waiting" },
];

pub(super) fn check(source: &Source<'_>) -> Vec<String> {
    if source.path.starts_with("xtask/src/tidy") {
        return Vec::new(); // the words stand here as data
    }
    let mut found = Vec::new();
    for (text, tests) in [(source.product, false), (&source.text[source.product.len()..], true)] {
        let first = if tests { source.product.lines().count() } else { 0 };
        for (n, line) in text.lines().enumerate() {
            let at = format!("{}:{}", source.path, first + n + 1);
            let code = line.split("//").next().unwrap_or_default();
            let hit = |b: &&Ban| code.contains(b.word) && (b.in_tests || !tests) && !(b.fine)(source);
            found.extend(BANS.iter().filter(hit).map(|b| format!("{at}: `{}`: {}", b.word, b.reason)));
            found.extend(unowned_todo(line).then(|| format!("{at}: a TODO without `issue N` is nobody's")));
        }
    }
    found
}

fn unowned_todo(line: &str) -> bool {
    let comment = line.split_once("//").map_or("", |(_, c)| c);
    ["TODO", "FIXME", "XXX"].iter().any(|w| comment.contains(w)) && !comment.contains("issue ")
}
