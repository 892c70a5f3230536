//! The node around one manager.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actor::{AskError, Kernel};
use contract::record::{Entry, Recorder};
use contract::seam::Posted;
use contract::{Role, RoleMessage, Wiring};
use fakes::MemoryJournal;
use model::Timestamp;
use model::core::Pod;
use serde::de::DeserializeOwned;

use crate::outcome::{Broken, Outcome};
use crate::outside::Outside;
use crate::subject::{Place, Served, Subject};

/// The node around one manager: routes, boards, a journal, and who is tried. Clones share it.
pub struct Stage<R: Role> {
    inner: Rc<Inner<R>>,
}

struct Inner<R: Role> {
    tag: String,
    subject: Arc<dyn Subject<R>>,
    place: Place,
    posts: Posts,
    served: std::cell::RefCell<Option<Rc<dyn Served>>>,
}

impl<R: Role> Clone for Stage<R> {
    fn clone(&self) -> Self {
        Stage { inner: self.inner.clone() }
    }
}

impl<R: Role> std::fmt::Debug for Stage<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({}, {})", R::NAME, self.inner.tag)
    }
}

/// A row that was posted: its name, its key as JSON, itself as JSON; without the latter it is gone.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) what: &'static str,
    pub(crate) key: String,
    pub(crate) row: Option<String>,
}

/// All that a role posted, in order.
#[derive(Clone, Default)]
struct Posts(Arc<Mutex<Vec<Post>>>);

struct Note {
    role: &'static str,
    posts: Posts,
}

impl Recorder for Note {
    fn entry(&self, entry: &Entry) {
        let Some((key, row)) = entry.body.split_once(' ').filter(|_| entry.from == self.role && entry.to.is_empty())
        else {
            return;
        };
        let row = (row != "gone").then(|| row.to_owned());
        let post = Post { what: entry.what, key: key.to_owned(), row };
        self.posts.0.lock().unwrap_or_else(PoisonError::into_inner).push(post);
    }
}

impl<R: Role> Stage<R> {
    /// A node whose rows and journal are empty. `tag` is part of every UID.
    pub(crate) fn new(tag: String, kernel: Kernel, subject: Arc<dyn Subject<R>>) -> Self {
        Self::with(tag, kernel, subject, Arc::default(), Outside::new())
    }

    fn with(
        tag: String,
        kernel: Kernel,
        subject: Arc<dyn Subject<R>>,
        journal: Arc<MemoryJournal>,
        outside: Outside,
    ) -> Self {
        let wiring = Wiring::default();
        // As in a node: what the role should be told again is kept.
        let _seat = wiring.seat::<R>(kernel.clock());
        let posts = Posts::default();
        wiring.record(Note { role: R::NAME, posts: posts.clone() });
        let place = Place { kernel, wiring, journal, outside };
        Stage { inner: Rc::new(Inner { tag, subject, place, posts, served: std::cell::RefCell::default() }) }
    }

    /// Routes and boards.
    #[must_use]
    pub fn wiring(&self) -> &Wiring {
        &self.inner.place.wiring
    }

    /// The node's journal.
    #[must_use]
    pub fn journal(&self) -> &MemoryJournal {
        &self.inner.place.journal
    }

    /// What the manager itself reaches outside.
    #[must_use]
    pub fn outside(&self) -> &Outside {
        &self.inner.place.outside
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.inner.place.kernel.clock().unix_nanos())
    }

    /// Somebody sets the wall clock, by so many nanoseconds. A manager in another process has the machine's own, which stays.
    pub fn set_clock_by(&self, nanos: i64) {
        self.inner.place.kernel.clock().set_by(nanos);
    }

    /// The manager lives on the real clock: what it does may come later than it should.
    pub(crate) fn is_real(&self) -> bool {
        self.inner.subject.is_real()
    }

    /// A UID that no other case has.
    #[must_use]
    pub fn uid(&self, word: &str) -> String {
        format!("{}-{word}", self.inner.tag)
    }

    /// Rows so far.
    pub(crate) fn mark(&self) -> usize {
        self.inner.posts.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Rows since then, in order.
    pub(crate) fn posts_since(&self, mark: usize) -> Vec<Post> {
        self.inner.posts.0.lock().unwrap_or_else(PoisonError::into_inner)[mark..].to_vec()
    }

    /// Rows about a pod that were posted since then, in order; `None`: it is gone.
    pub(crate) fn rows_since<P>(&self, mark: usize, pod: &Pod) -> Outcome<Vec<Option<P>>>
    where
        P: Posted<By = R> + DeserializeOwned,
    {
        let key = serde_json::to_string(&model::pod::uid(pod)).unwrap_or_default();
        let posts = self.posts_since(mark).into_iter().filter(|p| p.what == P::NAME && p.key == key);
        let read = |row: String| serde_json::from_str(&row).map_err(|e| Broken(format!("row {row:?}: {e}")));
        posts.map(|post| post.row.map(read).transpose()).collect()
    }

    /// The manager takes the place. A case that begins with rows of a former one posts them before.
    ///
    /// # Errors
    /// It does not come.
    pub async fn begin(&self) -> Outcome {
        let served = self.inner.subject.begin(&self.inner.place).await?;
        *self.inner.served.borrow_mut() = Some(served.into());
        Ok(())
    }

    fn served(&self) -> Outcome<Rc<dyn Served>> {
        self.inner.served.borrow().clone().ok_or_else(|| Broken("nobody has the place".to_owned()))
    }

    /// The manager dies in the middle of what it does. Its successor serves when this ends.
    ///
    /// # Errors
    /// There is none.
    pub async fn crash(&self) -> Outcome {
        self.served()?.crash().await
    }

    /// Another process of the same manager takes the place: it has the rows and the journal of the one before, and is told what
    /// the role declares as remembered.
    ///
    /// # Errors
    /// It does not come.
    pub async fn take_over(&self) -> Outcome {
        self.served()?.end().await;
        self.begin().await
    }

    /// The whole daemon dies and is started again: of all that there was only the journal is left, and
    /// what lies outside.
    ///
    /// # Errors
    /// Who has the place is gone already.
    pub async fn restart_daemon(&self) -> Outcome<Self> {
        self.served()?.end().await;
        // Whatever is written soon is on the disk by now.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Inner { tag, subject, place, .. } = &*self.inner;
        let Place { kernel, journal, outside, .. } = place;
        Ok(Self::with(tag.clone(), kernel.clone(), subject.clone(), journal.clone(), outside.clone()))
    }

    /// Asks, and once more when nobody answered: what the declaration says that a caller does.
    ///
    /// # Errors
    /// No answer.
    pub async fn ask<M: RoleMessage<To = R>>(&self, message: M) -> Outcome<M::Result> {
        match self.wiring().ask(message.clone()).await {
            Err(AskError::Crashed | AskError::NotDelivered) => self.wiring().ask(message).await,
            answer => answer,
        }
        .map_err(|e| Broken(format!("{} was not answered: {e}", M::NAME)))
    }

    /// Ends it, and says what it did that no manager may.
    pub(crate) async fn close(&self) -> Outcome {
        let Some(served) = self.inner.served.borrow_mut().take() else { return Ok(()) };
        let misdeeds = served.misdeeds();
        served.end().await;
        if misdeeds.is_empty() { Ok(()) } else { Err(Broken(misdeeds.join("; "))) }
    }
}
