//! The tries of jobs of media: a provider is asked, asked for its task, and its result is kept as uploads.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::files::FilesError;
use agentsvc_api::upload::files::Files;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::media::{MediaFault, MediaFile, MediaKind, MediaRequest, MediaTask, MediaTaskId};
use agentsvc_components::{AgentId, FileId, Refusal, RefusalKind};
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::media::limits::{MEDIA_AUDIO_BYTES_MAX, MEDIA_IMAGES_MAX};
use agentsvc_systems::media::{
    FetchOrder, MakeOrder, MediaReport, MediaSource, MediaTaskView, PollOrder, ReserveMedia,
};
use arc_swap::ArcSwap;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::failed::Failed;
use super::header::{self, Class, Header};
use super::http::Http;
use super::wire::{self, Made, Order, Polled, Wire};
use crate::kernel::egress::{Download, Error, Web};
use crate::model::call::ReadUpload;
use crate::model::metered;
use crate::model::provider::{Providers, Target};

/// How long the download of one file may take: less than a try of the job, for all of them.
const DOWNLOAD_TIME_MAX: Duration = Duration::from_secs(65);

/// What tries need.
pub(super) struct Worker {
    pub(super) bridge: Bridge,
    pub(super) web: Web,
    pub(super) providers: Arc<ArcSwap<Providers>>,
    pub(super) files: Arc<dyn Files>,
    pub(super) uploads: ReadUpload,
    pub(super) http: Http,
}

/// The task of a try, and where its provider is asked.
struct Asked {
    id: MediaTaskId,
    task: MediaTask,
    wire: &'static dyn Wire,
    target: Target,
}

impl Worker {
    /// Asks a provider for media. This is what is paid.
    pub(super) async fn make(&self, job: RunJob) -> TryEnd {
        let order: MakeOrder = match read(&job) {
            Ok(order) => order,
            Err(end) => return end,
        };
        let end = match self.asked(order.task).await {
            Ok(asked) => self.made(&job, &order, asked).await,
            Err(end) => end,
        };
        if let (MediaRequest::Transcription { file, is_temporary: true, .. }, TryEnd::Done(_) | TryEnd::Failed(_)) =
            (&order.request, &end)
        {
            self.forget(vec![*file]).await;
        }
        end
    }

    async fn made(&self, job: &RunJob, order: &MakeOrder, asked: Asked) -> TryEnd {
        let Asked { task, wire, target, .. } = &asked;
        let recording = match self.recording(&order.request).await {
            Ok(recording) => recording,
            Err(failed) => return failed.paid_end(task.most),
        };
        let duration_ms = recording.as_ref().and_then(|(_, header)| header.duration_ms);
        if let Err(refusal) = self.bridge.ask(ReserveMedia { task: order.task, attempt: job.attempt }).await {
            return not_reserved(refusal);
        }
        let bytes_max = self.files.bytes_max();
        let (http, request) = (&self.http, &order.request);
        let made = wire.make(Order { http, target, request, recording, bytes_max }).await;
        let Made { files, links, remote, text, language } = match made {
            Ok(made) => made,
            Err(failed) => return failed.paid_end(task.most),
        };
        let is_empty = files.is_empty() && links.is_empty() && remote.is_none() && text.is_none();
        if is_empty
            || (files.is_empty() && links.is_empty() && remote.is_none() && task.kind != MediaKind::Transcription)
        {
            let failed = Failed::new(MediaFault::Protocol, format!("Provider {} made nothing.", target.provider));
            return failed.charged().paid_end(task.most);
        }
        let files = match self.keep(&asked, files).await {
            Ok(files) => files,
            Err(failed) => return failed.charged().paid_end(task.most),
        };
        let from = (files.is_empty() && !links.is_empty()).then_some(MediaSource::Links(links));
        done(&MediaReport { files, from, remote, text, language, duration_ms, ..MediaReport::default() })
    }

    /// Asks for the task of a provider.
    pub(super) async fn poll(&self, job: RunJob) -> TryEnd {
        let order: PollOrder = match read(&job) {
            Ok(order) => order,
            Err(end) => return end,
        };
        let Asked { task, wire, target, .. } = match self.asked(order.task).await {
            Ok(asked) => asked,
            Err(end) => return end,
        };
        let Some(remote) = task.remote.as_deref() else {
            return Failed::new(MediaFault::Protocol, "the provider named no task").free_end();
        };
        match wire.poll(&self.http, &target, remote).await {
            Ok(Polled::Open(state)) => {
                let report = MediaReport { state: Some(state), ..MediaReport::default() };
                TryEnd::Retry { after_ms: None, reason: serde_json::to_string(&report).unwrap_or_default() }
            }
            Ok(Polled::Ready(from)) => done(&MediaReport { from: Some(from), ..MediaReport::default() }),
            Err(failed) => failed.free_end(),
        }
    }

