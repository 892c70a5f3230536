//! `/dev/kmsg`: a record per read, as Documentation/ABI/testing/dev-kmsg of the kernel has it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use futures::StreamExt as _;
use futures::stream;
use ports::kernel_log::{KernelLine, KernelLines, KernelLog};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// No record is longer.
const LONGEST: usize = 8192;

/// The log of this machine's kernel. Needs a reactor of tokio where it is opened, and `CAP_SYSLOG`.
#[derive(Clone, Copy, Debug)]
pub struct KernelMessages;

impl KernelLog for KernelMessages {
    fn open(&self) -> io::Result<KernelLines> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg")?;
        let reader = Reader { file: registered(file)?, record: vec![0; LONGEST] };
        Ok(stream::try_unfold(reader, |mut reader| async { Ok(Some((reader.next().await?, reader))) }).boxed_local())
    }
}

#[expect(deprecated, reason = "a File keeps its descriptor open, which is all that the unsafe successor asks for")]
fn registered(file: File) -> io::Result<AsyncFd<File>> {
    AsyncFd::with_interest(file, Interest::READABLE)
}

struct Reader {
    file: AsyncFd<File>,
    record: Vec<u8>,
}

impl Reader {
    async fn next(&mut self) -> io::Result<KernelLine> {
        loop {
            let mut ready = self.file.readable().await?;
            match ready.try_io(|file| file.get_ref().read(&mut self.record)) {
                Ok(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Ok(length)) => {
                    if let Some(line) = line(&self.record[..length]) {
                        return Ok(line);
                    }
                }
                // Overwritten before it was read: the next read goes on with the oldest that is there.
                Ok(Err(e)) if Errno::from_io_error(&e) == Some(Errno::PIPE) => {}
                Ok(Err(e)) => return Err(e),
                // Nothing there yet.
                Err(_) => {}
            }
        }
    }
}

/// The line of a record, if the kernel itself wrote it: `LEVEL,NUMBER,MICROSECONDS,FLAGS;TEXT`, and lines of properties.
fn line(record: &[u8]) -> Option<KernelLine> {
    let record = String::from_utf8_lossy(record);
    let (head, text) = record.split_once(';')?;
    let mut head = head.split(',');
    let priority: u32 = head.next()?.parse().ok()?;
    let number = head.next()?.parse().ok()?;
    // Levels are the lowest three bits; above them is who wrote it, 0 for the kernel, which no program can say of itself.
    let by_kernel = priority >> 3 == 0;
    by_kernel.then(|| KernelLine { number, text: text.lines().next().unwrap_or_default().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_the_kernel_writes_them() {
        let cases: [(&str, Option<(u64, &str)>); 7] = [
            ("6,339,5140900,-;NET: Registered protocol family 10\n", Some((339, "NET: Registered protocol family 10"))),
            ("30,340,5690716,-;udevd[80]: starting version 181\n", None),
            ("6,1,0,-,caller=T1;a; b\n SUBSYSTEM=block\n DEVICE=b8:0\n", Some((1, "a; b"))),
            ("12,2,0,-;written by a program\n", None),
            ("no record", None),
            ("x,1,0,-;text", None),
            ("4,7,0,c;", Some((7, ""))),
        ];
        for (record, expected) in cases {
            let got = line(record.as_bytes());
            assert_eq!(got.as_ref().map(|l| (l.number, l.text.as_str())), expected, "{record:?}");
        }
        assert_eq!(line(b"6,1,0,-;\xff").map(|l| l.text), Some("\u{fffd}".to_owned()));
    }

    #[tokio::test]
    async fn the_kernels_own_log_is_read_in_order_from_its_oldest_line_on() {
        let lines: Vec<_> = KernelMessages.open().expect("root may read it").take(20).collect().await;
        let numbers: Vec<u64> = lines.into_iter().map(|line| line.expect("a line").number).collect();
        assert_eq!(numbers.len(), 20);
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}
