//! Scripts that run in a guest in the place of a command here.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use testbed::Guest;

/// Longer than anybody waits.
const WHOLE_DAY: Duration = Duration::from_secs(24 * 3600);

/// Runs a script and prints what it prints; ends with its code.
pub(super) fn shown(guest: &Guest, script: &str) -> anyhow::Result<ExitCode> {
    let ran = guest.run_shown(script, WHOLE_DAY, &mut |text| print!("{text}"))?;
    match u8::try_from(ran.code) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(_) => bail!("the command ended with {}", ran.code),
    }
}

/// As one word of a shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
