//! Uploads: files sent to an agent, kept under ids that nobody guesses (spec 1, Other agent routes).

use std::sync::Arc;

use agentsvc_components::FileId;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_systems::taint::NoteUpload;
use hyper::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::files::{FileReader, FilesError};
use crate::http::multipart::Multipart;
use crate::http::receive::{Receiver, blocking};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::served::Served;
use crate::http::{reply, served};
use crate::upload::files::{Files, Upload};
use crate::upload::workspace::owner;

/// What an upload costs the client's rate budget.
const COST: u32 = 10;

/// Bytes that a form may have beside its file.
const FORM_BYTES_MAX: u64 = 256 << 10;

/// The part of the form that holds the file.
const PART: &str = "file";

/// Pictures that a browser may show in place: no kind that may hold a script.
const SHOWN_IN_PLACE: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/agents/{id}/upload", "Upload a file for an agent", |call| Box::pin(upload(call)))
        .scoped(Scope::Chat)
        .cost(COST)
        .streamed("multipart/form-data")
        .replies(&[
            Reply::json::<Uploaded>(201, "stored; attach it to a message by its id"),
            Reply::error(413, "the file is too large"),
            Reply::error(415, "the body is not a multipart form"),
            Reply::error(507, "a limit of uploads is reached or the disk is full"),
        ]),
    Route::get("/api/uploads/{file_id}", "Get an uploaded file", |call| Box::pin(download(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::plain(200, "the file", "application/octet-stream"), Reply::empty(304, "not modified")]),
];

/// A stored upload.
#[derive(Serialize, JsonSchema)]
struct Uploaded {
    /// Id for `attachments` of a message and `/api/uploads/{file_id}`.
    file_id: Uuid,
    filename: String,
    /// Content type, detected from its first bytes, else as declared, else from the file extension.
    content_type: String,
    /// Bytes.
    size: u64,
    /// Path of its copy in the agent's workspace.
    path: String,
}

async fn upload(call: Call) -> Result<Response, Error> {
    let owner = owner(&call).await?;
    let agent = owner.agent;
    let Call { api, parts, mut stream, .. } = call;
    stream.bound(api.service::<dyn Files>()?.bytes_max() + FORM_BYTES_MAX)?;
    let mut form = Multipart::new(&parts, stream)?;
    let mut received = None;
    while let Some(mut part) = form.next_part().await? {
        if part.name() != Some(PART) {
            while part.next().await?.is_some() {}
            continue;
        }
        if received.is_some() {
            return Err(Error::bad_field(PART, "file: the form has two parts named 'file'; send one file per request"));
        }
        let (files, filename) = (api.service::<dyn Files>()?, part.filename().unwrap_or("upload").to_owned());
        let content_type = part.content_type().to_owned();
        let writer = blocking(move || files.begin_upload(agent, &filename, &content_type)).await.map_err(of_file)?;
        let mut receiver = Receiver::new(writer);
        while let Some(piece) = part.next().await? {
            receiver.push(piece).await.map_err(of_file)?;
        }
        received = Some(receiver);
    }
    let Some(receiver) = received else {
        return Err(Error::bad_field(PART, "file: the form has no part named 'file'"));
    };
    let upload = receiver.finish().await.map_err(of_file)?;
    let files = api.service::<dyn Files>()?;
    let Upload { id, filename, size, sha256, .. } = &upload;
    let details = json!({ "file_id": id, "filename": filename, "bytes": size, "sha256": sha256 });
    if let Err(refusal) = api.bridge.ask(NoteUpload { agent, details }).await {
        // What is neither on the audit trail nor marked as untrusted is not kept.
        blocking(move || files.remove_upload(upload.id)).await.map_err(of_file)?;
        return Err(refusal.into());
    }
    let kept = blocking(move || match files.copy_upload(&owner, &upload) {
        Ok(copy) => Ok(Uploaded {
            file_id: upload.id.0,
            filename: upload.filename,
            content_type: upload.content_type,
            size: upload.size,
            path: copy.entry.path,
        }),
        // All of it or nothing.
        Err(error) => files.remove_upload(upload.id).and(Err(error)),
    });
    reply::created(&kept.await.map_err(of_file)?)
}

/// The error with the form's part named, where the part is at fault.
fn of_file(error: FilesError) -> Error {
    let of_part = matches!(error, FilesError::Wrong(_) | FilesError::TooLarge(_) | FilesError::Quota { .. });
    let error = Error::from(error);
    if of_part { error.with("field", PART) } else { error }
}

async fn download(call: Call) -> Result<Response, Error> {
    let id: FileId = call.id("file_id")?;
    let files = call.api.service::<dyn Files>()?;
    let known = Arc::clone(&files);
    let upload = blocking(move || known.upload(id)).await?;
    call.check_owner(upload.agent).await.map_err(|error| match error.status() {
        StatusCode::NOT_FOUND => Error::not_found(format!("upload not found: {id}")),
        _ => error,
    })?;
    let Upload { filename, content_type, size, sha256, .. } = upload;
    let tag = HeaderValue::try_from(format!("\"{sha256}\"")).ok();
    let is_known = tag.as_ref().is_some_and(|tag| matches(&call, tag));
    let mut response = if is_known {
        reply::no_content()
    } else {
        let in_place = SHOWN_IN_PLACE.contains(&content_type.as_str());
        // What is known of it is answer enough to HEAD.
        let content: FileReader = match call.parts.method {
            Method::HEAD => Box::new(std::io::empty()),
            _ => blocking(move || files.open_upload(id)).await?.1,
        };
        served::response(&call, Served { filename: &filename, content_type: &content_type, size, in_place, content })
            .await?
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// Does the client have the version `tag` already?
fn matches(call: &Call, tag: &HeaderValue) -> bool {
    let known = call.headers().get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|list| list.split(',')).any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known).as_bytes() == tag.as_bytes()
    })
}
