//! The bare hyper server that reads are measured beside.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;

/// The bare server: says where it listens and answers every request with `hello`.
pub(crate) fn serve() {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        println!("{}", listener.local_addr().expect("a bound socket has an address"));
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let service = service_fn(|_: Request<hyper::body::Incoming>| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
                });
                // A client that hangs up is no concern of the measurement.
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

/// The word by which the bare server is started.
const HELLO: &str = "--hello";

/// Is this process the bare server?
pub(crate) fn is_hello() -> bool {
    std::env::args().any(|argument| argument == HELLO)
}

/// The bare server as a child process, ended with the measurement.
pub(crate) struct Hello(Child, SocketAddr);

impl Hello {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut child = Command::new(program).arg(HELLO).stdout(Stdio::piped()).spawn().expect("this program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("the child speaks");
        Self(child, line.trim().parse().expect("an address"))
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.1
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
