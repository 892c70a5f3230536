use std::path::Path;
#[test]
fn reads_an_empty_configuration() {
    let (c, w) =
        crate::parse("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", Path::new("/etc"))
            .unwrap();
    assert_eq!(c, crate::NodeConfig::default());
    assert!(w.is_empty());
}
