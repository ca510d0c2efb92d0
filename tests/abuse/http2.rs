//! What HTTP/2 makes cheap for the client and dear for a server that does not look: streams reset at once, heads that grow
//! when they are unpacked, heads without end, pings, and streams beyond the agreed number.

use super::frames::{
    ACK, CONTINUATION, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2, PING, RST_STREAM, SETTINGS, frame, get, is_ok,
};
use super::harness::{Memory, Neighbour, connections, harness, metric, wait};
use crate::support::daemon::Daemon;

/// Streams that the daemon allows at once.
const STREAMS_MAX: usize = 256;

/// Nothing is left of the connections: no request is being answered any more but the one that asks.
#[track_caller]
fn settles(daemon: &Daemon) {
    wait("nothing is being answered any more", || {
        let busy = metric(daemon, "agentsvc_http_requests_in_flight")?;
        (busy <= 4.0 && connections(daemon)? <= 4).then_some(())
    });
}

#[test]
fn streams_that_are_reset_at_once_leave_nothing() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let mut ended = 0;
    for _ in 0..8 {
        let mut http = Http2::open(&daemon).unwrap();
        let block = get("/api/openapi.json");
        let mut sent = 0_u32;
        // The daemon says goodbye at some point and reads no more; before that it may answer a few.
        for n in 0..20_000_u32 {
            let stream = 2 * n + 1;
            let mut both = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
            both.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
            if std::io::Write::write_all(&mut http.0, &both).is_err() {
                break;
            }
            sent = n;
        }
        // Behind everything else: the answer to a ping, or a goodbye.
        let is_alive = http.send(PING, 0, 0, &[1; 8]).is_ok();
        ended += usize::from(sent < 19_999 || !is_alive || !answers_ping(&mut http));
    }
    eprintln!("{ended} of 8 connections were ended for it");
    settles(&daemon);
    memory.is_flat(&daemon, "streams reset at once");
    neighbour.leave();
}

/// Is a ping answered, and no goodbye said before?
fn answers_ping(http: &mut Http2) -> bool {
    loop {
        match http.read() {
            Ok(frame) if frame.kind == PING && frame.flags & ACK != 0 => return true,
            Ok(frame) if frame.kind != GOAWAY => {}
            _ => return false,
        }
    }
}

#[test]
fn a_head_that_grows_when_it_is_unpacked_is_refused() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    for _ in 0..8 {
        let mut http = Http2::open(&daemon).unwrap();
        // A field of 3,000 bytes that the table remembers, then 12,000 mentions of it, a byte each: 36 MB.
        let mut block = get("/api/health");
        block.extend_from_slice(&[0x40, 1, b'x', 0x7f]);
        let mut rest = 3_000 - 127;
        while rest >= 128 {
            block.push((rest % 128) as u8 | 0x80);
            rest /= 128;
        }
        block.push(rest as u8);
        block.extend(std::iter::repeat_n(b'y', 3_000));
        block.extend(std::iter::repeat_n(0xbe, 12_000));
        http.send(HEADERS, END_HEADERS | END_STREAM, 1, &block).unwrap();
        // An answer of 431, or the stream or the connection ends.
        loop {
            match http.read() {
                Ok(frame) if frame.kind == SETTINGS && frame.flags & ACK == 0 => {
                    http.send(SETTINGS, ACK, 0, &[]).unwrap();
                }
                Ok(frame) if matches!(frame.kind, HEADERS | RST_STREAM | GOAWAY) => {
                    assert!(frame.kind != HEADERS || !is_ok(&frame), "{frame:?}");
                    break;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
    settles(&daemon);
    memory.is_flat(&daemon, "packed heads");
    neighbour.leave();
}

pub(crate) fn a_head_without_end_and_pings_without_end_have_one() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let mut http = Http2::open(&daemon).unwrap();
    http.send(HEADERS, END_STREAM, 1, &get("/api/health")).unwrap();
    let mut piece = vec![0x00, 1, b'x', 100];
    piece.extend([b'y'; 100]);
    let mut is_ended = false;
    for _ in 0..200_000 {
        if http.send(CONTINUATION, 0, 1, &piece).is_err() {
            is_ended = true;
            break;
        }
    }
    assert!(is_ended, "20 MB of head are taken");
    // Pings whose answers nobody reads: the daemon stops reading, and ends what is stuck.
    let http = Http2::open(&daemon).unwrap();
    http.0.set_nonblocking(true).unwrap();
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(1_000);
    wait("a client that only pings is cut off", || {
        use std::io::ErrorKind::WouldBlock;
        let write = std::io::Write::write(&mut &http.0, &pings);
        write.is_err_and(|error| error.kind() != WouldBlock).then_some(())
    });
    settles(&daemon);
    memory.is_flat(&daemon, "heads and pings without end");
    neighbour.leave();
}

#[test]
fn streams_beyond_the_agreed_number_are_refused_one_by_one() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let mut http = Http2::open(&daemon).unwrap();
    let hello = http.until(SETTINGS).expect("the daemon says what it allows");
    let allowed = hello.body.chunks(6).find(|one| one[..2] == [0, 3]).map(|one| one[2..].to_vec());
    assert_eq!(allowed, Some(u32::try_from(STREAMS_MAX).unwrap().to_be_bytes().to_vec()));
    http.send(SETTINGS, ACK, 0, &[]).unwrap();
    // Streams that stay open.
    let block = get("/api/logs/stream");
    let beyond = 100;
    for n in 0..STREAMS_MAX + beyond {
        let stream = 2 * u32::try_from(n).unwrap() + 1;
        http.send(HEADERS, END_HEADERS | END_STREAM, stream, &block).unwrap();
    }
    let (mut opened, mut refused) = (0, 0);
    while opened + refused < STREAMS_MAX + beyond {
        let frame = http.read().expect("the connection stays");
        match frame.kind {
            HEADERS => {
                assert!(is_ok(&frame), "the stream opens: {frame:?}");
                opened += 1;
            }
            // REFUSED_STREAM
            RST_STREAM => {
                assert_eq!(frame.body, 7_u32.to_be_bytes(), "stream {}", frame.stream);
                refused += 1;
            }
            GOAWAY => panic!("the connection is ended: {frame:?}"),
            _ => {}
        }
    }
    assert_eq!((opened, refused), (STREAMS_MAX, beyond));
    drop(http);
    settles(&daemon);
    memory.is_flat(&daemon, "streams beyond the agreed number");
    neighbour.leave();
}

pub(crate) fn streams_without_a_window_are_given_up() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    // A window of 1 lets an answer into the buffer of its connection, one of 0 not even there.
    let deaf: Vec<_> = (0..8).map(|n| Http2::with_window(&daemon, n % 2).unwrap()).collect();
    let block = get("/api/nothing");
    for http in &deaf {
        for n in 0..u32::try_from(STREAMS_MAX).unwrap() {
            let ask = frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &block);
            std::io::Write::write_all(&mut &http.0, &ask).unwrap();
        }
    }
    let busy = || metric(&daemon, "agentsvc_http_requests_in_flight");
    wait("all are answered", || (busy()? >= (deaf.len() * STREAMS_MAX) as f64).then_some(()));
    neighbour.is_served();
    wait("they are given up", || (busy()? <= 4.0).then_some(()));
    memory.is_flat(&daemon, "streams without a window");
    drop(deaf);
    neighbour.leave();
}
