//! Functions in FROM.
//!
//! Promises: a function's rows have the columns that PostgreSQL gives them, under PostgreSQL's names. They come as one JSON array, which SQLite
//! takes apart; a function that gives rows and is not here is refused by name.

use forebay_pg_values::Type;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName, TableAlias};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::resolve;
use super::scalar::Scalar;
use super::scope::{Relation, RelationColumn, Scope};
use super::sqlite_text::{ENVIRONMENT, quoted, relation_name, type_label};
use super::syntax::folded;
use super::types::{self, TypeName};
use crate::sql::facts::{self, Context, Oid, oid};

impl Compiler<'_> {
    pub(super) fn table_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        with_ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Result<String> {
        let name = types::object_name(name)?;
        let mut arguments = Vec::new();
        for argument in args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => arguments.push(expression),
                other => return Err(Fault::unsupported(format!("the argument {other}"))),
            }
        }
        self.rows_of(&name, &arguments, with_ordinality, alias, scope)
    }

    /// A function in FROM: its rows come as a JSON array, which SQLite takes apart.
    pub(super) fn rows_of(
        &mut self,
        name: &str,
        arguments: &[&Expr],
        with_ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Result<String> {
        scope.no_aggregates.set(Some("functions in FROM"));
        let mut scalars = Vec::new();
        for argument in arguments {
            scalars.push(self.expression(argument, scope)?);
        }
        scope.no_aggregates.set(None);
        self.names += 1;
        let own = relation_name(self.names);
        let rows = self.row_source(name, scalars)?;
        let single = rows.columns.len() == 1;
        let mut columns: Vec<RelationColumn> = Vec::new();
        for (place, (column, kind)) in rows.columns.iter().enumerate() {
            let sql = if single {
                format!("{own}.\"value\"")
            } else {
                format!("json_extract({own}.\"value\", '$[{place}]')")
            };
            columns.push(RelationColumn {
                name: column.clone(),
                kind: TypeName::plain(*kind),
                sql,
                not_null: false,
            });
        }
        if with_ordinality {
            columns.push(RelationColumn {
                name: "ordinality".to_owned(),
                kind: TypeName::plain(oid::INT8),
                sql: format!("({own}.\"key\" + 1)"),
                not_null: true,
            });
        }
        let mut relation = Relation {
            name: Some(name.to_owned()),
            schema: None,
            table: None,
            columns,
            key: Vec::new(),
            merged: Vec::new(),
            is_value: rows.is_value,
        };
        // The alias of a function that gives one column is the column's name too.
        if let Some(alias) = alias
            && alias.columns.is_empty()
            && single
            && rows.takes_alias
        {
            relation.columns[0].name = folded(&alias.name);
        }
        relation.apply_alias(alias)?;
        scope.add(relation)?;
        Ok(format!("json_each({}) AS {own}", rows.sql))
    }

    /// What a function's rows are, as a JSON array.
    fn row_source(&mut self, name: &str, mut scalars: Vec<Scalar>) -> Result<RowSource> {
        if scalars.is_empty()
            && let Some(scalar) = self.session_word(name)?
            && let Some(label) = Type::from_oid(scalar.oid).map(type_label)
        {
            return Ok(RowSource {
                sql: format!("\"forebay_array\"({}, {})", quoted(&label), scalar.sql),
                columns: vec![(name.to_owned(), scalar.oid)],
                takes_alias: true,
                is_value: false,
            });
        }
        let given: Vec<Oid> = scalars.iter().map(|scalar| scalar.oid).collect();
        if scalars.is_empty()
            && let Some(scalar) = self.session_word(name)?
        {
            return one_row(name, &scalar);
        }
        if name == "unnest" && scalars.len() > 1 {
            return side_by_side(&scalars);
        }
        let chosen = resolve::function(name, &given, false)?.ok_or_else(|| {
            let types: Vec<String> = given.iter().map(|oid| facts::display_name(*oid)).collect();
            Fault::new("42883", format!("function {name}({}) does not exist", types.join(", ")))
        })?;
        if !chosen.function.returns_set {
            let scalar = self.call(name, scalars)?;
            return one_row(name, &scalar);
        }
        let polymorphism = resolve::polymorphism(&given, &chosen.wanted)
            .ok_or_else(|| Fault::unsupported(format!("{name} with these types")))?;
        for (scalar, wanted) in scalars.iter_mut().zip(&chosen.wanted) {
            let actual = polymorphism.actual(*wanted).unwrap_or(*wanted);
            *scalar = self.convert_type(scalar.clone(), actual, Context::Implicit)?;
        }
        let list: Vec<&str> = scalars.iter().map(|scalar| scalar.sql.as_str()).collect();
        let list = list.join(", ");
        let environment = ENVIRONMENT;
        let one = |sql: String, kind: Oid| {
            Ok(RowSource {
                sql,
                columns: vec![(name.to_owned(), kind)],
                takes_alias: true,
                is_value: false,
            })
        };
        let value = |sql: String, kind: Oid| {
            Ok(RowSource {
                sql,
                columns: vec![("value".to_owned(), kind)],
                takes_alias: false,
                is_value: true,
            })
        };
        let pairs = |sql: String, kind: Oid| {
            Ok(RowSource {
                sql,
                columns: vec![("key".to_owned(), oid::TEXT), ("value".to_owned(), kind)],
                takes_alias: false,
                is_value: false,
            })
        };
        match name {
            "generate_series" => {
                let kind = scalars[0].oid;
                let label = Type::from_oid(kind).map(type_label).unwrap_or_default();
                self.zone_bound |= kind == oid::TIMESTAMPTZ;
                one(
                    format!("\"forebay_series\"({environment}, {}, {list})", quoted(&label)),
                    kind,
                )
            }
            "unnest" if scalars.len() == 1 => {
                let element = facts::element_of(scalars[0].oid)
                    .ok_or_else(|| Fault::unsupported(format!("unnest of {}", facts::display_name(scalars[0].oid))))?;
                one(format!("\"forebay_flat\"({list})"), element)
            }
            "json_array_elements" | "jsonb_array_elements" => {
                value(format!("\"forebay_rows\"('{name}', {list})"), scalars[0].oid)
            }
            "json_array_elements_text" | "jsonb_array_elements_text" => {
                value(format!("\"forebay_rows\"('{name}', {list})"), oid::TEXT)
            }
            "json_object_keys" | "jsonb_object_keys" | "regexp_split_to_table" | "string_to_table" => {
                one(format!("\"forebay_rows\"('{name}', {list})"), oid::TEXT)
            }
            "json_each" | "jsonb_each" => pairs(format!("\"forebay_rows\"('{name}', {list})"), scalars[0].oid),
            "json_each_text" | "jsonb_each_text" => pairs(format!("\"forebay_rows\"('{name}', {list})"), oid::TEXT),
            _ => Err(Fault::unsupported(format!("the function {name} in FROM"))),
        }
    }
}

