//! Drivers whose answers mean nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use csi_api::{CsiOutcome, v1};
use ports::csi::CsiNode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::CsiClient;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let many = self.next(most);
        (0..many).map(|_| u8::try_from(self.next(256)).unwrap()).collect()
    }
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
    [head.as_slice(), payload].concat()
}

/// Headers of an answer: `:status: 200`, `content-type: application/grpc`.
fn headers() -> Vec<u8> {
    [b"\x88\x5f\x10".as_slice(), b"application/grpc"].concat()
}

/// The trailer `grpc-status`, with any word as its value.
fn status(word: &str) -> Vec<u8> {
    let length = u8::try_from(word.len()).unwrap();
    [b"\x40\x0bgrpc-status".as_slice(), &[length], word.as_bytes()].concat()
}

/// What a driver writes, and whether it is no HTTP/2 at all. A message that is none is an internal error of the driver, as in a
/// kubelet.
fn answer(dice: &mut Dice) -> (Vec<u8>, bool) {
    let settings = frame(4, 0, 0, &[]);
    match dice.next(5) {
        0 => (dice.bytes(200), true),
        1 => ([settings, dice.bytes(200)].concat(), true),
        2 => {
            let (kind, flags) = (u8::try_from(dice.next(12)).unwrap(), u8::try_from(dice.next(256)).unwrap());
            let stream = u8::try_from(dice.next(4)).unwrap();
            ([settings, frame(kind, flags, stream, &dice.bytes(100))].concat(), false)
        }
        3 => ([settings, frame(1, 4, 1, &headers()), frame(0, 0, 1, &dice.bytes(100))].concat(), false),
        _ => {
            let words = ["999", "-1", "abc", "", "00", "17"];
            let word = words[usize::try_from(dice.next(words.len() as u64)).unwrap()];
            let message = frame(0, 0, 1, &dice.bytes(40));
            ([settings, frame(1, 4, 1, &headers()), message, frame(1, 5, 1, &status(word))].concat(), false)
        }
    }
}

/// A driver that answers each connection so and then waits, or closes it.
async fn serve(listener: UnixListener, bytes: Vec<u8>, stays: bool) {
    while let Ok((mut io, _)) = listener.accept().await {
        let mut asked = [0; 512];
        let _preface = io.read(&mut asked).await;
        let _written = io.write_all(&bytes).await;
        if stays {
            while io.read(&mut asked).await.is_ok_and(|n| n > 0) {}
        }
    }
}

async fn publish(client: &CsiClient, socket: &Path, limit: Duration) -> Result<(), ports::csi::CsiError> {
    let request =
        v1::NodePublishVolumeRequest { volume_id: "v".into(), target_path: "/t".into(), ..Default::default() };
    client.publish(socket, request, limit).await
}

/// Each call ends in its time, and a connection that breaks says nothing for good of what the driver may have done.
#[tokio::test]
async fn whatever_a_driver_writes_a_call_ends_in_time_and_forgets_no_volume() {
    let folder = tempfile::tempdir().unwrap();
    let client = CsiClient::new();
    let (limit, mut failed) = (Duration::from_millis(50), 0);
    for seed in 1..=400_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (bytes, is_broken) = answer(&mut dice);
        let stays = dice.next(4) == 0;
        let socket = folder.path().join(format!("{seed}.sock"));
        let driver = tokio::spawn(serve(UnixListener::bind(&socket).unwrap(), bytes, stays));
        let begun = Instant::now();
        let done = publish(&client, &socket, limit).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "seed {seed}: {:?}", begun.elapsed());
        if let Err(e) = &done {
            failed += 1;
            assert!(!is_broken || e.outcome() == CsiOutcome::Uncertain, "seed {seed}: {e:?}");
            assert!(!e.to_string().is_empty());
        }
        driver.abort();
    }
    assert!(failed > 300, "nonsense is hardly ever an answer: {failed} of 400");
}
