use super::*;

const ROOM: Room = Room { cpu: 2000, cpu_each: 80, memory_each: 64 };

fn wish(fate: Fate, n: i64) -> Wish {
    Wish { fate, cpu_request: 10, cpu_limit: 100 * n, memory_request: 8, memory_limit: 64 * n }
}

fn wishes(restarts: [bool; 2]) -> Wishes {
    let all = vec![wish(Fate::Granted, 1), wish(Fate::Waits, 2), wish(Fate::Granted, 3)];
    Wishes { restarts, crashes: 1, all }
}

/// With the memory of one wish, the processor of another, when a third was granted.
fn note(is_start: bool, memory: i64, cpu: i64, granted: i64) -> Note {
    let (memory, quota) = (Some((64 * memory) << 20), Some(cpu * 10_000));
    let granted = wish(Fate::Granted, granted).resources();
    Note { uid: "u".into(), id: "c".into(), is_start, memory, quota, granted }
}

#[test]
fn what_was_not_granted_is_found() {
    let rows: [(&[Note], [bool; 2], u64, &str); 10] = [
        (&[note(true, 1, 1, 1), note(false, 3, 1, 3), note(false, 3, 3, 3)], [false; 2], 0, ""),
        (&[note(true, 1, 1, 1), note(true, 1, 1, 1)], [false; 2], 0, ""),
        (&[note(true, 1, 1, 1), note(true, 1, 1, 1), note(true, 1, 1, 1)], [false; 2], 0, "1 crashes"),
        (&[note(true, 1, 1, 1), note(true, 1, 1, 1), note(true, 1, 1, 1)], [false; 2], 1, ""),
        (&[note(true, 1, 1, 1), note(true, 3, 1, 3), note(true, 3, 1, 3)], [true, false], 0, ""),
        (&[note(true, 1, 1, 1), note(true, 3, 1, 3), note(true, 3, 1, 3)], [false; 2], 0, "1 crashes"),
        (&[note(true, 1, 1, 1), note(false, 3, 1, 3)], [true, false], 0, "against its policy"),
        (&[note(true, 3, 1, 1)], [false; 2], 0, "reached it when 0"),
        (&[note(true, 1, 2, 3)], [false; 2], 0, "never to be had"),
        (&[note(true, 1, 1, 7)], [false; 2], 0, "nobody wished"),
    ];
    for (notes, restarts, failed, wrong) in rows {
        let judged = wishes(restarts).judge(notes, failed);
        match judged {
            Ok(_) => assert_eq!(wrong, "", "{notes:?}"),
            Err(e) => assert!(!wrong.is_empty() && e.contains(wrong), "{e}, not {wrong:?}"),
        }
    }
    let late = wishes([false; 2]).judge(&[note(true, 1, 1, 3)], 0);
    assert_eq!(late, Ok(Tally { starts: 1, late: 1, by_policy: 0, updates: 0 }));
}

#[test]
fn no_two_wishes_have_the_same_limits_and_their_fates_are_mixed() {
    let mut random = Rng::with_seed(1);
    let mut all = Wishes::of(1, ROOM, &mut random);
    for _ in 0..99 {
        all.next(ROOM, &mut random);
    }
    for of in [|w: &Wish| w.cpu_limit, |w: &Wish| w.memory_limit] {
        let values: std::collections::BTreeSet<i64> = all.all.iter().map(of).collect();
        assert_eq!(values.len(), 100);
    }
    for fate in [Fate::Granted, Fate::Waits] {
        assert!(all.all.iter().filter(|w| w.fate == fate).count() > 3, "{fate:?}");
    }
    assert!(all.all.iter().all(|w| w.cpu_request < w.cpu_limit && w.memory_request < w.memory_limit));
    assert_eq!(all.granted(&all.all[0].resources()), Some(all.all[0]));
}