/// The rows of a function: a JSON array of values, or of arrays of as many as there are columns.
struct RowSource {
    sql: String,
    columns: Vec<(String, Oid)>,
    /// Whether an alias for the table names the column too.
    takes_alias: bool,
    /// Whether the table's name alone means the column, which keeps its own.
    is_value: bool,
}

/// The one row of a function that returns no set.
fn one_row(name: &str, scalar: &Scalar) -> Result<RowSource> {
    let held = if scalar.oid == oid::NAME { oid::TEXT } else { scalar.oid };
    let label = Type::from_oid(held)
        .map(type_label)
        .ok_or_else(|| Fault::unsupported(format!("{name} in FROM")))?;
    Ok(RowSource {
        sql: format!("\"forebay_array\"({}, {})", quoted(&label), scalar.sql),
        columns: vec![(name.to_owned(), scalar.oid)],
        takes_alias: true,
        is_value: false,
    })
}

/// The rows of several arrays, as many as the longest has elements.
fn side_by_side(arrays: &[Scalar]) -> Result<RowSource> {
    let mut columns = Vec::new();
    let mut flat = Vec::new();
    for array in arrays {
        if array.oid == oid::UNKNOWN {
            return Err(Fault::new("42725", "function unnest(unknown) is not unique"));
        }
        let element = facts::element_of(array.oid).ok_or_else(|| {
            Fault::new(
                "42883",
                format!("function unnest({}) does not exist", facts::display_name(array.oid)),
            )
        })?;
        columns.push(("unnest".to_owned(), element));
        flat.push(format!("\"forebay_flat\"({})", array.sql));
    }
    Ok(RowSource {
        sql: format!("\"forebay_abreast\"({})", flat.join(", ")),
        columns,
        takes_alias: false,
        is_value: false,
    })
}
