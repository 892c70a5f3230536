//! SPDY/3.1 as a runtime's streaming server might speak it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use spdy::frame::{self, HEAD, Head};
use spdy::headers::{Decoder, Encoder, parse};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(headers) = parse(bytes)
        && let Ok(block) = Encoder::default().encode(&headers)
    {
        assert_eq!(Decoder::default().decode(&block).expect("our own block"), headers);
    }
    let mut decoder = Decoder::default();
    let mut rest = bytes;
    while let Some((start, after)) = rest.split_first_chunk::<HEAD>() {
        let Ok(head) = frame::head(*start) else { return };
        let len = match head {
            Head::Data { len, .. } | Head::Control { len, .. } => len,
        };
        let Some((payload, next)) = after.split_at_checked(len) else { return };
        if let Head::Control { kind, flags, .. } = head {
            let _control = frame::control(kind, flags, payload);
            let _headers = decoder.decode(payload);
        }
        rest = next;
    }
});
