//! CRI calls without any of bosun's code: the floor that the bench measures against, and the truth that tests look at.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cri_api::v1;
use hyper_util::rt::TokioIo;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Status};

/// A connection to a runtime's socket. Clones share it.
#[derive(Clone)]
pub struct Cri {
    channel: Channel,
    cgroup_parent: String,
    logs: PathBuf,
    ports: Vec<v1::PortMapping>,
}

impl Cri {
    /// A connection that is made with the first call. Pods of [`Cri::start_pause_pod`] get cgroups below
    /// `cgroup_root` and log folders below `logs`. Needs a tokio runtime.
    #[must_use]
    pub fn new(socket: &Path, cgroup_root: &str, logs: &Path) -> Self {
        let socket = socket.to_owned();
        let connector = tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector);
        Cri { channel, cgroup_parent: format!("{cgroup_root}/raw"), logs: logs.to_owned(), ports: Vec::new() }
    }

    /// Pods started from now on offer their `container_port` as `host_port` of the node (TCP).
    #[must_use]
    pub fn host_port(mut self, host_port: i32, container_port: i32) -> Self {
        self.ports.push(v1::PortMapping { host_port, container_port, ..Default::default() });
        self
    }

    async fn call<Req, Res>(&self, service: &str, method: &str, request: Req) -> Result<Res, Status>
    where
        Req: prost::Message + 'static,
        Res: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
        let path = PathAndQuery::try_from(format!("/runtime.v1.{service}/{method}"));
        let path = path.map_err(|e| Status::internal(e.to_string()))?;
        let mut request = Request::new(request);
        request.set_timeout(Duration::from_secs(120));
        Ok(grpc.unary(request, path, tonic_prost::ProstCodec::default()).await?.into_inner())
    }

    /// `Version`.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn version(&self) -> Result<v1::VersionResponse, Status> {
        self.call("RuntimeService", "Version", v1::VersionRequest::default()).await
    }

    /// All sandboxes, ready or not.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn sandboxes(&self) -> Result<Vec<v1::PodSandbox>, Status> {
        let answer: v1::ListPodSandboxResponse =
            self.call("RuntimeService", "ListPodSandbox", v1::ListPodSandboxRequest::default()).await?;
        Ok(answer.items)
    }

    /// All containers, running or not.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn containers(&self) -> Result<Vec<v1::Container>, Status> {
        let answer: v1::ListContainersResponse =
            self.call("RuntimeService", "ListContainers", v1::ListContainersRequest::default()).await?;
        Ok(answer.containers)
    }

    /// Status of one container.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn container_status(&self, id: &str) -> Result<Option<v1::ContainerStatus>, Status> {
        let request = v1::ContainerStatusRequest { container_id: id.to_owned(), ..Default::default() };
        let answer: v1::ContainerStatusResponse = self.call("RuntimeService", "ContainerStatus", request).await?;
        Ok(answer.status)
    }

    /// What is said of a container beyond its status: JSON in a form of the runtime's own.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn container_info(&self, id: &str) -> Result<String, Status> {
        let request = v1::ContainerStatusRequest { container_id: id.to_owned(), verbose: true };
        let answer: v1::ContainerStatusResponse = self.call("RuntimeService", "ContainerStatus", request).await?;
        Ok(answer.info.get("info").cloned().unwrap_or_default())
    }

    /// Pulls an image, with user and password if given, and answers its id.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn pull(&self, name: &str, login: Option<(&str, &str)>) -> Result<String, Status> {
        let auth = login.map(|(username, password)| v1::AuthConfig {
            username: username.to_owned(),
            password: password.to_owned(),
            ..Default::default()
        });
        let image = Some(v1::ImageSpec { image: name.to_owned(), ..Default::default() });
        let request = v1::PullImageRequest { image, auth, ..Default::default() };
        let answer: v1::PullImageResponse = self.call("ImageService", "PullImage", request).await?;
        Ok(answer.image_ref)
    }

    /// Removes an image.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn remove_image(&self, name: &str) -> Result<(), Status> {
        let image = Some(v1::ImageSpec { image: name.to_owned(), ..Default::default() });
        let _: v1::RemoveImageResponse =
            self.call("ImageService", "RemoveImage", v1::RemoveImageRequest { image }).await?;
        Ok(())
    }

    /// The three calls of one pod with one container: RunPodSandbox, CreateContainer, StartContainer.
    /// They ask for what a kubelet asks for in a plain pod (as recorded in tests/golden): DNS, hosts file, termination
    /// log, cgroup values, masked paths. Answers the ids of sandbox and container.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn start_pause_pod(&self, name: &str, image: &str, command: &[&str]) -> Result<(String, String), Status> {
        let config = self.sandbox(name);
        let files = self.logs.join(name);
        let made = std::fs::create_dir_all(&files)
            .and_then(|()| std::fs::write(files.join("hosts"), "127.0.0.1\tlocalhost\n"))
            .and_then(|()| std::fs::write(files.join("termination-log"), ""));
        made.map_err(|e| Status::internal(e.to_string()))?;
        let request = v1::RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
        let sandbox: v1::RunPodSandboxResponse = self.call("RuntimeService", "RunPodSandbox", request).await?;
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: sandbox.pod_sandbox_id.clone(),
            config: Some(container(image, command, &files)),
            sandbox_config: Some(config),
        };
        let created: v1::CreateContainerResponse = self.call("RuntimeService", "CreateContainer", request).await?;
        let request = v1::StartContainerRequest { container_id: created.container_id.clone() };
        let _: v1::StartContainerResponse = self.call("RuntimeService", "StartContainer", request).await?;
        Ok((sandbox.pod_sandbox_id, created.container_id))
    }

    /// Runs a command in a container and answers its exit code.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn exec_sync(&self, container: &str, command: &[&str]) -> Result<i32, Status> {
        let cmd = command.iter().map(|&w| w.to_owned()).collect();
        let request = v1::ExecSyncRequest { container_id: container.to_owned(), cmd, timeout: 30 };
        let answer: v1::ExecSyncResponse = self.call("RuntimeService", "ExecSync", request).await?;
        Ok(answer.exit_code)
    }

    /// URL of the runtime's own streaming server for a command with input and output and no terminal.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn exec_url(&self, container: &str, command: &[&str]) -> Result<String, Status> {
        let request = v1::ExecRequest {
            container_id: container.to_owned(),
            cmd: command.iter().map(|&w| w.to_owned()).collect(),
            stdin: true,
            stdout: true,
            ..Default::default()
        };
        let answer: v1::ExecResponse = self.call("RuntimeService", "Exec", request).await?;
        Ok(answer.url)
    }

    /// Stops and removes a sandbox with its containers, without grace.
    ///
    /// # Errors
    /// What the runtime answers.
    pub async fn remove_pod(&self, sandbox: &str) -> Result<(), Status> {
        let id = sandbox.to_owned();
        let request = v1::StopPodSandboxRequest { pod_sandbox_id: id.clone() };
        let _: v1::StopPodSandboxResponse = self.call("RuntimeService", "StopPodSandbox", request).await?;
        let request = v1::RemovePodSandboxRequest { pod_sandbox_id: id };
        let _: v1::RemovePodSandboxResponse = self.call("RuntimeService", "RemovePodSandbox", request).await?;
        Ok(())
    }

    fn sandbox(&self, name: &str) -> v1::PodSandboxConfig {
        let namespaces = v1::NamespaceOption { pid: v1::NamespaceMode::Container as i32, ..Default::default() };
        let linux = v1::LinuxPodSandboxConfig {
            cgroup_parent: format!("{}/{name}", self.cgroup_parent),
            security_context: Some(v1::LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces),
                seccomp: Some(v1::SecurityProfile::default()),
                ..Default::default()
            }),
            resources: Some(resources(0)),
            ..Default::default()
        };
        v1::PodSandboxConfig {
            metadata: Some(v1::PodSandboxMetadata {
                name: name.to_owned(),
                uid: name.to_owned(),
                namespace: "floor".to_owned(),
                attempt: 0,
            }),
            hostname: name.to_owned(),
            port_mappings: self.ports.clone(),
            dns_config: Some(v1::DnsConfig { servers: vec!["127.0.0.1".to_owned()], ..Default::default() }),
            log_directory: self.logs.join(name).to_string_lossy().into_owned(),
            linux: Some(linux),
            ..Default::default()
        }
    }
}

