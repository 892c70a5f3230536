//! What is done about a socket, by what it is and what the folder has (node-and-resources 2.8).

use model::Timestamp;

/// Which socket it is: one that is made anew at the same path is another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketId {
    pub made_at: Timestamp,
    pub inode: u64,
}

/// Where a socket is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is its turn, as soon as the node is ready for it.
    Due,
    /// A try failed; a timer makes it due.
    Resting,
    /// It is asked what it is, or told why it is refused.
    Asking,
    /// It is accepted: its driver is asked, and the API server told.
    Installing,
    /// It is registered.
    Registered,
    /// What was said of it is taken back.
    Leaving,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Ask it.
    Ask,
    /// Give up what is under way; it is due, as the socket that is there now.
    Restart(SocketId),
    /// Give up what is under way, and take back what was said of it.
    Leave,
    /// It is gone, and nothing is left of it.
    Forget,
}

/// `is`: the socket that the phase is about; `there`: the one that the folder has.
/// `told_of`: the API server may have been told of it.
pub(crate) fn step(phase: Phase, is: SocketId, there: Option<SocketId>, told_of: bool) -> Step {
    let same = there == Some(is);
    match (phase, there) {
        (Phase::Leaving, _) => Step::Nothing,
        (Phase::Due, _) if same => Step::Ask,
        _ if same => Step::Nothing,
        _ if told_of => Step::Leave,
        (_, Some(other)) => Step::Restart(other),
        (_, None) => Step::Forget,
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::Phase::{Asking, Due, Installing, Leaving, Registered, Resting};
    use super::{SocketId, Step, step};

    #[test]
    fn each_phase_knows_what_to_do_about_what_the_folder_has() {
        let socket = |n| SocketId { made_at: Timestamp(n), inode: 7 };
        let (is, other) = (socket(1), socket(2));
        let restart = Step::Restart(other);
        // Phase, told of; the same socket is there, another one, none.
        let rows = [
            (Due, false, [Step::Ask, restart, Step::Forget]),
            (Due, true, [Step::Ask, Step::Leave, Step::Leave]),
            (Resting, false, [Step::Nothing, restart, Step::Forget]),
            (Resting, true, [Step::Nothing, Step::Leave, Step::Leave]),
            (Asking, false, [Step::Nothing, restart, Step::Forget]),
            (Asking, true, [Step::Nothing, Step::Leave, Step::Leave]),
            (Installing, true, [Step::Nothing, Step::Leave, Step::Leave]),
            (Registered, true, [Step::Nothing, Step::Leave, Step::Leave]),
            (Leaving, true, [Step::Nothing, Step::Nothing, Step::Nothing]),
        ];
        for (phase, told_of, want) in rows {
            let got = [Some(is), Some(other), None].map(|there| step(phase, is, there, told_of));
            assert_eq!(got, want, "{phase:?}, {told_of}");
        }
        let same_time = SocketId { inode: 8, ..is };
        assert_eq!(step(Registered, is, Some(same_time), true), Step::Leave, "made within one tick of the clock");
    }
}
