//! A file of the web, byte by byte as it is there: archives and the answers of hubs. The rules are those of a fetch, and http
//! is for hosts that the operator opened only.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};

use super::fetch::{is_redirect, next_target, send};
use super::policy::Policy;
use super::target::Target;
use super::{Error, Web, retry_after};

/// Bytes of an answer of another status than 2xx that are kept.
const REASON_BYTES_MAX: usize = 2 << 10;
/// Bytes that are gathered before they are written.
const BATCH_BYTES: usize = 1 << 20;
/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Download<'a> {
    /// Where from.
    pub(crate) url: &'a str,
    /// The `Accept` header.
    pub(crate) accept: &'static str,
    /// Bytes of the body; [`Error::TooLarge`] for more.
    pub(crate) bytes_max: u64,
    /// For all of it, lookups and redirects included.
    pub(crate) timeout: Duration,
    /// Headers for one host: they go there, and nowhere that it redirects to.
    pub(crate) only_for: Option<(&'a str, &'a HeaderMap)>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Downloaded<T> {
    /// Where it came from in the end.
    pub(crate) url: Url,
    /// Its status; may be an error.
    pub(crate) status: StatusCode,
    /// The `Content-Type` as it was written; empty when there was none.
    pub(crate) content_type: String,
    /// When to ask again, if the answer says so.
    pub(crate) retry_after: Option<Duration>,
    /// For an error, the beginning of its text.
    pub(crate) reason: String,
    /// The body; for an error, an empty one.
    pub(crate) body: T,
}

/// Where a body goes.
enum Sink {
    Memory(Vec<u8>),
    File(Option<File>, Vec<u8>),
}

impl Web {
    /// Downloads into memory.
    ///
    /// # Errors
    /// [`Error`]. A status that is an error is no error here.
    pub(crate) async fn download(&self, request: Download<'_>) -> Result<Downloaded<Vec<u8>>, Error> {
        let (found, sink) = self.download_into(request, Sink::Memory(Vec::new())).await?;
        let body = if let Sink::Memory(bytes) = sink { bytes } else { Vec::new() };
        Ok(found.with(body))
    }

    /// Downloads into a file, off the runtime's threads. Gives the file behind its last byte.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Disk`] when the file cannot be written. A status that is an error is no error here.
    pub(crate) async fn download_file(&self, request: Download<'_>, file: File) -> Result<Downloaded<File>, Error> {
        match self.download_into(request, Sink::File(Some(file), Vec::new())).await? {
            (found, Sink::File(Some(file), _)) => Ok(found.with(file)),
            _ => Err(Error::Disk(io::ErrorKind::Other)),
        }
    }

    async fn download_into(&self, request: Download<'_>, sink: Sink) -> Result<(Downloaded<()>, Sink), Error> {
        let done = tokio::time::timeout(request.timeout, self.download_once(request, sink)).await;
        done.unwrap_or(Err(Error::Timeout(request.timeout.as_secs())))
    }

    async fn download_once(&self, request: Download<'_>, mut sink: Sink) -> Result<(Downloaded<()>, Sink), Error> {
        let mut target = Target::parse(request.url)?;
        for hops in 0..=REDIRECTS_MAX {
            let response =
                self.ask(&target, request.accept, request.only_for.filter(|_| hops == 0)).await.map_err(|cause| {
                    match hops {
                        0 => cause,
                        _ => Error::Hop { url: target.url.to_string(), cause: Box::new(cause) },
                    }
                })?;
            if !is_redirect(response.status()) {
                let found = take(&target, response, request.bytes_max, &mut sink).await?;
                return Ok((found, sink));
            }
            target = next_target(&target.url, response.headers().get(LOCATION))?;
        }
        Err(Error::Redirects(REDIRECTS_MAX))
    }

