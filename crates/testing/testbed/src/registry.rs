//! A real registry on loopback, open or with a password, and the images pushed into it.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::file;
use crate::{BedError, Image, TestBed, command, config, wait_until};

/// User and password that a registry asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Anyone may pull.
    Open,
    /// Only [`Registry::USER`] with [`Registry::PASSWORD`] may.
    Password,
}

/// A running registry; ends with its bed.
pub struct Registry {
    port: u16,
    dir: PathBuf,
    login: Login,
}

impl Registry {
    /// The only user of a registry with [`Login::Password`].
    pub const USER: &str = "tester";
    /// That user's password.
    pub const PASSWORD: &str = "secret";
    /// bcrypt of the password, cost 5 (the only scheme that docker-registry reads).
    const HTPASSWD: &str = "tester:$2b$05$ZG6cjgoHu7u3RLZYBXcChO.eFIyn4Kg4rsZvg7hnQhWChE2Iaf9Su\n";

    /// Starts a registry that containerd reaches under the name `host` (for example `registry.example`).
    ///
    /// # Errors
    /// When it does not start or does not answer.
    pub fn start(bed: &mut TestBed, host: &str, login: Login) -> Result<Self, BedError> {
        let port = free_port()?;
        let dir = bed.dir().join(format!("registry-{port}"));
        file("create", &dir, std::fs::create_dir_all(&dir))?;
        let htpasswd = dir.join("htpasswd");
        file("write", &htpasswd, std::fs::write(&htpasswd, Self::HTPASSWD))?;
        let text = config::registry(&dir, port, (login == Login::Password).then_some(htpasswd.as_path()));
        let path = dir.join("config.yml");
        file("write", &path, std::fs::write(&path, text))?;
        let mirror = bed.dir().join("certs.d").join(host);
        file("create", &mirror, std::fs::create_dir_all(&mirror))?;
        let hosts = mirror.join("hosts.toml");
        file("write", &hosts, std::fs::write(&hosts, config::mirror(host, port)))?;
        let log = dir.join("registry.log");
        bed.spawn(std::process::Command::new("docker-registry").arg("serve").arg(&path), &log)?;
        wait_until("the registry to listen", Duration::from_secs(10), || {
            std::net::TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|e| e.to_string())
        })?;
        Ok(Registry { port, dir, login })
    }

    /// Port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Pushes an image as `repository` (with tag, without host).
    ///
    /// # Errors
    /// When skopeo or the registry refuses.
    pub fn push(&self, image: &Image, repository: &str) -> Result<(), BedError> {
        let archive = image.write_archive(&self.dir)?;
        let target = format!("docker://127.0.0.1:{}/{repository}", self.port);
        let source = format!("docker-archive:{}", archive.display());
        let login = format!("{}:{}", Self::USER, Self::PASSWORD);
        let mut args = vec!["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"];
        if self.login == Login::Password {
            args.extend(["--dest-creds", &login]);
        }
        args.extend([source.as_str(), target.as_str()]);
        command::run("skopeo", args).map(drop)
    }
}

/// A TCP port of 127.0.0.1 that nobody listens on now.
pub(crate) fn free_port() -> Result<u16, BedError> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
    listener
        .and_then(|l| l.local_addr())
        .map(|a| a.port())
        .map_err(|e| BedError::Machine(format!("no free port on 127.0.0.1: {e}")))
}
