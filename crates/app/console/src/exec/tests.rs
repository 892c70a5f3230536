use super::*;
use clap::Parser;

fn pod() -> Pod {
    serde_json::from_str(
        r#"{"metadata":{"name":"web","namespace":"shop"},"spec":{"containers":[{"name":"app","stdin":true,"tty":true},
        {"name":"quiet"}],"ephemeralContainers":[{"name":"debug","stdin":true}]}}"#,
    )
    .unwrap()
}

fn args(letters: &str) -> StreamArgs {
    let has = |c| letters.contains(c);
    StreamArgs { container: None, stdin: has('i'), tty: has('t'), quiet: false }
}

#[test]
fn an_exec_asks_for_the_streams_that_it_can_use() {
    let table = [
        ("", true, "command=ls&output=1&error=1", 0),
        ("i", true, "command=ls&input=1&output=1&error=1", 0),
        ("it", true, "command=ls&input=1&output=1&tty=1", 0),
        ("it", false, "command=ls&input=1&output=1&error=1", 1),
        ("t", false, "command=ls&output=1&tty=1", 0),
    ];
    for (letters, typed, query, said) in table {
        let mut notes = Vec::new();
        let wanted = exec_streams(&args(letters), typed, &mut notes);
        let path = exec_path(&pod(), "app", wanted, &["ls".to_owned()]);
        assert_eq!(path, format!("/exec/shop/web/app?{query}"), "-{letters}, terminal: {typed}");
        assert_eq!(notes.len(), said, "{notes:?}");
    }
}

#[test]
fn words_of_a_command_stay_as_they_are() {
    let words = ["sh", "-c", "echo a&b=c; echo ü?"].map(str::to_owned);
    let path = exec_path(&pod(), "app", SessionStreams { stdin: false, tty: false }, &words);
    let expected = "command=sh&command=-c&command=echo%20a%26b%3Dc%3B%20echo%20%C3%BC%3F&output=1&error=1";
    assert_eq!(path.split_once('?').unwrap().1, expected);
}

#[test]
fn an_attach_takes_what_the_container_has() {
    let table = [
        ("it", "app", true, (true, true), "input=1&output=1&tty=1", 0),
        ("", "app", true, (false, false), "output=1&tty=1", 0),
        ("i", "app", false, (true, false), "input=1&output=1&tty=1", 0),
        ("it", "quiet", true, (false, false), "output=1&error=1", 2),
        ("it", "debug", true, (true, false), "input=1&output=1&error=1", 1),
        ("it", "nobody", true, (true, true), "input=1&output=1&tty=1", 0),
    ];
    for (letters, container, typed, (stdin, tty), query, said) in table {
        let mut notes = Vec::new();
        let (wanted, path) = attach_path(&pod(), container, &args(letters), typed, &mut notes);
        assert_eq!(wanted, SessionStreams { stdin, tty }, "-{letters} {container}");
        assert_eq!(path, format!("/attach/shop/web/{container}?{query}"), "-{letters} {container}");
        assert_eq!(notes.len(), said, "-{letters} {container}: {notes:?}");
    }
}

#[test]
fn the_exit_code_is_that_of_the_command_else_one_a_shell_knows() {
    let table = [
        (Ended::Told(Outcome::Success), 0, ""),
        (Ended::Told(Outcome::Exit(7)), 7, "command terminated with exit code 7"),
        (Ended::Told(Outcome::Failed("gone".into())), 1, "bosun: gone"),
        (Ended::Broken(io::ErrorKind::BrokenPipe, "pipe".into()), 141, ""),
        (Ended::Broken(io::ErrorKind::StorageFull, "disk full".into()), 1, "bosun: output: disk full"),
    ];
    for (ended, code, words) in table {
        let what = format!("{ended:?}");
        assert_eq!(code_and_words(ended), (code, (!words.is_empty()).then(|| words.to_owned())), "{what}");
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ExecArgs,
}

#[test]
fn what_follows_two_dashes_is_the_command_whatever_it_looks_like() {
    let line =
        Line::try_parse_from(["exec", "-it", "web", "-c", "app", "--", "sh", "-c", "ls -l", "--", "-i"]).unwrap();
    assert_eq!(line.args.command, ["sh", "-c", "ls -l", "--", "-i"]);
    assert!(line.args.streams.stdin && line.args.streams.tty);
    assert!(Line::try_parse_from(["exec", "web"]).is_err());
    assert!(Line::try_parse_from(["exec", "web", "ls"]).is_err());
}
