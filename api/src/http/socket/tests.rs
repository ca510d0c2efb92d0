//! Messages that are not whole yet: what they take, and for how long.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::limit;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::pipe::READ_BUFFER_BYTES;
use super::{End, Pipe};
use crate::http::permit::{Permit, Permits};

const TIME_MAX: Duration = Duration::from_secs(30);

/// First bytes of frames: `0x80` is set in the last one of a message.
const TEXT: u8 = 1;
const WHOLE_TEXT: u8 = 0x81;
const MORE: u8 = 0;
const LAST: u8 = 0x80;
const PING: u8 = 0x89;

/// A frame as a client sends it, with a mask that changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first, 0x80 | 127];
    match u8::try_from(payload.len()) {
        Ok(length @ ..126) => bytes[1] = 0x80 | length,
        _ => bytes.extend_from_slice(&(payload.len() as u64).to_be_bytes()),
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}

async fn open(permits: &Arc<Permits>) -> (DuplexStream, Pipe<DuplexStream>) {
    let (client, server) = duplex(8 << 20);
    (client, Pipe::new(server, Arc::default(), Arc::clone(permits), TIME_MAX).await)
}

fn room() -> Arc<Permits> {
    Arc::new(Permits::new(1 << 20, 8 << 20))
}

/// The next text, with the pings before it left out.
async fn text(pipe: &mut Pipe<DuplexStream>) -> Result<(String, Permit), End> {
    loop {
        match std::future::poll_fn(|cx| pipe.poll_read(cx)).await? {
            (Message::Text(text), permit) => return Ok((text.to_string(), permit)),
            (Message::Ping(_), _) => {}
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// How the connection ends, and after how many seconds.
async fn end(pipe: &mut Pipe<DuplexStream>) -> (End, u64) {
    let began = Instant::now();
    let end = text(pipe).await.err().expect("no message comes");
    (end, began.elapsed().as_secs())
}

/// Reads what there is; nothing of it is a whole message.
async fn read_on(pipe: &mut Pipe<DuplexStream>) {
    assert!(timeout(Duration::from_millis(1), text(pipe)).await.is_err());
}

fn is_refused(end: End, code: CloseCode) -> bool {
    matches!(end, End::Close(given, _) if given == code)
}

#[tokio::test(start_paused = true)]
async fn fragments_and_parts_of_frames_take_permits_and_without_one_the_connection_ends() {
    let permits = Arc::new(Permits::new(1 << 20, 1 << 20));
    let (mut first, mut held) = open(&permits).await;
    let piece = vec![b'x'; 300_000];
    first.write_all(&frame(TEXT, &piece)).await.unwrap();
    first.write_all(&frame(MORE, &piece)[..200_000]).await.unwrap();
    read_on(&mut held).await;
    assert!((500_000..500_100).contains(&permits.bytes()), "{}", permits.bytes());
    let (mut second, mut refused) = open(&permits).await;
    second.write_all(&frame(TEXT, &[&piece[..], &piece, &piece].concat())).await.unwrap();
    let (why, _) = end(&mut refused).await;
    assert!(is_refused(why, CloseCode::Again), "{why:?}");
    drop(refused);
    // The room that it had is there for others, and what waits for the rest of a message gets it.
    assert!((500_000..500_100).contains(&permits.bytes()), "{}", permits.bytes());
    first.write_all(&frame(MORE, &piece)[200_000..]).await.unwrap();
    first.write_all(&frame(LAST, b"y")).await.unwrap();
    let (whole, permit) = text(&mut held).await.unwrap();
    assert_eq!((whole.len(), permit.bytes(), permits.bytes()), (600_001, 600_001, 600_001));
    drop((held, permit));
    assert_eq!(permits.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_whole_in_time_ends_the_connection_whatever_comes_of_it() {
    let permits = room();
    let kinds: [(&str, Vec<u8>, Vec<u8>); 4] = [
        ("nothing more", frame(TEXT, b"x"), vec![]),
        ("bytes", frame(WHOLE_TEXT, &[b'x'; 100])[..1].to_vec(), vec![0x80 | 100]),
        ("fragments", frame(TEXT, b"x"), frame(MORE, b"x")),
        ("pings", frame(TEXT, b"x"), frame(PING, &[0; 125])),
    ];
    for (kind, begin, word) in kinds {
        let (mut client, mut pipe) = open(&permits).await;
        client.write_all(&begin).await.unwrap();
        let trickle = tokio::spawn(async move {
            for _ in 0..100 {
                sleep(Duration::from_secs(1)).await;
                client.write_all(&word).await.unwrap();
            }
        });
        let (why, secs) = end(&mut pipe).await;
        assert!(is_refused(why, CloseCode::Policy) && secs == 30, "{kind}: {why:?} after {secs} s");
        trickle.abort();
        drop(pipe);
        assert_eq!(permits.bytes(), 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_ends_with_the_message_and_stands_still_while_nothing_is_read() {
    let permits = room();
    let (mut client, mut pipe) = open(&permits).await;
    for _ in 0..3 {
        client.write_all(&frame(TEXT, b"x")).await.unwrap();
        assert!(timeout(Duration::from_secs(20), text(&mut pipe)).await.is_err());
        client.write_all(&frame(LAST, b"y")).await.unwrap();
        assert_eq!(text(&mut pipe).await.unwrap().0, "xy");
    }
    // Pings alone are no message.
    for _ in 0..100 {
        client.write_all(&frame(PING, b"ping")).await.unwrap();
        assert!(timeout(Duration::from_secs(10), text(&mut pipe)).await.is_err());
        assert_eq!(permits.bytes(), 0);
    }
    client.write_all(&frame(TEXT, b"x")).await.unwrap();
    read_on(&mut pipe).await;
    pipe.pause();
    sleep(Duration::from_secs(20)).await;
    pipe.pause();
    sleep(Duration::from_secs(20)).await;
    let (why, secs) = end(&mut pipe).await;
    assert!(is_refused(why, CloseCode::Policy) && (29..=30).contains(&secs), "{why:?} after {secs} s");
}

#[tokio::test(start_paused = true)]
async fn messages_of_any_size_come_one_after_the_other_and_hold_what_they_are() {
    let permits = room();
    let (mut client, mut pipe) = open(&permits).await;
    let most = "m".repeat(limit::SOCKET_MESSAGE_BYTES_MAX);
    for _ in 0..2 {
        client.write_all(&frame(WHOLE_TEXT, most.as_bytes())).await.unwrap();
        client.write_all(&frame(TEXT, &most.as_bytes()[1..])).await.unwrap();
        client.write_all(&[frame(PING, b"now"), frame(LAST, b"e")].concat()).await.unwrap();
        let (first, held) = text(&mut pipe).await.unwrap();
        let (second, also) = text(&mut pipe).await.unwrap();
        assert!(first == most && second.len() == most.len());
        // Its beginning was read ahead of it.
        assert!(held.bytes() == most.len() && (most.len() - READ_BUFFER_BYTES..most.len()).contains(&also.bytes()));
        assert_eq!(permits.bytes(), held.bytes() + also.bytes());
        drop((held, also));
        assert_eq!(permits.bytes(), 0);
    }
    // Many at once, with the beginning of one more.
    let all: Vec<u8> = (0..1_000).flat_map(|n| frame(WHOLE_TEXT, format!("number {n}").as_bytes())).collect();
    client.write_all(&[&all[..], &frame(WHOLE_TEXT, b"end")[..5]].concat()).await.unwrap();
    for n in 0..1_000 {
        assert_eq!(text(&mut pipe).await.unwrap().0, format!("number {n}"));
    }
    assert!(permits.bytes() < READ_BUFFER_BYTES, "what was read ahead at most");
    client.write_all(&frame(WHOLE_TEXT, b"end")[5..]).await.unwrap();
    assert_eq!(text(&mut pipe).await.unwrap().0, "end");
    assert_eq!(permits.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn pings_whose_answers_are_not_read_are_not_read_either() {
    const PINGS: usize = 10_000;
    let (client, server) = duplex(16 << 10);
    let mut pipe = Pipe::new(server, Arc::default(), room(), TIME_MAX).await;
    let (mut answers, mut pings) = tokio::io::split(client);
    let sent = tokio::spawn(async move {
        for _ in 0..PINGS {
            pings.write_all(&frame(PING, &[7; 125])).await.unwrap();
        }
        pings.write_all(&frame(WHOLE_TEXT, b"done")).await.unwrap();
    });
    let mut read = 0;
    while timeout(Duration::from_secs(60), std::future::poll_fn(|cx| pipe.poll_read(cx))).await.is_ok() {
        read += 1;
    }
    assert!(read < 400 && !sent.is_finished(), "{read}");
    // It goes on when the client takes them.
    let taken = tokio::spawn(async move {
        let mut bytes = vec![0; 127 * PINGS];
        answers.read_exact(&mut bytes).await.unwrap();
        bytes
    });
    assert_eq!(text(&mut pipe).await.unwrap().0, "done");
    // What is still to be written goes out with the next look for input.
    drop(timeout(Duration::from_secs(1), text(&mut pipe)).await);
    let taken = taken.await.unwrap();
    assert!(taken.chunks(127).all(|pong| pong[..2] == [0x8a, 125] && pong[2..] == [7; 125]));
}
