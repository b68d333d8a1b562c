//! Of `serde_json`: a `Value` as its text, which is what columns of JSON take. JSON's `null` is that text, and no NULL.

use serde_json::Value as Json;

use super::given;
use crate::Value;
use crate::from_value::taken;

given! {
    [] Json: json => Value::Text(json.to_string());
}

taken! {
    Json, "JSON": Value::Text(text) => serde_json::from_str(text).ok();
}
