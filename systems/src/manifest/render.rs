//! From changed typed values back to the text: only keys whose value differs are touched, so that comments,
//! order, layout and unknown keys survive.

use agentsvc_components::manifest::{Capabilities, Identity, Manifest, MemoryChoice, ModelChoice, SessionMode};
use agentsvc_components::usage::Limits;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{ParsedManifest, check_text, parse, triggers, wake};

/// The text of a manifest that says `name` and `manifest`, made from `original` by changing what differs.
///
/// `parse(&render(text, name, manifest))` gives back `name` and `manifest` for every name and manifest that
/// [`validate_name`](super::validate_name) and [`validate`](super::validate) accept. An `original` that already
/// says so comes back as it is, and one that is no manifest is replaced whole. The comment of a key that is
/// taken out stays with its neighbour; only that of the last key of a table goes with it.
#[must_use]
pub fn render(original: &str, name: &str, manifest: &Manifest) -> String {
    let (mut document, was) = match read(original) {
        Some(read) => read,
        None => (DocumentMut::new(), ParsedManifest { name: Box::default(), manifest: Manifest::default() }),
    };
    if *was.name == *name && was.manifest == *manifest {
        return original.to_owned();
    }
    let was = written_out(&mut document, was, manifest);
    let root = document.as_table_mut();
    merge_string(root, "name", &was.name, name);
    merge_root(root, &was.manifest, manifest);
    document.to_string()
}

/// The text as it is, and what it says. Patterns that a former release took and this one does not are no reason to lose the rest.
fn read(original: &str) -> Option<(DocumentMut, ParsedManifest)> {
    // One that is too long is not read at all.
    check_text(original).ok()?;
    let document: DocumentMut = original.parse().ok()?;
    let was = parse(original).ok().or_else(|| {
        let mut document = document.clone();
        let overrides = document.get_mut("channel_overrides").and_then(Item::as_table_like_mut)?;
        overrides.remove("group_trigger_patterns")?;
        parse(&document.to_string()).ok()
    })?;
    Some((document, was))
}

/// Takes out keys that stand for others which are to change, and gives what the document says without them.
fn written_out(document: &mut DocumentMut, was: ParsedManifest, now: &Manifest) -> ParsedManifest {
    let root = document.as_table_mut();
    let mut is_changed = false;
    if was.manifest.capabilities != now.capabilities {
        is_changed |= root.contains_key("profile");
        remove_keeping_comment(root, "profile");
    }
    if was.manifest.limits != now.limits
        && let Some(resources) = root.get_mut("resources").and_then(Item::as_table_like_mut)
    {
        is_changed |= resources.contains_key("max_llm_tokens_per_hour");
        remove_keeping_comment(resources, "max_llm_tokens_per_hour");
    }
    if is_changed { parse(&document.to_string()).unwrap_or(was) } else { was }
}

/// Every key but the name.
fn merge_root(root: &mut Table, was: &Manifest, now: &Manifest) {
    merge_string(root, "version", &was.version, &now.version);
    merge_string(root, "description", &was.description, &now.description);
    merge_string(root, "author", &was.author, &now.author);
    merge_string(root, "module", &was.module, &now.module);
    merge_list(root, "tags", &was.tags, &now.tags);
    merge_list(root, "skills", &was.skills, &now.skills);
    merge_list(root, "mcp_servers", &was.mcp_servers, &now.mcp_servers);
    merge_list(root, "tool_allowlist", &was.tool_allowlist, &now.tool_allowlist);
    merge_list(root, "require_approval", &was.require_approval, &now.require_approval);
    merge_list(root, "tool_blocklist", &was.tool_blocklist, &now.tool_blocklist);
    merge_option(root, "session_mode", was.session_mode, now.session_mode, |mode| word_of(mode).into());
    merge_option(root, "max_history_messages", was.max_history_messages, now.max_history_messages, |count| {
        i64::from(count).into()
    });
    let (dream_was, dream) = (was.auto_dream, now.auto_dream);
    let whole = |number: u32| i64::from(number).into();
    let disabled = |manifest: &Manifest| manifest.skills_disabled.then_some(true);
    merge_option(root, "skills_disabled", disabled(was), disabled(now), Value::from);
    merge_option(root, "auto_dream_enabled", dream_was.enabled, dream.enabled, Value::from);
    merge_option(root, "auto_dream_min_hours", dream_was.min_hours, dream.min_hours, whole);
    merge_option(root, "auto_dream_min_sessions", dream_was.min_sessions, dream.min_sessions, whole);
    merge_prompt(root, &was.system_prompt, &now.system_prompt);
    if was.model != now.model {
        merge_model(table_of(root, "model"), &was.model, &now.model);
    }
    merge_fallbacks(root, &was.fallback_models, &now.fallback_models);
    merge_capabilities(root, &was.capabilities, &now.capabilities);
    merge_identity(root, &was.identity, &now.identity);
    merge_limits(root, &was.limits, &now.limits);
    merge_memory(root, &was.proactive_memory, &now.proactive_memory);
    wake::merge(root, was, now);
    triggers::merge(root, &was.triggers, &now.triggers);
}