    /// Downloads a result.
    pub(super) async fn fetch(&self, job: RunJob) -> TryEnd {
        let order: FetchOrder = match read(&job) {
            Ok(order) => order,
            Err(end) => return end,
        };
        let asked = match self.asked(order.task).await {
            Ok(asked) => asked,
            Err(end) => return end,
        };
        match self.fetched(&asked, order.from).await {
            Ok(files) => done(&MediaReport { files, ..MediaReport::default() }),
            Err(failed) => failed.free_end(),
        }
    }

    async fn fetched(&self, asked: &Asked, from: MediaSource) -> Result<Vec<MediaFile>, Failed> {
        let links = match from {
            MediaSource::Links(links) => links,
            // A link expires, and each try gets a fresh one.
            MediaSource::File(file) => vec![asked.wire.link(&self.http, &asked.target, &file).await?],
        };
        let mut kept = Vec::new();
        for link in links.iter().take(MEDIA_IMAGES_MAX as usize) {
            let found = match self.download(&asked.target, link).await {
                // A page of an error may stand there for a while, and uploads may have room again.
                Ok(content) => self.keep(asked, vec![content]).await.map_err(Failed::passing),
                Err(failed) => Err(failed),
            };
            match found {
                Ok(files) => kept.extend(files),
                Err(failed) => {
                    self.forget(kept.iter().map(|file| file.file).collect()).await;
                    return Err(failed);
                }
            }
        }
        Ok(kept)
    }

    /// Downloads a file by the rules of all fetches: the link comes from outside.
    async fn download(&self, target: &Target, link: &str) -> Result<Vec<u8>, Failed> {
        let bytes_max = self.files.bytes_max();
        let download = Download { url: link, accept: "*/*", bytes_max, timeout: DOWNLOAD_TIME_MAX, only_for: None };
        let provider = &target.provider;
        // The link may hold a signature: it is not repeated.
        let found = self.web.download(download).await.map_err(|error| {
            let may_pass = matches!(error, Error::Exchange { .. } | Error::Timeout(_) | Error::Lookup { .. });
            let why = match error {
                Error::Hop { cause, .. } => *cause,
                other => other,
            };
            let text = format!("the result of provider {provider} cannot be downloaded: {why}");
            let failed = Failed::new(MediaFault::Provider, text);
            if may_pass { failed.passing() } else { failed }
        })?;
        if !found.status.is_success() {
            let text =
                format!("the result of provider {provider} cannot be downloaded: the link answered {}", found.status);
            let failed = Failed { retry_after: found.retry_after, ..Failed::new(MediaFault::Provider, text) };
            return Err(failed.passing());
        }
        Ok(found.body)
    }

    /// The task and the target of a try.
    async fn asked(&self, id: MediaTaskId) -> Result<Asked, TryEnd> {
        let task = match self.bridge.ask(Get::<MediaTaskView>(id)).await {
            Ok(view) => view.task,
            Err(refusal) if refusal.kind == RefusalKind::NotFound => {
                return Err(Failed::new(MediaFault::Unknown, "the task is gone").free_end());
            }
            Err(refusal) => return Err(Failed::new(MediaFault::Unknown, refusal.message).passing().free_end()),
        };
        let Some(wire) = wire::of(&task.provider) else {
            let text = format!("this release does not know the media provider {}", task.provider);
            return Err(Failed::new(MediaFault::Auth, text).free_end());
        };
        let (provider, model) = (task.provider.clone(), task.model.clone());
        let choice = ModelChoice { provider, model, ..ModelChoice::default() };
        let target = metered::target(&self.providers, choice).await.map_err(|error| Failed::from(error).free_end())?;
        Ok(Asked { id, task, wire, target })
    }

