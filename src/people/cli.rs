//! `key` and `user`: the keys of the API, and the users whom they belong to.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::password;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::names::Listed;
use crate::kernel::cli::output::{Table, field, items};
use crate::kernel::cli::{Error, Run, output};
use crate::kernel::percent::encoded;

/// Bytes of the shortest password.
const PASSWORD_BYTES_MIN: usize = 8;

/// Subcommands of `key`.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// List the keys
    List,
    /// Create a key and print it; it is not shown again
    Create(CreateKey),
    /// Revoke a key and close its connections
    Revoke {
        /// Name or id of the key
        key: String,
    },
}

/// Options of `key create`.
#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// Name of the key
    name: String,
    /// User that owns the key, by name or id
    #[arg(long)]
    user: Option<String>,
    /// Role of a key without a user
    #[arg(long, conflicts_with = "user", value_parser = ["admin", "owner"])]
    role: Option<String>,
    /// Scope of the key; can be repeated [default: all]
    #[arg(long = "scope", value_name = "SCOPE", value_parser = ["read", "chat", "write", "admin"])]
    scopes: Vec<String>,
    /// Seconds until the key expires [default: it does not expire]
    #[arg(long, value_name = "SECONDS")]
    expires_in: Option<u32>,
}

/// Subcommands of `user`.
#[derive(Debug, Subcommand)]
pub(crate) enum User {
    /// List the users
    List,
    /// Add a user
    Create(CreateUser),
    /// Read a password from standard input and print its hash, for `password_hash` in config.toml
    HashPassword,
    /// Delete a user and revoke their keys
    Remove {
        /// Name or id of the user
        user: String,
    },
}

/// Options of `user create`.
#[derive(Debug, Args)]
pub(crate) struct CreateUser {
    /// Name of the user
    name: String,
    /// Role
    #[arg(long, default_value = "user", value_parser = ["viewer", "user", "admin", "owner"])]
    role: String,
}

impl Run for Key {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List => context.show("/api/keys", keys),
            Self::Create(create) => create.run(context),
            Self::Revoke { key } => remove(context, Listed::new("/api/keys", "key"), "keys", &key, "revoked"),
        }
    }
}

impl CreateKey {
    fn run(self, context: &Context) -> Result<(), Error> {
        let mut body = json!({ "name": self.name, "role": self.role, "scopes": self.scopes });
        body["expires_in_secs"] = json!(self.expires_in);
        if let Some(user) = self.user {
            let id = context.block_on(async { context.client()?.id_of(&users_listed(), &user).await })?;
            body["user_id"] = json!(id);
        }
        let answer = context.block_on(async { context.client()?.post("/api/keys", Some(&body)).await })?;
        context.print(&answer, |made| format!("{}\n", field(made, "/key")))?;
        if !context.json() {
            output::note("keep the key: it is not shown again");
        }
        Ok(())
    }
}

impl Run for User {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List => context.show("/api/users", users),
            Self::Create(CreateUser { name, role }) => {
                let body = json!({ "name": name, "role": role });
                let answer = context.block_on(async { context.client()?.post("/api/users", Some(&body)).await })?;
                context.print(&answer, |user| format!("{}\n", field(user, "/id")))
            }
            Self::HashPassword => hash_password(),
            Self::Remove { user } => remove(context, users_listed(), "users", &user, "removed"),
        }
    }
}

fn hash_password() -> Result<(), Error> {
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Error::Usage(format!("cannot read the password: {error}")))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.len() < PASSWORD_BYTES_MIN {
        return Err(Error::Usage(format!("the password must have at least {PASSWORD_BYTES_MIN} bytes")));
    }
    let hash = password::make(password).map_err(Error::Usage)?;
    output::print(&format!("{hash}\n"))
}

fn remove(context: &Context, listed: Listed, kind: &str, named: &str, done: &str) -> Result<(), Error> {
    let answer = context.block_on(async {
        let client = context.client()?;
        let id = client.id_of(&listed, named).await?;
        client.delete(&format!("/api/{kind}/{}", encoded(&id))).await
    })?;
    context.print(&answer, |_| format!("{done} {named}\n"))
}

fn users_listed() -> Listed {
    Listed::new("/api/users", "user")
}

fn keys(answer: &Value) -> Table {
    let columns =
        [("NAME", "/name"), ("ROLE", "/role"), ("EXPIRES", "/expires_at"), ("USED", "/last_used_at"), ("ID", "/id")];
    Table::of("keys", items(answer, "keys"), &columns).hint("Create one with `agentsvc key create`.")
}

fn users(answer: &Value) -> Table {
    let columns = [("NAME", "/name"), ("ROLE", "/role"), ("KEYS", "/keys"), ("ID", "/id")];
    Table::of("users", items(answer, "users"), &columns).hint("Add one with `agentsvc user create`.")
}
