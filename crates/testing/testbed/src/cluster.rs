//! A real control plane for a bed: etcd, kube-apiserver and kube-controller-manager with certificates of its own.
//!
//! The API server listens on an address of the bed's bridge that is also the cluster IP of the service `kubernetes`, so
//! that pods reach it without a kube-proxy. It authorizes nodes as a production one does (Node, RBAC, NodeRestriction).

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bed::tail;
use crate::error::file;
use crate::process::ProcessId;
use crate::{BedError, TestBed, command, wait_until};

mod access;
mod audit;
mod authority;
mod bootstrap;
mod flags;
mod programs;
mod watch;

pub use access::{Access, Answer};
pub use audit::Request;
pub use authority::{Authority, KeyPairFiles, Subject};
pub use flags::ClusterOptions;
pub use programs::{CONTROL_PLANE, ControlPlane, ETCD};
pub use watch::{Seen, Watch};

/// Longer than a start takes on two busy cores.
const START: Duration = Duration::from_secs(90);

/// One program of the control plane.
struct Part {
    name: &'static str,
    child: Option<Child>,
}

impl Part {
    fn process(&self) -> Option<ProcessId> {
        let pid = self.child.as_ref()?.id();
        i32::try_from(pid).ok().and_then(ProcessId::of)
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process() {
            process.signal(signal);
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A control plane in a bed. Dropping it ends its processes; its files go with the bed.
pub struct Cluster {
    options: ClusterOptions,
    programs: ControlPlane,
    dir: PathBuf,
    address: String,
    etcd_ports: (u16, u16),
    authority: Authority,
    admin: Access,
    admin_files: KeyPairFiles,
    etcd: Part,
    apiserver: Part,
    controllers: Part,
}

impl Cluster {
    /// The node name that [`crate::BosunOptions`] gives by default.
    pub const NODE: &str = "bed";
    /// A bootstrap token that every cluster knows, in the form that kubeconfigs carry.
    pub const BOOTSTRAP_TOKEN: &str = bootstrap::TOKEN;

    /// Starts a control plane: the API server is ready, the controllers have made the default service account, and
    /// nodes may bootstrap when it returns.
    ///
    /// # Errors
    /// When a program is missing (`cargo xtask setup --cluster` brings them) or does not serve in time; the end of
    /// its log is in the error.
    pub fn start(bed: &mut TestBed, options: ClusterOptions) -> Result<Self, BedError> {
        let programs = ControlPlane::find()?;
        let dir = bed.dir().join("cluster");
        for folder in ["pki", "etcd", "kubeconfigs"] {
            let path = dir.join(folder);
            file("create", &path, std::fs::create_dir_all(&path))?;
        }
        // etcd syncs each write to the disk; in memory that costs nothing. The bed unmounts what is mounted in it.
        let etcd = dir.join("etcd").to_string_lossy().into_owned();
        command::run("mount", ["-t", "tmpfs", "-o", "size=512m", "tmpfs", &etcd])?;
        let address = bed.claim_service_address()?;
        let authority = Authority::create(&dir.join("pki"), &address)?;
        let admin_files = authority.issue(&Subject::admin())?;
        let admin = Access::new(&address, &authority.certificate()?, Some(&admin_files), None)?;
        let etcd_ports = (crate::registry::free_port()?, crate::registry::free_port()?);
        let part = |name| Part { name, child: None };
        let mut cluster = Cluster {
            options,
            programs,
            dir,
            address,
            etcd_ports,
            authority,
            admin,
            admin_files,
            etcd: part("etcd"),
            apiserver: part("kube-apiserver"),
            controllers: part("kube-controller-manager"),
        };
        cluster.write_files()?;
        cluster.start_all(bed)?;
        Ok(cluster)
    }

    fn write_files(&self) -> Result<(), BedError> {
        let policy = self.dir.join("audit-policy.yaml");
        file("write", &policy, std::fs::write(&policy, audit::POLICY))?;
        self.kubeconfig("admin", &user(&self.admin_files))?;
        Ok(())
    }

    fn start_all(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        self.start_etcd(bed)?;
        self.start_apiserver(bed)?;
        (self.options.say)("objects that let nodes bootstrap");
        for (path, object) in bootstrap::objects() {
            let (admin, what) = (self.admin.clone(), format!("{path} to take {}", object["metadata"]["name"]));
            wait_until(&what, START, || match admin.request("POST", path, Some(&object)) {
                Ok(answer) if answer.good() || answer.code == 409 => Ok(()),
                Ok(answer) => Err(format!("{}: {}", answer.code, answer.body)),
                Err(e) => Err(e.to_string()),
            })?;
        }
        self.start_controllers(bed)?;
        let there = || self.admin.get("/api/v1/namespaces/default/services/kubernetes").map_err(|e| e.to_string());
        wait_until("the service of the API server", START, there).map_err(|e| self.with_log(e, "apiserver"))?;
        self.await_namespace("default").map_err(|e| self.with_log(e, "controllers"))
    }

    fn launch(&mut self, bed: &mut TestBed, which: Which, command: &mut Command) -> Result<(), BedError> {
        let log = self.log_path(which);
        let child = bed.spawn_logged(command, &log)?;
        self.part(which).child = Some(child);
        Ok(())
    }

    fn part(&mut self, which: Which) -> &mut Part {
        match which {
            Which::Etcd => &mut self.etcd,
            Which::ApiServer => &mut self.apiserver,
            Which::Controllers => &mut self.controllers,
        }
    }

    fn start_etcd(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        (self.options.say)("etcd");
        let mut start = Command::new(&self.programs.etcd);
        start.args(flags::etcd(&self.dir, self.etcd_ports)).env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH);
        self.launch(bed, Which::Etcd, &mut start)?;
        let port = self.etcd_ports.0;
        wait_until("etcd to listen", START, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|e| e.to_string())
        })
        .map_err(|e| self.with_log(e, "etcd"))
    }

