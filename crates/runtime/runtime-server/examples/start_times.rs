//! How long pods on the node's network take to start and to go, one after the other, over a CRI socket of any runtime:
//! `cargo run --release --example start_times -- /run/bosun/cri.sock IMAGE 50 [CGROUP]`.

use std::time::{Duration, Instant};

use cri_api::v1;
use runtime_server::cri::runtime_service_client::RuntimeServiceClient;
use tonic::transport::Endpoint;

type Failure = Box<dyn std::error::Error>;

const STEPS: [&str; 5] = ["RunPodSandbox", "CreateContainer", "StartContainer", "ExecSync", "Stop and remove"];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [socket, image, count, rest @ ..] = words.as_slice() else { return Err("SOCKET IMAGE COUNT [CGROUP]".into()) };
    let cgroup = rest.first().cloned().unwrap_or_else(|| "/bosun-start-times".into());
    let channel = Endpoint::from_shared(format!("unix://{socket}"))?.connect().await?;
    let mut client = RuntimeServiceClient::new(channel);
    let mut times = vec![Vec::new(); STEPS.len()];
    let mut starts = Vec::new();
    for n in 0..count.parse()? {
        let taken = pod(&mut client, image, &cgroup, n).await?;
        starts.push(taken[..3].iter().sum());
        for (all, one) in times.iter_mut().zip(taken) {
            all.push(one);
        }
    }
    for (step, times) in STEPS.iter().zip(&mut times) {
        tell(step, times);
    }
    tell("the first three", &mut starts);
    Ok(())
}

fn tell(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!("{what:16} p50 {:6.1} ms   p90 {:6.1} ms", at(50), at(90));
}

async fn pod(
    client: &mut RuntimeServiceClient<tonic::transport::Channel>,
    image: &str,
    cgroup: &str,
    n: u32,
) -> Result<[Duration; 5], Failure> {
    let options = v1::NamespaceOption {
        network: v1::NamespaceMode::Node.into(),
        pid: v1::NamespaceMode::Container.into(),
        ..v1::NamespaceOption::default()
    };
    let metadata = v1::PodSandboxMetadata {
        name: format!("start-{n}"),
        uid: format!("uid-{n}"),
        namespace: "bench".into(),
        attempt: 0,
    };
    let sandbox = v1::PodSandboxConfig {
        metadata: Some(metadata),
        log_directory: format!("/tmp/bosun-start-times/{n}"),
        linux: Some(v1::LinuxPodSandboxConfig {
            cgroup_parent: format!("{cgroup}/pod{n}"),
            security_context: Some(v1::LinuxSandboxSecurityContext {
                namespace_options: Some(options.clone()),
                ..v1::LinuxSandboxSecurityContext::default()
            }),
            ..v1::LinuxPodSandboxConfig::default()
        }),
        ..v1::PodSandboxConfig::default()
    };
    let container = v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata { name: "main".into(), attempt: 0 }),
        image: Some(v1::ImageSpec { image: image.into(), ..v1::ImageSpec::default() }),
        command: ["sleep", "1000"].map(str::to_owned).to_vec(),
        log_path: "main.log".into(),
        linux: Some(v1::LinuxContainerConfig {
            resources: Some(v1::LinuxContainerResources::default()),
            security_context: Some(v1::LinuxContainerSecurityContext {
                namespace_options: Some(options),
                ..v1::LinuxContainerSecurityContext::default()
            }),
        }),
        ..v1::ContainerConfig::default()
    };
    let mut marks = vec![Instant::now()];
    let run = v1::RunPodSandboxRequest { config: Some(sandbox.clone()), runtime_handler: String::new() };
    let pod_sandbox_id = client.run_pod_sandbox(run).await?.into_inner().pod_sandbox_id;
    marks.push(Instant::now());
    let create = v1::CreateContainerRequest {
        pod_sandbox_id: pod_sandbox_id.clone(),
        config: Some(container),
        sandbox_config: Some(sandbox),
    };
    let container_id = client.create_container(create).await?.into_inner().container_id;
    marks.push(Instant::now());
    client.start_container(v1::StartContainerRequest { container_id: container_id.clone() }).await?;
    marks.push(Instant::now());
    let cmd = vec!["true".to_owned()];
    client.exec_sync(v1::ExecSyncRequest { container_id: container_id.clone(), cmd, timeout: 10 }).await?;
    marks.push(Instant::now());
    client.stop_container(v1::StopContainerRequest { container_id: container_id.clone(), timeout: 0 }).await?;
    client.remove_container(v1::RemoveContainerRequest { container_id }).await?;
    client.stop_pod_sandbox(v1::StopPodSandboxRequest { pod_sandbox_id: pod_sandbox_id.clone() }).await?;
    client.remove_pod_sandbox(v1::RemovePodSandboxRequest { pod_sandbox_id }).await?;
    marks.push(Instant::now());
    let taken: Vec<Duration> = marks.windows(2).map(|w| w[1] - w[0]).collect();
    taken.try_into().map_err(|_| "five steps".into())
}
