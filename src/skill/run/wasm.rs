//! Skills in WebAssembly: no process, but a module within fuel, time and memory.

use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::wasm::limits::WASM_MODULE_BYTES_MAX;
use serde_json::{Value, json};

use super::{Call, frozen};
use crate::skill::files::Folder;
use crate::tool::toolset::Ended;
use crate::wasm::{Capabilities, run_in_call};

/// Carries out a call.
pub(super) async fn run(call: Call) -> Result<Ended, String> {
    let envelope = call.envelope().to_string().into_bytes();
    let Call { skill, context, .. } = call;
    let (folder, entry) = (skill.folder.clone(), skill.entry.clone().unwrap_or_default());
    let read = tokio::task::spawn_blocking(move || {
        let folder = Folder::open(&folder).map_err(|error| error.to_string())?;
        let module = folder.read(&entry, WASM_MODULE_BYTES_MAX as u64);
        module.map_err(|error| format!("The module {entry} cannot be read: {error}."))
    });
    let module = read.await.map_err(|_| "The module could not be read.".to_owned())??;
    if context.run.manifest.manifest.frozen_skills.is_some() {
        // The folder was compared before; these are the bytes that run.
        frozen::check_entry(&skill, &module)?;
    }
    let capabilities = Capabilities::parse(skill.requirements.capabilities.iter().map(|text| &**text));
    let (result, _known_to_the_turn) = run_in_call(context, &skill.name, module, envelope, capabilities).await?;
    Ok(told(&result))
}

/// What the model reads, as of a program.
fn told(result: &[u8]) -> Ended {
    let text = String::from_utf8_lossy(result);
    let output = text.trim();
    match serde_json::from_str::<Value>(output) {
        Ok(Value::Object(object)) if object.get("error").is_some_and(|error| !error.is_null()) => {
            let error = &object["error"];
            let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            Ended::Failure { text, taint: Taint::TOOL }
        }
        Ok(_) => Ended::Text(output.to_owned()),
        Err(_) => Ended::Text(json!({ "result": output }).to_string()),
    }
}
