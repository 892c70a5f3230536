//! Who asks whom, who reads what? The tables of `ARCHITECTURE.md`, made from the declarations of `crates/base/contract`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context;
use contract::{DECLARATIONS, Declaration, Edge, MessageDeclaration, Unanswered};

use crate::workspace;

const BEGIN: &str = "<!-- made by `cargo xtask map --write` from crates/base/contract -->\n";
const END: &str = "<!-- end of what is made -->\n";

/// Prints who asks whom and what each role answers and posts, as the contract declares it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Puts it into `ARCHITECTURE.md`.
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let tables = tables(DECLARATIONS);
    if !args.write {
        print!("{tables}");
        return Ok(());
    }
    let path = workspace::root().join("ARCHITECTURE.md");
    let old = std::fs::read_to_string(&path).context("ARCHITECTURE.md")?;
    let (before, _, after) = parts(&old).context("ARCHITECTURE.md lacks the markers of the tables")?;
    std::fs::write(&path, format!("{before}{BEGIN}{tables}{END}{after}"))?;
    Ok(())
}

/// Says when the tables in the document are not those of the declarations.
pub(crate) fn check(document: &str) -> Vec<String> {
    match parts(document) {
        Some((_, inside, _)) if inside == tables(DECLARATIONS) => Vec::new(),
        _ => vec!["ARCHITECTURE.md: who asks whom is not as declared; run `cargo xtask map --write`".to_owned()],
    }
}

fn parts(document: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (inside, after) = rest.split_once(END)?;
    Some((before, inside, after))
}

fn tables(declarations: &[Declaration]) -> String {
    let mut out = String::from("\n| role | what it is for | asks (or tells) | reads |\n|---|---|---|---|\n");
    for d in declarations.iter().rev() {
        let _ = writeln!(out, "| {} | {} | {} | {} |", d.role, d.purpose.trim(), by_role(d.asks), by_role(d.reads));
    }
    out.push_str("\n| role | message | answer | within | without an answer |\n|---|---|---|---|---|\n");
    for d in declarations.iter().rev() {
        for m in d.answers {
            let _ = writeln!(out, "| {} | {} |", d.role, message(m));
        }
    }
    out.push_str("\n| role | actor | posts |\n|---|---|---|\n");
    for d in declarations.iter().rev() {
        let posts = d.posts.iter().map(|row| match row.key {
            "" => format!("`{}`", row.name),
            key => format!("`{}` by `{key}`", row.name),
        });
        let posts = some(posts.collect::<Vec<_>>().join(", "));
        let intake = if d.intake { ", intake" } else { "" };
        let actor = if d.actor.is_empty() { "-".to_owned() } else { format!("`{}`{intake}", d.actor) };
        let _ = writeln!(out, "| {} | {actor} | {posts} |", d.role);
    }
    out.push('\n');
    out
}

fn message(m: &MessageDeclaration) -> String {
    let answer = if m.answer == "()" { "-".to_owned() } else { format!("`{}`", one_line(m.answer)) };
    let unanswered = match m.unanswered {
        Unanswered::Repeat => "ask again",
        Unanswered::LookFirst => "look first",
        Unanswered::GiveUp => "do without",
    };
    format!("`{}` | {answer} | {} s | {unanswered}", m.name, m.deadline.as_secs())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `RuntimeClient (ExecSync), EventRecorder (RecordEvent)`, in the order of the declaration.
fn by_role(edges: &[Edge]) -> String {
    let mut order = Vec::new();
    let mut what: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in edges {
        what.entry(edge.role).or_insert_with(|| {
            order.push(edge.role);
            Vec::new()
        });
        what.entry(edge.role).or_default().push(edge.what);
    }
    let cells: Vec<String> = order.iter().map(|role| format!("{role} ({})", what[role].join(", "))).collect();
    some(cells.join("; "))
}

fn some(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_holds_the_tables_as_they_are_made() {
        let tables = tables(DECLARATIONS);
        let good = format!("# A\n{BEGIN}{tables}{END}rest\n");
        assert_eq!(check(&good), Vec::<String>::new());
        for bad in [good.replace("| ProbeManager |", "| ProberManager |"), good.replace(END, ""), String::new()] {
            assert_eq!(check(&bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn an_edge_stands_with_its_role() {
        let edge = |role, what| Edge { role, what };
        let edges = [edge("B", "Two"), edge("A", "One"), edge("B", "Three")];
        assert_eq!(by_role(&edges), "B (Two, Three); A (One)");
        assert_eq!(by_role(&[]), "-");
    }
}