/// The word for a session mode.
pub(super) const fn word_of(mode: SessionMode) -> &'static str {
    match mode {
        SessionMode::Persistent => "persistent",
        SessionMode::New => "new",
    }
}

/// The prompt stays where the text has it: at top level, which wins, or under `[model]`.
fn merge_prompt(root: &mut Table, was: &str, now: &str) {
    let at_root = root.contains_key("system_prompt");
    match root.get_mut("model").and_then(Item::as_table_like_mut) {
        Some(model) if !at_root && model.contains_key("system_prompt") => {
            merge_string(model, "system_prompt", was, now);
        }
        _ => merge_string(root, "system_prompt", was, now),
    }
}

fn merge_model(table: &mut dyn TableLike, was: &ModelChoice, now: &ModelChoice) {
    merge_string(table, "provider", &was.provider, &now.provider);
    merge_string(table, "model", &was.model, &now.model);
    merge_option(table, "temperature", was.temperature, now.temperature, float);
    merge_option(table, "max_tokens", was.max_tokens, now.max_tokens, |count| i64::from(count).into());
    merge_option(table, "base_url", was.base_url.as_deref(), now.base_url.as_deref(), Value::from);
    merge_option(table, "api_key_env", was.api_key_env.as_deref(), now.api_key_env.as_deref(), Value::from);
}

fn merge_capabilities(root: &mut Table, was: &Capabilities, now: &Capabilities) {
    let tools_at_root = root.contains_key("tools");
    if tools_at_root {
        merge_list(root, "tools", &was.tools, &now.tools);
    }
    let without_tools = |capabilities: &Capabilities| Capabilities { tools: Vec::new(), ..capabilities.clone() };
    if was == now || (tools_at_root && without_tools(was) == without_tools(now)) {
        return;
    }
    let table = table_of(root, "capabilities");
    if !tools_at_root {
        merge_list(table, "tools", &was.tools, &now.tools);
    }
    merge_list(table, "network", &was.network, &now.network);
    merge_list(table, "memory_read", &was.memory_read, &now.memory_read);
    merge_list(table, "memory_write", &was.memory_write, &now.memory_write);
    merge_list(table, "shell", &was.shell, &now.shell);
    merge_option(table, "agent_spawn", was.agent_spawn, now.agent_spawn, Value::from);
    merge_option(table, "file_system", was.file_system, now.file_system, Value::from);
}

fn merge_identity(root: &mut Table, was: &Identity, now: &Identity) {
    if was != now {
        let table = table_of(root, "identity");
        merge_string(table, "avatar", &was.avatar, &now.avatar);
        merge_string(table, "persona", &was.persona, &now.persona);
    }
}

fn merge_limits(root: &mut Table, was: &Limits, now: &Limits) {
    if was != now {
        let table = table_of(root, "limits");
        merge_option(table, "daily_limit_usd", was.daily, now.daily, |limit| limit.usd().into());
        merge_option(table, "monthly_limit_usd", was.monthly, now.monthly, |limit| limit.usd().into());
        let whole = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX).into();
        merge_option(table, "hourly_token_limit", was.hourly_tokens, now.hourly_tokens, whole);
    }
}

