//! Content on its way.

use super::*;

#[test]
fn a_part_goes_on_where_it_was() {
    let (folder, store) = store();
    let content = vec![7; 300_000];
    let (digest, size) = (Digest::of(&content), content.len() as u64);
    {
        let writing = store.writing("pull", NO_WAIT).unwrap();
        let mut ingest = writing.ingest(&digest, size).unwrap();
        ingest.write(&content[..200_001]).unwrap();
        let early = writing.ingest(&digest, size).unwrap().verified().unwrap_err();
        assert!(matches!(early, StoreError::Size { found: 200_001, .. }), "{early}");
    }
    let store = ImageStore::open(folder.path()).unwrap();
    let writing = store.writing("pull", NO_WAIT).unwrap();
    let mut ingest = writing.ingest(&digest, size).unwrap();
    assert_eq!(ingest.have(), 200_001);
    assert!(matches!(ingest.write(&content), Err(StoreError::Size { .. })), "more than was promised is refused");
    ingest.write(&content[200_001..]).unwrap();
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut ingest.verified().unwrap(), &mut text).unwrap();
    assert_eq!(text, content);
}

#[test]
fn wrong_content_is_thrown_away() {
    let (_folder, store) = store();
    let writing = store.writing("pull", NO_WAIT).unwrap();
    let digest = Digest::of(b"right");
    let mut ingest = writing.ingest(&digest, 5).unwrap();
    ingest.write(b"wrong").unwrap();
    assert!(matches!(ingest.verified(), Err(StoreError::Digest { .. })));
    assert_eq!(writing.ingest(&digest, 5).unwrap().have(), 0);
    let mut ingest = writing.ingest(&digest, 5).unwrap();
    ingest.write(b"wro").unwrap();
    ingest.restart().unwrap();
    ingest.write(b"right").unwrap();
    ingest.verified().unwrap();
    assert_eq!(writing.ingest(&digest, 3).unwrap().have(), 0, "a part that is too long is begun anew");
    assert!(matches!(writing.put_document(&digest, b"wrong"), Err(StoreError::Digest { .. })));
}

#[test]
fn parts_that_nobody_goes_on_with_go_after_a_day() {
    let (_folder, store) = store();
    let part = |text: &[u8]| store.root().join(format!("ingest/{}.part", Digest::of(text).hex()));
    for (text, age) in [(b"old", 90_000), (b"new", 80_000)] {
        let file = File::create(part(text)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    store.writing("collect", NO_WAIT).unwrap().collect().unwrap();
    assert_eq!((part(b"old").exists(), part(b"new").exists()), (false, true));
}
