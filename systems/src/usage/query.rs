//! What queries see of the models that were asked.

use agentsvc_components::usage::{Bucket, UsageSum};

use super::Rollups;
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Cursor, Field, Item, Kind, Row, Source, field};

pub(crate) static MODELS: Kind = Kind {
    name: "models",
    text: "Models with their usage so far.",
    fields: &MODEL_FIELDS,
    relations: &[],
    shown: &["provider", "model", "requests", "input_tokens", "output_tokens", "cost_usd"],
    source: Source::of(|page| {
        // Few: as many as the catalog has.
        for (bucket, _) in page.world.resource::<Rollups>().models() {
            (page.visit)(Item::Other(bucket));
        }
        Cursor::End
    }),
};

const MODEL_FIELDS: [Field; 8] = [
    field("provider", Type::Text, "Provider.", |row| match row.other_as() {
        Some(Bucket::Model(provider, _)) => Value::text(provider),
        _ => Value::Null,
    }),
    field("model", Type::Text, "Unique id.", |row| match row.other_as() {
        Some(Bucket::Model(_, model)) => Value::text(model),
        _ => Value::Null,
    }),
    field("requests", Type::Number, "Model calls.", |row| used(row, |sum| Value::count(sum.requests))),
    field("input_tokens", Type::Number, "Prompt tokens.", |row| used(row, |sum| Value::count(sum.input_tokens))),
    field("cached_tokens", Type::Number, "Cached prompt tokens.", |row| {
        used(row, |sum| Value::count(sum.cached_input_tokens))
    }),
    field("output_tokens", Type::Number, "Output tokens.", |row| used(row, |sum| Value::count(sum.output_tokens))),
    field("tokens", Type::Number, "Prompt and output tokens.", |row| used(row, |sum| Value::count(sum.tokens()))),
    field("cost_usd", Type::Number, "Dollars.", |row| used(row, |sum| Value::Number(sum.cost.usd()))),
];

fn used<'w>(row: &Row<'w>, read: impl FnOnce(UsageSum) -> Value<'w>) -> Value<'w> {
    Value::maybe(row.other_as::<Bucket>(), |bucket| read(row.world.resource::<Rollups>().sum(bucket)))
}
