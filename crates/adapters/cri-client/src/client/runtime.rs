//! The runtime half.

use async_trait::async_trait;
use cri_api::v1;
use ports::runtime::{ContainerRuntime, EventStream, RuntimeCode, RuntimeError, RuntimeResult};

use super::{CriClient, call, check};
use crate::events;
use crate::measure::{counted, has_own_users, sandbox};

#[async_trait]
impl ContainerRuntime for CriClient {
    async fn version(&self) -> RuntimeResult<v1::VersionResponse> {
        counted("version", async {
            let request = v1::VersionRequest { version: check::API_VERSION.to_owned() };
            check::version(call(Some(self.deadlines.base()), self.stub().version(request)).await?)
        })
        .await
    }

    async fn status(&self, verbose: bool) -> RuntimeResult<v1::StatusResponse> {
        counted("status", call(Some(self.deadlines.base()), self.stub().status(v1::StatusRequest { verbose }))).await
    }

    async fn runtime_config(&self) -> RuntimeResult<v1::RuntimeConfigResponse> {
        counted("runtime_config", async {
            let mut stub = self.stub();
            let answer = call(Some(self.deadlines.base()), stub.runtime_config(v1::RuntimeConfigRequest {}));
            self.absent.optional("RuntimeConfig", answer).await
        })
        .await
    }

    async fn update_runtime_config(&self, request: v1::UpdateRuntimeConfigRequest) -> RuntimeResult<()> {
        counted("update_runtime_config", async {
            call(Some(self.deadlines.base()), self.stub().update_runtime_config(request)).await.map(drop)
        })
        .await
    }

    async fn run_pod_sandbox(&self, request: v1::RunPodSandboxRequest) -> RuntimeResult<v1::RunPodSandboxResponse> {
        let (own_users, handler) = (has_own_users(request.config.as_ref()), request.runtime_handler.clone());
        let call = async {
            let name =
                request.config.as_ref().and_then(|c| c.metadata.as_ref()).map(|m| m.name.clone()).unwrap_or_default();
            let answer = call(Some(self.deadlines.sandbox()), self.stub().run_pod_sandbox(request)).await?;
            check::sandbox_id(&answer.pod_sandbox_id, &name)?;
            Ok(answer)
        };
        sandbox(own_users, &handler, call).await
    }

    async fn stop_pod_sandbox(&self, request: v1::StopPodSandboxRequest) -> RuntimeResult<()> {
        counted("stop_podsandbox", async {
            call(Some(self.deadlines.base()), self.stub().stop_pod_sandbox(request)).await.map(drop)
        })
        .await
    }

    async fn remove_pod_sandbox(&self, request: v1::RemovePodSandboxRequest) -> RuntimeResult<()> {
        counted("remove_podsandbox", async {
            call(Some(self.deadlines.base()), self.stub().remove_pod_sandbox(request)).await.map(drop)
        })
        .await
    }

    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> RuntimeResult<v1::PodSandboxStatusResponse> {
        counted("podsandbox_status", async {
            let answer = call(Some(self.deadlines.base()), self.stub().pod_sandbox_status(request)).await?;
            if let Some(status) = &answer.status {
                check::sandbox_status(status)?;
            }
            Ok(answer)
        })
        .await
    }

    async fn list_pod_sandbox(&self, request: v1::ListPodSandboxRequest) -> RuntimeResult<v1::ListPodSandboxResponse> {
        counted("list_podsandbox", call(Some(self.deadlines.base()), self.stub().list_pod_sandbox(request))).await
    }

    async fn update_pod_sandbox_resources(&self, request: v1::UpdatePodSandboxResourcesRequest) -> RuntimeResult<()> {
        counted("update_podsandbox_resources", async {
            let answer = async {
                call(Some(self.deadlines.base()), self.stub().update_pod_sandbox_resources(request)).await.map_err(
                    |e| {
                        // containerd 2.2 has the call, but answers Unknown with these words.
                        if e.code == RuntimeCode::Unknown && e.message.contains("not implemented") {
                            RuntimeError::new(RuntimeCode::Unimplemented, e.message)
                        } else {
                            e
                        }
                    },
                )
            };
            self.absent.optional("UpdatePodSandboxResources", answer).await.map(drop)
        })
        .await
    }

    async fn create_container(
        &self,
        request: v1::CreateContainerRequest,
    ) -> RuntimeResult<v1::CreateContainerResponse> {
        counted("create_container", async {
            let name =
                request.config.as_ref().and_then(|c| c.metadata.as_ref()).map(|m| m.name.clone()).unwrap_or_default();
            let answer = call(Some(self.deadlines.base()), self.stub().create_container(request)).await?;
            check::container_id(&answer.container_id, &name)?;
            Ok(answer)
        })
        .await
    }

