//! The routes that a stored kind has by being shown: list, get and delete.

use std::borrow::Cow;
use std::marker::PhantomData;

use agentsvc_systems::kernel::entities::{Get, IdOf, Indexed, List, Removable, Remove, View};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists;
use crate::http::pages::{ListQuery, Shape};
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// The JSON form of what the world shows of a kind.
pub(crate) trait Shown: From<Self::View> + Serialize + JsonSchema + Send + 'static {
    /// What the world shows.
    type View: View;
    /// What the reference calls one, such as `the goal`.
    const NOUN: &'static str;

    /// Is this one shown under these routes?
    fn is_here(_: &Self::View) -> bool {
        true
    }
}

/// One that clients list.
pub(crate) trait Listed: Shown<View: View<Filter: Clone>> {
    /// The key of the items of a list.
    const PLURAL: &'static str;

    /// Which of them a list shows.
    ///
    /// # Errors
    /// 400 naming the parameter of the path or the query.
    fn filter(call: &Call) -> Result<<Self::View as View>::Filter, Error>;
}

/// Makes a shape [`Shown`]: what the world shows and what the reference calls one; and where clients list them, [`Listed`]: the
/// key of the items of a list, and which of them it shows.
macro_rules! shown {
    ($shape:ident: $view:ty, $noun:literal $(; $plural:literal, |$call:pat_param| $filter:expr)?) => {
        impl $crate::http::crud::Shown for $shape {
            type View = $view;
            const NOUN: &'static str = $noun;
        }

        $(impl $crate::http::crud::Listed for $shape {
            const PLURAL: &'static str = $plural;

            fn filter(
                $call: &$crate::http::call::Call,
            ) -> Result<<$view as agentsvc_systems::kernel::entities::View>::Filter, $crate::http::error::Error> {
                $filter
            }
        })?
    };
}

pub(crate) use shown;

/// The shape of a list.
pub(crate) struct ListOf<S>(PhantomData<S>);

impl<S: Listed> JsonSchema for ListOf<S> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}List", S::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<Vec<S>>();
        let mut schema = json_schema!({
            "type": "object",
            "required": [S::PLURAL],
            "properties": {
                "total": { "type": ["integer", "null"], "description": "How many there are, if that is known." },
                "next_cursor": { "type": ["string", "null"], "description": "Cursor of the next page if `limit` was given." },
            },
        });
        if let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut()) {
            properties.insert(S::PLURAL.to_owned(), items.into());
        }
        schema
    }
}

/// Lists them.
pub(crate) const fn list<S: Listed>(path: &'static str, summary: &'static str) -> Route {
    Route::get(path, summary, |call| Box::pin(listed::<S>(call)))
        .query::<ListQuery>()
        .replies(const { &[Reply::json::<ListOf<S>>(200, "the list")] })
}

/// Gets the one whose id is `{id}` of the path.
pub(crate) const fn get<S: Shown>(path: &'static str, summary: &'static str) -> Route {
    Route::get(path, summary, |call| Box::pin(got::<S>(call))).replies(const { &[Reply::json::<S>(200, S::NOUN)] })
}

/// Deletes the one whose id is `{id}` of the path.
pub(crate) const fn delete<S: Shown<View: View<Kind: Removable<Reply = ()>>>>(
    path: &'static str,
    summary: &'static str,
) -> Route {
    Route::delete(path, summary, |call| Box::pin(removed::<S>(call))).replies(const { &[Reply::empty(204, "deleted")] })
}

async fn listed<S: Listed>(call: Call) -> Result<Response, Error> {
    let filter = S::filter(&call)?;
    let command = move |after: Option<IdOf<S::View>>, limit| List::<S::View> { filter: filter.clone(), after, limit };
    lists::of_world(&call, call.query()?, Shape::of(S::PLURAL), command, S::from).await
}

async fn got<S: Shown>(call: Call) -> Result<Response, Error> {
    reply::ok(&S::from(view::<S>(&call, call.id("id")?).await?))
}

/// What the world shows of the one with this id, if it is shown under these routes.
///
/// # Errors
/// 404 when it is not.
pub(crate) async fn view<S: Shown>(call: &Call, id: IdOf<S::View>) -> Result<S::View, Error> {
    let view = call.ask(Get::<S::View>(id)).await?;
    let nowhere = || Error::not_found(format!("{} not found: {id}", <S::View as View>::Kind::NOUN));
    S::is_here(&view).then_some(view).ok_or_else(nowhere)
}

async fn removed<S: Shown<View: View<Kind: Removable<Reply = ()>>>>(call: Call) -> Result<Response, Error> {
    let id = call.id("id")?;
    view::<S>(&call, id).await?;
    call.ask(Remove::<<S::View as View>::Kind>(id)).await?;
    Ok(reply::no_content())
}
