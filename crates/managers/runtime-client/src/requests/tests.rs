use super::*;

fn carried(sandbox: usize, containers: usize) -> Request {
    let mut statuses = PodStatuses { containers: vec![Default::default(); containers], ..PodStatuses::default() };
    statuses.sandbox.id = sandbox.to_string();
    Request::carried(statuses)
}

#[test]
fn events_of_one_sandbox_are_joined_into_the_last_of_them() {
    let mut request = Request::default();
    for n in 0..1_000 {
        request.join(carried(1, n));
    }
    assert_eq!((request.carried.len(), request.carried[0].containers.len()), (1, 999));
    assert_eq!(request.scope, Scope::Named);
}

#[test]
fn events_of_sandboxes_without_end_become_one_list() {
    let mut request = Request::default();
    for n in 0..1_000 {
        request.join(carried(n, 1));
        assert!(request.carried.len() <= CARRIED);
    }
    assert_eq!(request.scope, Scope::All);
}
