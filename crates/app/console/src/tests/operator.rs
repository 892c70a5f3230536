//! The whole program in a terminal: this test binary is started again as the program, on a pseudo terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::sessions::{Heard, daemon};
use super::{Fake, parse};

const SOCKET: &str = "CONSOLE_TEST_SOCKET";
const WORDS: &str = "CONSOLE_TEST_WORDS";

/// Does nothing when it is run as a test of its own.
#[test]
fn plays_the_program() {
    let (Ok(socket), Ok(words)) = (std::env::var(SOCKET), std::env::var(WORDS)) else { return };
    let code = crate::run(parse(&words, Path::new(&socket)));
    // What a `main` would do: the code is opaque but to the process that ends with it.
    std::process::exit(if code == std::process::ExitCode::SUCCESS { 0 } else { code_of(code) });
}

fn code_of(code: std::process::ExitCode) -> i32 {
    (1..=255u8).find(|n| std::process::ExitCode::from(*n) == code).map_or(255, i32::from)
}

struct Operator {
    terminal: OwnedFd,
    hand: File,
    child: Child,
    shown: BufReader<Box<dyn Read + Send>>,
}

impl Operator {
    /// Its output goes to a pipe, where it can be told from the echo of a terminal.
    fn start(socket: PathBuf, words: &str) -> Self {
        Self::start_on(socket, words, false)
    }

    fn start_on(socket: PathBuf, words: &str, shown_in_terminal: bool) -> Self {
        let hand = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&hand).unwrap();
        unlockpt(&hand).unwrap();
        let name = ptsname(&hand, Vec::new()).unwrap().into_string().unwrap();
        let terminal: OwnedFd = File::options().read(true).write(true).open(name).unwrap().into();
        tcsetwinsize(&terminal, Winsize { ws_row: 33, ws_col: 77, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::operator::plays_the_program", "--nocapture"])
            .env(SOCKET, socket)
            .env(WORDS, words)
            .stdin(Stdio::from(terminal.try_clone().unwrap()))
            .stdout(if shown_in_terminal { Stdio::from(terminal.try_clone().unwrap()) } else { Stdio::piped() })
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let hand = File::from(hand);
        let shown: Box<dyn Read + Send> = match child.stdout.take() {
            Some(pipe) => Box::new(pipe),
            None => Box::new(hand.try_clone().unwrap()),
        };
        Self { terminal, hand, child, shown: BufReader::new(shown) }
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.terminal).unwrap().local_modes.intersects(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// Waits for a line that has the words in it.
    fn sees(&mut self, words: &str) {
        let mut line = String::new();
        while self.shown.read_line(&mut line).unwrap() > 0 {
            if line.contains(words) {
                return;
            }
            line.clear();
        }
        panic!("the program ended without {words:?}");
    }

    /// The same where lines do not end, as on a screen.
    fn sees_on_screen(&mut self, words: &str) -> String {
        let (mut seen, mut some) = (String::new(), [0; 4096]);
        while !seen.contains(words) {
            let n = self.shown.read(&mut some).unwrap();
            seen.push_str(&String::from_utf8_lossy(&some[..n]));
        }
        seen
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) -> (Option<i32>, bool) {
        let code = self.child.wait().unwrap().code();
        (code, self.is_raw())
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// What an operator does in a shell that has told the size of its window, and what the daemon heard of it.
async fn in_shell<T: Send + 'static>(act: impl FnOnce(Operator) -> T + Send + 'static) -> (T, Heard) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let heard = daemon(&socket);
    let done = blocking(move || {
        let mut operator = Operator::start(socket, "exec web -c app -i -t -- shell");
        operator.sees("\"Width\":77,\"Height\":33");
        assert!(operator.is_raw());
        act(operator)
    });
    (done.await, heard)
}

#[tokio::test]
async fn a_shell_gets_each_key_the_size_of_the_window_and_its_exit_code_comes_back() {
    let (ended, _) = in_shell(|mut operator| {
        operator.hand.write_all(b"\x03\n").unwrap();
        operator.sees("\x03");
        // The shell ends at Ctrl-D.
        operator.hand.write_all(b"\x04").unwrap();
        operator.end()
    })
    .await;
    assert_eq!(ended, (Some(7), false));
}

#[tokio::test]
async fn a_changed_window_is_told() {
    let (ended, _) = in_shell(|mut operator| {
        let size = Winsize { ws_row: 20, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&operator.terminal, size).unwrap();
        // Without a controlling terminal the kernel tells nobody: a shell's child would get it.
        operator.signal(Signal::WINCH);
        operator.sees("\"Width\":60,\"Height\":20");
        operator.hand.write_all(b"\x04").unwrap();
        operator.end()
    })
    .await;
    assert_eq!(ended, (Some(7), false));
}

#[tokio::test]
async fn signals_give_the_terminal_back_and_end_with_their_code() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let (ended, heard) = in_shell(move |operator| {
            operator.signal(signal);
            operator.end()
        })
        .await;
        assert_eq!(ended, (Some(code), false));
        heard.gone.notified().await;
    }
}

#[tokio::test]
async fn a_daemon_that_dies_gives_the_terminal_back() {
    let (operator, heard) = in_shell(|operator| operator).await;
    heard.cut.notify_one();
    assert_eq!(blocking(move || operator.end()).await, (Some(1), false));
}

#[tokio::test]
async fn ctrl_c_ends_a_log_that_is_followed() {
    let endless = |path: &str| {
        if path.starts_with("/v1/") {
            return super::web();
        }
        let first = futures::stream::iter([Ok::<_, std::io::Error>("first\n")]);
        let never = futures::stream::pending();
        axum::response::Response::new(axum::body::Body::from_stream(futures::StreamExt::chain(first, never)))
    };
    let fake = Fake::start(endless);
    let socket = fake.socket();
    let ended = blocking(move || {
        let mut operator = Operator::start(socket, "logs web -f -c app");
        operator.sees("first");
        operator.signal(Signal::INT);
        operator.child.wait().unwrap()
    });
    let status = ended.await;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2), "a shell shows 130: {status}");
}

#[tokio::test]
async fn top_is_drawn_until_a_signal_ends_it_and_a_daemon_that_has_gone_leaves_the_old_figures() {
    let fake = Fake::start(super::top::daemon);
    let socket = fake.socket();
    let operator = blocking(move || {
        let mut operator = Operator::start_on(socket, "top -i 1", true);
        let first = operator.sees_on_screen("pod-worker shop/web");
        assert!(first.contains("\x1b[H") && !operator.is_raw(), "{first:?}");
        operator
    });
    let mut operator = operator.await;
    drop(fake);
    let status = blocking(move || {
        let old = operator.sees_on_screen("old figures") + &operator.sees_on_screen("pod-worker shop/web");
        assert!(old.contains("no such socket"), "{old:?}");
        operator.signal(Signal::INT);
        operator.child.wait().unwrap()
    });
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status.await), Some(2), "a shell shows 130");
}