    /// One hop.
    async fn ask(
        &self,
        target: &Target,
        accept: &'static str,
        only_for: Option<(&str, &HeaderMap)>,
    ) -> Result<Response, Error> {
        let settings = self.settings();
        let anywhere: [Box<str>; 1] = ["*".into()];
        let policy = Policy { allowed: &settings.allowed, network: &anywhere, trusted: None };
        policy.permit(target)?;
        let addresses = self.inner.addresses(target).await?;
        let pinned = policy.pin(target, &addresses)?;
        if target.url.scheme() == "http" && !policy.is_opened(target, &addresses) {
            return Err(Error::Unencrypted(target.host.clone()));
        }
        let client = self.inner.client(target, pinned.clone())?;
        // What is packed stays packed: its checksum is that of the file.
        let asked = client.get(target.url.clone()).header(ACCEPT, accept).header(ACCEPT_ENCODING, "identity");
        let asked = match only_for {
            Some((host, headers)) if host == target.host => asked.headers(headers.clone()),
            _ => asked,
        };
        send(target, &pinned, asked).await.map_err(|unsent| unsent.error)
    }

    /// The addresses at which a program may reach the host of a URL, by the rules of a download. The program must connect to
    /// them and look nothing up.
    ///
    /// # Errors
    /// [`Error`]: it may not reach it.
    pub(crate) async fn pinned(&self, url: &str) -> Result<(Url, Vec<std::net::SocketAddr>), Error> {
        let target = Target::parse(url)?;
        let settings = self.settings();
        let anywhere: [Box<str>; 1] = ["*".into()];
        let policy = Policy { allowed: &settings.allowed, network: &anywhere, trusted: None };
        policy.permit(&target)?;
        let addresses = tokio::time::timeout(settings.timeout, self.inner.addresses(&target)).await;
        let addresses = addresses.unwrap_or_else(|_| Err(Error::Timeout(settings.timeout.as_secs())))?;
        let pinned = policy.pin(&target, &addresses)?;
        if target.url.scheme() == "http" && !policy.is_opened(&target, &addresses) {
            return Err(Error::Unencrypted(target.host));
        }
        Ok((target.url, pinned.to_vec()))
    }
}

impl Downloaded<()> {
    fn with<T>(self, body: T) -> Downloaded<T> {
        let Self { url, status, content_type, retry_after, reason, .. } = self;
        Downloaded { url, status, content_type, retry_after, reason, body }
    }
}

/// Takes the body, or the beginning of an error's.
async fn take(
    target: &Target,
    mut response: Response,
    bytes_max: u64,
    sink: &mut Sink,
) -> Result<Downloaded<()>, Error> {
    let header = |name: HeaderName| {
        let value = response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        value.unwrap_or_default()
    };
    let (status, content_type) = (response.status(), header(CONTENT_TYPE));
    let retry_after = retry_after(&header(RETRY_AFTER), SystemTime::now());
    if response.content_length().is_some_and(|length| status.is_success() && length > bytes_max) {
        return Err(Error::TooLarge(bytes_max));
    }
    let (mut taken, mut reason) = (0_u64, Vec::new());
    while let Some(piece) = response.chunk().await.map_err(|error| Error::exchange(&target.host, error))? {
        taken += piece.len() as u64;
        if !status.is_success() {
            let left = REASON_BYTES_MAX - reason.len();
            reason.extend_from_slice(&piece[..piece.len().min(left)]);
            if reason.len() == REASON_BYTES_MAX {
                break;
            }
            continue;
        }
        if taken > bytes_max {
            return Err(Error::TooLarge(bytes_max));
        }
        sink.push(&piece).await?;
    }
    sink.flush().await?;
    let reason = String::from_utf8_lossy(&reason).trim().to_owned();
    Ok(Downloaded { url: target.url.clone(), status, content_type, retry_after, reason, body: () })
}

