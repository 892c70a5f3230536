//! The AppArmor profile of containers that ask for none, or for the runtime's: what containerd and Docker deny by theirs.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use container_spec::AppArmor;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tracing::warn;

/// Name of the profile.
const NAME: &str = "bosun-default";
/// The program that makes rules of text and gives them to the kernel (package `apparmor`).
const PARSER: &str = "apparmor_parser";
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of the parser's complaint that are told.
const MAX_WORDS: usize = 1000;
/// Rules that the machine's other profiles share, where they are installed.
const TUNABLES: &str = "tunables/global";
const ABSTRACTIONS: &str = "abstractions/base";

/// Whether the kernel has AppArmor; if so, loads the profile. Without the parser there is none, as before.
pub(crate) async fn load() -> AppArmor {
    match fs::read_to_string("/sys/module/apparmor/parameters/enabled") {
        Ok(text) if text.trim() == "Y" => {}
        _ => return AppArmor::Off,
    }
    let has = |file: &str| Path::new("/etc/apparmor.d").join(file).exists();
    let loaded = give(&profile(has(TUNABLES), has(ABSTRACTIONS))).await;
    let default_profile = match loaded {
        Ok(()) => Some(NAME.to_owned()),
        Err(why) => {
            warn!("containers have no default AppArmor profile: {why}");
            None
        }
    };
    AppArmor::On { default_profile }
}

/// Replaces what the kernel has under that name; nothing is kept on the disk (`-K`).
async fn give(profile: &str) -> Result<(), String> {
    let mut call = Command::new(PARSER);
    call.args(["-K", "-r"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut parser = call.spawn().map_err(|e| format!("{PARSER}: {e}"))?;
    let mut input = parser.stdin.take().ok_or("no pipe")?;
    let done = async {
        // Who does not read says why when it ends.
        let _ = input.write_all(profile.as_bytes()).await;
        drop(input);
        parser.wait_with_output().await
    };
    let out = tokio::time::timeout(TIME_LIMIT, done).await.map_err(|_| format!("{PARSER} does not end"))?;
    let out = out.map_err(|e| format!("{PARSER}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&out.stderr[..out.stderr.len().min(MAX_WORDS)]).trim().to_owned();
    Err(format!("{PARSER} refuses it: {words}"))
}

/// Everything is allowed but what follows `deny`: kernel parameters and memory by `/proc` and `/sys`, and mounts. Signals come from this
/// profile, from who is not confined, and from OCI runtimes where a distribution confines these.
fn profile(tunables: bool, abstractions: bool) -> String {
    let tunables = if tunables { format!("#include <{TUNABLES}>") } else { "@{PROC}=/proc/".to_owned() };
    let abstractions = if abstractions { format!("#include <{ABSTRACTIONS}>") } else { String::new() };
    format!(
        "{tunables}
profile {NAME} flags=(attach_disconnected,mediate_deleted) {{
  {abstractions}
  network,
  capability,
  file,
  umount,
  signal (receive) peer=unconfined,
  signal (receive) peer={{,/usr/bin/,/usr/sbin/,/usr/local/bin/,/usr/local/sbin/}}{{runc,crun}},
  signal (send, receive) peer={NAME},
  ptrace (trace, read, tracedby, readby) peer={NAME},
  deny @{{PROC}}/* w,
  deny @{{PROC}}/{{[^1-9],[^1-9][^0-9],[^1-9s][^0-9y][^0-9s],[^1-9][^0-9][^0-9][^0-9]*}}/** w,
  deny @{{PROC}}/sys/[^k]** w,
  deny @{{PROC}}/sys/kernel/{{?,??,[^s][^h][^m]**}} w,
  deny @{{PROC}}/sysrq-trigger rwklx,
  deny @{{PROC}}/mem rwklx,
  deny @{{PROC}}/kmem rwklx,
  deny @{{PROC}}/kcore rwklx,
  deny mount,
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/devices/virtual/powercap/** rwklx,
  deny /sys/kernel/security/** rwklx,
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::{NAME, profile};

    #[test]
    fn the_profile_stands_alone_where_no_other_ones_are_installed() {
        let (alone, with_others) = (profile(false, false), profile(true, true));
        assert!(!alone.contains("#include") && alone.starts_with("@{PROC}=/proc/\n"), "{alone}");
        assert!(with_others.starts_with("#include <tunables/global>\n"), "{with_others}");
        assert!(with_others.contains("  #include <abstractions/base>\n"), "{with_others}");
        for text in [alone, with_others] {
            assert!(text.contains(&format!("profile {NAME} flags=")), "{text}");
            assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
            for rule in ["deny mount,", "deny @{PROC}/kcore rwklx,", "deny /sys/firmware/** rwklx,"] {
                assert!(text.contains(rule), "{rule}");
            }
        }
    }
}
