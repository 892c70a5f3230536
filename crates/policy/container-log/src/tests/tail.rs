use crate::TailScan;

fn start(text: &str, lines: u64, block: u64) -> u64 {
    let mut scan = TailScan::new(text.len() as u64, lines);
    while let Some(range) = scan.next_block(block) {
        let (from, to) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
        scan.scanned(range.start, &text.as_bytes()[from..to]);
    }
    scan.start().unwrap()
}

#[test]
fn finds_the_last_lines() {
    let rows = [
        ("empty file", "", 3, 0),
        ("no lines of an empty file", "", 0, 0),
        ("none", "a\nb\n", 0, 4),
        ("one", "a\nb\n", 1, 2),
        ("all", "a\nb\n", 2, 0),
        ("more than there are", "a\nb\n", 9, 0),
        ("an unterminated line is none", "a\nb\nc", 1, 2),
        ("none before an unterminated line", "a\nb\nc", 0, 4),
        ("empty lines are lines", "a\n\n\n", 2, 2),
    ];
    for (name, text, lines, expected) in rows {
        for block in [1, 2, 3, 1024] {
            assert_eq!(start(text, lines, block), expected, "{name}, blocks of {block}");
        }
    }
}

#[test]
fn a_file_that_shrank_meanwhile_ends_the_search() {
    let mut scan = TailScan::new(100, 5);
    while let Some(range) = scan.next_block(30) {
        scan.scanned(range.start, b"");
    }
    assert_eq!(scan.start(), Some(0));
}
