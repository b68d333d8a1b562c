//! Function calls: which functions there are, what they take and return, and how SQLite is asked for the same.
//!
//! A function that is not listed is refused by name. Arguments are matched by count and by kind, as far as the answer depends on it.

use postgres_types::Type;
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::super::error::CatalogError;
use super::super::types::{Family, element_type, family, is_registered};
use super::piece::{Piece, quoted, text_literal};
use super::translator::Translator;
use crate::sql::compile::syntax::{folded, name_parts};

/// A set-returning function as SQL for a JSON array, one element a row.
pub(super) struct SetFunction {
    pub(super) json: String,
    /// The type of an element.
    pub(super) element: Type,
    /// The fields, when the elements are rows: name, type, and path inside the element's JSON.
    pub(super) fields: Vec<(&'static str, Type, String)>,
}

/// What an argument is made into before the call.
#[derive(Clone, Copy)]
enum Argument {
    /// An OID, or the name of a relation.
    Relation,
    Oid,
    Integer,
    Text,
    Boolean,
    /// Any array or vector.
    Array,
    /// Anything: evaluated, not looked at.
    Any,
}

use Argument::{Any, Array, Boolean, Integer, Oid, Relation, Text};

/// Functions registered under their own name: arguments, how many are required, result.
fn listed(name: &str) -> Option<(&'static [Argument], usize, Type)> {
    Some(match name {
        "pg_table_is_visible" => (&[Oid], 1, Type::BOOL),
        "format_type" => (&[Oid, Integer], 2, Type::TEXT),
        "pg_get_userbyid" => (&[Oid], 1, Type::NAME),
        "pg_get_indexdef" => (&[Relation, Integer, Boolean], 1, Type::TEXT),
        "pg_get_serial_sequence" => (&[Text, Text], 2, Type::TEXT),
        "pg_get_constraintdef" | "pg_get_triggerdef" => (&[Oid, Boolean], 1, Type::TEXT),
        "pg_get_viewdef" => (&[Relation, Boolean], 1, Type::TEXT),
        "pg_get_function_result" | "pg_get_function_arguments" => (&[Oid], 1, Type::TEXT),
        "pg_relation_is_publishable" => (&[Relation], 1, Type::BOOL),
        "pg_encoding_to_char" => (&[Integer], 1, Type::NAME),
        "pg_char_to_encoding" => (&[Text], 1, Type::INT4),
        "pg_size_pretty" => (&[Integer], 1, Type::TEXT),
        "array_to_string" => (&[Array, Text, Text], 2, Type::TEXT),
        "array_length" => (&[Array, Integer], 2, Type::INT4),
        "cardinality" => (&[Array], 1, Type::INT4),
        "quote_ident" | "quote_literal" => (&[Text], 1, Type::TEXT),
        "split_part" => (&[Text, Text, Integer], 3, Type::TEXT),
        "replace" => (&[Text, Text, Text], 3, Type::TEXT),
        "lower" | "upper" => (&[Text], 1, Type::TEXT),
        "length" => (&[Text], 1, Type::INT4),
        "to_regclass" => (&[Text], 1, Type::REGCLASS),
        "to_regtype" => (&[Text], 1, Type::REGTYPE),
        "to_regnamespace" => (&[Text], 1, Type::REGNAMESPACE),
        "to_regrole" => (&[Text], 1, Type::REGROLE),
        "to_regproc" => (&[Text], 1, Type::REGPROC),
        "current_database" => (&[], 0, Type::NAME),
        "pg_backend_pid" => (&[], 0, Type::INT4),
        "current_setting" => (&[Text, Boolean], 1, Type::TEXT),
        "version" => (&[], 0, Type::TEXT),
        _ => return None,
    })
}

/// Functions whose answer is the same whatever they are asked, because the catalog holds nothing of the kind: arguments,
/// how many are required, answer, result.
fn constant(name: &str) -> Option<(&'static [Argument], usize, &'static str, Type)> {
    Some(match name {
        "pg_type_is_visible"
        | "pg_function_is_visible"
        | "pg_operator_is_visible"
        | "pg_collation_is_visible"
        | "pg_opclass_is_visible"
        | "pg_opfamily_is_visible"
        | "pg_conversion_is_visible"
        | "pg_statistics_obj_is_visible"
        | "pg_ts_config_is_visible"
        | "pg_ts_dict_is_visible"
        | "pg_ts_parser_is_visible"
        | "pg_ts_template_is_visible" => (&[Oid], 1, "1", Type::BOOL),
        // The one role owns everything.
        "has_table_privilege"
        | "has_schema_privilege"
        | "has_database_privilege"
        | "has_function_privilege"
        | "has_sequence_privilege"
        | "has_tablespace_privilege"
        | "has_type_privilege"
        | "has_any_column_privilege"
        | "has_foreign_data_wrapper_privilege"
        | "has_language_privilege"
        | "has_server_privilege"
        | "pg_has_role" => (&[Any, Any, Any], 2, "1", Type::BOOL),
        "has_column_privilege" => (&[Any, Any, Any, Any], 3, "1", Type::BOOL),
        "pg_my_temp_schema" => (&[], 0, "0", Type::OID),
        "pg_is_other_temp_schema" => (&[Oid], 1, "0", Type::BOOL),
        "pg_is_in_recovery" => (&[], 0, "0", Type::BOOL),
        "pg_tablespace_location" => (&[Oid], 1, "''", Type::TEXT),
        // Not known here, and NULL says so.
        "shobj_description" => (&[Oid, Text], 1, "NULL", Type::TEXT),
        "pg_get_ruledef" => (&[Oid, Boolean], 1, "NULL", Type::TEXT),
        "pg_get_statisticsobjdef_columns" | "pg_get_statisticsobjdef" | "pg_get_partkeydef" | "pg_get_functiondef" => {
            (&[Oid], 1, "NULL", Type::TEXT)
        }
        "pg_get_partition_constraintdef" => (&[Oid], 1, "NULL", Type::TEXT),
        "pg_total_relation_size" | "pg_table_size" | "pg_indexes_size" => (&[Relation], 1, "NULL", Type::INT8),
        "pg_relation_size" => (&[Relation, Text], 1, "NULL", Type::INT8),
        "pg_database_size" | "pg_tablespace_size" => (&[Any], 1, "NULL", Type::INT8),
        "current_schema" => (&[], 0, "forebay_current_schema()", Type::NAME),
        "getdatabaseencoding" => (&[], 0, "'UTF8'", Type::NAME),
        // Nobody waits for a lock that another session holds: those who write take turns.
        "pg_blocking_pids" => (&[Integer], 1, "'{}'", Type::INT4_ARRAY),
        _ => return None,
    })
}

impl Translator {
    pub(super) fn call(&mut self, function: &Function) -> Result<Piece, CatalogError> {
        let name = function_name(function)?;
        if let Some(piece) = self.aggregate(&name, function)? {
            return Ok(piece);
        }
        if function.over.is_some() || function.filter.is_some() {
            return Err(CatalogError::unsupported(format!(
                "{name} as an aggregate or window function"
            )));
        }
        if name == "array"
            && let FunctionArguments::Subquery(query) = &function.args
        {
            return self.array_of_query(query);
        }
        if let Some(set) = self.set_of(function)? {
            return self.set_in_list(&name, set);
        }
        let arguments = plain_arguments(&name, function)?;
        if let Some((expected, required, result)) = listed(&name) {
            let pieces = self.arguments(&name, &arguments, expected, required)?;
            return Ok(Piece::new(format!("{name}({})", joined(&pieces)), result));
        }
        if let Some((expected, required, answer, result)) = constant(&name) {
            // A NULL argument makes the answer NULL too. Arguments that do not decide it are checked, not computed.
            let pieces = self.arguments(&name, &arguments, expected, required)?;
            let strict = matches!(answer, "0" | "1") && matches!(expected.first(), Some(Oid));
            return Ok(match pieces.first() {
                Some(first) if strict => Piece::new(
                    format!("(CASE WHEN {} IS NOT NULL THEN {answer} END)", first.sql),
                    result,
                ),
                _ => Piece::new(answer, result),
            });
        }
        if name == "row_to_json"
            && let [argument] = arguments.as_slice()
            && let Some(piece) = self.row_as_json(argument)?
        {
            return Ok(piece);
        }
        self.special(&name, &arguments)
    }

