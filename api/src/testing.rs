//! What tests of this room share: a front over an engine without a disk.

pub(crate) mod daemon;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, FileId, LogId, TurnId};
use agentsvc_systems::{Engine, Settings};
use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use http_body_util::Full;
use hyper::Request;
use hyper::header::{HOST, HeaderValue};
use hyper::http::request::Builder;

use crate::DOMAINS;
use crate::agent::texts::ManifestTexts;
use crate::http::api::Api;
use crate::http::bridge::{Arrival, Intake, bridge};
use crate::http::dispatch::dispatch;
use crate::http::error::ContentError;
use crate::http::files::{FileReader, FileWriter, FilesError};
use crate::http::reply::Response;
use crate::http::settings::ApiSettings;
use crate::http::shutdown::Shutdown;
use crate::knowledge::store::{KnowledgeRow, KnowledgeStore};
use crate::memory::store::{MemoryRange, MemoryRow, MemoryStore};
use crate::session::content::{Content, MessageRange, MessageRow};
use crate::turn::store::TraceStore;
use crate::upload::files::{Files, Listing, OpenFile, Owner, Scan, Scanned, Upload, Written};
use crate::usage::store::{UsageRange, UsageRow, UsageStore};

/// Where test requests come from.
pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A store without content.
pub(crate) struct NoContent;

impl Content for NoContent {
    fn messages(&self, _log: LogId, _range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        Ok(Vec::new())
    }

    fn result(&self, _: LogId, _: u32, _: u32) -> Result<Option<String>, ContentError> {
        Ok(None)
    }

    fn summary(&self, _: LogId, _: u32) -> Result<Option<SummaryRecord>, ContentError> {
        Ok(None)
    }

    fn summaries(&self, _: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        Ok(Vec::new())
    }
}

impl ManifestTexts for NoContent {
    fn manifest_text(&self, _agent: AgentId) -> Result<Option<String>, ContentError> {
        Ok(None)
    }
}

impl TraceStore for NoContent {
    fn traces(&self, _: AgentId, _: Option<TurnId>, _: usize) -> Result<Vec<TraceRecord>, ContentError> {
        Ok(Vec::new())
    }

    fn trace_count(&self, _: AgentId) -> Result<u64, ContentError> {
        Ok(0)
    }
}

impl MemoryStore for NoContent {
    fn memory(&self, _: AgentId, _: &str) -> Result<Option<MemoryRecord>, ContentError> {
        Ok(None)
    }

    fn memories(&self, _: AgentId, _: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        Ok(Vec::new())
    }
}

impl KnowledgeStore for NoContent {
    fn value(&self, _: &[u8]) -> Result<Option<Vec<u8>>, ContentError> {
        Ok(None)
    }

    fn rows(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Vec<KnowledgeRow>, ContentError> {
        Ok(Vec::new())
    }
}

impl UsageStore for NoContent {
    fn usage(&self, _: &UsageRange) -> Result<Vec<UsageRow>, ContentError> {
        Ok(Vec::new())
    }

    fn active_agents(&self, _: i64, _: i64) -> Result<usize, ContentError> {
        Ok(0)
    }
}

/// A home without files, or where every upload holds the same text.
#[derive(Default)]
pub(crate) struct TestFiles {
    pub(crate) text: Option<String>,
}

impl Files for TestFiles {
    fn bytes_max(&self) -> u64 {
        1_000
    }

    fn begin_upload(&self, _: AgentId, _: &str, _: &str) -> Result<Box<dyn FileWriter<Upload>>, FilesError> {
        Err(FilesError::Failed)
    }

    fn upload(&self, file: FileId) -> Result<Upload, FilesError> {
        Err(FilesError::NotFound(format!("upload not found: {file}")))
    }

    fn open_upload(&self, file: FileId) -> Result<(Upload, FileReader), FilesError> {
        Err(self.upload(file).err().unwrap_or(FilesError::Failed))
    }

    fn remove_upload(&self, _: FileId) -> Result<(), FilesError> {
        Ok(())
    }

    fn attachment(
        &self,
        _: AgentId,
        file: FileId,
        scan: Scan,
    ) -> BoxFuture<'static, Result<Option<Scanned>, FilesError>> {
        let read = match self.text.clone() {
            Some(text) => Ok(Some(scan.block(Block::Text { text }))),
            None => Err(self.upload(file).err().unwrap_or(FilesError::Failed)),
        };
        Box::pin(ready(read))
    }

    fn list(&self, _: &Owner) -> Result<Listing, FilesError> {
        Ok(Listing::default())
    }

    fn open_file(&self, _: &Owner, path: &str) -> Result<OpenFile, FilesError> {
        Err(FilesError::NotFound(path.to_owned()))
    }

    fn begin_file(&self, _: &Owner, _: &str) -> Result<Box<dyn FileWriter<Written>>, FilesError> {
        Err(FilesError::Failed)
    }

    fn copy_upload(&self, _: &Owner, _: &Upload) -> Result<Written, FilesError> {
        Err(FilesError::Failed)
    }

    fn delete_file(&self, _: &Owner, path: &str) -> Result<(), FilesError> {
        Err(FilesError::NotFound(path.to_owned()))
    }
}

/// A front whose world is still loading, and the world's end of the bridge.
pub(crate) fn loading(settings: ApiSettings) -> (Arc<Api>, Intake) {
    let (bridge, intake) = bridge();
    let api = Api::new(&DOMAINS, settings, bridge, Shutdown::new());
    api.services.provide::<dyn Content>(Arc::new(NoContent));
    api.services.provide::<dyn ManifestTexts>(Arc::new(NoContent));
    api.services.provide::<dyn TraceStore>(Arc::new(NoContent));
    api.services.provide::<dyn MemoryStore>(Arc::new(NoContent));
    api.services.provide::<dyn KnowledgeStore>(Arc::new(NoContent));
    api.services.provide::<dyn UsageStore>(Arc::new(NoContent));
    api.services.provide::<dyn Files>(Arc::new(TestFiles::default()));
    (api, intake)
}

/// A front over a running, empty world that forgets.
pub(crate) fn front(settings: ApiSettings) -> Arc<Api> {
    let (api, intake) = loading(settings);
    intake.open();
    std::thread::spawn(move || run(&intake));
    api
}

/// The world of [`front`] behind `intake`, until that ends.
pub(crate) fn run(intake: &Intake) {
    let mut engine = Engine::new(Settings::default(), [7; 32]);
    while let Ok(arrival) = intake.arrivals.recv() {
        match arrival {
            Arrival::Command(envelope) => {
                intake.took_command();
                envelope.run(&mut engine);
            }
            Arrival::Outcome(outcome) => engine.outcome(outcome),
            Arrival::Stop => return,
        }
        for release in engine.step().releases {
            release();
        }
    }
}

/// A request with a body, such as `Request::get("/api/health")`.
pub(crate) async fn send(api: &Arc<Api>, request: Builder, body: impl Into<Bytes>) -> Response {
    let mut request = request.body(Full::new(body.into())).expect("a request");
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    let client = api.peers.connect(CLIENT, true);
    dispatch(api, &client, request).await.0
}

/// `GET path`.
pub(crate) async fn get(api: &Arc<Api>, path: &str) -> Response {
    send(api, Request::get(path), "").await
}
