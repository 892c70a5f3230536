use super::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// A panic puts all terminals of the process back: tests that look at modes take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A terminal and the hand that types on it.
fn pty() -> (OwnedFd, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal =
        rustix::fs::open(name, rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY, rustix::fs::Mode::empty());
    (terminal.unwrap(), File::from(master))
}

fn echoes(terminal: &OwnedFd) -> bool {
    tcgetattr(terminal).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
}

#[test]
fn raw_mode_is_given_back_when_it_is_dropped() {
    let _turn = turn();
    let (terminal, _hand) = pty();
    assert!(echoes(&terminal));
    let raw = Raw::enter(&terminal).unwrap();
    assert!(!echoes(&terminal));
    drop(raw);
    assert!(echoes(&terminal));
}

#[test]
fn keys_arrive_at_once_and_as_they_are() {
    let _turn = turn();
    let (terminal, mut hand) = pty();
    let _raw = Raw::enter(&terminal).unwrap();
    hand.write_all(b"a\x03\r").unwrap();
    let mut keys = [0; 3];
    File::from(terminal.try_clone().unwrap()).read_exact(&mut keys).unwrap();
    assert_eq!(&keys, b"a\x03\r");
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_reported() {
    let _turn = turn();
    let (terminal, _hand) = pty();
    let copy = terminal.try_clone().unwrap();
    let died = std::thread::spawn(move || {
        let raw = Raw::enter(&copy).unwrap();
        // The hook must do it: the guard is leaked, as one on a thread that aborts would be.
        std::mem::forget(raw);
        panic!("on purpose");
    });
    died.join().unwrap_err();
    assert!(echoes(&terminal));
}

#[test]
fn what_is_no_terminal_is_refused_and_has_no_size() {
    let file = File::open("/dev/null").unwrap();
    assert!(Raw::enter(&file).is_err());
    assert_eq!(size_of(&file), None);
}

#[test]
fn the_size_is_that_of_the_window_and_a_terminal_of_no_size_has_none() {
    let (terminal, _hand) = pty();
    assert_eq!(size_of(&terminal), None);
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    assert_eq!(size_of(&terminal), Some(Size { columns: 80, rows: 24 }));
}

#[tokio::test]
async fn what_is_read_comes_whole_and_ends() {
    let text: Vec<u8> = (0..200_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut rx = read(io::Cursor::new(text.clone()));
    let mut got = Vec::new();
    while let Some(piece) = rx.recv().await {
        got.extend(piece.unwrap());
    }
    assert_eq!(got, text);
}

#[tokio::test]
async fn a_reader_that_has_gone_stops_the_writer_and_is_told_at_the_end() {
    let (reader, stream) = io::pipe().unwrap();
    drop(reader);
    let writer = write(stream);
    while writer.send(b"x".to_vec()).await {
        tokio::task::yield_now().await;
    }
    assert_eq!(writer.finish().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn the_end_waits_until_all_is_written() {
    let (mut reader, stream) = io::pipe().unwrap();
    let writer = write(stream);
    for piece in ["one ", "two ", "three"] {
        assert!(writer.send(piece.as_bytes().to_vec()).await);
    }
    writer.finish().await.unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two three");
}
