//! What callers of the HTTPS server send: paths that can be read in one way only, tokens, certificates, answers of reviews.

#![no_main]

use libfuzzer_sys::fuzz_target;
use node_access::{Rules, User, bearer, canonical, decide_access, decide_token, labels, subresources, websocket};

fuzz_target!(|bytes: &[u8]| {
    let _user = User::of_certificate(bytes);
    let _decided = (decide_token(bytes), decide_access(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _credential = (bearer(text), websocket(text.split('\n')));
    let _labels = labels("GET", text);
    if let Ok(path) = canonical(text) {
        assert!(path.path.starts_with('/') && !path.path.contains("//"), "{path:?}");
        assert!(path.path.split('/').all(|s| s != "." && s != ".."), "{path:?}");
        assert!(!subresources(&path.first, Rules::FineGrained).is_empty(), "nothing is let in unasked");
        let again = canonical(&path.path).expect("what was read once is read again");
        assert_eq!(again, path, "and in the same way");
    }
});
