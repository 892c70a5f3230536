//! Boards by their names: what is followed, and where rows that come are posted.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use contract::seam::{Feed, Posted, Refusal, Taken, Taker, Visit};
use contract::{Crew, Reads, Role, Wiring};
use model::PodUid;

use crate::v1::Rows;

/// Where rows of the other side are posted, and nowhere else.
#[derive(Default)]
pub struct Boards {
    by_name: BTreeMap<&'static str, Box<dyn Taker>>,
}

impl fmt::Debug for Boards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// The boards of a role, by name.
pub type Feeds = Vec<(&'static str, Box<dyn Feed>)>;

impl Boards {
    /// What a role posts, posted with its right to.
    #[must_use]
    pub fn posts_of<R: Role>(crew: &Crew<R>) -> Self {
        let mut meeting = Posts { crew: crew.clone(), boards: Boards::default() };
        R::meet(&mut meeting);
        meeting.boards
    }

    /// What a role posts, and what it reads, for one that begins elsewhere: its own rows once, the others for good.
    #[must_use]
    pub fn feeds_of<R: Role>(crew: &Crew<R>) -> (Feeds, Feeds) {
        let mut meeting = Read { crew: crew.clone(), own: Vec::new(), others: Vec::new() };
        R::meet(&mut meeting);
        (meeting.own, meeting.others)
    }

    /// As [`Self::feeds_of`], for one that does not have the place: whoever has it keeps its right to post.
    #[must_use]
    pub fn shown_to<R: Role>(wiring: &Wiring) -> (Feeds, Feeds) {
        let mut meeting = Shown { wiring: wiring.clone(), own: Vec::new(), others: Vec::new() };
        R::meet(&mut meeting);
        (meeting.own, meeting.others)
    }

    /// In a process where nobody but one manager is: mirrors of what it reads and of what it posted before.
    #[must_use]
    pub fn mirrors_of<R: Role>(wiring: &Wiring) -> Self {
        let crews = BTreeMap::new();
        let mut meeting = Mirrors { wiring: wiring.clone(), boards: Boards::default(), crews };
        R::meet(&mut meeting);
        meeting.boards
    }

    /// What a role posts in a wiring.
    #[must_use]
    pub fn own_feeds_of<R: Role>(wiring: &Wiring) -> Feeds {
        Self::shown_to::<R>(wiring).0
    }

    /// Posts rows. One of a board that is not here is refused, and so is a pod's where `is_here` does not know the pod.
    pub fn take(&mut self, rows: Rows, is_here: &dyn Fn(&PodUid) -> bool) -> Taken {
        let Rows { board, whole, more, rows, .. } = rows;
        match self.by_name.get_mut(board.as_str()) {
            Some(taker) => taker.take(rows.into_iter().map(|r| (r.key, r.value)).collect(), (whole, more), is_here),
            None => Taken { posted: 0, refused: vec![Refusal::Unreadable(format!("there is no board {board:?}"))] },
        }
    }
}

struct Posts<R: Role> {
    crew: Crew<R>,
    boards: Boards,
}

impl<R: Role> Visit<R> for Posts<R> {
    fn posts<P: Posted<By = R>>(&mut self) {
        self.boards.by_name.insert(P::NAME, self.crew.taker::<P>());
    }
}

struct Read<R: Role> {
    crew: Crew<R>,
    own: Feeds,
    others: Feeds,
}

impl<R: Role> Visit<R> for Read<R> {
    fn posts<P: Posted<By = R>>(&mut self) {
        self.own.push((P::NAME, self.crew.own_feed::<P>()));
    }

    fn reads<P: Posted>(&mut self)
    where
        R: Reads<P>,
    {
        self.others.push((P::NAME, self.crew.feed::<P>()));
    }
}

struct Mirrors {
    wiring: Wiring,
    boards: Boards,
    /// One right to post per role that is played, for a second one ends the first.
    crews: BTreeMap<&'static str, Box<dyn Any>>,
}

impl Mirrors {
    fn play<P: Posted>(&mut self) {
        let wiring = &self.wiring;
        let crew = self.crews.entry(P::By::NAME).or_insert_with(|| Box::new(wiring.crew::<P::By>()));
        let crew = crew.downcast_ref::<Crew<P::By>>().expect("crews stand by the names of their roles");
        self.boards.by_name.insert(P::NAME, crew.taker::<P>());
    }
}

impl<R: Role> Visit<R> for Mirrors {
    fn posts<P: Posted<By = R>>(&mut self) {
        self.play::<P>();
    }

    fn reads<P: Posted>(&mut self)
    where
        R: Reads<P>,
    {
        self.play::<P>();
    }
}

struct Shown {
    wiring: Wiring,
    own: Feeds,
    others: Feeds,
}

impl<R: Role> Visit<R> for Shown {
    fn posts<P: Posted<By = R>>(&mut self) {
        self.own.push((P::NAME, self.wiring.feed::<P>()));
    }

    fn reads<P: Posted>(&mut self)
    where
        R: Reads<P>,
    {
        self.others.push((P::NAME, self.wiring.feed::<P>()));
    }
}
