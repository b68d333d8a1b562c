//! The types of function calls: SQLite's functions, and PostgreSQL's that are carried over.
//!
//! Contract: the type of what SQLite returns; a function that is not known here has none. Knows nothing of how a function works.

use postgres_types::Type;
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, WindowType};

use super::expression::{as_number, is_string};
use super::infer::{Inference, last_name};

impl Inference<'_> {
    /// A call's type.
    pub(super) fn function(&mut self, function: &Function, expected: Option<&Type>) -> Option<Type> {
        if let Some(filter) = &function.filter {
            self.truth(filter);
        }
        if let Some(WindowType::WindowSpec(window)) = &function.over {
            for key in window
                .partition_by
                .iter()
                .chain(window.order_by.iter().map(|key| &key.expr))
            {
                self.infer(key, None);
            }
        }
        let arguments: Vec<&Expr> = match &function.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .filter_map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
                    _ => None,
                })
                .collect(),
            FunctionArguments::Subquery(query) => {
                self.query(query, &[]);
                Vec::new()
            }
            FunctionArguments::None => Vec::new(),
        };
        self.call(&last_name(&function.name), &arguments, expected)
    }

    fn call(&mut self, name: &str, arguments: &[&Expr], expected: Option<&Type>) -> Option<Type> {
        match name {
            "coalesce" | "ifnull" => return self.alternatives(arguments, expected),
            "min" | "max" if arguments.len() > 1 => return self.alternatives(arguments, expected),
            "min" | "max" | "likely" | "unlikely" | "likelihood" | "first_value" | "last_value" | "nth_value" => {
                let (first, more) = arguments.split_first()?;
                let kind = self.infer(first, expected);
                self.all(more, &Type::INT8);
                return kind;
            }
            "lag" | "lead" => {
                let (first, more) = arguments.split_first()?;
                let kind = self.infer(first, expected);
                let (offset, default) = more.split_at(more.len().min(1));
                self.all(offset, &Type::INT8);
                return match default.first() {
                    Some(default) => {
                        let other = self.infer(default, kind.as_ref());
                        self.both(kind, other)
                    }
                    None => kind,
                };
            }
            "nullif" => {
                let [left, right] = arguments else {
                    return None;
                };
                self.compared(left, right);
                return self.infer(left, expected);
            }
            "iif" | "if" => {
                let (condition, arms) = arguments.split_first()?;
                self.truth(condition);
                // With more arguments every other one is a condition again.
                return if arms.len() <= 2 {
                    self.alternatives(arms, expected)
                } else {
                    None
                };
            }
            "sum" | "abs" => {
                let kind = arguments.first().and_then(|first| self.infer(first, expected));
                return as_number(kind.as_ref());
            }
            "ceil" | "ceiling" | "floor" | "trunc" => {
                let kind = arguments
                    .first()
                    .and_then(|first| self.infer(first, Some(&Type::FLOAT8)));
                return as_number(kind.as_ref());
            }
            "round" => {
                let (first, more) = arguments.split_first()?;
                self.infer(first, Some(&Type::FLOAT8));
                self.all(more, &Type::INT8);
                return Some(Type::FLOAT8);
            }
            "substr" | "substring" => {
                let (first, more) = arguments.split_first()?;
                let kind = self.infer(first, Some(&Type::TEXT));
                self.all(more, &Type::INT8);
                return Some(if kind == Some(Type::BYTEA) {
                    Type::BYTEA
                } else {
                    Type::TEXT
                });
            }
            _ => {}
        }
        let (wanted, kind) = signature(name)?;
        match wanted {
            Some(wanted) => self.all(arguments, &wanted),
            None => {
                for argument in arguments {
                    self.infer(argument, None);
                }
            }
        }
        kind
    }

    fn all(&mut self, arguments: &[&Expr], wanted: &Type) {
        for argument in arguments {
            // A function takes text as SQLite has it.
            self.infer(argument, if is_string(argument) { None } else { Some(wanted) });
        }
    }
}

/// What a parameter as an argument is taken for, and what is returned; `None` for both if the function is not known.
#[allow(clippy::type_complexity, reason = "two facts of one row")]
fn signature(name: &str) -> Option<(Option<Type>, Option<Type>)> {
    Some(match name {
        "count" | "random" => (None, Some(Type::INT8)),
        "row_number" | "rank" | "dense_rank" | "ntile" => (Some(Type::INT8), Some(Type::INT8)),
        "length" | "char_length" | "octet_length" | "instr" | "unicode" | "unixepoch" => {
            (Some(Type::TEXT), Some(Type::INT8))
        }
        "json_array_length" | "json_error_position" => (Some(Type::TEXT), Some(Type::INT8)),
        "pg_backend_pid" => (None, Some(Type::INT8)),
        "percent_rank" | "cume_dist" | "avg" | "total" | "sqrt" | "exp" | "ln" | "log" | "log10" | "log2" | "pow"
        | "power" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan" | "atan2" | "degrees" | "radians" | "pi" => {
            (Some(Type::FLOAT8), Some(Type::FLOAT8))
        }
        "julianday" => (Some(Type::TEXT), Some(Type::FLOAT8)),
        "lower" | "upper" | "trim" | "ltrim" | "rtrim" | "replace" | "concat" | "concat_ws" | "group_concat"
        | "string_agg" | "strftime" | "date" | "time" | "datetime" | "timediff" | "soundex" => {
            (Some(Type::TEXT), Some(Type::TEXT))
        }
        "hex" | "quote" | "typeof" | "printf" | "format" | "sqlite_version" | "version" | "current_schema"
        | "current_database" | "current_setting" => (None, Some(Type::TEXT)),
        "char" => (Some(Type::INT8), Some(Type::TEXT)),
        "like" | "glob" => (Some(Type::TEXT), Some(Type::BOOL)),
        "json_valid" => (Some(Type::TEXT), Some(Type::BOOL)),
        "pg_is_in_recovery" => (None, Some(Type::BOOL)),
        "json" | "json_patch" | "json_remove" | "json_pretty" => (Some(Type::TEXT), Some(Type::JSON)),
        "json_array" | "json_object" | "json_set" | "json_insert" | "json_replace" | "json_quote"
        | "json_group_array" | "json_group_object" => (None, Some(Type::JSON)),
        "json_extract" | "json_type" => (Some(Type::TEXT), Some(Type::TEXT)),
        "jsonb" | "jsonb_patch" | "jsonb_remove" => (Some(Type::TEXT), Some(Type::BYTEA)),
        "jsonb_array" | "jsonb_object" | "jsonb_set" | "jsonb_insert" | "jsonb_replace" | "jsonb_group_array"
        | "jsonb_group_object" => (None, Some(Type::BYTEA)),
        "zeroblob" | "randomblob" => (Some(Type::INT8), Some(Type::BYTEA)),
        "unhex" => (Some(Type::TEXT), Some(Type::BYTEA)),
        "gen_random_uuid" | "uuid_generate_v4" => (None, Some(Type::UUID)),
        "now" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp" | "current_timestamp" => {
            (None, Some(Type::TIMESTAMPTZ))
        }
        "localtimestamp" => (None, Some(Type::TIMESTAMP)),
        "current_date" => (None, Some(Type::DATE)),
        "current_time" => (None, Some(Type::TIME)),
        // Not known: a parameter in it stays open for what else it meets.
        _ => (None, None),
    })
}
