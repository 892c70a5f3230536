use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

fn key(name: &str) -> Key {
    Key::token(name)
}

#[test]
fn entries_end() {
    let mut lru = Lru::new(10);
    lru.put(key("a"), 1, S(100), S(30));
    assert_eq!(lru.get(&key("a"), S(129)), Some(1));
    assert_eq!(lru.get(&key("a"), S(130)), None);
    assert!(lru.is_empty());
    lru.put(key("a"), 1, S(0), S(0));
    assert!(lru.is_empty(), "without a life nothing is kept");
}

#[test]
fn the_one_used_longest_ago_goes_first() {
    let mut lru = Lru::new(3);
    for name in ["a", "b", "c"] {
        lru.put(key(name), name, S(0), S(9));
    }
    lru.get(&key("a"), S(1));
    lru.put(key("d"), "d", S(1), S(9));
    let left = ["a", "b", "c", "d"].map(|name| lru.get(&key(name), S(2)).is_some());
    assert_eq!(left, [true, false, true, true]);
    lru.put(key("a"), "new", S(2), S(9));
    assert_eq!((lru.len(), lru.get(&key("a"), S(3))), (3, Some("new")));
}

#[test]
fn its_two_orders_agree_after_much_use() {
    let mut lru = Lru::new(50);
    for n in 0_u64..5000 {
        let name = (n * 7919 % 131).to_string();
        if n % 3 == 0 {
            lru.get(&key(&name), S(n));
        } else {
            lru.put(key(&name), n, S(n), S(n % 40));
        }
        assert!(lru.len() <= 50 && lru.entries.len() == lru.order.len());
    }
}

#[test]
fn keys_tell_questions_apart() {
    let user = |name: &str, groups: &[&str]| User {
        name: name.to_owned(),
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        ..User::default()
    };
    let extra =
        |name: &str| User { extra: BTreeMap::from([(name.to_owned(), vec!["x".to_owned()])]), ..user("a", &[]) };
    let all = [
        Key::access(&user("a", &[]), "get", "metrics", "n"),
        Key::access(&user("a", &[]), "create", "metrics", "n"),
        Key::access(&user("a", &[]), "get", "proxy", "n"),
        Key::access(&user("b", &[]), "get", "metrics", "n"),
        Key::access(&user("a", &["x", "y"]), "get", "metrics", "n"),
        Key::access(&user("a", &["xy"]), "get", "metrics", "n"),
        Key::access(&user("", &["a"]), "get", "metrics", "n"),
        Key::access(&extra("k"), "get", "metrics", "n"),
        Key::access(&extra("l"), "get", "metrics", "n"),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().map(|k| k.unwrap()).collect();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(all[0], Key::access(&user("a", &[]), "get", "metrics", "n"));
}

#[test]
fn what_is_too_large_is_not_kept() {
    let user = User::anonymous();
    assert_eq!(Key::access(&user, &"v".repeat(CACHED_BYTES), "proxy", "n"), None);
    assert!(Key::access(&user, "get", "proxy", "n").is_some());
}