    async fn start_container(&self, request: v1::StartContainerRequest) -> RuntimeResult<()> {
        counted("start_container", async {
            call(Some(self.deadlines.base()), self.stub().start_container(request)).await.map(drop)
        })
        .await
    }

    async fn stop_container(&self, request: v1::StopContainerRequest) -> RuntimeResult<()> {
        counted("stop_container", async {
            let limit = self.deadlines.stop(request.timeout);
            call(Some(limit), self.stub().stop_container(request)).await.map(drop)
        })
        .await
    }

    async fn remove_container(&self, request: v1::RemoveContainerRequest) -> RuntimeResult<()> {
        counted("remove_container", async {
            call(Some(self.deadlines.base()), self.stub().remove_container(request)).await.map(drop)
        })
        .await
    }

    async fn list_containers(&self, request: v1::ListContainersRequest) -> RuntimeResult<v1::ListContainersResponse> {
        counted("list_containers", call(Some(self.deadlines.base()), self.stub().list_containers(request))).await
    }

    async fn container_status(
        &self,
        request: v1::ContainerStatusRequest,
    ) -> RuntimeResult<v1::ContainerStatusResponse> {
        counted("container_status", async {
            let answer = call(Some(self.deadlines.base()), self.stub().container_status(request)).await?;
            if let Some(status) = &answer.status {
                check::container_status(status)?;
            }
            Ok(answer)
        })
        .await
    }

    async fn update_container_resources(&self, request: v1::UpdateContainerResourcesRequest) -> RuntimeResult<()> {
        counted("update_container", async {
            call(Some(self.deadlines.base()), self.stub().update_container_resources(request)).await.map(drop)
        })
        .await
    }

    async fn reopen_container_log(&self, request: v1::ReopenContainerLogRequest) -> RuntimeResult<()> {
        counted("reopen_container_log", async {
            call(Some(self.deadlines.base()), self.stub().reopen_container_log(request)).await.map(drop)
        })
        .await
    }

    async fn checkpoint_container(&self, request: v1::CheckpointContainerRequest) -> RuntimeResult<()> {
        counted("checkpoint_container", async {
            let limit = self.deadlines.checkpoint(request.timeout);
            self.absent
                .optional("CheckpointContainer", call(Some(limit), self.stub().checkpoint_container(request)))
                .await
                .map(drop)
        })
        .await
    }

    async fn exec_sync(&self, request: v1::ExecSyncRequest) -> RuntimeResult<v1::ExecSyncResponse> {
        counted("exec_sync", async {
            let limit = self.deadlines.exec(request.timeout);
            call(limit, self.stub().exec_sync(request)).await
        })
        .await
    }

    async fn exec(&self, request: v1::ExecRequest) -> RuntimeResult<v1::ExecResponse> {
        counted("exec", call(Some(self.deadlines.base()), self.stub().exec(request))).await
    }

    async fn attach(&self, request: v1::AttachRequest) -> RuntimeResult<v1::AttachResponse> {
        counted("attach", call(Some(self.deadlines.base()), self.stub().attach(request))).await
    }

    async fn port_forward(&self, request: v1::PortForwardRequest) -> RuntimeResult<v1::PortForwardResponse> {
        counted("port_forward", call(Some(self.deadlines.base()), self.stub().port_forward(request))).await
    }

    async fn list_container_stats(
        &self,
        request: v1::ListContainerStatsRequest,
    ) -> RuntimeResult<v1::ListContainerStatsResponse> {
        counted("list_container_stats", call(Some(self.deadlines.base()), self.stub().list_container_stats(request)))
            .await
    }

    async fn pod_sandbox_stats(
        &self,
        request: v1::PodSandboxStatsRequest,
    ) -> RuntimeResult<v1::PodSandboxStatsResponse> {
        counted("podsandbox_stats", async {
            self.absent
                .optional("PodSandboxStats", call(Some(self.deadlines.base()), self.stub().pod_sandbox_stats(request)))
                .await
        })
        .await
    }

    async fn list_pod_sandbox_stats(
        &self,
        request: v1::ListPodSandboxStatsRequest,
    ) -> RuntimeResult<v1::ListPodSandboxStatsResponse> {
        counted("list_podsandbox_stats", async {
            self.absent
                .optional(
                    "ListPodSandboxStats",
                    call(Some(self.deadlines.base()), self.stub().list_pod_sandbox_stats(request)),
                )
                .await
        })
        .await
    }

    async fn events(&self) -> RuntimeResult<EventStream> {
        events::subscribe(self).await
    }
}
