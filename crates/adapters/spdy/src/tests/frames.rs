//! Frames and header blocks.

use bytes::BytesMut;
use proptest::prelude::*;

use crate::frame::{self, Control, FrameError, HEAD, Head};
use crate::headers::{DICTIONARY, Decoder, Encoder, HeaderError, Headers, MAX_BLOCK, parse};

fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

fn read(bytes: &[u8]) -> Result<Control<'_>, FrameError> {
    let (start, payload) = bytes.split_at(HEAD);
    match frame::head(start.try_into().expect("8 bytes"))? {
        Head::Control { kind, flags, len } => {
            assert_eq!(len, payload.len());
            frame::control(kind, flags, payload)
        }
        Head::Data { .. } => panic!("a data frame"),
    }
}

#[test]
fn what_is_written_is_read_again() {
    let mut out = BytesMut::new();
    frame::put_syn_stream(&mut out, 7, b"block");
    assert_eq!(read(&out), Ok(Control::SynStream { stream: 7, fin: false, block: b"block" }));
    out.clear();
    frame::put_syn_reply(&mut out, 7, b"block");
    assert_eq!(read(&out), Ok(Control::SynReply { stream: 7, fin: false, block: b"block" }));
    out.clear();
    frame::put_reset(&mut out, 9, frame::CANCEL);
    assert_eq!(read(&out), Ok(Control::Reset { stream: 9, status: 5 }));
    out.clear();
    frame::put_ping(&mut out, 3);
    assert_eq!(read(&out), Ok(Control::Ping(3)));
    out.clear();
    frame::put_go_away(&mut out, 5);
    assert_eq!(read(&out), Ok(Control::GoAway { last: 5 }));
    out.clear();
    frame::put_data_head(&mut out, 5, true, frame::MAX_DATA);
    let head = frame::head(out[..].try_into().expect("8 bytes"));
    assert_eq!(head, Ok(Head::Data { stream: 5, fin: true, len: frame::MAX_DATA }));
}

#[test]
fn a_syn_stream_has_the_bytes_that_the_format_prescribes() {
    let mut out = BytesMut::new();
    frame::put_syn_stream(&mut out, 1, &[0xaa]);
    assert_eq!(&out[..], [0x80, 3, 0, 1, 0, 0, 0, 11, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xaa]);
}

#[test]
fn what_is_no_frame_is_refused() {
    for (name, bytes, error) in [
        ("data for stream 0", [0, 0, 0, 0, 0, 0, 0, 1], FrameError::StreamZero),
        ("version 2", [0x80, 2, 0, 1, 0, 0, 0, 1], FrameError::Version(2)),
        ("the noop type of version 2", [0x80, 3, 0, 5, 0, 0, 0, 0], FrameError::Type(5)),
        ("type 0", [0x80, 3, 0, 0, 0, 0, 0, 0], FrameError::Type(0)),
        ("credential", [0x80, 3, 0, 10, 0, 0, 0, 0], FrameError::Type(10)),
        ("16 MiB of headers", [0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff], FrameError::TooLong(0x00ff_ffff)),
    ] {
        assert_eq!(frame::head(bytes), Err(error), "{name}");
    }
    for (name, kind, payload, error) in [
        ("short ping", 6, &[0, 0, 1][..], FrameError::Length(6)),
        ("ping 0", 6, &[0, 0, 0, 0], FrameError::StreamZero),
        ("long reset", 3, &[0, 0, 0, 1, 0, 0, 0, 5, 0], FrameError::Length(3)),
        ("reset of stream 0", 3, &[0, 0, 0, 0, 0, 0, 0, 5], FrameError::StreamZero),
        ("syn_stream without slot", 1, &[0; 9], FrameError::Length(1)),
        ("reply without stream", 2, &[0, 0], FrameError::Length(2)),
        ("go away without status", 7, &[0; 4], FrameError::Length(7)),
    ] {
        assert_eq!(frame::control(kind, 0, payload), Err(error), "{name}");
    }
}

#[test]
fn the_dictionary_is_the_one_of_the_specification() {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in DICTIONARY {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    assert_eq!((DICTIONARY.len(), b << 16 | a), (1423, 0xe3c6_a7c2));
}

#[test]
fn blocks_of_one_connection_share_their_compression() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let mut sizes = Vec::new();
    for kind in ["error", "stdin", "stdout", "stderr", "resize"] {
        let sent = headers(&[("streamtype", kind)]);
        let block = encoder.encode(&sent).expect("short");
        sizes.push(block.len());
        assert_eq!(decoder.decode(&block), Ok(sent), "{kind}");
    }
    assert!(sizes[1..].iter().all(|s| *s < sizes[0]), "{sizes:?}");
    assert_eq!(decoder.decode(&encoder.encode(&Headers::new()).expect("empty")), Ok(Headers::new()));
}

#[test]
fn names_are_sent_in_lower_case() {
    let block = Encoder::default().encode(&headers(&[("streamType", "data"), ("requestID", "1")])).expect("short");
    let got = Decoder::default().decode(&block);
    assert_eq!(got, Ok(headers(&[("streamtype", "data"), ("requestid", "1")])));
}

#[test]
fn a_block_that_swells_is_refused() {
    use flate2::{Compress, Compression, FlushCompress};
    let mut zlib = Compress::new(Compression::new(9), true);
    zlib.set_dictionary(DICTIONARY).expect("fresh");
    let mut bomb = Vec::with_capacity(1 << 20);
    zlib.compress_vec(&vec![0; 64 * MAX_BLOCK], &mut bomb, FlushCompress::Sync).expect("compresses");
    assert!(bomb.len() < MAX_BLOCK);
    assert_eq!(Decoder::default().decode(&bomb), Err(HeaderError::TooLong));
}

#[test]
fn headers_too_long_to_send_are_refused_and_change_nothing() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let long = "x".repeat(MAX_BLOCK);
    assert_eq!(encoder.encode(&headers(&[("a", &long)])), Err(HeaderError::TooLong));
    let sent = headers(&[("a", "b")]);
    assert_eq!(decoder.decode(&encoder.encode(&sent).expect("short")), Ok(sent));
}

proptest! {
    #[test]
    fn garbage_is_never_more_than_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0_u16..12) {
        if let Ok(start) = <[u8; HEAD]>::try_from(&bytes[..HEAD.min(bytes.len())]) {
            let _ = frame::head(start);
        }
        let _ = frame::control(kind, 1, &bytes);
        let _ = parse(&bytes);
        let _ = Decoder::default().decode(&bytes);
    }

    #[test]
    fn any_headers_survive_the_way(pairs in proptest::collection::btree_map("[a-z-]{1,20}", "\\PC{0,200}", 0..20)) {
        let block = Encoder::default().encode(&pairs).expect("short enough");
        prop_assert_eq!(Decoder::default().decode(&block), Ok(pairs));
    }

    #[test]
    fn blocks_with_flipped_bits_are_never_more_than_an_error(at in 0_usize..40, bit in 0_u8..8) {
        let mut block = Encoder::default().encode(&headers(&[("streamtype", "stdout")])).expect("short");
        let at = at % block.len();
        block[at] ^= 1 << bit;
        let _ = Decoder::default().decode(&block);
    }
}
