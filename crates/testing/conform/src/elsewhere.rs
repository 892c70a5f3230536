//! A manager in a process of its own.

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Spec};
use contract::seam::StandIn;
use contract::{Answers, Role, Wiring};
use fakes::MemoryJournal;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use model::unix_address::UnixAddress;
use remote_manager::{Life, Link, Remote, To, WhenAway};
use tempfile::TempDir;

use crate::outcome::{Broken, Outcome};
use crate::outside::{self, Ground};
use crate::subject::{Place, Served, Subject};
use crate::watch::until;

/// How long a process may take to serve.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the process is reached.
#[derive(Debug, Clone)]
pub enum Way {
    /// It runs already and listens there. It cannot be killed from here: a connection that is cut stands for that.
    At {
        /// Where it listens.
        address: UnixAddress,
        /// Where it looks for the runtime's image service: the suite serves one there.
        runtime: Option<UnixAddress>,
        /// Which folder is its root directory of the node.
        root_dir: Option<PathBuf>,
    },
    /// This program is started for each case, with these words and `--at unix:///PATH`, and killed. Its environment says where
    /// the runtime's image service is (`IMAGE_SERVICE_ENDPOINT`), and which folder is the root directory of the node
    /// (`BOSUN_ROOT_DIR`).
    Run(Vec<OsString>),
}

/// A manager in a process of its own.
#[derive(Debug, Clone)]
pub struct Elsewhere(pub Way);

impl Elsewhere {
    /// Nothing of others is in the way at the places that were named for the suite.
    ///
    /// # Errors
    /// Somebody serves there, or there are pods.
    pub fn check(&self) -> Outcome {
        match &self.0 {
            Way::At { runtime, root_dir, .. } => {
                outside::check(runtime.as_ref().map(UnixAddress::socket), root_dir.as_deref())
            }
            Way::Run(_) => Ok(()),
        }
    }
}

impl<R: Role> Subject<R> for Elsewhere
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    fn name(&self) -> String {
        match &self.0 {
            Way::At { address, .. } => address.to_string(),
            Way::Run(words) => words.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" "),
        }
    }

    fn is_real(&self) -> bool {
        true
    }

    fn is_new(&self) -> bool {
        matches!(self.0, Way::Run(_))
    }

    fn at_once(&self) -> usize {
        match self.0 {
            // One node at a time is served.
            Way::At { .. } => 1,
            Way::Run(_) => 6,
        }
    }

    fn begin<'a>(&'a self, place: &'a Place) -> LocalBoxFuture<'a, Outcome<Box<dyn Served>>> {
        async move {
            let (address, process) = match &self.0 {
                Way::At { address, runtime, root_dir } => {
                    let runtime = runtime.as_ref().map(UnixAddress::socket);
                    place.outside.serve(runtime, root_dir.as_deref())?;
                    (address.clone(), None)
                }
                Way::Run(words) => {
                    let process = Process::new(words, place.outside.serve(None, None)?)?;
                    (process.address()?, Some(process))
                }
            };
            let way = Line {
                address,
                kernel: place.kernel.clone(),
                wiring: place.wiring.clone(),
                journal: place.journal.clone(),
            };
            let connected = RefCell::new(way.connect::<R>());
            let there = There::<R> { way, connected, process: RefCell::new(process) };
            there.up().await?;
            let there: Box<dyn Served> = Box::new(there);
            Ok(there)
        }
        .boxed_local()
    }
}

/// A program that is killed with this.
struct Process {
    words: Vec<OsString>,
    ground: Ground,
    folder: TempDir,
    child: Child,
}