impl Sink {
    async fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        match self {
            Self::Memory(bytes) => bytes.extend_from_slice(piece),
            Self::File(_, batch) => {
                batch.extend_from_slice(piece);
                if batch.len() >= BATCH_BYTES {
                    return self.flush().await;
                }
            }
        }
        Ok(())
    }

    /// Writes what was gathered.
    async fn flush(&mut self) -> Result<(), Error> {
        let Self::File(place, batch) = self else { return Ok(()) };
        let (Some(mut file), bytes) = (place.take(), std::mem::take(batch)) else {
            return Err(Error::Disk(io::ErrorKind::Other));
        };
        let written = tokio::task::spawn_blocking(move || file.write_all(&bytes).map(|()| file)).await;
        let file =
            written.map_err(|_| Error::Disk(io::ErrorKind::Other))?.map_err(|error| Error::Disk(error.kind()))?;
        *place = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::kernel::egress::{AllowedHosts, WebSettings};

    /// Answers each connection with what belongs to its path.
    async fn server(answer: fn(&str) -> String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
                let _ = stream.write_all(answer(&path).as_bytes()).await;
            }
        });
        format!("http://{address}")
    }

    fn web(hosts: &[&str]) -> Web {
        let allowed = AllowedHosts::parse(hosts).unwrap();
        Web::new(WebSettings { allowed, ..WebSettings::default() })
    }

    fn request(url: &str) -> Download<'_> {
        Download { url, accept: "*/*", bytes_max: 100, timeout: Duration::from_secs(10), only_for: None }
    }

    fn answer(path: &str) -> String {
        let ok = |body: &str| format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: a/b\r\n\r\n{body}");
        match path {
            "/moved" => {
                "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: /file\r\ncontent-length: 0\r\n\r\n".into()
            }
            "/private" => {
                "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n"
                    .into()
            }
            "/long" => ok(&"x".repeat(101)),
            "/busy" => "HTTP/1.1 429 Too Many\r\nconnection: close\r\nretry-after: 7\r\n\r\nlater".into(),
            _ => ok("content"),
        }
    }

    #[tokio::test]
    async fn files_come_whole_and_errors_with_their_reason() {
        let (base, web) = (server(answer).await, web(&["127.0.0.1"]));
        let found = web.download(request(&format!("{base}/moved"))).await.unwrap();
        assert_eq!(
            (found.status.as_u16(), found.content_type.as_str(), found.body.as_slice()),
            (200, "a/b", &b"content"[..])
        );
        assert_eq!(found.url.path(), "/file");
        let found = web.download_file(request(&format!("{base}/file")), tempfile::tempfile().unwrap()).await.unwrap();
        let (mut file, mut text) = (found.body, String::new());
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        let found = web.download(request(&format!("{base}/busy"))).await.unwrap();
        assert_eq!((found.status.as_u16(), found.reason.as_str()), (429, "later"));
        assert_eq!((found.retry_after, found.body.len()), (Some(Duration::from_secs(7)), 0));
        let error = web.download(request(&format!("{base}/long"))).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge(100)), "{error}");
        let error = web.download(request(&format!("{base}/private"))).await.unwrap_err();
        assert!(matches!(error, Error::Hop { .. }), "{error}");
    }

    #[tokio::test]
    async fn private_hosts_and_http_are_for_what_the_operator_opened() {
        let base = server(answer).await;
        assert!(matches!(web(&[]).download(request(&base)).await.unwrap_err(), Error::Private { .. }));
        assert!(matches!(web(&[]).pinned(&base).await.unwrap_err(), Error::Private { .. }));
        let error = web(&[]).download(request("http://93.184.216.34/x")).await.unwrap_err();
        assert!(matches!(error, Error::Unencrypted(_)), "{error}");
        assert!(matches!(web(&[]).pinned("http://93.184.216.34/").await.unwrap_err(), Error::Unencrypted(_)));
        assert_eq!(web(&["127.0.0.1"]).pinned(&base).await.unwrap().1.len(), 1);
    }
}