    fn special(&mut self, name: &str, arguments: &[&Expr]) -> Result<Piece, CatalogError> {
        let pieces = arguments
            .iter()
            .map(|argument| self.expression(argument))
            .collect::<Result<Vec<_>, _>>()?;
        let wrong = || CatalogError::unsupported(format!("{name} with {} arguments", arguments.len()));
        match (name, pieces.len()) {
            ("current_user" | "session_user" | "user" | "current_role", 0) => {
                Ok(Piece::new("forebay_user()", Type::NAME))
            }
            ("current_catalog", 0) => Ok(Piece::new("current_database()", Type::NAME)),
            ("current_schemas", 1) => {
                let piece = pieces.into_iter().next().ok_or_else(wrong)?;
                let implicit = self.coerce(piece, &Type::BOOL)?;
                Ok(Piece::new(
                    format!("forebay_current_schemas({})", implicit.sql),
                    Type::NAME_ARRAY,
                ))
            }
            // The catalog holds expressions as the text that this prints.
            ("pg_get_expr", 2 | 3) => match pieces.into_iter().next() {
                Some(first) if matches!(first.kind, Type::PG_NODE_TREE | Type::UNKNOWN) => {
                    Ok(Piece::new(first.sql, Type::TEXT))
                }
                Some(first) => Err(CatalogError::unsupported(format!("pg_get_expr of {}", first.kind))),
                None => Err(wrong()),
            },
            ("array_upper" | "array_lower", 2) => {
                let [array, dimension] = <[Piece; 2]>::try_from(pieces).map_err(|_| wrong())?;
                if family(&array.kind) != Family::Array {
                    return Err(CatalogError::unsupported(format!("{name} of {}", array.kind)));
                }
                let dimension = self.coerce(dimension, &Type::INT4)?;
                let upper = u8::from(name == "array_upper");
                Ok(Piece::new(
                    format!("forebay_array_bound({}, {}, {upper})", array.sql, dimension.sql),
                    Type::INT4,
                ))
            }
            ("json_build_object", count) if count % 2 == 0 => {
                let mut members = Vec::new();
                let mut pieces = pieces.into_iter();
                while let (Some(key), Some(value)) = (pieces.next(), pieces.next()) {
                    let key = self.text_of(key)?;
                    members.push(format!(
                        "forebay_json_key({}) || ' : ' || {}",
                        key.sql,
                        self.json_of(value)?
                    ));
                }
                Ok(Piece::new(
                    format!("('{{' || {} || '}}')", members.join(" || ', ' || ")),
                    Type::JSON,
                ))
            }
            ("obj_description", 1 | 2) => {
                let object = pieces.into_iter().next().ok_or_else(wrong)?;
                let object = self.coerce(object, &Type::OID)?;
                Ok(Piece::new(
                    format!(
                        "(SELECT description FROM pg_catalog.pg_description WHERE objoid = {} AND objsubid = 0)",
                        object.sql
                    ),
                    Type::TEXT,
                ))
            }
            ("col_description", 2) => {
                let mut pieces = pieces.into_iter();
                let (object, column) = (pieces.next().ok_or_else(wrong)?, pieces.next().ok_or_else(wrong)?);
                let object = self.coerce(object, &Type::OID)?;
                Ok(Piece::new(
                    format!(
                        "(SELECT description FROM pg_catalog.pg_description WHERE objoid = {} AND objsubid = {})",
                        object.sql, column.sql
                    ),
                    Type::TEXT,
                ))
            }
            ("char_length" | "character_length", 1) => {
                let piece = pieces.into_iter().next().ok_or_else(wrong)?;
                Ok(Piece::new(format!("length({})", self.text_of(piece)?.sql), Type::INT4))
            }
            ("coalesce", 1..) => {
                let alone = pieces.len() == 1;
                let (pieces, kind) = self.unify(pieces)?;
                // SQLite wants two at least.
                Ok(Piece::new(
                    if alone {
                        format!("({})", joined(&pieces))
                    } else {
                        format!("coalesce({})", joined(&pieces))
                    },
                    kind,
                ))
            }
            ("nullif", 2) => {
                let [left, right] = <[Piece; 2]>::try_from(pieces).map_err(|_| wrong())?;
                let (left, right) = self.meet(left, right)?;
                Ok(Piece::new(format!("nullif({}, {})", left.sql, right.sql), left.kind))
            }
            ("concat", 1..) => {
                let texts = pieces
                    .into_iter()
                    .map(|piece| self.concatenated(piece))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Piece::new(format!("concat({})", joined(&texts)), Type::TEXT))
            }
            ("btrim" | "ltrim" | "rtrim", 1 | 2) => {
                let texts = pieces
                    .into_iter()
                    .map(|piece| self.text_of(piece))
                    .collect::<Result<Vec<_>, _>>()?;
                let function = if name == "btrim" { "trim" } else { name };
                Ok(Piece::new(format!("{function}({})", joined(&texts)), Type::TEXT))
            }
            ("strpos", 2) => {
                let texts = pieces
                    .into_iter()
                    .map(|piece| self.text_of(piece))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Piece::new(format!("instr({})", joined(&texts)), Type::INT4))
            }
            _ => Err(CatalogError::unsupported(format!(
                "the function {name} with {} arguments",
                arguments.len()
            ))),
        }
    }

    /// A value as a member of JSON.
    pub(super) fn json_of(&mut self, piece: Piece) -> Result<String, CatalogError> {
        let sql = match family(&piece.kind) {
            Family::Boolean => format!("(CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)", piece.sql),
            Family::Integer if !is_registered(&piece.kind) => format!("CAST({} AS TEXT)", piece.sql),
            Family::Integer | Family::Text | Family::Unknown => {
                format!("forebay_json_text({})", self.text_of(piece)?.sql)
            }
            _ => return Err(CatalogError::unsupported(format!("{} in JSON", piece.kind))),
        };
        Ok(format!("coalesce({sql}, 'null')"))
    }

    /// `row_to_json(t)` of a relation in FROM; `None` if the name means something else.
    fn row_as_json(&mut self, argument: &Expr) -> Result<Option<Piece>, CatalogError> {
        let Expr::Identifier(name) = argument else {
            return Ok(None);
        };
        let alias = folded(name);
        let found = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.sources.iter().find(|source| source.alias == alias));
        let Some(source) = found.cloned() else {
            return Ok(None);
        };
        let mut members = Vec::new();
        for column in &source.columns {
            let key = text_literal(&column.name)?;
            let value = self.json_of(source.piece(column))?;
            members.push(format!("forebay_json_key({key}) || ':' || {value}"));
        }
        Ok(Some(Piece::new(
            format!("('{{' || {} || '}}')", members.join(" || ',' || ")),
            Type::JSON,
        )))
    }

    /// `concat` prints booleans as `t` and `f`, unlike a cast.
    fn concatenated(&mut self, piece: Piece) -> Result<Piece, CatalogError> {
        if piece.kind == Type::BOOL {
            super::expression::element_text(&piece)
        } else {
            self.text_of(piece)
        }
    }

    fn arguments(
        &mut self,
        name: &str,
        given: &[&Expr],
        expected: &[Argument],
        required: usize,
    ) -> Result<Vec<Piece>, CatalogError> {
        if given.len() < required || given.len() > expected.len() {
            return Err(CatalogError::unsupported(format!(
                "the function {name} with {} arguments",
                given.len()
            )));
        }
        given
            .iter()
            .zip(expected)
            .map(|(argument, expected)| self.argument(name, argument, *expected))
            .collect()
    }

    fn argument(&mut self, name: &str, argument: &Expr, expected: Argument) -> Result<Piece, CatalogError> {
        let piece = self.expression(argument)?;
        let (target, fits): (Type, fn(Family) -> bool) = match expected {
            Any => return self.coerce(piece, &Type::TEXT),
            Relation => (Type::REGCLASS, |family| family == Family::Integer),
            Oid => (Type::OID, |family| family == Family::Integer),
            Integer => (Type::INT8, |family| family == Family::Integer),
            Boolean => (Type::BOOL, |family| family == Family::Boolean),
            Text => (Type::TEXT, |family| family == Family::Text),
            Array => (Type::TEXT_ARRAY, |family| family == Family::Array),
        };
        let piece = self.coerce(piece, &target)?;
        // pg_get_viewdef and its kind take a name too.
        let piece = if matches!(expected, Relation) && family(&piece.kind) == Family::Text {
            self.convert(piece, &Type::REGCLASS)?
        } else {
            piece
        };
        if fits(family(&piece.kind)) || piece.kind == Type::UNKNOWN {
            Ok(piece)
        } else {
            Err(CatalogError::unsupported(format!("{name} of {}", piece.kind)))
        }
    }

    /// The set a function returns; `None` for functions that return one value.
    pub(super) fn set_of(&mut self, function: &Function) -> Result<Option<SetFunction>, CatalogError> {
        let name = function_name(function)?;
        if !matches!(
            name.as_str(),
            "unnest"
                | "_pg_expandarray"
                | "generate_subscripts"
                | "generate_series"
                | "pg_partition_ancestors"
                | "pg_get_keywords"
        ) {
            return Ok(None);
        }
        let arguments = plain_arguments(&name, function)?;
        // A set inside a set would have to be expanded first.
        self.sets.push(None);
        let pieces: Result<Vec<Piece>, CatalogError> =
            arguments.iter().map(|argument| self.expression(argument)).collect();
        self.sets.pop();
        let mut pieces = pieces?.into_iter();
        let (first, rest) = (pieces.next(), pieces.collect::<Vec<_>>());
        if name == "pg_get_keywords" && first.is_none() {
            let text = |name: &'static str, position: usize| (name, Type::TEXT, format!("$[{position}]"));
            return Ok(Some(SetFunction {
                json: "forebay_keywords()".to_owned(),
                element: Type::RECORD,
                fields: vec![
                    text("word", 0),
                    ("catcode", Type::CHAR, "$[1]".to_owned()),
                    ("barelabel", Type::BOOL, "$[2]".to_owned()),
                    text("catdesc", 3),
                    text("baredesc", 4),
                ],
            }));
        }
        let Some(first) = first else {
            return Err(CatalogError::unsupported(format!(
                "the function {name} without arguments"
            )));
        };
        let array = |piece: &Piece| {
            let element =
                element_type(&piece.kind).filter(|element| matches!(family(element), Family::Integer | Family::Text));
            element.ok_or_else(|| CatalogError::unsupported(format!("{name} of {}", piece.kind)))
        };
        let set = match (name.as_str(), rest.as_slice()) {
            ("unnest", []) => {
                // An array that is empty in every row of the catalog may be of a type without elements known here.
                let element = match &first.kind {
                    kind if *kind == Type::ACLITEM_ARRAY => Type::ACLITEM,
                    _ => array(&first)?,
                };
                let numeric = u8::from(family(&element) == Family::Integer);
                SetFunction {
                    json: format!("forebay_elements({}, {numeric})", first.sql),
                    element,
                    fields: Vec::new(),
                }
            }
            // Several arrays side by side, as long as the longest.
            ("unnest", others) => {
                let mut arrays = Vec::new();
                let mut fields = Vec::new();
                for (position, piece) in std::iter::once(&first).chain(others).enumerate() {
                    let element = array(piece)?;
                    let numeric = u8::from(family(&element) == Family::Integer);
                    arrays.push(format!("forebay_elements({}, {numeric})", piece.sql));
                    fields.push(("unnest", element, format!("$[{position}]")));
                }
                SetFunction {
                    json: format!("forebay_in_step({})", arrays.join(", ")),
                    element: Type::RECORD,
                    fields,
                }
            }
            ("_pg_expandarray", []) => {
                let element = array(&first)?;
                let numeric = u8::from(family(&element) == Family::Integer);
                let json = format!("forebay_expanded({}, {numeric})", first.sql);
                SetFunction {
                    json,
                    element: Type::RECORD,
                    fields: vec![("x", element, "$.x".to_owned()), ("n", Type::INT4, "$.n".to_owned())],
                }
            }
            ("generate_subscripts", [_]) => {
                element_type(&first.kind)
                    .ok_or_else(|| CatalogError::unsupported(format!("{name} of {}", first.kind)))?;
                let dimension = self.coerce(rest[0].clone(), &Type::INT4)?;
                if family(&dimension.kind) != Family::Integer {
                    return Err(CatalogError::unsupported(format!("{name} along {}", dimension.kind)));
                }
                // No array of the catalog has a second dimension.
                let json = format!(
                    "(CASE {} WHEN 1 THEN forebay_subscripts({}) ELSE '[]' END)",
                    dimension.sql, first.sql
                );
                SetFunction {
                    json,
                    element: Type::INT4,
                    fields: Vec::new(),
                }
            }
            ("generate_series", [_] | [_, _]) => {
                let mut bounds = Vec::new();
                for piece in std::iter::once(first).chain(rest) {
                    let piece = self.coerce(piece, &Type::INT4)?;
                    if family(&piece.kind) != Family::Integer {
                        return Err(CatalogError::unsupported(format!("generate_series of {}", piece.kind)));
                    }
                    bounds.push(piece);
                }
                let element = if bounds.iter().any(|bound| bound.kind == Type::INT8) {
                    Type::INT8
                } else {
                    Type::INT4
                };
                SetFunction {
                    json: format!("forebay_series({})", joined(&bounds)),
                    element,
                    fields: Vec::new(),
                }
            }
            // No table here is a partition, and of other tables PostgreSQL returns no row.
            ("pg_partition_ancestors", []) => SetFunction {
                json: "'[]'".to_owned(),
                element: Type::REGCLASS,
                fields: Vec::new(),
            },
            _ => {
                return Err(CatalogError::unsupported(format!(
                    "the function {name} with {} arguments",
                    arguments.len()
                )));
            }
        };
        Ok(Some(set))
    }

    /// A set-returning function in a SELECT list.
    fn set_in_list(&mut self, name: &str, set: SetFunction) -> Result<Piece, CatalogError> {
        let Some(Some(list)) = self.sets.last_mut() else {
            return Err(CatalogError::unsupported(format!(
                "{name} outside FROM and the SELECT list"
            )));
        };
        if name == "unnest" && set.element == Type::RECORD {
            return Err(CatalogError::unsupported("unnest of several arrays outside FROM"));
        }
        let position = list.arrays.len();
        list.arrays.push(set.json);
        Ok(Piece::new(
            format!("json_extract({}.\"value\", '$[{position}]')", quoted(&list.alias)),
            set.element,
        ))
    }
}

