//! The HTTP client of the commands.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::resource::Routes;
use crate::kernel::cli::Error;
use crate::kernel::host::{host_of, is_loopback};
use crate::kernel::sse;

/// How long a connection may take; a daemon is near.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// The header that has the cursor of the next page of a list that is an array.
const NEXT_CURSOR: &str = "x-next-cursor";
/// Bytes of one event of a stream.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// JSON.
    Json(Value),
    /// Text of another type.
    Text(String),
    /// None: there is nothing to say.
    None,
}

/// A client of one daemon.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
    /// Those of the daemon, if they are known: they tell where a name is listed.
    routes: Option<Routes>,
}

impl Client {
    /// A client of the daemon at `url`, which sends `key` if there is one.
    pub(crate) fn new(url: &str, key: Option<String>) -> Result<Self, Error> {
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let parsed = parsed.ok_or_else(|| Error::Usage(format!("--url {url}: not an http or https URL")))?;
        // Fails when a provider is already installed, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // No kept connections: between two prompts nothing would notice that the daemon closed one.
        let mut http = reqwest::Client::builder().connect_timeout(CONNECT_WAIT).pool_max_idle_per_host(0);
        if host_of(parsed.as_str()).is_some_and(|host| is_loopback(&host)) {
            // A proxy reaches its own loopback, not ours.
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| Error::Protocol(describe(&error)))?;
        Ok(Self { http, base: url.trim_end_matches('/').to_owned(), key, routes: None })
    }

    /// With the routes of the daemon, so that errors say what was probably meant.
    pub(crate) fn knowing(self, routes: Routes) -> Self {
        Self { routes: Some(routes), ..self }
    }

    pub(super) fn routes(&self) -> Option<Routes> {
        self.routes
    }

