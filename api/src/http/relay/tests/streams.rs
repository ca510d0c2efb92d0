//! Streams and sockets through a standby.

use futures_util::StreamExt;
use hyper::upgrade;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Waits for the next word of the stream.
async fn next(answer: &mut hyper::Response<Incoming>) -> Option<Bytes> {
    answer.body_mut().frame().await?.ok()?.into_data().ok()
}

#[tokio::test]
async fn events_come_as_they_happen_and_end_with_the_node() {
    let owner = Node::at(Site::Here).await;
    let standby = Node::at(there(owner.address)).await;
    let mut events = get(standby.address, "/api/logs/stream").await;
    assert_eq!(next(&mut events).await.unwrap(), ": open\n\n");
    owner.stop();
    while next(&mut events).await.is_some() {}
    owner.served.await.unwrap();
    let owner = Node::at(Site::Here).await;
    standby.tell(there(owner.address));
    let mut events = get(standby.address, "/api/logs/stream").await;
    assert_eq!(next(&mut events).await.unwrap(), ": open\n\n");
    standby.stop();
    while next(&mut events).await.is_some() {}
    standby.served.await.unwrap();
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    let answers = Arc::new(());
    let held = Arc::clone(&answers);
    let endless = move |_| -> Done {
        let held = Arc::clone(&held);
        Box::pin(async move {
            let pieces = stream::repeat(held).map(|_| Ok(Bytes::from(vec![b'x'; 64 << 10])));
            Ok(Response::new(Body::Stream(Box::pin(pieces))))
        })
    };
    let address = owner(endless).await;
    let idle = Arc::strong_count(&answers);
    let standby = Node::at(there(address)).await;
    let mut stream = TcpStream::connect(standby.address).await.unwrap();
    stream.write_all(b"GET /api/agents HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(stream.read(&mut [0; 1_024]).await.unwrap() > 0);
    assert_eq!(standby.api.elsewhere.forwards.taken(), 1);
    assert!(Arc::strong_count(&answers) > idle);
    drop(stream);
    while standby.api.elsewhere.forwards.taken() > 0 || Arc::strong_count(&answers) > idle {
        tokio::task::yield_now().await;
    }
}

/// Speaks another protocol, in which everything is said twice.
fn twice(mut request: Request<Incoming>) -> Done {
    let upgraded = upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut io = TokioIo::new(upgraded.await.unwrap());
        let mut word = [0; 5];
        while io.read_exact(&mut word).await.is_ok() {
            io.write_all(&[word, word].concat()).await.unwrap();
        }
    });
    let asked = request.headers().get(UPGRADE).cloned();
    Box::pin(async move {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        hops::upgrade(response.headers_mut(), asked.as_ref());
        Ok(response)
    })
}

/// What the standby says to one who asks for a socket, and the connection.
async fn asked(standby: &Node) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(standby.address).await.unwrap();
    let request = "GET /api/agents/6f9619ff-8b86-d011-b42d-00cf4fc964ff/ws HTTP/1.1\r\nhost: localhost\r\n\
                   connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

/// A socket that is open through the standby.
async fn socket(standby: &Node) -> TcpStream {
    let (stream, head) = asked(standby).await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: websocket"), "{head}");
    stream
}

#[tokio::test]
async fn sockets_are_passed_on_until_one_end_closes() {
    let standby = Node::at(there(owner(twice).await)).await;
    let mut stream = socket(&standby).await;
    for word in [b"hello", b"again"] {
        stream.write_all(word).await.unwrap();
        let mut said = [0; 10];
        stream.read_exact(&mut said).await.unwrap();
        assert_eq!(said[..5], said[5..]);
        assert_eq!(&said[..5], word);
    }
    assert_eq!(standby.api.elsewhere.forwards.taken(), 1);
    drop(stream);
    while standby.api.elsewhere.forwards.taken() > 0 {
        tokio::task::yield_now().await;
    }
    // One of a node that stops ends at once, however little is said.
    let mut stream = socket(&standby).await;
    standby.stop();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
    standby.served.await.unwrap();
}

#[tokio::test]
async fn a_socket_takes_a_place_of_its_clients_share() {
    // Strangers of an address have one place.
    let standby = Node::of(there(owner(twice).await), few_connections()).await;
    let open = socket(&standby).await;
    let (_, refused) = asked(&standby).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    drop(open);
    while standby.api.elsewhere.forwards.taken() > 0 {
        tokio::task::yield_now().await;
    }
    socket(&standby).await;
}
