//! The live view: keys, looks, drawing.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use terminal::{Ending, Raw, Resizes, Size};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::frame::{Choice, last_row, window};
use super::sample::Sample;
use super::view::{Sort, View};
use super::{TopArgs, What};

/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    End,
    Next,
    Sort(Sort),
    Down(usize),
    Up(usize),
    Now,
}

/// Keys in what the terminal sent at once. An unknown sequence is nothing.
fn keys(bytes: &[u8]) -> Vec<Key> {
    const PAGE: usize = 10;
    match bytes {
        b"\x1b[B" | b"\x1bOB" => return vec![Key::Down(1)],
        b"\x1b[A" | b"\x1bOA" => return vec![Key::Up(1)],
        b"\x1b[6~" => return vec![Key::Down(PAGE)],
        b"\x1b[5~" => return vec![Key::Up(PAGE)],
        [0x1b, ..] => return Vec::new(),
        _ => {}
    }
    let one = |b: &u8| match b {
        b'q' | b'Q' | 0x03 | 0x04 => Some(Key::End),
        b'\t' => Some(Key::Next),
        b'c' => Some(Key::Sort(Sort::Cpu)),
        b'm' => Some(Key::Sort(Sort::Memory)),
        b'r' => Some(Key::Sort(Sort::Restarts)),
        b'n' => Some(Key::Sort(Sort::Name)),
        b'j' => Some(Key::Down(1)),
        b'k' => Some(Key::Up(1)),
        b' ' => Some(Key::Now),
        _ => None,
    };
    bytes.iter().filter_map(one).collect()
}

struct Screen {
    choice: Choice,
    before: Option<Sample>,
    view: View,
    /// Of the last look, when it failed: what is shown is old.
    error: Option<String>,
}

impl Screen {
    /// Answers `false` when it is to end.
    fn press(&mut self, key: Key) -> bool {
        match key {
            Key::End => return false,
            Key::Next => self.choice = Choice { what: self.choice.what.next(), skip: 0, ..self.choice },
            Key::Sort(sort) => self.choice = Choice { sort, skip: 0, ..self.choice },
            Key::Down(n) => {
                self.choice.skip = (self.choice.skip + n).min(last_row(&self.view, self.choice.what));
            }
            Key::Up(n) => self.choice.skip = self.choice.skip.saturating_sub(n),
            Key::Now => {}
        }
        true
    }

    /// Takes in a look at the daemon; one that failed leaves the old figures, and says so.
    fn take(&mut self, looked: Result<Sample>, namespace: Option<&str>) {
        match looked {
            Ok(sample) => {
                self.view = View::of(self.before.as_ref(), &sample, namespace);
                self.before = Some(sample);
                self.error = None;
            }
            Err(e) => self.error = Some(format!("old figures: {e:#}")),
        }
    }

    fn draw(&mut self, size: Size, out: &mut impl Write) -> io::Result<()> {
        self.view.sort(self.choice.sort);
        let mut shown = self.view.clone();
        shown.notes.extend(self.error.clone());
        let mut text = String::from("\x1b[H");
        for (n, line) in window(&shown, self.choice, size).iter().enumerate() {
            text.push_str(if n == 0 { "" } else { "\r\n" });
            text.push_str(line);
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J");
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

pub(super) async fn run(args: &TopArgs) -> Result<ExitCode> {
    // A daemon that is not there is told before the screen changes. Both parts are asked for: Tab switches.
    let socket = &args.socket.socket;
    let first = Sample::take(socket, What::All).await?;
    let choice = Choice { what: args.what, sort: args.sort, skip: 0 };
    let mut screen = Screen { choice, before: None, view: View::default(), error: None };
    screen.take(Ok(first), args.namespace.as_deref());
    let (mut ending, mut resizes) = (Ending::listen()?, Resizes::listen()?);
    let raw = Raw::enter(io::stdin())?;
    raw.screen()?;
    let mut typed = terminal::read(io::stdin());
    let mut ticks = interval(Duration::from_secs(args.interval));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset_after(Duration::from_secs(1));
    let mut look = None;
    loop {
        let size = terminal::size().unwrap_or(Size { columns: 80, rows: 24 });
        screen.draw(size, &mut io::stdout().lock())?;
        tokio::select! {
            code = ending.next() => return Ok(ExitCode::from(code)),
            () = resizes.next() => {}
            bytes = typed.recv() => {
                let Some(Ok(bytes)) = bytes else { return Ok(ExitCode::SUCCESS) };
                let pressed = keys(&bytes);
                if !pressed.iter().all(|key| screen.press(*key)) {
                    return Ok(ExitCode::SUCCESS);
                }
                if pressed.contains(&Key::Now) {
                    ticks.reset_immediately();
                }
            }
            _ = ticks.tick(), if look.is_none() => look = Some(Box::pin(timely(socket))),
            looked = async { look.as_mut().expect("the branch is off without a look").await }, if look.is_some() => {
                look = None;
                screen.take(looked, args.namespace.as_deref());
            }
        }
    }
}

/// A look that a daemon which hangs does not keep for ever.
async fn timely(socket: &Path) -> Result<Sample> {
    timeout(PATIENCE, Sample::take(socket, What::All)).await.context("the daemon does not answer")?
}

#[cfg(test)]
mod tests;