/// The name, without `pg_catalog` or `information_schema`.
fn function_name(function: &Function) -> Result<String, CatalogError> {
    let refused = || CatalogError::unsupported(format!("the function {}", function.name));
    let parts = name_parts(&function.name).ok_or_else(refused)?;
    match <[String; 2]>::try_from(parts) {
        Ok([schema, name])
            if schema == "pg_catalog" || (schema == "information_schema" && name == "_pg_expandarray") =>
        {
            Ok(name)
        }
        Ok(_) => Err(refused()),
        // Only information_schema has it.
        Err(mut parts) if parts.len() == 1 && parts[0] != "_pg_expandarray" => Ok(parts.remove(0)),
        Err(_) => Err(refused()),
    }
}

/// The arguments of a call without any of the clauses a call may have.
pub(super) fn plain_arguments<'a>(name: &str, function: &'a Function) -> Result<Vec<&'a Expr>, CatalogError> {
    let refused = || CatalogError::unsupported(format!("this form of the function {name}"));
    let bare = !function.uses_odbc_syntax
        && matches!(function.parameters, FunctionArguments::None)
        && function.within_group.is_empty()
        && function.null_treatment.is_none();
    if !bare {
        return Err(refused());
    }
    match &function.args {
        FunctionArguments::None => Ok(Vec::new()),
        FunctionArguments::Subquery(_) => Err(refused()),
        FunctionArguments::List(list) => {
            if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                return Err(refused());
            }
            list.args
                .iter()
                .map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression),
                    _ => Err(refused()),
                })
                .collect()
        }
    }
}

pub(super) fn joined(pieces: &[Piece]) -> String {
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.sql.as_str()).collect();
    texts.join(", ")
}
