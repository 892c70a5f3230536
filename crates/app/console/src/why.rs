//! `bosun why`.

use anyhow::Result;
use clap::Args;
use model::Timestamp;
use pod_history::Verdict;

use crate::args::{PodArg, SocketArg};
use crate::client::get;
use crate::columns::{age, ago, moment};
use crate::show::{Output, plain, print, structured, table};
use crate::target::path_below;

/// What `bosun why` takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bosun why web-0               the pod of that name, in whatever namespace\n  \
    bosun why shop/web-0          that one, when several namespaces have a web-0\n  \
    bosun why 3f0c...             by UID\n  \
    bosun why web-0 -o json       for a program: `cause` is one word, times are nanoseconds since the epoch\n\n\
    It says in this order: what is wanted, the one cause that holds the pod up, the step, who owns it, since when, what is\n\
    waited for and until when, what was said last, the latest ten decisions, and commands to look further.\n\
    It is answered from what the daemon has at hand, also while the API server or the container runtime is away.")]
pub struct WhyArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(flatten)]
    pub(crate) pod: PodArg,
    /// Form of the answer.
    #[arg(short, long)]
    pub(crate) output: Option<Output>,
}

pub(crate) async fn run(args: &WhyArgs) -> Result<()> {
    let verdict: Verdict = get(&args.socket.socket, &path_below("/v1/why", &args.pod)).await?;
    if !structured(args.output, &verdict)? {
        screen(&verdict).iter().for_each(|line| print(line));
        decisions(&verdict);
        print("\nLook further:");
        verdict.look.iter().for_each(|command| print(&format!("  {}", plain(command))));
    }
    Ok(())
}

/// What holds it up. Pods and programs have a say in these words: what would move the cursor is taken out.
pub(crate) fn screen(v: &Verdict) -> Vec<String> {
    let ago = |ns: i64| format!("{}, {}", ago(ns, Timestamp(v.now_ns)), moment(ns));
    let mut rows = vec![
        ("Pod", format!("{}  ({})", v.pod, v.uid)),
        ("Wanted", v.wanted.clone()),
        ("Cause", format!("{:?}: {}", v.cause, v.summary)),
        ("Step", v.step.clone()),
        ("Owner", v.owner.clone()),
    ];
    rows.extend(v.since_ns.map(|ns| ("Since", ago(ns))));
    if !v.waits_for.is_empty() {
        rows.push(("Waits for", v.waits_for.clone()));
    }
    rows.extend(v.until_ns.map(|ns| match ns > v.now_ns {
        true => ("Until", format!("in {}, {}", age(ns - v.now_ns), moment(ns))),
        false => ("Until", ago(ns)),
    }));
    rows.extend(v.said.clone().map(|said| ("Said", said)));
    rows.into_iter().map(|(key, value)| format!("{:<11}{}", format!("{key}:"), plain(&value))).collect()
}

fn decisions(v: &Verdict) {
    print("\nDecisions, the latest last:");
    if v.decisions.is_empty() {
        print("  none yet");
        return;
    }
    let row = |d: &pod_history::Decision| {
        let times = if d.count > 1 { format!("x{}", d.count) } else { String::new() };
        vec![format!("  {}", age(v.now_ns.saturating_sub(d.at_ns))), times, plain(&d.text)]
    };
    table(&["  AGO", "TIMES", "WHAT AND WHY"], v.decisions.iter().map(row).collect());
}
