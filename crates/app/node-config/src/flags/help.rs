//! `--help`: the flags by what they are about.

use std::fmt::Write;

use super::table::{FLAGS, Flag, Group, NOT_DEPRECATED, To};
use super::values::Kind;

const GROUPS: &[(Group, &str)] = &[
    (Group::Files, "Where things are"),
    (Group::Node, "The node"),
    (Group::Api, "API server and certificates"),
    (Group::Server, "Ports"),
    (Group::Pods, "Pods"),
    (Group::Runtime, "Container runtime"),
    (Group::Images, "Images"),
    (Group::Resources, "Resources and the host"),
    (Group::Pinning, "CPU and memory placement"),
    (Group::Eviction, "Eviction"),
    (Group::Logging, "Log"),
    (Group::Bosun, "Of bosun alone"),
    (Group::Idle, "Taken without effect"),
];

/// The whole text. `program` is how it was called, such as `kubelet` or `bosun run`.
#[must_use]
pub fn text(program: &str) -> String {
    let mut out = format!(
        "bosun is a node daemon for Kubernetes. Called as `kubelet` it takes a kubelet's flags and files.\n\n\
         Usage:\n  {program} [flags]\n\n\
         Examples:\n  \
         {program} --config /var/lib/kubelet/config.yaml --kubeconfig /etc/kubernetes/kubelet.conf\n      \
         a node of a cluster\n  \
         {program} --config /etc/bosun/bosun.yaml\n      \
         a node that runs alone, with the static pods of its configuration\n  \
         bosun check-config --config FILE [flags]\n      \
         says everything that is wrong with files and flags, and starts nothing\n\n\
         Precedence, lowest first: defaults, --config, the drop-ins of --config-dir in order, flags.\n\
         A name in (...) is the field of the configuration file that the flag stands for; such flags work, and are\n\
         deprecated: write the field. [...] is the default. Dashes and underscores in names are the same.\n"
    );
    for (group, title) in GROUPS {
        let _ = write!(out, "\n{title}:\n");
        for flag in FLAGS.iter().filter(|f| f.group == *group) {
            line(&mut out, flag);
        }
    }
    out.push_str("\nAlso:\n  -h, --help\n  --version [=raw]      what this kubelet stands for\n");
    out
}

fn line(out: &mut String, flag: &Flag) {
    let form = match flag.kind {
        Kind::Switch => "",
        Kind::Number => "N",
        Kind::Duration => "DURATION",
        Kind::Text | Kind::Secret | Kind::Headers | Kind::Memory | Kind::Modules => "TEXT",
        Kind::Address => "IP",
        Kind::List => "A,B",
        Kind::Pairs('<') => "SIGNAL<VALUE,...",
        Kind::Pairs(_) => "NAME=VALUE,...",
        Kind::Gates => "NAME=BOOL,...",
        Kind::Taints => "KEY=VALUE:EFFECT,...",
    };
    let left = format!("--{} {form}", flag.name);
    let field = match flag.to {
        To::Field(field) if !NOT_DEPRECATED.contains(&flag.name) => format!("({field}) "),
        _ => String::new(),
    };
    let right = format!("{field}{}", flag.help);
    let gap = if left.trim_end().len() < 40 { String::new() } else { format!("\n  {:40}", "") };
    let _ = writeln!(out, "  {:40}{gap}{}", left.trim_end(), right.trim_end());
}
