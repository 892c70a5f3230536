//! The registration of plugins.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use csi_api::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use ports::grpc::Code;
use ports::plugin::{PluginError, PluginRegistration};

use crate::CsiClient;
use crate::client::{CALLS, Failure};
use crate::stubs::registration::registration_client::RegistrationClient;

/// Largest answer that is accepted: a few names.
const MAX_MESSAGE: usize = 64 << 10;

impl From<Failure> for PluginError {
    fn from(e: Failure) -> Self {
        match e {
            Failure::NoPlace => {
                let message = format!("{CALLS} calls to the plugin are under way already");
                Self { code: Code::Unavailable, message }
            }
            Failure::Status(code, message) => Self { code, message },
        }
    }
}

#[async_trait]
impl PluginRegistration for CsiClient {
    async fn get_info(&self, socket: &Path, deadline: Duration) -> Result<PluginInfo, PluginError> {
        let call = self.call(socket, deadline, |channel, origin| async move {
            let plugin = RegistrationClient::with_origin(channel, origin);
            plugin.max_decoding_message_size(MAX_MESSAGE).get_info(InfoRequest {}).await
        });
        call.await.map_err(PluginError::from)
    }

    async fn notify(&self, socket: &Path, status: RegistrationStatus, deadline: Duration) -> Result<(), PluginError> {
        let call = self.call(socket, deadline, |channel, origin| async move {
            let plugin = RegistrationClient::with_origin(channel, origin);
            plugin.max_decoding_message_size(MAX_MESSAGE).notify_registration_status(status).await
        });
        call.await.map(drop).map_err(PluginError::from)
    }
}