    /// The recording of a transcription.
    async fn recording(&self, request: &MediaRequest) -> Result<Option<(Vec<u8>, Header)>, Failed> {
        let MediaRequest::Transcription { file, .. } = request else { return Ok(None) };
        let (uploads, file) = (Arc::clone(&self.uploads), *file);
        let read = tokio::task::spawn_blocking(move || uploads(file, MEDIA_AUDIO_BYTES_MAX)).await;
        let content = read.ok().flatten();
        let content = content.ok_or_else(|| Failed::new(MediaFault::Storage, "the recording is gone or too large"))?;
        let header = header::read(&content).filter(|header| header.class != Class::Image);
        let header = header.ok_or_else(|| Failed::new(MediaFault::Refused, "the file is no recording"))?;
        Ok(Some((content, header)))
    }

    /// Keeps files of a result as uploads: all of them or none.
    async fn keep(&self, asked: &Asked, contents: Vec<Vec<u8>>) -> Result<Vec<MediaFile>, Failed> {
        let task = &asked.task;
        let (kind, agent) = (task.kind, task.agent.unwrap_or(AgentId(Uuid::nil())));
        let provider = task.provider.clone();
        let mut headers = Vec::new();
        for content in &contents {
            let header = header::read(content).filter(|header| is_of(kind, header.class));
            let what = || format!("The response of provider {provider} is not valid: it is no {}.", kind.as_str());
            headers.push(header.ok_or_else(|| Failed::new(MediaFault::Protocol, what()))?);
        }
        let files = Arc::clone(&self.files);
        let kept = tokio::task::spawn_blocking(move || store(&*files, agent, kind, &contents, &headers)).await;
        let kept = kept.unwrap_or(Err(FilesError::Failed));
        let kept =
            kept.map_err(|error| Failed::new(MediaFault::Storage, format!("the result could not be kept: {error}")))?;
        // An agent takes its uploads with it; these would be left.
        let task = self.bridge.ask(Get::<MediaTaskView>(asked.id)).await;
        if task.is_err_and(|refusal| refusal.kind == RefusalKind::NotFound) {
            self.forget(kept.iter().map(|file| file.file).collect()).await;
            return Err(Failed::new(MediaFault::Unknown, "the task is gone"));
        }
        Ok(kept)
    }

    /// Removes uploads that belong to no task.
    pub(super) async fn forget(&self, ids: Vec<FileId>) {
        let files = Arc::clone(&self.files);
        let removed = tokio::task::spawn_blocking(move || ids.into_iter().try_for_each(|id| files.remove_upload(id)));
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(%error, "an upload of media could not be removed");
        }
    }
}

/// What the job is told.
fn read<T: DeserializeOwned>(job: &RunJob) -> Result<T, TryEnd> {
    serde_json::from_str(&job.input).map_err(|_| TryEnd::Failed("the job cannot be read".to_owned()))
}

fn done(report: &MediaReport) -> TryEnd {
    serde_json::to_string(report).map_or_else(|error| TryEnd::Failed(error.to_string()), TryEnd::Done)
}

/// Nothing was reserved, so the provider is not asked.
fn not_reserved(refusal: Refusal) -> TryEnd {
    let failed = Failed::new(MediaFault::Budget, refusal.message);
    match refusal.kind {
        RefusalKind::Busy | RefusalKind::NoRoom => failed.passing().free_end(),
        _ => failed.free_end(),
    }
}

/// Is a file of this class a result of the kind?
const fn is_of(kind: MediaKind, class: Class) -> bool {
    match kind {
        MediaKind::Image => matches!(class, Class::Image),
        MediaKind::Speech | MediaKind::Music => matches!(class, Class::Audio),
        MediaKind::Video => matches!(class, Class::Video),
        MediaKind::Transcription => false,
    }
}

fn store(
    files: &dyn Files,
    agent: AgentId,
    kind: MediaKind,
    contents: &[Vec<u8>],
    headers: &[Header],
) -> Result<Vec<MediaFile>, FilesError> {
    let mut kept: Vec<MediaFile> = Vec::new();
    for (content, header) in contents.iter().zip(headers) {
        let name = format!("{}.{}", kind.as_str(), header.ending);
        match files.store(agent, &name, header.content_type, content) {
            Ok(upload) => kept.push(MediaFile {
                file: upload.id,
                content_type: header.content_type.into(),
                bytes: upload.size,
                duration_ms: header.duration_ms,
                sample_rate: header.sample_rate,
                size: header.size,
            }),
            Err(error) => {
                kept.iter().try_for_each(|file| files.remove_upload(file.file))?;
                return Err(error);
            }
        }
    }
    Ok(kept)
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
