use model::event::{EventObject, EventType};
use model::{PodUid, Timestamp};

use super::*;

fn line(pod: &str, count: u32) -> EventEntry {
    let object = EventObject::Pod {
        namespace: "ns".into(),
        name: pod.into(),
        uid: PodUid::from(pod),
        field_path: String::new(),
    };
    let (reason, message, at) = ("Started".to_owned(), "m".to_owned(), Timestamp(i64::from(count)));
    EventEntry {
        kind: EventType::Normal,
        reason,
        message,
        object,
        count,
        first: Timestamp(7),
        last: at,
        annotations: [].into(),
    }
}

fn push(queue: &mut Queue, pod: &str, count: u32) {
    queue.push(&line(pod, count), None, |nanos| format!("{pod}.{nanos}"));
}

/// `name xcount`, with `+` for events that are made and `~` for those brought up to date.
fn shown(queue: &Queue) -> Vec<String> {
    let show = |w: &Waiting| format!("{}{} x{}", if w.known { "~" } else { "+" }, w.name, w.line.count);
    queue.waiting.iter().map(show).collect()
}

#[test]
fn a_repetition_is_a_patch_of_the_event_before() {
    let mut queue = Queue::default();
    push(&mut queue, "a", 1);
    push(&mut queue, "b", 1);
    assert_eq!(shown(&queue), ["+a.7 x1", "+b.8 x1"]);
    assert_eq!((queue.answered(Ok(())), queue.answered(Ok(()))), (Next::Go, Next::Go));
    push(&mut queue, "a", 2);
    assert_eq!(shown(&queue), ["~a.7 x2"]);
}

#[test]
fn what_waits_takes_the_newest_count_but_not_what_is_under_way() {
    let mut queue = Queue::default();
    push(&mut queue, "a", 1);
    push(&mut queue, "b", 1);
    push(&mut queue, "b", 2);
    push(&mut queue, "a", 2);
    push(&mut queue, "a", 3);
    assert_eq!(shown(&queue), ["+a.7 x1", "+b.8 x2", "~a.7 x3"]);
}

#[test]
fn answers() {
    let status = |code: u16, reason: &str| ApiError::status(code, reason, "x");
    let rows = [
        ("taken", false, None, Next::Go),
        ("made before, answer lost", false, Some(status(409, "AlreadyExists")), Next::Go),
        ("expired meanwhile", true, Some(status(404, "NotFound")), Next::Again),
        ("namespace gone", false, Some(status(404, "NotFound")), Next::Refused),
        ("forbidden", false, Some(status(403, "Forbidden")), Next::Refused),
        ("invalid", true, Some(status(422, "Invalid")), Next::Refused),
        ("busy", false, Some(status(429, "TooManyRequests")), Next::Pause),
        ("broken", true, Some(status(500, "InternalError")), Next::Pause),
        ("away", false, Some(ApiError::Unreachable { message: "x".into() }), Next::Pause),
    ];
    for (name, known, error, next) in rows {
        let mut queue = Queue::default();
        push(&mut queue, "a", 1);
        queue.waiting[0].known = known;
        let answer = error.as_ref().map_or(Ok(()), Err);
        assert_eq!(queue.answered(answer), next, "{name}");
        let left = usize::from(matches!(next, Next::Again | Next::Pause));
        assert_eq!((queue.waiting.len(), queue.lost), (left, u64::from(next == Next::Refused)), "{name}");
        assert!(next != Next::Again || !queue.waiting[0].known, "{name}");
    }
}

#[test]
fn twelve_tries_and_no_more() {
    let mut queue = Queue::default();
    push(&mut queue, "a", 1);
    let away = ApiError::Unreachable { message: "x".into() };
    let answers: Vec<Next> = (0..12).map(|_| queue.answered(Err(&away))).collect();
    assert!(answers[..11].iter().all(|n| *n == Next::Pause));
    assert_eq!((answers[11], queue.waiting.len(), queue.lost), (Next::Refused, 0, 1));
}

#[test]
fn a_full_queue_drops_the_newest_and_counts() {
    let mut queue = Queue::default();
    for n in 0..1005 {
        push(&mut queue, &format!("p{n}"), 1);
    }
    assert_eq!((queue.waiting.len(), queue.lost), (1000, 5));
    assert_eq!(queue.head().unwrap().line.object, line("p0", 1).object);
}

#[test]
fn an_event_that_was_given_up_is_made_anew() {
    let mut queue = Queue::default();
    push(&mut queue, "a", 1);
    queue.answered(Err(&ApiError::status(403, "Forbidden", "x")));
    push(&mut queue, "a", 2);
    assert_eq!(shown(&queue), ["+a.8 x2"]);
}