    /// Starts the API server (again) and waits until it is ready.
    ///
    /// # Errors
    /// When it ends or is not ready in time; the end of its log is in the error.
    pub fn start_apiserver(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        (self.options.say)("kube-apiserver");
        let mut start = Command::new(&self.programs.apiserver);
        start.args(flags::apiserver(&self.dir, &self.address, self.etcd_ports.0, self.programs.minor()));
        start.args(&self.options.apiserver_flags);
        self.launch(bed, Which::ApiServer, &mut start)?;
        let admin = self.admin.clone();
        let ready = |part: &mut Part| {
            if let Some(Ok(Some(status))) = part.child.as_mut().map(Child::try_wait) {
                return Err(format!("{} ended with {status}", part.name));
            }
            let answer = admin.request("GET", "/readyz", None).map_err(|e| e.to_string())?;
            if answer.good() { Ok(()) } else { Err(answer.body.to_string()) }
        };
        wait_until("kube-apiserver to be ready", START, || ready(&mut self.apiserver))
            .map_err(|e| self.with_log(e, "apiserver"))
    }

    /// Waits until pods can start in a namespace: until its account is there, and every configMap that the server puts into a
    /// pod's token volume. Servers of some distributions name one there that a controller of theirs makes: it is made, with empty keys.
    ///
    /// # Errors
    /// When the controllers do not make the rest, or the server refuses a pod.
    pub fn await_namespace(&self, namespace: &str) -> Result<(), BedError> {
        let path = format!("/api/v1/namespaces/{namespace}");
        let account = format!("{path}/serviceaccounts/default");
        wait_until(&account, START, || self.admin.get(&account).map(drop).map_err(|e| e.to_string()))?;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trial"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = self.admin.create(&format!("{path}/pods?dryRun=All"), &pod)?;
        for map in bootstrap::config_maps_of(&pod).filter(|m| m["metadata"]["name"] != bootstrap::ROOT_CERTIFICATE) {
            let answer = self.admin.request("POST", &format!("{path}/configmaps"), Some(&map))?;
            if !answer.good() && answer.code != 409 {
                let from = format!("kube-apiserver (POST {path}/configmaps)");
                return Err(BedError::Answer { from, detail: format!("{}: {}", answer.code, answer.body) });
            }
        }
        let root = format!("{path}/configmaps/{}", bootstrap::ROOT_CERTIFICATE);
        wait_until(&root, START, || self.admin.get(&root).map(drop).map_err(|e| e.to_string()))
    }

