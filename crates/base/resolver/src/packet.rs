//! Questions and answers of DNS (RFC 1035, RFC 6891) as bytes, as far as addresses need them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The largest answer that is asked for over UDP, in bytes: it passes any network in one piece.
pub(crate) const MAX_UDP: u16 = 1232;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    V4,
    V6,
}

impl Kind {
    fn number(self) -> u16 {
        match self {
            Kind::V4 => 1,
            Kind::V6 => 28,
        }
    }
}

/// What a packet says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// At least one.
    Addresses(Vec<IpAddr>),
    /// The name, or an address of that kind, does not exist.
    NoSuchHost,
    /// It did not fit; to be asked again over TCP.
    Truncated,
    /// The server is of no use; in Go's words.
    Useless(&'static str),
}

const INTERNET: u16 = 1;
const OPTIONS: u16 = 41;
const HEADER: usize = 12;

/// A question in bytes. `name` ends with a dot, and [`is_domain_name`](crate::config::is_domain_name).
pub(crate) fn question(id: u16, name: &str, kind: Kind) -> Vec<u8> {
    let mut packet = Vec::with_capacity(name.len() + 29);
    // Recursion desired; one question, one additional record.
    for word in [id, 0x0100, 1, 0, 0, 1] {
        packet.extend(word.to_be_bytes());
    }
    for label in name.trim_end_matches('.').split('.') {
        packet.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        packet.extend(label.as_bytes());
    }
    packet.push(0);
    packet.extend(kind.number().to_be_bytes());
    packet.extend(INTERNET.to_be_bytes());
    // The root's name, and how large an answer may be.
    packet.push(0);
    for word in [OPTIONS, MAX_UDP, 0, 0, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet
}

/// Reads a packet that arrived; `asked` is the question. None: it is no answer to it, perhaps somebody's who guesses.
pub(crate) fn answer(asked: &[u8], packet: &[u8], kind: Kind) -> Option<Answer> {
    let end_of_question = asked.len() - 11;
    let (header, question) = asked[..end_of_question].split_at(HEADER);
    let flags = word(packet, 2)?;
    let ours = packet.get(..2)? == &header[..2]
        && flags & 0x8000 != 0
        && word(packet, 4)? == 1
        && packet.get(HEADER..end_of_question)?.eq_ignore_ascii_case(question);
    if !ours {
        return None;
    }
    let answers = word(packet, 6)?;
    Some(match flags & 0xf {
        _ if flags & 0x0200 != 0 => Answer::Truncated,
        3 => Answer::NoSuchHost,
        // Neither an authority for the name nor willing to ask one: it only knows whom else to ask.
        0 if answers == 0 && flags & 0x0480 == 0 => Answer::Useless("lame referral"),
        0 => match addresses(packet, end_of_question, answers, kind) {
            None => Answer::Useless("cannot unmarshal DNS message"),
            Some(found) if found.is_empty() => Answer::NoSuchHost,
            Some(found) => Answer::Addresses(found),
        },
        _ => Answer::Useless("server misbehaving"),
    })
}

/// The addresses of a packet's answers, whatever their names: a server that follows aliases tells each of them. None: the
/// packet ends too early.
fn addresses(packet: &[u8], mut at: usize, answers: u16, kind: Kind) -> Option<Vec<IpAddr>> {
    let mut found = Vec::new();
    for _ in 0..answers {
        at = after_name(packet, at)?;
        let (of, class, length) = (word(packet, at)?, word(packet, at + 2)?, usize::from(word(packet, at + 8)?));
        let data = packet.get(at + 10..at + 10 + length)?;
        at += 10 + length;
        if of == kind.number() && class == INTERNET {
            found.push(match kind {
                Kind::V4 => Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?).into(),
                Kind::V6 => Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?).into(),
            });
        }
    }
    Some(found)
}

/// Where a name ends: at an empty label, or at a pointer to the rest.
fn after_name(packet: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *packet.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => return Some(at + 2),
            _ => return None,
        }
    }
}

fn word(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]))
}
