//! Which public items have no example, by rustdoc's JSON.
//!
//! Promises: a public type, trait, free function or macro is told unless its own documentation has a block of Rust, or that of one of
//! its methods, variants or of what is implemented for it; errors and what only methods return are no exception. Knows no files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The names of those without that are shown, by the first part of their paths, with what they are: `struct forebay_write::Outcome`.
pub(super) fn missing(json: &str, is_shown: &impl Fn(&str) -> bool) -> Result<BTreeSet<String>, String> {
    let document: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let index = document["index"].as_object().ok_or("no index")?;
    let root = document["root"].to_string();
    let mut shown = BTreeMap::new();
    let name = index[&root]["name"].as_str().unwrap_or_default();
    reach(index, &root, name, &mut shown);
    Ok(shown
        .into_iter()
        .filter(|(item, id)| item.split("::").nth(1).is_some_and(is_shown) && !has_example(index, id, 0))
        .map(|(name, _)| name)
        .collect())
}

type Index = serde_json::Map<String, Value>;

/// Goes through public modules and what they hand on.
fn reach(index: &Index, module: &str, path: &str, shown: &mut BTreeMap<String, String>) {
    for id in ids(&index[module]["inner"]["module"]["items"]) {
        let Some(item) = index.get(&id) else { continue };
        if item["visibility"] != "public" && item["inner"].get("macro").is_none() {
            continue;
        }
        let (item, id, name) = match item["inner"].get("use") {
            // Of another crate there is nothing here.
            Some(import) => match index.get(&import["id"].to_string()) {
                Some(item) => (item, import["id"].to_string(), import["name"].as_str()),
                None => continue,
            },
            None => (item, id, item["name"].as_str()),
        };
        let path = format!("{path}::{}", name.unwrap_or_default());
        let Some(kind) = item["inner"].as_object().and_then(|inner| inner.keys().next()) else {
            continue;
        };
        match kind.as_str() {
            "module" => reach(index, &id, &path, shown),
            "struct" | "enum" | "union" | "trait" | "function" | "macro" => {
                shown.insert(format!("{kind} {path}"), id);
            }
            _ => {}
        }
    }
}

/// Whether it has one, or what belongs to it.
fn has_example(index: &Index, id: &str, depth: usize) -> bool {
    /// A type, what is implemented for it, a method of that.
    const DEPTH_MAX: usize = 2;
    let Some(item) = index.get(id) else { return false };
    if item["docs"].as_str().is_some_and(has_block) {
        return true;
    }
    if depth == DEPTH_MAX {
        return false;
    }
    let Some(inner) = item["inner"].as_object().and_then(|inner| inner.values().next()) else {
        return false;
    };
    let parts = [&inner["impls"], &inner["items"], &inner["variants"]];
    let is_own = |part: &String| {
        index
            .get(part)
            .is_some_and(|part| part["inner"]["impl"]["trait"].is_null() || depth > 0)
    };
    parts
        .into_iter()
        .flat_map(ids)
        .filter(is_own)
        .any(|part| has_example(index, &part, depth + 1))
}

/// Whether there is a block that rustdoc compiles.
fn has_block(docs: &str) -> bool {
    let fences = docs.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
    // Every other one is an end.
    fences
        .step_by(2)
        .any(|language| matches!(language, "" | "rust" | "no_run" | "rust,no_run"))
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array()
        .map_or_else(Vec::new, |ids| ids.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_the_examples_of_its_methods_and_a_hidden_module_shows_nothing() {
        let json = r#"{"root": 0, "paths": {}, "index": {
            "0": {"name": "room", "visibility": "public", "inner": {"module": {"items": [1, 2, 3, 6, 8, 9]}}},
            "1": {"name": "With", "visibility": "public", "docs": "", "inner": {"struct": {"impls": [4]}}},
            "2": {"name": "without", "visibility": "public", "docs": "Words.", "inner": {"function": {}}},
            "3": {"name": "hidden", "visibility": "crate", "inner": {"module": {"items": [2]}}},
            "4": {"name": null, "visibility": "default", "inner": {"impl": {"trait": null, "items": [5]}}},
            "5": {"name": "method", "visibility": "public", "docs": "```\nfive();\n```", "inner": {"function": {}}},
            "6": {"name": null, "visibility": "public", "inner": {"use": {"name": "Other", "id": 7}}},
            "7": {"name": "Inner", "visibility": "public", "docs": "A picture:\n```text\n```", "inner": {"trait": {"items": []}}},
            "9": {"name": "secret", "visibility": "public", "docs": "", "inner": {"function": {}}},
            "8": {"name": null, "visibility": "public", "inner": {"use": {"name": "Foreign", "id": 99}}}
        }}"#;
        let missing: Vec<String> = missing(json, &|name| name != "secret").unwrap().into_iter().collect();
        assert_eq!(missing, ["function room::without", "trait room::Other"]);
    }
}