    /// The daemon's URL without a slash at its end.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// True when requests carry a key.
    #[cfg(test)]
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// `GET path`, with query parameters.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Error> {
        self.get_as(path, query).await
    }

    /// `GET path`, of which only what `T` names is kept.
    pub(crate) async fn get_as<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Error> {
        read(self.send(Method::GET, path, query, None).await?).await
    }

    /// Calls any route; the answer is of the type that it says.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Body, Error> {
        let response = self.send(method, path, query, body).await?;
        let is_json = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("json"));
        if response.headers().get(CONTENT_TYPE).is_some_and(is_json) {
            return read(response).await.map(Body::Json);
        }
        let text = response.text().await.map_err(|error| Error::Protocol(describe(&error)))?;
        Ok(if text.is_empty() { Body::None } else { Body::Text(text) })
    }

    /// `GET path`, whose answer is a text.
    pub(crate) async fn text(&self, path: &str, query: &[(&str, &str)]) -> Result<String, Error> {
        let response = self.send(Method::GET, path, query, None).await?;
        response.text().await.map_err(|error| Error::Protocol(describe(&error)))
    }

    /// `POST path` with a JSON body, or none.
    pub(crate) async fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        read(self.send(Method::POST, path, &[], body).await?).await
    }

    /// `POST path` with a JSON text and further headers; the text of the answer.
    pub(crate) async fn post_text(
        &self,
        path: &str,
        headers: &[(&'static str, String)],
        body: String,
    ) -> Result<String, Error> {
        let mut request = self.request(Method::POST, path, &[])?.header("content-type", "application/json").body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = self.answer(request).await?;
        response.text().await.map_err(|error| Error::Protocol(describe(&error)))
    }

    /// Writes the body of `GET path` into `to`, piece by piece.
    pub(crate) async fn download(&self, path: &str, to: &mut impl std::io::Write) -> Result<(), Error> {
        let mut response = self.send(Method::GET, path, &[], None).await?;
        let broke = |error| Error::Protocol(format!("the connection failed: {}", describe(&error)));
        while let Some(piece) = response.chunk().await.map_err(broke)? {
            to.write_all(&piece).map_err(Error::io("cannot write the file"))?;
        }
        to.flush().map_err(Error::io("cannot write the file"))
    }

    /// Saves the body of an answer as `file`, which is replaced once all of it is there.
    pub(crate) async fn save(&self, path: &str, file: &Path) -> Result<(), Error> {
        let failed = || Error::io(format!("cannot write {}", file.display()));
        // A device or a pipe is written to, and not replaced.
        if file.metadata().is_ok_and(|present| !present.is_file()) {
            let mut to = File::options().write(true).open(file).map_err(failed())?;
            return self.download(path, &mut to).await;
        }
        let part = file.with_added_extension("part");
        let mut to = BufWriter::new(File::create(&part).map_err(failed())?);
        let saved = match self.download(path, &mut to).await {
            Ok(()) => std::fs::rename(&part, file).map_err(failed()),
            Err(error) => Err(error),
        };
        if saved.is_err() {
            let _gone = std::fs::remove_file(&part);
        }
        saved
    }

    /// `DELETE path`.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Error> {
        read(self.send(Method::DELETE, path, &[], None).await?).await
    }

    /// The events that a request answers with.
    pub(crate) async fn events(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Events, Error> {
        let response = self.send(method, path, &[], body).await?;
        Ok(Events { response, parser: sse::Parser::new(EVENT_BYTES_MAX), ready: VecDeque::new() })
    }

    /// One page of a list: its items, and the cursor of the next page.
    pub(crate) async fn page(&self, path: &str, query: &[(&str, &str)]) -> Result<(Vec<Value>, Option<String>), Error> {
        let response = self.send(Method::GET, path, query, None).await?;
        let cursor = response.headers().get(NEXT_CURSOR).and_then(|cursor| cursor.to_str().ok()).map(str::to_owned);
        let mut answer: Value = read(response).await?;
        let cursor = cursor.or_else(|| answer["next_cursor"].as_str().map(str::to_owned));
        let list = if answer.is_array() { Some(&mut answer) } else { lists(&mut answer).next() };
        let items = list.and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        Ok((items, cursor))
    }

    /// Sends a request; an answer that is an error becomes one here.
    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Response, Error> {
        let verb = method.to_string();
        let mut request = self.request(method, path, query)?;
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        match self.answer(request).await {
            Err(Error::Answer { status: 404, message }) => {
                let message = self.with_meant(&verb, path, body, message).await;
                Err(Error::Answer { status: 404, message })
            }
            answered => answered,
        }
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> Result<RequestBuilder, Error> {
        let mut url = Url::parse(&format!("{}{path}", self.base)).map_err(|error| Error::Usage(error.to_string()))?;
        // Dots would lead to another route than the one that is meant.
        let given = path.split(['?', '#']).next().unwrap_or_default();
        if !url.path().ends_with(given) {
            return Err(Error::Usage(format!("{given}: not a path of the API, or a name of dots")));
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        Ok(if let Some(key) = &self.key { request.bearer_auth(key) } else { request })
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.unwrap_or_default();
        Err(Error::Answer { status: status.as_u16(), message: message_of(status, &text) })
    }

    fn failed(&self, error: &reqwest::Error) -> Error {
        if error.is_connect() {
            Error::Unreachable { url: self.base.clone() }
        } else {
            Error::Protocol(format!("{}: {}", self.base, describe(error)))
        }
    }
}

/// The event stream of one answer.
#[derive(Debug)]
pub(crate) struct Events {
    response: Response,
    parser: sse::Parser,
    ready: VecDeque<Event>,
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; empty when it has none.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
}

impl Events {
    /// The next event; `None` at the end of the stream. Nothing is lost when this is dropped half-way.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let bytes = self.response.chunk().await;
            let bytes =
                bytes.map_err(|error| Error::Protocol(format!("the connection failed: {}", describe(&error))))?;
            let Some(bytes) = bytes else { return Ok(None) };
            let ready = &mut self.ready;
            self.parser.feed(&bytes, |event| {
                ready.push_back(Event { name: event.name.to_owned(), data: event.data.to_owned() });
            })?;
        }
    }
}

/// The lists in an object.
fn lists(answer: &mut Value) -> impl Iterator<Item = &mut Value> {
    answer.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut).filter(|value| value.is_array())
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Error> {
    let bytes = response.bytes().await.map_err(|error| Error::Protocol(describe(&error)))?;
    // 204 and the like: nothing to say.
    let json = if bytes.is_empty() { b"null" } else { bytes.as_ref() };
    serde_json::from_slice(json).map_err(|error| {
        Error::Protocol(format!(
            "the daemon returned an invalid response: \
        {error}"
        ))
    })
}

/// The `error` of a body, else the status. One line: it is printed as such.
fn message_of(status: reqwest::StatusCode, body: &str) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let text = parsed["error"].as_str().map_or_else(|| status.to_string(), str::to_owned);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The innermost cause, which is what helps; reqwest's own text only names the URL again.
fn describe(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use reqwest::{Method, StatusCode};

    use super::{Client, Error, message_of};
    use crate::kernel::cli::Exit;
    use crate::kernel::cli::context::runtime;

    /// A daemon that answers one request per text, and gives back the heads of the requests.
    fn daemon(answers: &'static [&'static str]) -> (Client, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = thread::spawn(move || answers.iter().map(|answer| exchange(&listener, answer)).collect());
        (Client::new(&url, Some("k".to_owned())).unwrap(), asked)
    }

    fn exchange(listener: &TcpListener, answer: &str) -> String {
        let (mut connection, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        connection.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(head).unwrap()
    }

    fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        runtime().unwrap().block_on(work)
    }

    #[test]
    fn an_agent_is_found_by_its_exact_name() {
        let (client, asked) = daemon(&[
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[{\"name\":\"a b\",\"id\":\"i\"}]",
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[{\"name\":\"a bc\",\"id\":\"i\"}]",
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[{\"name\":\"scout\"},{\"name\":\"a bc\"}]",
        ]);
        assert_eq!(block_on(client.agent_id("a b")).unwrap(), "i");
        let error = block_on(client.agent_id("a b")).unwrap_err();
        assert_eq!(
            (error.exit(), error.to_string().as_str()),
            (Exit::NotFound, "agent a b does not exist; did you mean a bc?")
        );
        let head = &asked.join().unwrap()[0];
        assert!(head.starts_with("GET /api/agents?name=a+b&limit=2 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: Bearer k\r\n"), "{head}");
    }

    #[test]
    fn dots_lead_to_no_other_route() {
        let client = Client::new("http://192.0.2.1/base", None).unwrap();
        for path in
            ["/api/agents/a/files/../history", "/api/agents/a/files/%2e%2E/history", "/api/goals/.", "/api/a/.."]
        {
            let error = block_on(client.delete(path)).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage, "{path}: {error}");
        }
    }

    #[test]
    fn an_id_needs_no_question() {
        let id = "01890000-0000-7000-8000-000000000000";
        assert_eq!(block_on(Client::new("http://192.0.2.1", None).unwrap().agent_id(id)).unwrap(), id);
    }

    #[test]
    fn errors_of_the_daemon_become_errors() {
        let (client, _) = daemon(&["HTTP/1.1 409 Conflict\r\nconnection: close\r\n\r\n{\"error\":\"name taken\"}"]);
        let error = block_on(client.post("/api/agents", None)).unwrap_err();
        assert_eq!((error.exit(), error.to_string().as_str()), (Exit::Conflict, "name taken"));
        let (client, _) = daemon(&["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nnot json"]);
        assert_eq!(block_on(client.get("/x", &[])).unwrap_err().exit(), Exit::Failure);
    }

    #[test]
    fn events_come_one_by_one_until_the_end() {
        let (client, _) = daemon(&["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nevent: a\ndata: 1\n\ndata: 2\n\nlost"]);
        let names = block_on(async {
            let mut events = client.events(Method::GET, "/api/logs/stream", None).await?;
            let mut seen = Vec::new();
            while let Some(event) = events.next().await? {
                seen.push((event.name, event.data));
            }
            Ok(seen)
        });
        let expected = [("a".to_owned(), "1".to_owned()), (String::new(), "2".to_owned())];
        assert_eq!(names.unwrap(), expected);
    }

    #[test]
    fn only_http_urls() {
        assert!(["", "x", "ftp://h", "localhost:1"].into_iter().all(|url| Client::new(url, None).is_err()));
        assert_eq!(Client::new("http://h:1/", None).unwrap().base(), "http://h:1");
    }

    #[test]
    fn messages_are_one_line() {
        assert_eq!(message_of(StatusCode::CONFLICT, r#"{"error":"name\n taken"}"#), "name taken");
        assert_eq!(message_of(StatusCode::BAD_GATEWAY, "<html>"), "502 Bad Gateway");
    }

    #[test]
    fn nobody_there_is_unreachable() {
        // Nobody listens at the port of "discard"; one that was free a moment ago may be another test's by now.
        let client = Client::new("http://127.0.0.1:9", None).unwrap();
        assert_eq!(block_on(client.get("/api/health", &[])).unwrap_err().exit(), Exit::Unreachable);
    }
}
