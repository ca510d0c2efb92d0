//! The options of a subcommand that is made from a route: one for each parameter of its query and each key of its body.

use agentsvc_api::http::operations::{Input, Takes};
use clap::builder::{BoolishValueParser, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Map, Value};

use super::Error;
use super::names::is_agent;

/// The option that reads a body from a file.
pub(super) const FROM: &str = "from";

/// `next_run` as an option: `next-run`. An agent is named without the word `id`.
pub(super) fn option_of(name: &str) -> String {
    let name = if is_agent(name) { name.trim_end_matches("_id") } else { name };
    name.replace('_', "-")
}

/// The option of an input.
pub(super) fn argument(id: String, input: &Input) -> Arg {
    let about = match input.about.as_str() {
        "" if is_agent(&input.name) => "Name or id of the agent".to_owned(),
        "" => words(&input.name),
        about => about.trim_end_matches('.').to_owned(),
    };
    let about = if input.takes == Takes::Texts { format!("{about}; repeat it for several") } else { about };
    let arg = Arg::new(id.clone()).long(id).help(about);
    match input.takes {
        Takes::Switch => {
            let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL");
            arg.value_parser(BoolishValueParser::new())
        }
        Takes::Number => arg.value_name("NUMBER").allow_negative_numbers(true),
        Takes::Json => arg.value_name("JSON"),
        Takes::Texts => arg.value_name("TEXT"),
        Takes::Text if !input.words.is_empty() => arg
            .value_name("WORD")
            .ignore_case(true)
            .value_parser(PossibleValuesParser::new(input.words.iter().cloned())),
        Takes::Text if is_agent(&input.name) => arg.value_name("AGENT").alias(input.name.replace('_', "-")),
        Takes::Text => arg.value_name("TEXT"),
    }
    .action(if input.takes == Takes::Texts { ArgAction::Append } else { ArgAction::Set })
}

/// `due_at` as words: `Due at`.
fn words(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + &characters.as_str().replace('_', " ")
}

/// What was typed for an input.
pub(super) fn given(input: &Input, typed: &ArgMatches) -> Result<Option<Value>, Error> {
    let id = option_of(&input.name);
    if input.takes == Takes::Switch {
        return Ok(typed.get_one::<bool>(&id).map(|given| Value::Bool(*given)));
    }
    if input.takes == Takes::Texts {
        return Ok(typed.get_many::<String>(&id).map(|given| texts(given.map(String::as_str).collect())));
    }
    let Some(text) = typed.get_one::<String>(&id) else { return Ok(None) };
    Ok(Some(match input.takes {
        Takes::Text | Takes::Switch | Takes::Texts => {
            let word = input.words.iter().find(|word| word.eq_ignore_ascii_case(text));
            Value::String(word.unwrap_or(text).clone())
        }
        Takes::Number => {
            let number = serde_json::from_str(text).ok().filter(Value::is_number);
            number.ok_or_else(|| Error::Usage(format!("--{id} {text}: not a number")))?
        }
        // Words need no quotes; what it may be, the daemon knows.
        Takes::Json => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
    }))
}

/// The texts of an option that may be repeated, as a list; a single one may be a list in JSON, such as `[]`, or `null`.
fn texts(given: Vec<&str>) -> Value {
    match given.as_slice() {
        [only] if only.starts_with('[') || *only == "null" => {
            serde_json::from_str(only).unwrap_or_else(|_| vec![*only].into())
        }
        _ => given.into(),
    }
}

/// Reads a JSON object from a file or from standard input.
pub(super) fn read(file: &str) -> Result<Map<String, Value>, Error> {
    let failed = || Error::io(format!("cannot read {file}"));
    let text = match file {
        "-" => std::io::read_to_string(std::io::stdin().lock()).map_err(failed())?,
        _ => std::fs::read_to_string(file).map_err(failed())?,
    };
    serde_json::from_str(&text).map_err(|error| Error::Usage(format!("--{FROM} {file}: not a JSON object: {error}")))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn a_list_of_texts_is_a_repeated_option() {
        let input = Input { name: "tags".to_owned(), about: String::new(), takes: Takes::Texts, words: Vec::new() };
        let command = Command::new("x").arg(argument(option_of("tags"), &input));
        let of = |arguments: &[&str]| {
            let typed = command.clone().try_get_matches_from([&["x"][..], arguments].concat()).unwrap();
            given(&input, &typed).unwrap()
        };
        assert_eq!(of(&["--tags", "a", "--tags", "b c"]), Some(serde_json::json!(["a", "b c"])));
        assert_eq!(of(&["--tags", "[]"]), Some(serde_json::json!([])));
        assert_eq!(of(&["--tags", "[a"]), Some(serde_json::json!(["[a"])));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_word_is_one_of_those_that_are_known_in_whichever_case() {
        let words = ["Stable", "Preview"].map(str::to_owned).to_vec();
        let input = Input { name: "mode".to_owned(), about: String::new(), takes: Takes::Text, words };
        let command = Command::new("x").arg(argument(option_of("mode"), &input));
        let typed = command.clone().try_get_matches_from(["x", "--mode", "stable"]).unwrap();
        assert_eq!(given(&input, &typed).unwrap(), Some(Value::String("Stable".to_owned())));
        let error = command.try_get_matches_from(["x", "--mode", "stabel"]).unwrap_err().to_string();
        assert!(error.contains("a similar value exists: 'Stable'"), "{error}");
    }
}
