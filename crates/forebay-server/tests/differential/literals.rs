//! The smallest expressions: columns, literals in every spelling, parameters, arrays of them.
//!
//! Promises: a node's type is that of its value, or unknown where PostgreSQL has to find out.

use crate::{
    expressions::{Generator, Visible},
    facts::{JSONPATH, element_of, oid::*, type_name},
    tree::{Node, Oid, Parameter, Part, Shape},
    values,
};

impl Generator<'_> {
    pub(crate) fn leaf(&mut self, oid: Oid) -> Node {
        if oid == JSONPATH || oid == REGTYPE {
            let hints = values::hints("", 0, JSONPATH).expect("paths are listed");
            let text = if oid == JSONPATH {
                *self.random.pick(hints)
            } else {
                "pg_typeof(1)"
            };
            return Node::leaf(oid, text);
        }
        if self.random.chance(self.columns_percent) {
            let fitting: Vec<&Visible> = self.visible.iter().filter(|column| column.oid == oid).collect();
            if !fitting.is_empty() {
                let column = *self.random.pick(&fitting);
                return Node::leaf(column.oid, column.sql.clone());
            }
        }
        if self.random.chance(6) {
            let text = if self.random.chance(50) {
                "NULL".to_owned()
            } else {
                format!("NULL::{}", type_name(oid))
            };
            return if text == "NULL" {
                Node::leaf(UNKNOWN, text)
            } else {
                Node::leaf(oid, format!("({text})"))
            };
        }
        if let Some(element) = element_of(oid)
            && self.random.chance(45)
        {
            return self.constructed_array(element, oid);
        }
        let value = self.value(oid);
        if self.random.chance(self.parameters_percent) {
            return self.parameter(oid, &value);
        }
        self.literal(oid, &value)
    }

    /// The text of a value.
    pub(crate) fn value(&mut self, oid: Oid) -> String {
        if let Some(element) = element_of(oid) {
            return self.array_value(element);
        }
        (*self.random.pick(values::of(oid))).to_owned()
    }

    pub(crate) fn array_value(&mut self, element: Oid) -> String {
        let count = self.random.below(4);
        let mut items = Vec::new();
        for _ in 0..count {
            let value = self.value(element);
            items.push(match self.random.below(10) {
                0 => "NULL".to_owned(),
                _ if matches!(element, INT2 | INT4 | INT8 | BOOL | NUMERIC | FLOAT4 | FLOAT8) => value,
                _ => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
            });
        }
        let list = format!("{{{}}}", items.join(","));
        if count > 0 && self.random.chance(10) {
            return format!("{{{list},{list}}}");
        }
        list
    }

    pub(crate) fn constructed_array(&mut self, element: Oid, oid: Oid) -> Node {
        let mut parts: Vec<Part> = vec!["ARRAY[".into()];
        for index in 0..1 + self.random.below(3) {
            if index > 0 {
                parts.push(", ".into());
            }
            parts.push(self.leaf(element).into());
        }
        parts.push("]".into());
        Node::expression(oid, format!("ARRAY[{}]", type_name(element)), parts)
    }

    pub(crate) fn parameter(&mut self, oid: Oid, value: &str) -> Node {
        let declared = if self.random.chance(50) { oid } else { 0 };
        let binary = if declared != 0 && self.random.chance(25) {
            binary_of(oid, value)
        } else {
            None
        };
        let is_binary = binary.is_some();
        let value_bytes = if self.random.chance(6) {
            None
        } else {
            Some(binary.unwrap_or_else(|| value.as_bytes().to_vec()))
        };
        let literal = match &value_bytes {
            None => "NULL".to_owned(),
            Some(_) => quoted(value),
        };
        let shape = Shape::Parameter(Parameter {
            declared,
            value: value_bytes,
            is_binary,
        });
        let parameter = Node::new(
            shape,
            if declared == 0 { UNKNOWN } else { oid },
            "",
            vec![literal.into()],
        );
        if declared == 0 && self.random.chance(60) {
            return Node::expression(oid, "", vec![parameter.into(), format!("::{}", type_name(oid)).into()]);
        }
        parameter
    }

    /// One of the ways to write a value.
    pub(crate) fn literal(&mut self, oid: Oid, value: &str) -> Node {
        let name = type_name(oid);
        let is_number = matches!(oid, INT2 | INT4 | INT8 | NUMERIC | FLOAT4 | FLOAT8)
            && value.parse::<f64>().is_ok_and(f64::is_finite)
            && value
                .chars()
                .all(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter));
        if is_number && self.random.chance(55) {
            let written = match oid {
                INT4 | NUMERIC if value.contains('.') || oid == INT4 => value.to_owned(),
                _ if self.random.chance(30) => value.to_owned(),
                _ => format!("{value}::{name}"),
            };
            let negative = value.starts_with('-');
            let plain = written == value;
            return if (negative || !plain) && !self.random.chance(10) {
                let inner = if negative && !plain {
                    format!("(({value})::{name})")
                } else {
                    format!("({written})")
                };
                Node::leaf(oid, inner)
            } else {
                Node::leaf(oid, written)
            };
        }
        if oid == BOOL && self.random.chance(60) {
            return Node::leaf(
                oid,
                *self
                    .random
                    .pick(&[value, if value == "true" { "TRUE" } else { "FALSE" }]),
            );
        }
        let text = self.text_literal(value);
        // An array has no typed literal of the form `type 'text'`.
        let ways = if element_of(oid).is_some() || matches!(oid, VARCHAR | BPCHAR) {
            [30, 0, 50, 20]
        } else {
            [30, 20, 35, 15]
        };
        match self.random.weighted(&ways) {
            0 => Node::leaf(UNKNOWN, text),
            1 => Node::leaf(oid, format!("{name} {}", quoted(value))),
            2 => Node::leaf(oid, format!("{text}::{name}")),
            _ => Node::leaf(oid, format!("CAST({text} AS {name})")),
        }
    }

    pub(crate) fn text_literal(&mut self, value: &str) -> String {
        match self.random.below(12) {
            0 => format!("$${value}$$"),
            1 => format!("$q${value}$q$"),
            2 => format!(
                "E'{}'",
                value
                    .replace('\\', "\\\\")
                    .replace('\'', "\\'")
                    .replace('\n', "\\n")
                    .replace('\t', "\\t")
            ),
            3 if value.is_ascii() => format!("U&'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
            _ => quoted(value),
        }
    }
}

/// As a standard literal.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// The binary form of a value, for types where it takes no code to speak of.
fn binary_of(oid: Oid, value: &str) -> Option<Vec<u8>> {
    Some(match oid {
        BOOL => vec![u8::from(value == "true")],
        INT2 => value.parse::<i16>().ok()?.to_be_bytes().to_vec(),
        INT4 => value.parse::<i32>().ok()?.to_be_bytes().to_vec(),
        INT8 => value.parse::<i64>().ok()?.to_be_bytes().to_vec(),
        FLOAT4 => value.parse::<f32>().ok()?.to_be_bytes().to_vec(),
        FLOAT8 => value.parse::<f64>().ok()?.to_be_bytes().to_vec(),
        TEXT | VARCHAR | BPCHAR | JSON => value.as_bytes().to_vec(),
        _ => return None,
    })
}
