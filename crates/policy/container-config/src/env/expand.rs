//! `$(NAME)` references (pod-lifecycle 5.5): one pass, no recursion.

use model::expansion::expand;

use super::variables::Environment;

/// `command` or `args` with the whole environment. The CRI has strings here, so that bytes that are not UTF-8 are
/// replaced.
#[must_use]
pub fn expand_strings(words: &[String], env: &Environment) -> Vec<String> {
    let one = |w: &String| expand(w, |name| env.get(name).map(<[u8]>::to_vec));
    words.iter().map(|w| String::from_utf8_lossy(&one(w)).into_owned()).collect()
}

#[cfg(test)]
mod tests;