fn merge_memory(root: &mut Table, was: &MemoryChoice, now: &MemoryChoice) {
    if was != now {
        let table = table_of(root, "proactive_memory");
        merge_option(table, "enabled", was.enabled, now.enabled, Value::from);
        merge_option(table, "auto_memorize", was.auto_memorize, now.auto_memorize, Value::from);
        merge_option(table, "auto_retrieve", was.auto_retrieve, now.auto_retrieve, Value::from);
        let (had, has) = (was.extraction_model.as_deref(), now.extraction_model.as_deref());
        merge_option(table, "extraction_model", had, has, Value::from);
    }
}

/// Item by item, in the form that the text has: `[[fallback_models]]`, or a list of inline tables and strings.
fn merge_fallbacks(root: &mut Table, was: &[ModelChoice], now: &[ModelChoice]) {
    if was == now {
        return;
    }
    let none = ModelChoice::default();
    match root.entry("fallback_models").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new())) {
        Item::ArrayOfTables(tables) => {
            while tables.len() > now.len() {
                tables.remove(tables.len() - 1);
            }
            while tables.len() < now.len() {
                tables.push(Table::new());
            }
            for (index, (table, choice)) in tables.iter_mut().zip(now).enumerate() {
                merge_model(table, was.get(index).unwrap_or(&none), choice);
            }
        }
        Item::Value(Value::Array(array)) => {
            while array.len() > now.len() {
                array.remove(array.len() - 1);
            }
            while array.len() < now.len() {
                array.push(InlineTable::new());
            }
            for (index, (item, choice)) in array.iter_mut().zip(now).enumerate() {
                merge_fallback_item(item, was.get(index).unwrap_or(&none), choice);
            }
        }
        // `fallback_models` was parsed from this text, hence is a list.
        Item::None | Item::Value(_) | Item::Table(_) => {}
    }
    if now.is_empty() && root.get("fallback_models").is_some_and(Item::is_array_of_tables) {
        root.remove("fallback_models");
    }
}

/// One item of a list; a string becomes an inline table when it changes, which can say everything.
fn merge_fallback_item(item: &mut Value, was: &ModelChoice, now: &ModelChoice) {
    if was == now {
        return;
    }
    if let Some(table) = item.as_inline_table_mut() {
        return merge_model(table, was, now);
    }
    let mut table = InlineTable::new();
    merge_model(&mut table, &ModelChoice::default(), now);
    replace_value(item, Value::InlineTable(table));
}

/// The table `key` of `root` however it is written; a new one at the end when there is none.
fn table_of<'r>(root: &'r mut Table, key: &str) -> &'r mut dyn TableLike {
    let item = root.entry(key).or_insert_with(|| Item::Table(Table::new()));
    if item.as_table_like().is_none() {
        *item = Item::Table(Table::new());
    }
    // Proof: the lines above made it a table where it was none.
    item.as_table_like_mut().expect("an item that is a table")
}

fn merge_string(table: &mut dyn TableLike, key: &str, was: &str, now: &str) {
    if was != now {
        set(table, key, now.into());
    }
}

fn merge_option<T: PartialEq>(
    table: &mut dyn TableLike,
    key: &str,
    was: Option<T>,
    now: Option<T>,
    value: impl Fn(T) -> Value,
) {
    if was == now {
        return;
    }
    match now {
        Some(now) => set(table, key, value(now)),
        None => remove_keeping_comment(table, key),
    }
}

fn merge_list(table: &mut dyn TableLike, key: &str, was: &[Box<str>], now: &[Box<str>]) {
    if was == now {
        return;
    }
    match table.get_mut(key).and_then(Item::as_array_mut) {
        Some(array) => merge_array(array, was, now),
        None => set(table, key, now.iter().map(|item| &**item).collect::<Array>().into()),
    }
}