impl Process {
    fn new(words: &[OsString], ground: Ground) -> Outcome<Self> {
        let failed = |what: &str, e: std::io::Error| Broken(format!("{what}: {e}"));
        let folder = tempfile::tempdir().map_err(|e| failed("a folder for its socket", e))?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))
            .map_err(|e| failed("a folder for its socket", e))?;
        let child = start(words, &ground, folder.path())?;
        Ok(Process { words: words.to_owned(), ground, folder, child })
    }

    fn address(&self) -> Outcome<UnixAddress> {
        UnixAddress::parse(&at(self.folder.path())).map_err(|e| Broken(e.to_string()))
    }

    fn kill(&mut self) {
        let _gone_already = self.child.kill();
        let _reaped = self.child.wait();
    }

    fn again(&mut self) -> Outcome {
        self.kill();
        self.child = start(&self.words, &self.ground, self.folder.path())?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn at(folder: &Path) -> String {
    format!("unix://{}/manager.sock", folder.display())
}

fn start(words: &[OsString], ground: &Ground, folder: &Path) -> Outcome<Child> {
    let (program, words) = words.split_first().ok_or_else(|| Broken("no program is named".to_owned()))?;
    let mut command = Command::new(program);
    command.args(words).args(["--at", &at(folder)]);
    command.env("IMAGE_SERVICE_ENDPOINT", &ground.endpoint).env("BOSUN_ROOT_DIR", &ground.root);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|e| Broken(format!("{}: {e}", program.display())))
}

/// What a connection is made of.
struct Line {
    address: UnixAddress,
    kernel: actor::Kernel,
    wiring: Wiring,
    journal: Arc<MemoryJournal>,
}

type Connected<R> = (ActorRef<StandIn<R, Remote<R>>>, Link);

impl Line {
    fn connect<R: Role>(&self) -> Connected<R>
    where
        StandIn<R, Remote<R>>: Answers<R>,
    {
        let link = Link::default();
        let to = To {
            address: self.address.clone(),
            when_away: WhenAway::Hold,
            link: link.clone(),
            is_here: Arc::new(|_| true),
            journal: Some(self.journal.clone()),
        };
        let crew = self.wiring.crew::<R>();
        let spec = Spec::new(R::DECLARATION.actor);
        let stand_in = self.kernel.spawn(spec, move |_| Remote::stand_in(crew.succeed(), to.clone()));
        self.wiring.connect::<R, _>(&stand_in);
        (stand_in, link)
    }
}

struct There<R: Role> {
    way: Line,
    connected: RefCell<Connected<R>>,
    process: RefCell<Option<Process>>,
}

impl<R: Role> There<R> {
    fn link(&self) -> Link {
        self.connected.borrow().1.clone()
    }

    async fn up(&self) -> Outcome {
        let life = self.link().life();
        let up = || matches!(*life.borrow(), Life::Up { .. });
        until("it serves", PATIENCE, up)
            .await
            .map_err(|_| Broken(format!("it does not serve within {PATIENCE:?}: {:?}", *life.borrow())))
    }
}

impl<R: Role> Served for There<R>
where
    StandIn<R, Remote<R>>: Answers<R>,
{
    fn crash(&self) -> LocalBoxFuture<'_, Outcome> {
        async move {
            let lives = self.link().status().lives;
            let is_ours = self.process.borrow().is_some();
            if is_ours {
                self.process.borrow_mut().as_mut().map_or(Ok(()), Process::again)?;
                let link = self.link();
                return until("it serves again", PATIENCE, || link.status().lives > lives).await;
            }
            // The process ends the life of an older connection when a newer one comes; who asks meanwhile waits for that.
            let (former, _) = self.connected.replace(self.way.connect::<R>());
            former.stop();
            former.stopped().await;
            self.up().await
        }
        .boxed_local()
    }

    fn end(&self) -> LocalBoxFuture<'_, ()> {
        async move {
            let stand_in = self.connected.borrow().0.clone();
            stand_in.stop();
            let _gone_or_stuck = tokio::time::timeout(PATIENCE, stand_in.stopped()).await;
            *self.process.borrow_mut() = None;
        }
        .boxed_local()
    }

    fn misdeeds(&self) -> Vec<String> {
        let status = self.link().status();
        if status.lies() == 0 { Vec::new() } else { vec![format!("it said what its role may not: {status:?}")] }
    }
}
