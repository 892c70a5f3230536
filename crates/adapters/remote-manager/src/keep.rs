//! The journal, as far as another process sees it.

use std::sync::Arc;

use ports::journal::{Journal, JournalError};
use seam::v1::{Keep, Kept, Line, keep};

use crate::judge::{fits, may_keep};

/// Why a call to the journal was refused.
pub(crate) struct Refused;

/// Keys that another process is told of at once, in all.
const MOST_KEYS: usize = 16_384;

/// What may be asked of the journal, looked at before it is done.
pub(crate) fn checked(tables: &[&str], call: &Keep) -> Result<(), Refused> {
    let fine = match &call.what {
        Some(keep::What::Load(key) | keep::What::Remove(key) | keep::What::Keys(key)) => may_keep(tables, key),
        Some(keep::What::Save(line) | keep::What::PutSoon(line)) => {
            may_keep(tables, &line.key) && line.value.as_deref().is_none_or(fits)
        }
        None => false,
    };
    if fine { Ok(()) } else { Err(Refused) }
}

/// Does it; blocks, but for what is put soon.
pub(crate) fn done(journal: &Arc<dyn Journal>, call: Keep) -> Kept {
    let id = call.id;
    let done = match call.what {
        Some(keep::What::Load(key)) => journal.load(&key).map(|value| Kept { value, ..Kept::default() }),
        Some(keep::What::Save(Line { key, value: Some(value) })) => {
            journal.save(&key, &value).map(|()| Kept::default())
        }
        Some(keep::What::Remove(key) | keep::What::Save(Line { key, value: None })) => {
            journal.remove(&key).map(|()| Kept::default())
        }
        Some(keep::What::Keys(prefix)) => journal.keys(&prefix).map(|mut keys| {
            keys.truncate(MOST_KEYS);
            Kept { keys, ..Kept::default() }
        }),
        Some(keep::What::PutSoon(Line { key, value })) => {
            journal.put_soon(&key, value);
            Ok(Kept::default())
        }
        None => Ok(Kept::default()),
    };
    answer(id, done)
}

/// An answer, or why there is none.
pub(crate) fn answer(id: u64, done: Result<Kept, JournalError>) -> Kept {
    match done {
        Ok(kept) => Kept { id, ..kept },
        Err(e) => Kept { id, error: e.message, ..Kept::default() },
    }
}