/// Replaces only what lies between the common start and the common end, in the layout of the items around.
fn merge_array(array: &mut Array, was: &[Box<str>], now: &[Box<str>]) {
    let start = was.iter().zip(now).take_while(|(was, now)| was == now).count();
    let rest = was[start..].iter().rev().zip(now[start..].iter().rev());
    let end = rest.take_while(|(was, now)| was == now).count();
    let new = &now[start..now.len() - end];
    let broken = array.iter().filter_map(prefix_of).find_map(|prefix| Some(prefix[prefix.rfind('\n')?..].to_owned()));
    // A comment stands before the item that follows its line, even when it means the item before it.
    let mut comments = String::new();
    for _ in start..was.len() - end {
        let removed = array.remove(start);
        for raw in [prefix_of(&removed), suffix_of(&removed)].into_iter().flatten().filter(|raw| raw.contains('#')) {
            comments.push_str(raw);
        }
    }
    let mut follower = array.get(start).map_or(array.trailing().as_str(), prefix_of).unwrap_or("").to_owned();
    // What stands on the line of the item before the change belongs to that item and stays there.
    let same_line = if start == 0 || new.is_empty() {
        String::new()
    } else if comments.is_empty() {
        take_same_line_comment(&mut follower)
    } else {
        take_same_line_comment(&mut comments)
    };
    if comments.contains('#') {
        follower.insert_str(0, &comments);
    }
    for (index, item) in (start..).zip(new) {
        array.insert(index, &**item);
    }
    let line = broken.as_deref().or((!same_line.is_empty()).then_some("\n"));
    for (offset, index) in (start..start + new.len()).enumerate() {
        let before = if offset == 0 { same_line.as_str() } else { "" };
        let layout = line.unwrap_or(if index == 0 { "" } else { " " });
        if let Some(inserted) = array.get_mut(index) {
            inserted.decor_mut().set_prefix(format!("{before}{layout}"));
        }
    }
    set_gap(array, start + new.len(), follower);
}

/// Takes the comment off the start of `raw`, when there is one before the first line break.
fn take_same_line_comment(raw: &mut String) -> String {
    match raw.find('\n') {
        Some(at) if raw[..at].contains('#') => {
            let rest = raw.split_off(at);
            std::mem::replace(raw, rest)
        }
        _ => String::new(),
    }
}

/// Puts `gap` before the item at `index`, or before the closing bracket when there is none.
fn set_gap(array: &mut Array, index: usize, gap: String) {
    match array.get_mut(index) {
        Some(item) => {
            // One space where all stands on one line, none before the first item.
            let inline = !gap.contains('\n');
            let gap = if inline { if index == 0 { "" } else { " " } } else { &gap };
            item.decor_mut().set_prefix(gap);
        }
        None => array.set_trailing(gap),
    }
}

fn prefix_of(value: &Value) -> Option<&str> {
    value.decor().prefix()?.as_str()
}

fn suffix_of(value: &Value) -> Option<&str> {
    value.decor().suffix()?.as_str()
}

/// Sets `key`, in its place and with its comments when it is there.
fn set(table: &mut dyn TableLike, key: &str, value: Value) {
    match table.get_mut(key) {
        Some(Item::Value(old)) => replace_value(old, value),
        Some(item) => *item = Item::Value(value),
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

/// `new` in the place of `old`, with what stands around it.
fn replace_value(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

/// Takes `key` out and leaves its comments to the key behind it, else to the one before it.
fn remove_keeping_comment(table: &mut dyn TableLike, key: &str) {
    let own_lines = table.key(key).and_then(|key| key.leaf_decor().prefix()?.as_str().map(str::to_owned));
    let behind_it = table.get(key).and_then(Item::as_value).and_then(suffix_of).map(str::to_owned);
    let mut comments = own_lines.filter(|lines| lines.contains('#')).unwrap_or_default();
    if let Some(comment) = behind_it.filter(|comment| comment.contains('#')) {
        comments.push_str(comment.trim());
        comments.push('\n');
    }
    let keys: Vec<String> = table.iter().filter(|(_, item)| item.is_value()).map(|(key, _)| key.to_owned()).collect();
    table.remove(key);
    let Some(at) = keys.iter().position(|other| other == key).filter(|_| !comments.is_empty()) else { return };
    if let Some(mut next) = keys.get(at + 1).and_then(|next| table.key_mut(next)) {
        let own = next.leaf_decor().prefix().and_then(|raw| raw.as_str()).unwrap_or("").to_owned();
        next.leaf_decor_mut().set_prefix(comments + &own);
    } else if let Some(previous) = at.checked_sub(1).and_then(|at| table.get_mut(&keys[at])?.as_value_mut()) {
        let own = suffix_of(previous).unwrap_or("").to_owned();
        previous.decor_mut().set_suffix(format!("{own}\n{}", comments.trim_end()));
    }
}

/// The shortest decimal that reads back as the same `f32`, rather than the digits of its `f64` neighbour.
fn float(value: f32) -> Value {
    value.to_string().parse::<f64>().unwrap_or_else(|_| f64::from(value)).into()
}
