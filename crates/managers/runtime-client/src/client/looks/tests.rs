use super::*;

fn carried(sandbox: usize, containers: usize) -> Want {
    let mut statuses = PodStatuses { containers: vec![Default::default(); containers], ..PodStatuses::default() };
    statuses.sandbox.id = sandbox.to_string();
    Want::carried(statuses)
}

#[test]
fn events_of_one_sandbox_gather_as_their_last_word() {
    let mut want = Want::default();
    for n in 0..1_000 {
        want.join(carried(1, n));
    }
    assert_eq!((want.carried.len(), want.carried[0].containers.len()), (1, 999));
    assert_eq!(want.whole, Whole::No);
}

#[test]
fn events_of_sandboxes_without_end_become_one_list() {
    let mut want = Want::default();
    for n in 0..1_000 {
        want.join(carried(n, 1));
        assert!(want.carried.len() <= CARRIED);
    }
    assert_eq!(want.whole, Whole::Fresh);
}
