use crate::*;
#[test]
fn reads_a_plain_pod() {
    let m = read_manifest(
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: x}]}",
        &Origin { node_name: "Node", source: Source::File("/x") },
    )
    .unwrap();
    assert_eq!(m.pod.metadata.name.as_deref(), Some("a-node"));
}
