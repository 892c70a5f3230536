use super::*;
use crate::top::view::PodRow;

fn screen() -> Screen {
    let pods =
        (0..5).map(|n| PodRow { name: format!("p{n}"), status: "Running".into(), ..PodRow::default() }).collect();
    Screen {
        choice: Choice { what: What::All, sort: Sort::Name, skip: 0 },
        before: None,
        view: View { pods, ..View::default() },
        error: None,
    }
}

#[test]
fn keys_are_letters_arrows_and_nothing_else() {
    let table: [(&[u8], &[Key]); 10] = [
        (b"q", &[Key::End]),
        (b"\x03", &[Key::End]),
        (b"\t", &[Key::Next]),
        (b"cmrn", &[Key::Sort(Sort::Cpu), Key::Sort(Sort::Memory), Key::Sort(Sort::Restarts), Key::Sort(Sort::Name)]),
        (b"jk", &[Key::Down(1), Key::Up(1)]),
        (b"\x1b[B", &[Key::Down(1)]),
        (b"\x1b[5~", &[Key::Up(10)]),
        (b" ", &[Key::Now]),
        (b"\x1b[1;5Cq", &[]),
        ("zö".as_bytes(), &[]),
    ];
    for (bytes, expected) in table {
        assert_eq!(keys(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn scrolling_stays_within_the_rows_and_another_order_begins_at_the_top() {
    let mut screen = screen();
    screen.press(Key::Down(100));
    assert_eq!(screen.choice.skip, 4);
    screen.press(Key::Up(1));
    assert_eq!(screen.choice.skip, 3);
    screen.press(Key::Sort(Sort::Cpu));
    assert_eq!((screen.choice.skip, screen.choice.sort), (0, Sort::Cpu));
    assert!(!screen.press(Key::End));
}

#[test]
fn a_daemon_that_has_gone_leaves_the_old_figures_and_is_said() {
    let mut screen = screen();
    screen.take(Err(anyhow::anyhow!("nobody answers")), None);
    let mut out = Vec::new();
    screen.draw(Size { columns: 60, rows: 12 }, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("old figures: nobody answers") && text.contains("p4"), "{text}");
    assert_eq!(text.matches("\r\n").count(), 11, "one line per row and no scrolling");
}
