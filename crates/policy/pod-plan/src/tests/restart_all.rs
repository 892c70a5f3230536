use super::world::{World, check, rule};
use model::runtime::ContainerState::{Created, Unknown};

fn world() -> World {
    World::new("Never")
        .init("i")
        .sidecar("s")
        .regular("m")
        .regular("w")
        .own_policy("w", "Never", vec![rule("RestartAllContainers", "In", &[88])])
        .sandbox(true)
        .exited("i", 0)
        .running("s")
        .running("m")
}

#[test]
fn restart_of_all_containers_4_3_a() {
    check(vec![
        (
            "one regular container asks for it: targets first, the source last, the sandbox stays",
            world().exited("w", 88),
            "kill+reset m-0; reset i-0; kill+reset s-0; reset w-0",
        ),
        ("another exit code", world().exited("w", 1), "keep 1"),
        (
            "an interrupted reset is taken up again",
            World::new("Never")
                .init("i")
                .regular("w")
                .own_policy("w", "Never", vec![rule("RestartAllContainers", "In", &[88])])
                .sandbox(true)
                .exited("w", 88),
            "reset w-0",
        ),
        (
            "a source among the init containers comes after all",
            World::new("Never")
                .init("i")
                .init("j")
                .regular("m")
                .own_policy("i", "Never", vec![rule("RestartAllContainers", "In", &[88])])
                .sandbox(true)
                .exited("i", 88),
            "reset i-0",
        ),
        (
            "all instances of a name go, oldest first, whatever their state",
            world().seen("m", Created).seen("m", Unknown).exited("w", 1).exited("w", 88),
            "kill+reset m-0; kill+reset m-1; kill+reset m-2; reset i-0; kill+reset s-0; reset w-0; reset w-1",
        ),
        (
            "begun, and the container that asked for it is gone",
            world().then(|w| w.restarting_all = true),
            "kill+reset m-0; reset i-0; kill+reset s-0",
        ),
        ("the gate is off", world().exited("w", 88).then(|w| w.gates.restart_all_containers = false), "keep 1"),
        (
            "the pod is being deleted",
            world().exited("w", 88).then(|w| w.pod.metadata.deletion_timestamp = w.now.to_api()),
            "keep 1",
        ),
    ]);
}

#[test]
fn after_the_reset_everything_starts_from_the_first_init_container() {
    let mut w = world().exited("w", 88);
    let plan = w.plan();
    w.apply(&plan);
    assert!(w.observed.containers.is_empty());
    check(vec![("next pass", w, "start i@log")]);
}
