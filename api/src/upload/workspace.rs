//! List the files of a workspace (spec 1, Other agent routes). A name may hold slashes, plain or as `%2F`.

use crate::upload::audit_kinds;
use agentsvc_components::AgentId;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_systems::agent::{AgentView, GetAgent};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::taint::TrustFiles;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::receive::{Receiver, blocking};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::served::Served;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::http::{reply, served};
use crate::upload::files::{Entry, EntryKind, Files, Owner};

/// What writing a file costs the client's rate budget.
const COST: u32 = 10;

const NOT_A_FILE: Reply = Reply::error(409, "the path exists and is not a file");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/files", "List the files of a workspace", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<FileList>(200, "the files, sorted by path")]),
    Route::get("/api/agents/{id}/files/{*filename}", "Get a file of a workspace", |call| Box::pin(get(call)))
        .replies(&[Reply::plain(200, "the file", "application/octet-stream"), NOT_A_FILE]),
    Route::put("/api/agents/{id}/files/{*filename}", "Write a file of a workspace", |call| Box::pin(put(call)))
        .cost(COST)
        .streamed("*/*")
        .replies(&[
            Reply::json::<FileWritten>(200, "replaced"),
            Reply::json::<FileWritten>(201, "written"),
            NOT_A_FILE,
            Reply::error(413, "the file is too large"),
            Reply::error(507, "not enough disk space"),
        ]),
    Route::delete("/api/agents/{id}/files/{*filename}", "Delete a file of a workspace", |call| Box::pin(delete(call)))
        .replies(&[Reply::json::<FileDeleted>(200, "deleted"), NOT_A_FILE]),
    Route::post("/api/agents/{id}/trust-files", "Declare the files of a workspace trusted", |call| {
        Box::pin(trust(call))
    })
    .reaching(Reach::All)
    .scoped(Scope::Admin)
    .replies(&[
        Reply::json::<FilesTrusted>(200, "declared trusted"),
        Reply::error(409, "a running tool call may write untrusted content into the files"),
    ]),
];

shape! {
    /// A file of a workspace.
    struct FileShape from entry: Entry {
        let Entry { path, kind, size, modified_at, content_type } = entry;
    } {
        /// Path relative to the workspace, for `/api/agents/{id}/files/{filename}`.
        filename: String = path.clone(),
        /// The same.
        path: String = path,
        kind: EntryKind = kind,
        /// Bytes.
        size: u64 = size,
        modified_at: Moment = Moment(modified_at),
        /// Content type from the file extension.
        content_type: &'static str = content_type,
    }
}

/// The files of a workspace, including subdirectories.
#[derive(Serialize, JsonSchema)]
struct FileList {
    files: Vec<FileShape>,
    total: usize,
    /// Whether the list is truncated.
    truncated: bool,
}

/// A written file.
#[derive(Serialize, JsonSchema)]
struct FileWritten {
    /// `created` or `updated`.
    status: &'static str,
    #[serde(flatten)]
    file: FileShape,
}

/// A deleted file.
#[derive(Serialize, JsonSchema)]
struct FileDeleted {
    /// `deleted`.
    status: &'static str,
    filename: String,
}

/// Files that are trusted from now on.
#[derive(Serialize, JsonSchema)]
struct FilesTrusted {
    /// `trusted`.
    status: &'static str,
    /// The taint labels that the files had, such as `web`.
    labels: Vec<&'static str>,
}

/// Whose workspace the call is about.
///
/// # Errors
/// 400 for an id that is none, 404 for an agent that is not there.
pub(crate) async fn owner(call: &Call) -> Result<Owner, Error> {
    let agent = call.id("id")?;
    let AgentView { name, holder, .. } = call.ask(GetAgent(agent)).await?;
    Ok(Owner { agent, name, holder })
}

/// Whose file the call is about, and which.
async fn names(call: &Call) -> Result<(Owner, String), Error> {
    let filename = call.param("filename")?.into_owned();
    Ok((owner(call).await?, filename))
}

/// The error with the parameter named, where it is at fault.
fn of_name(error: FilesError) -> Error {
    let is_wrong = matches!(error, FilesError::Wrong(_) | FilesError::Conflict(_));
    let error = Error::from(error);
    if is_wrong { error.with("field", "filename") } else { error }
}

/// Puts a change on the audit trail, before it is made: one that then fails leaves an entry, one that is made never leaves
/// none.
async fn note(call: &Call, kind: AuditKind, agent: AgentId, details: Value) -> Result<(), Error> {
    call.ask(NoteAction { kind, agent: Some(agent), details }).await
}

async fn list(call: Call) -> Result<Response, Error> {
    let owner = owner(&call).await?;
    let files = call.api.service::<dyn Files>()?;
    let listing = blocking(move || files.list(&owner)).await?;
    let of_file = |entry: &Entry| matches!(entry.kind, EntryKind::File | EntryKind::Link);
    let files: Vec<_> = listing.entries.into_iter().filter(of_file).map(FileShape::from).collect();
    reply::ok(&FileList { total: files.len(), files, truncated: listing.truncated })
}

/// A person vouches for the files, having looked at them or removed those that came from outside.
async fn trust(call: Call) -> Result<Response, Error> {
    let labels = call.ask(TrustFiles { agent: call.id("id")? }).await?;
    reply::ok(&FilesTrusted { status: "trusted", labels })
}

async fn get(call: Call) -> Result<Response, Error> {
    let (owner, filename) = names(&call).await?;
    let files = call.api.service::<dyn Files>()?;
    let file = blocking(move || files.open_file(&owner, &filename)).await.map_err(of_name)?;
    let Entry { path, size, content_type, .. } = file.entry;
    let filename = path.rsplit('/').next().unwrap_or_default();
    served::response(&call, Served { filename, content_type, size, in_place: false, content: file.content }).await
}

async fn put(mut call: Call) -> Result<Response, Error> {
    let (owner, filename) = names(&call).await?;
    let files = call.api.service::<dyn Files>()?;
    call.stream.bound(files.bytes_max())?;
    let (agent, name) = (owner.agent, filename.clone());
    let writer = blocking(move || files.begin_file(&owner, &filename)).await.map_err(of_name)?;
    let (mut receiver, mut bytes) = (Receiver::new(writer), 0);
    while let Some(piece) = call.stream.next().await? {
        bytes += piece.len();
        receiver.push(piece).await.map_err(of_name)?;
    }
    note(&call, audit_kinds::FILE_WRITTEN, agent, json!({ "filename": name, "bytes": bytes })).await?;
    let written = receiver.finish().await.map_err(of_name)?;
    let (status, text) = if written.created { (StatusCode::CREATED, "created") } else { (StatusCode::OK, "updated") };
    reply::json(status, &FileWritten { status: text, file: written.entry.into() })
}

async fn delete(call: Call) -> Result<Response, Error> {
    let (owner, filename) = names(&call).await?;
    let (files, path) = (call.api.service::<dyn Files>()?, filename.clone());
    note(&call, audit_kinds::FILE_DELETED, owner.agent, json!({ "filename": filename })).await?;
    blocking(move || files.delete_file(&owner, &path)).await.map_err(of_name)?;
    reply::ok(&FileDeleted { status: "deleted", filename })
}
