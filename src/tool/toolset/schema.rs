//! Input schemas: from the type that reads the input, in the plain form that models and providers understand.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use serde_json::value::RawValue;

/// [`input_schema`] of `T` as text, for tools that are brought.
pub(crate) fn raw_schema<T: JsonSchema>() -> Arc<RawValue> {
    // What comes of a type is JSON.
    Arc::from(serde_json::value::to_raw_value(&input_schema::<T>()).unwrap_or_default())
}

/// The JSON schema of `T`, an object: everything inlined, no `$schema`, no title.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}
