use super::*;
use crate::{Layout, Reclaim, for_layout, reclaim};

#[test]
fn devices_make_the_layout() {
    let table = [
        (false, false, Layout::Single),
        (false, true, Layout::Single),
        (true, false, Layout::ImagesApart),
        (true, true, Layout::LayersApartFromImages),
    ];
    for (images, layers, expected) in table {
        assert_eq!(Layout::new(images, layers), expected);
    }
}

#[test]
fn containerfs_has_the_thresholds_of_the_disk_that_it_is_on() {
    use Signal::{ContainerfsAvailable, ContainerfsInodesFree, ImagefsAvailable, ImagefsInodesFree, NodefsAvailable};
    let of = |signal, text| threshold(signal, amount(text), None);
    let given = [
        of(NodefsAvailable, "1Gi"),
        of(ImagefsAvailable, "2Gi"),
        of(ImagefsInodesFree, "3"),
        of(ContainerfsAvailable, "9Gi"),
    ];
    let with = |derived: &[Threshold]| [&given[..3], derived].concat();
    let of_images = with(&[of(ContainerfsAvailable, "2Gi"), of(ContainerfsInodesFree, "3")]);
    let of_root = with(&[of(ContainerfsAvailable, "1Gi")]);
    assert_eq!(for_layout(&given, Layout::ImagesApart), of_images);
    assert_eq!(for_layout(&given, Layout::Single), of_root);
    assert_eq!(for_layout(&given, Layout::LayersApartFromImages), of_root);
}

/// A signal, and what is done about it in each layout.
type Row = (&'static str, &'static [Reclaim], &'static [Reclaim], &'static [Reclaim]);

#[test]
fn what_is_tidied_up_before_a_pod_goes() {
    use Layout::{ImagesApart, LayersApartFromImages, Single};
    use Reclaim::{DeadContainers, UnusedImages};
    const BOTH: &[Reclaim] = &[DeadContainers, UnusedImages];
    let table: [Row; 9] = [
        ("memory.available", &[], &[], &[]),
        ("allocatableMemory.available", &[], &[], &[]),
        ("pid.available", &[], &[], &[]),
        ("nodefs.available", BOTH, &[], &[DeadContainers]),
        ("nodefs.inodesFree", BOTH, &[], &[DeadContainers]),
        ("imagefs.available", BOTH, BOTH, &[UnusedImages]),
        ("imagefs.inodesFree", BOTH, BOTH, &[UnusedImages]),
        ("containerfs.available", BOTH, BOTH, &[DeadContainers]),
        ("containerfs.inodesFree", BOTH, BOTH, &[DeadContainers]),
    ];
    for (name, single, apart, split) in table {
        let signal = Signal::parse(name).unwrap();
        let got = [Single, ImagesApart, LayersApartFromImages].map(|layout| reclaim(signal, layout));
        assert_eq!(got, [single, apart, split], "{name}");
    }
}
