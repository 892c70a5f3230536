//! Pods by chance.

use fastrand::Rng;

use crate::shape::{Does, Means, Part, ProbeKind, Restart, Shape, Stop, Volume};

const VOLUMES: [Volume; 8] = [
    Volume::EmptyDir,
    Volume::Memory,
    Volume::HostPath,
    Volume::DownwardApi,
    Volume::ConfigMap,
    Volume::Secret,
    Volume::Token,
    Volume::Claim,
];

/// A pod of this name. A static one names no object of the API server.
pub(super) fn shape(rng: &mut Rng, name: &str, is_static: bool) -> Shape {
    let is_job = rng.u8(0..6) == 0;
    let restart = match rng.u8(0..10) {
        0..6 if !is_job => Restart::Always,
        0..3 | 6..8 => Restart::OnFailure,
        _ => Restart::Never,
    };
    let mut init = Vec::new();
    for n in 0..[0, 0, 0, 1, 1, 2, 3][rng.usize(0..7)] {
        let sidecar = rng.u8(0..3) == 0;
        let mut part = Part { sidecar, ..plain(rng, &format!("{name}-i{n}")) };
        if sidecar {
            part.probes = probes(rng, &[ProbeKind::Startup, ProbeKind::Readiness, ProbeKind::Liveness]);
        } else {
            part.does = vec![Does::Exits { after_ms: rng.u64(100..4000), code: 0 }];
            if rng.u8(0..5) == 0 {
                part.does.insert(0, Does::Exits { after_ms: rng.u64(100..4000), code: 1 });
            }
        }
        init.push(part);
    }
    let count = 1 + rng.usize(0..3);
    let mut containers: Vec<Part> = (0..count).map(|n| main(rng, &format!("{name}-c{n}"), restart)).collect();
    if is_job {
        containers
            .iter_mut()
            .for_each(|part| part.does = vec![Does::Exits { after_ms: rng.u64(500..30_000), code: 0 }]);
    }
    let usable: Vec<Volume> = VOLUMES.iter().copied().filter(|v| !is_static || !v.is_of_api()).collect();
    let volumes = (0..rng.usize(0..3)).map(|_| usable[rng.usize(0..usable.len())]).collect();
    Shape {
        name: name.to_owned(),
        restart,
        grace_s: [1, 5, 10, 30][rng.usize(0..4)],
        priority: (rng.u8(0..20) == 0).then_some(2_000_000_000),
        host_network: rng.u8(0..8) == 0,
        init,
        containers,
        volumes,
    }
}

/// A container that runs.
fn plain(rng: &mut Rng, name: &str) -> Part {
    let image = match rng.u8(0..30) {
        0 => "missing:1",
        1 | 2 => "pulled:1",
        3..9 => "tool:1",
        _ => "app:1",
    };
    Part {
        name: name.to_owned(),
        image: image.to_owned(),
        sidecar: false,
        does: Vec::new(),
        stop: [Stop::Prompt, Stop::Prompt, Stop::Slow, Stop::Ignored][rng.usize(0..4)],
        cpu_m: [0, 0, 50, 200, 700][rng.usize(0..5)],
        memory_mi: [0, 0, 64, 128][rng.usize(0..4)],
        probes: Vec::new(),
        post_start: false,
        pre_stop: false,
    }
}

fn main(rng: &mut Rng, name: &str, restart: Restart) -> Part {
    let mut part = plain(rng, name);
    part.post_start = rng.u8(0..8) == 0;
    part.pre_stop = rng.u8(0..6) == 0;
    if rng.u8(0..3) == 0 {
        part.probes = probes(rng, &[ProbeKind::Liveness, ProbeKind::Readiness, ProbeKind::Startup]);
    }
    let ends = |rng: &mut Rng, code| Does::Exits { after_ms: rng.u64(1_000..60_000), code };
    part.does = match (restart, rng.u8(0..10)) {
        (Restart::Always, 0) => vec![ends(rng, 1)],
        (Restart::Always, 1) => vec![ends(rng, 0), ends(rng, 1), Does::Runs],
        (Restart::Always, 2) => vec![Does::Fails, Does::Runs],
        (Restart::Always, 3) => vec![Does::Refused, Does::Refused, Does::Runs],
        (Restart::OnFailure, 0..4) => vec![ends(rng, 1), ends(rng, 0)],
        (Restart::Never, 0..4) => vec![ends(rng, 0)],
        (Restart::Never, 4..6) => vec![ends(rng, 3)],
        _ => Vec::new(),
    };
    part
}

fn probes(rng: &mut Rng, kinds: &[ProbeKind]) -> Vec<(ProbeKind, Means)> {
    let chosen: Vec<ProbeKind> = kinds.iter().copied().filter(|_| rng.bool()).collect();
    let means = [Means::Exec, Means::Http, Means::Tcp, Means::Grpc];
    chosen.into_iter().map(|kind| (kind, means[rng.usize(0..4)])).collect()
}
