//! The pods of `config/examples/` must run.

use std::path::Path;

use static_pod::{Origin, Source, read_manifest};

#[test]
fn the_examples_are_accepted_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../config/examples");
    let mut count = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let origin = Origin { node_name: "node", source: Source::File("/x") };
        match read_manifest(&std::fs::read(&path).unwrap(), &origin) {
            Ok(manifest) => assert_eq!(manifest.warnings, [], "{}", path.display()),
            Err(error) => panic!("{}: {error}", path.display()),
        }
        count += 1;
    }
    assert_eq!(count, 3);
}
