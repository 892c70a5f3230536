use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::*;

fn board() -> Board<u8, u32> {
    Board::new("test")
}

fn put(board: &Board<u8, u32>, key: u8, value: u32) {
    board.inner.set(key, Some(Arc::new(value)));
}

fn at(board: &Board<u8, u32>, seq: u64) -> Cursor {
    Cursor { epoch: board.inner.epoch, seq }
}

/// A copy of a board elsewhere, kept up to date by what [`BoardReader::since`] says.
#[derive(Default)]
struct Follower {
    cursor: Cursor,
    rows: BTreeMap<u8, Row<u32>>,
    snapshots: usize,
}

impl Follower {
    fn catch_up(&mut self, board: &BoardReader<u8, u32>) {
        let since = board.since(self.cursor);
        self.cursor = since.cursor;
        if since.whole {
            self.rows.clear();
            self.snapshots += 1;
        }
        for (key, row) in since.rows {
            match row {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }

    fn values(&self) -> BTreeMap<u8, Arc<u32>> {
        self.rows.iter().map(|(key, row)| (*key, row.value.clone())).collect()
    }
}

#[test]
fn a_reader_of_one_row_is_not_woken_by_another_row() {
    let board = board();
    let mut one = board.reader().subscribe(1);
    one.mark_unchanged();
    put(&board, 2, 20);
    board.inner.set(2, None);
    assert!(!one.has_changed().unwrap());
    put(&board, 1, 10);
    assert!(one.has_changed().unwrap());
    assert_eq!(one.borrow_and_update().as_deref(), Some(&10));
}

#[test]
fn who_follows_the_changes_pays_for_them_alone() {
    let board = board();
    let (reader, mut seen) = (board.reader(), None);
    (0..100).for_each(|key| put(&board, key, 1));
    assert_eq!(reader.changed(&mut seen), None, "the first time all are to be looked at");
    let before = board.rows_read();
    assert_eq!(reader.changed(&mut seen), Some([].into()));
    put(&board, 7, 2);
    put(&board, 7, 3);
    board.inner.set(8, None);
    assert_eq!(reader.changed(&mut seen), Some([7, 8].into()));
    assert_eq!(board.rows_read() - before, 2);
    for n in 0..=u32::try_from(KEPT_CHANGES).unwrap() {
        put(&board, 1, n);
    }
    assert_eq!(reader.changed(&mut seen), None, "too many");
    assert_eq!(reader.changed(&mut seen), Some([].into()));
}

#[test]
fn a_removed_row_is_none_for_its_readers_and_its_place_goes_with_the_last_of_them() {
    let board = board();
    put(&board, 1, 10);
    let mut reader = board.reader().subscribe(1);
    board.inner.set(1, None);
    assert_eq!(reader.borrow_and_update().as_deref(), None);
    assert_eq!((board.reader().get(&1), board.reader().snapshot().len()), (None, 0));
    put(&board, 1, 11);
    assert_eq!(reader.borrow_and_update().as_deref(), Some(&11), "a reader outlives the row");
    drop(reader);
    board.inner.set(1, None);
    assert_eq!(board.inner.slots.len(), 0);
}

#[test]
fn places_that_were_waited_for_in_vain_are_swept_and_awaited_ones_stay() {
    let board = Board::<u32, u32>::new("test");
    let mut kept = board.reader().subscribe(7);
    for key in 0..10_000 {
        drop(board.reader().subscribe(key));
    }
    assert!(board.inner.slots.len() <= 128, "{} places", board.inner.slots.len());
    board.inner.set(7, Some(Arc::new(70)));
    assert_eq!(kept.borrow_and_update().as_deref(), Some(&70));
}

#[test]
fn every_change_moves_the_number_and_taking_away_nothing_is_no_change() {
    let board = board();
    let changes = board.reader().changes();
    let edits: [(u8, Option<u32>, u64); 6] =
        [(1, None, 0), (1, Some(1), 1), (1, Some(1), 2), (2, Some(2), 3), (1, None, 4), (1, None, 4)];
    for (key, value, number) in edits {
        board.inner.set(key, value.map(Arc::new));
        assert_eq!(*changes.borrow(), number, "after {key} {value:?}");
    }
}

#[test]
fn changes_tell_each_key_once_with_the_row_as_it_is_now() {
    let board = board();
    for (key, value) in [(1, 10), (2, 20), (2, 21), (3, 30)] {
        put(&board, key, value);
    }
    board.inner.set(3, None);
    let since = board.reader().since(at(&board, 1));
    let rows = vec![(2, Some(Row { seq: 3, value: Arc::new(21) })), (3, None)];
    assert_eq!(since, Since { cursor: at(&board, 5), whole: false, rows });
}

#[test]
fn a_gap_that_is_too_wide_gives_all_rows() {
    let board = board();
    for value in 0..=u32::try_from(KEPT_CHANGES).unwrap() {
        put(&board, 1, value);
    }
    let last = at(&board, u64::try_from(KEPT_CHANGES).unwrap() + 1);
    let whole = |seq| board.reader().since(at(&board, seq)).whole;
    assert!(whole(0), "change 1 is forgotten");
    assert!(!whole(1), "all after change 1 are known");
    assert_eq!(board.reader().since(last), Since { cursor: last, whole: false, rows: vec![] });
}

/// A node that was started again has a board with the same numbers and other rows.
#[test]
fn a_cursor_of_another_life_gives_all_rows_however_far_either_has_come() {
    let mut follower = Follower::default();
    for changes in [3, 9, 2, 0] {
        let life = board();
        for key in 0..changes {
            put(&life, key + changes, u32::from(key));
        }
        follower.catch_up(&life.reader());
        assert_eq!(follower.values(), life.reader().snapshot(), "after {changes} changes");
        follower.catch_up(&life.reader());
    }
    assert_eq!(follower.snapshots, 4, "one per life");
}

proptest! {
    #[test]
    fn a_follower_equals_the_board_whenever_it_catches_up(
        edits in prop::collection::vec((0u8..8, prop::option::of(0u32..100), prop::bool::weighted(0.1)), 0..300),
        idle in prop::option::of(0u32..1200),
    ) {
        let board = board();
        let mut follower = Follower::default();
        for (key, value, catch_up) in edits {
            board.inner.set(key, value.map(Arc::new));
            if catch_up {
                follower.catch_up(&board.reader());
                prop_assert_eq!(follower.values(), board.reader().snapshot());
            }
        }
        prop_assert!(follower.snapshots <= 1, "the first look alone");
        for value in 0..idle.unwrap_or_default() {
            put(&board, 9, value);
        }
        follower.catch_up(&board.reader());
        prop_assert_eq!(follower.values(), board.reader().snapshot());
    }
}

/// A thread posts key 1, then key 2 with the same content, again and again: at each moment they are equal, or 1 is ahead
/// by one. What is not one moment in time shows something else.
#[test]
fn what_happened_since_is_one_moment_in_time_while_another_thread_posts() {
    let board = board();
    let stop = AtomicBool::new(false);
    let mut follower = Follower::default();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for value in 1.. {
                put(&board, 1, value);
                put(&board, 2, value);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let check = |rows: &BTreeMap<u8, Row<u32>>, seq: u64, how: &str| {
            let value = |key| rows.get(&key).map_or(0, |row| *row.value);
            let ahead = value(1) - value(2);
            assert!(ahead <= 1, "{how}: {rows:?}");
            assert_eq!(u64::from(value(1)) + u64::from(value(2)), seq, "{how}: the number belongs to the rows");
        };
        for _ in 0..3000 {
            follower.catch_up(&board.reader());
            check(&follower.rows, follower.cursor.seq, "followed");
            let mut fresh = Follower::default();
            fresh.catch_up(&board.reader());
            check(&fresh.rows, fresh.cursor.seq, "from the beginning");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The number of a value's row is its content here.
#[test]
fn a_value_and_its_number_belong_together_while_another_thread_publishes() {
    let value = Value::new("test", 0u64);
    let reader = value.reader();
    let fence = Fence::new("test", Arc::default());
    std::thread::scope(|threads| {
        threads.spawn(|| (1..=20_000).for_each(|n| value.put(&fence, n)));
        let mut last = 0;
        while last < 20_000 {
            let row = reader.row();
            assert_eq!(row.seq, *row.value);
            assert!(row.seq >= last, "never back");
            last = row.seq;
        }
    });
}
