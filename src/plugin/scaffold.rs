//! New plugins from templates: each passes the lint and runs.

use super::hook::Hook;
use super::runtime::Runtime;

/// A file of a new plugin: its path, its text, and whether it runs by itself.
pub(super) type File = (String, String, bool);

/// The files of a new plugin.
pub(super) fn files(name: &str, description: &str, runtime: Runtime, hooks: &[Hook]) -> Vec<File> {
    let mut manifest = format!(
        "name = {}\nversion = \"0.1.0\"\ndescription = {}\nauthor = \"\"\n\n[hooks]\nruntime = {:?}\n",
        quoted(name),
        quoted(description),
        runtime.as_str()
    );
    let mut files = Vec::new();
    for hook in hooks {
        let path = format!("hooks/{}{}", hook.as_str(), runtime.extension());
        manifest.push_str(&format!("{} = {:?}\n", hook.as_str(), path));
        files.push((path, script(runtime, *hook), runtime == Runtime::Native));
    }
    files.insert(0, (super::manifest::FILE.to_owned(), manifest, false));
    files
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// What a hook of a template answers.
fn answer(hook: Hook) -> &'static str {
    match hook {
        Hook::Ingest => r#"{"type": "ingest_result", "memories": []}"#,
        Hook::TransformToolResult => r#"{"type": "skip"}"#,
        // No messages: the daemon's own way goes on.
        Hook::Assemble => r#"{"type": "assemble_result", "messages": []}"#,
        Hook::Compact => r#"{"type": "compact_result", "messages": []}"#,
        _ => r#"{"type": "ok"}"#,
    }
}

/// The program of a hook. It reads a JSON object from stdin and writes its answer as one line.
fn script(runtime: Runtime, hook: Hook) -> String {
    let (name, answer) = (hook.as_str(), answer(hook));
    match runtime {
        Runtime::Python => format!(
            "\"\"\"The hook {name}: reads a JSON object from stdin and writes one to stdout.\"\"\"\nimport json\nimport sys\n\n\
             request = json.load(sys.stdin)\nanswer = json.loads('{answer}')\nprint(json.dumps(answer))\n"
        ),
        Runtime::Node | Runtime::Bun => format!(
            "// The hook {name}: reads a JSON object from stdin and writes one to stdout.\n\
             const request = JSON.parse(require(\"fs\").readFileSync(0, \"utf8\"));\n\
             const answer = {answer};\nif (request) console.log(JSON.stringify(answer));\n"
        ),
        Runtime::Deno => format!(
            "// The hook {name}: reads a JSON object from stdin and writes one to stdout.\n\
             const request = JSON.parse(await new Response(Deno.stdin.readable).text());\n\
             const answer = {answer};\nif (request) console.log(JSON.stringify(answer));\n"
        ),
        Runtime::Bash | Runtime::Native => format!(
            "#!/bin/sh\n# The hook {name}: reads a JSON object from stdin and writes one to stdout.\n\
             request=$(cat)\n[ -n \"$request\" ] && printf '%s\\n' '{answer}'\n"
        ),
        Runtime::Ruby => format!(
            "# The hook {name}: reads a JSON object from stdin and writes one to stdout.\nrequire \"json\"\n\n\
             request = JSON.parse($stdin.read)\nanswer = JSON.parse('{answer}')\nputs JSON.generate(answer) if request\n"
        ),
        Runtime::Php => format!(
            "<?php\n// The hook {name}: reads a JSON object from stdin and writes one to stdout.\n\
             $request = json_decode(stream_get_contents(STDIN), true);\nif ($request !== null) echo '{answer}', \"\\n\";\n"
        ),
        Runtime::Lua => format!(
            "-- The hook {name}: reads a JSON object from stdin and writes one to stdout.\n\
             local request = io.read(\"a\")\nif #request > 0 then print('{answer}') end\n"
        ),
        Runtime::Go => format!(
            "// The hook {name}: reads a JSON object from stdin and writes one to stdout.\npackage main\n\n\
             import (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {{\n\tvar request map[string]any\n\
             \tif json.NewDecoder(os.Stdin).Decode(&request) != nil {{\n\t\tos.Exit(1)\n\t}}\n\tfmt.Println(`{answer}`)\n}}\n"
        ),
        Runtime::V => format!(
            "// The hook {name}: reads a JSON object from stdin and writes one to stdout.\nimport os\n\n\
             request := os.get_raw_lines_joined()\nif request.len > 0 {{\n\tprintln('{answer}')\n}}\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::plugin::lint::lint;
    use crate::plugin::manifest::parse;

    #[test]
    fn every_runtime_gives_a_plugin_that_passes_the_lint() {
        for runtime in Runtime::ALL {
            let dir = tempfile::tempdir().unwrap();
            for (path, text, runs) in files("demo", "says \"x\"\\n", runtime, &Hook::ALL) {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(if runs { 0o700 } else { 0o600 })).unwrap();
            }
            let found = lint(dir.path(), Some("demo"));
            assert!(found.errors.is_empty(), "{runtime:?}: {:?}", found.errors);
            let manifest = parse(&fs::read_to_string(dir.path().join("plugin.toml")).unwrap()).unwrap();
            assert_eq!((manifest.runtime, manifest.hooks.len()), (runtime, Hook::ALL.len()));
            assert_eq!(manifest.description, "says \"x\"\\n");
        }
    }

    #[test]
    fn answers_are_json() {
        for hook in Hook::ALL {
            assert!(serde_json::from_str::<serde_json::Value>(answer(hook)).unwrap().is_object());
        }
    }
}
