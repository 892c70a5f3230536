//! What two processes must have in common to be parts of one node.

use sha2::{Digest, Sha256};

use crate::declaration::{Declaration, MessageDeclaration};
use crate::roles::DECLARATIONS;

/// A digest of what a role answers, posts, asks, reads and keeps, by names of types. How long an answer may take is not in it, and
/// neither are the fields of the types: those may grow, and a peer of another version reads them (see the crate's own page).
#[must_use]
pub fn hash(of: &Declaration) -> String {
    let mut text = format!("role {}\n", of.role);
    for m in of.answers {
        text += &format!("answers {}\n", told(m));
    }
    for row in of.posts {
        text += &format!("posts {} by {}\n", row.name, squeezed(row.key));
    }
    for edge in of.asks {
        let of_other = DECLARATIONS.iter().find(|d| d.role == edge.role);
        let message = of_other.and_then(|d| d.answers.iter().find(|m| m.name == edge.what));
        text += &format!("asks {} {}\n", edge.role, message.map_or_else(String::new, told));
    }
    for edge in of.reads {
        text += &format!("reads {} {}\n", edge.role, edge.what);
    }
    for table in of.keeps {
        text += &format!("keeps {table}\n");
    }
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn told(message: &MessageDeclaration) -> String {
    let remembered = if message.remembered { ", remembered" } else { "" };
    format!("{} => {}, {:?}{remembered}", message.name, squeezed(message.answer), message.unanswered)
}

/// Without the spaces that a compiler may write between the words of a type.
fn squeezed(type_name: &str) -> String {
    type_name.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::declaration::Unanswered;
    use crate::role::Role;

    #[test]
    fn each_role_has_a_hash_of_its_own_and_any_change_of_what_is_declared_changes_it() {
        let hashes: BTreeSet<String> = DECLARATIONS.iter().map(hash).collect();
        assert_eq!(hashes.len(), DECLARATIONS.len());
        let probes = crate::ProbeManager::DECLARATION;
        assert_eq!(hash(&probes).len(), 32);
        let one = &probes.answers[..1];
        let changed = [
            probes,
            Declaration { answers: one, ..probes },
            Declaration { answers: &[], ..probes },
            Declaration { posts: &[], ..probes },
            Declaration { asks: &probes.asks[..1], ..probes },
            Declaration { reads: &[], ..probes },
            Declaration { keeps: &[], ..probes },
        ];
        let all: BTreeSet<String> = changed.iter().map(hash).collect();
        assert_eq!(all.len(), changed.len(), "{all:?}");
        let other = [MessageDeclaration { unanswered: Unanswered::GiveUp, ..one[0] }];
        assert_ne!(told(&other[0]), told(&one[0]));
        let forgotten = [MessageDeclaration { remembered: false, ..one[0] }];
        assert_ne!(told(&forgotten[0]), told(&one[0]));
        let slower = [MessageDeclaration { deadline: Duration::from_secs(1), ..one[0] }];
        assert_eq!(told(&slower[0]), told(&one[0]), "patience is no part of it");
    }
}