/// Whether the runtime serves CRI: containerd listens some time before it has looked at its own containers.
pub(crate) fn ready(socket: &Path) -> Result<(), String> {
    if !socket.exists() {
        return Err(format!("no socket {}", socket.display()));
    }
    ask(socket, async |cri| cri.sandboxes().await).map(drop)
}

/// One question to the runtime at `socket`, from a thread of its own: the caller may be inside a tokio runtime.
pub(crate) fn ask<T: Send>(
    socket: &Path,
    question: impl AsyncFnOnce(Cri) -> Result<T, Status> + Send,
) -> Result<T, String> {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let asked = runtime.block_on(async { question(Cri::new(socket, "", Path::new(""))).await });
        asked.map_err(|e| e.to_string())
    };
    std::thread::scope(|scope| scope.spawn(ask).join().unwrap_or_else(|_| Err("the asking thread panicked".to_owned())))
}

/// What a best-effort container gets.
fn resources(oom_score_adj: i64) -> v1::LinuxContainerResources {
    v1::LinuxContainerResources { cpu_period: 100_000, cpu_shares: 2, oom_score_adj, ..Default::default() }
}

/// Paths of `/proc` and `/sys` that a kubelet hides from, or makes read-only for, a container without `procMount`.
const MASKED: &[&str] = &[
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: &[&str] = &["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

fn container(image: &str, command: &[&str], files: &Path) -> v1::ContainerConfig {
    let owned = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let mount = |container_path: &str, file: &str| v1::Mount {
        container_path: container_path.to_owned(),
        host_path: files.join(file).to_string_lossy().into_owned(),
        ..Default::default()
    };
    let security_context = v1::LinuxContainerSecurityContext {
        namespace_options: Some(v1::NamespaceOption { pid: v1::NamespaceMode::Container as i32, ..Default::default() }),
        masked_paths: owned(MASKED),
        readonly_paths: owned(READ_ONLY),
        ..Default::default()
    };
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata { name: "main".to_owned(), attempt: 0 }),
        image: Some(v1::ImageSpec { image: image.to_owned(), ..Default::default() }),
        command: owned(command),
        mounts: vec![mount("/etc/hosts", "hosts"), mount("/dev/termination-log", "termination-log")],
        log_path: "main/0.log".to_owned(),
        linux: Some(v1::LinuxContainerConfig {
            resources: Some(resources(1000)),
            security_context: Some(security_context),
        }),
        ..Default::default()
    }
}