    /// Starts the controllers (again); does not wait.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start_controllers(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        (self.options.say)("kube-controller-manager");
        let kubeconfig = self.kubeconfig("controllers", &user(&self.admin_files))?;
        let mut start = Command::new(&self.programs.controller_manager);
        start.args(flags::controllers(&self.dir, &kubeconfig, &self.options, self.programs.controllers_minor()));
        self.launch(bed, Which::Controllers, &mut start)
    }

    /// Ends the API server as a lost machine does: connections are closed at once, nothing is said.
    pub fn stop_apiserver(&mut self) {
        self.apiserver.kill();
    }

    /// Ends the controllers.
    pub fn stop_controllers(&mut self) {
        self.controllers.kill();
    }

    /// Freezes the API server: it accepts connections and says nothing.
    pub fn pause_apiserver(&self) {
        self.apiserver.signal(Signal::STOP);
    }

    /// Lets a frozen API server go on.
    pub fn resume_apiserver(&self) {
        self.apiserver.signal(Signal::CONT);
    }

    /// Ends everything, forgets every object, and starts again with the same certificates.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn restart_empty(&mut self, bed: &mut TestBed) -> Result<(), BedError> {
        for part in [&mut self.controllers, &mut self.apiserver, &mut self.etcd] {
            part.kill();
        }
        let member = self.dir.join("etcd/member");
        file("remove", &member, std::fs::remove_dir_all(&member))?;
        self.start_all(bed)
    }

    /// Processor time of the control plane's programs since their starts.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        let parts = [&self.etcd, &self.apiserver, &self.controllers];
        let processes = parts.into_iter().filter_map(|part| part.child.as_ref());
        processes.filter_map(|child| crate::usage(child.id())).map(|u| u.cpu).sum()
    }

    /// A client with all rights.
    #[must_use]
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// A client that shows nothing.
    ///
    /// # Errors
    /// When the authority's certificate cannot be read.
    pub fn anonymous(&self) -> Result<Access, BedError> {
        Access::new(&self.address, &self.authority.certificate()?, None, None)
    }

    /// A client that shows this service-account (or bootstrap) token.
    ///
    /// # Errors
    /// When the authority's certificate cannot be read.
    pub fn with_token(&self, token: &str) -> Result<Access, BedError> {
        Access::new(&self.address, &self.authority.certificate()?, None, Some(token))
    }

    /// A client with this certificate and key (PEM files), for example a node's own.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn with_certificate(&self, files: &KeyPairFiles) -> Result<Access, BedError> {
        Access::new(&self.address, &self.authority.certificate()?, Some(files), None)
    }

    /// The authority that signs everything in this cluster.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// `https://ADDRESS:443`.
    #[must_use]
    pub fn server(&self) -> String {
        format!("https://{}:443", self.address)
    }

    /// Address of the API server; also the cluster IP of the service `kubernetes`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the API server calls its version: `v1.20.2`.
    #[must_use]
    pub fn version(&self) -> String {
        self.programs.version()
    }

    /// Minor version of the API server: 20.
    #[must_use]
    pub fn minor(&self) -> u32 {
        self.programs.minor()
    }

    /// The kubectl that goes with this cluster; a static program when setup built it.
    #[must_use]
    pub fn kubectl_program(&self) -> &Path {
        &self.programs.kubectl
    }

    fn kubeconfig(&self, name: &str, user: &Value) -> Result<PathBuf, BedError> {
        let path = self.dir.join("kubeconfigs").join(format!("{name}.conf"));
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bed",
            "clusters": [{"name": "bed", "cluster": {
                "server": self.server(), "certificate-authority": self.authority.certificate_path()}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": name}}],
        });
        let text = serde_json::to_string_pretty(&text).unwrap_or_default();
        file("write", &path, std::fs::write(&path, text))?;
        Ok(path)
    }

    /// A kubeconfig with all rights.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfigs/admin.conf")
    }

    /// A kubeconfig of the node `name`, with a certificate of its own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn node_kubeconfig(&self, name: &str) -> Result<PathBuf, BedError> {
        let files = self.authority.issue(&Subject::node(name))?;
        self.kubeconfig(&format!("node-{name}"), &user(&files))
    }

    /// A kubeconfig that only holds [`Cluster::BOOTSTRAP_TOKEN`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn bootstrap_kubeconfig(&self) -> Result<PathBuf, BedError> {
        self.kubeconfig("bootstrap", &json!({"token": Self::BOOTSTRAP_TOKEN}))
    }

    /// Runs kubectl with all rights and answers what it printed.
    ///
    /// # Errors
    /// When it ends with an error; what it printed is in it.
    pub fn kubectl(&self, args: &[&str]) -> Result<String, BedError> {
        command::run_command(&mut self.kubectl_command(args))
    }

    /// kubectl with all rights, ready to be started with streams of one's own.
    #[must_use]
    pub fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut run = Command::new(&self.programs.kubectl);
        run.arg("--kubeconfig").arg(self.admin_kubeconfig()).args(args).env("HOME", &self.dir);
        run
    }

    /// `kubectl apply` of one object.
    ///
    /// # Errors
    /// As [`Cluster::kubectl`].
    pub fn apply(&self, object: &Value) -> Result<String, BedError> {
        let path = self.dir.join("apply.json");
        file("write", &path, std::fs::write(&path, object.to_string()))?;
        self.kubectl(&["apply", "-f", &path.to_string_lossy()])
    }

    /// Every finished request of `user` that the API server saw, oldest first; long-running ones when they began.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn requests_by(&self, user: &str) -> Result<Vec<Request>, BedError> {
        let path = self.dir.join("audit.log");
        let text = file("read", &path, std::fs::read_to_string(&path))?;
        Ok(audit::requests(&text).into_iter().filter(|r| r.user == user).collect())
    }

    fn log_path(&self, which: Which) -> PathBuf {
        self.dir.join(match which {
            Which::Etcd => "etcd.log",
            Which::ApiServer => "apiserver.log",
            Which::Controllers => "controllers.log",
        })
    }

    /// The end of a log: `etcd`, `apiserver` or `controllers`.
    #[must_use]
    pub fn log(&self, name: &str) -> String {
        tail(&self.dir.join(format!("{name}.log")), 30)
    }

    fn with_log(&self, error: BedError, name: &str) -> BedError {
        match error {
            BedError::Timeout { what, limit, detail } => {
                BedError::Timeout { what, limit, detail: format!("{detail}\n{}", self.log(name)) }
            }
            e => e,
        }
    }
}

fn user(files: &KeyPairFiles) -> Value {
    json!({"client-certificate": files.certificate, "client-key": files.key})
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Etcd,
    ApiServer,
    Controllers,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for part in [&mut self.controllers, &mut self.apiserver, &mut self.etcd] {
            part.kill();
        }
    }
}
