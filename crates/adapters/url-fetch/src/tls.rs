//! TLS towards servers that the machine's authorities vouch for.

use std::sync::Arc;

use actor::{Class, Effects};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

pub(crate) async fn wrap(effects: &Effects, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let roots = effects.blocking(Class::HostFiles, ::tls::system_authorities).await;
    let roots = roots.ok_or("this machine has no certificate authorities")?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("{host} is no name of a server"))?;
    let config = ::tls::client(::tls::Trust::Authorities(roots)).with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| e.to_string())
}
