//! Tells queries of PostgreSQL's catalog from those of the client's tables.
//!
//! Promises: a query of the catalog's relations alone is one; so is a query that names no relation at all and calls a function, or casts to a
//! type, that only the catalog knows. One that reads a client's tables as well is not: neither side could answer it alone. Knows the names of
//! the catalog's relations, nothing of what they hold.

use std::ops::ControlFlow;

use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query, SetExpr,
    Statement as Tree, TableFactor,
};

use super::compile::syntax::{folded, name_parts};
use super::error::SqlError;
use super::grammar;
use super::lexer::{Kind, name_value};
use super::split::Segment;
use super::walk::{Look, walk};

/// Functions whose answers need the catalog. Those of the session (`version()` and its like) are not among them.
const FUNCTIONS: [&str; 30] = [
    "col_description",
    "current_schemas",
    "format_type",
    "has_column_privilege",
    "has_database_privilege",
    "has_schema_privilege",
    "has_table_privilege",
    "obj_description",
    "pg_encoding_to_char",
    "pg_function_is_visible",
    "pg_get_constraintdef",
    "pg_get_expr",
    "pg_get_indexdef",
    "pg_get_serial_sequence",
    "pg_get_triggerdef",
    "pg_get_userbyid",
    "pg_get_viewdef",
    "pg_is_other_temp_schema",
    "pg_my_temp_schema",
    "pg_relation_is_publishable",
    "pg_relation_size",
    "pg_size_pretty",
    "pg_table_is_visible",
    "pg_table_size",
    "pg_total_relation_size",
    "pg_type_is_visible",
    "shobj_description",
    "to_regclass",
    "to_regnamespace",
    "to_regtype",
];

/// Functions in FROM whose rows only the catalog knows.
const TABLE_FUNCTIONS: [&str; 3] = ["_pg_expandarray", "pg_get_keywords", "pg_partition_ancestors"];

/// Types whose values are names of what only the catalog knows.
const TYPES: [&str; 9] = [
    "regclass",
    "regtype",
    "regnamespace",
    "regproc",
    "regprocedure",
    "regrole",
    "oid",
    "name",
    "oidvector",
];

/// The tree of a catalog query (`Some(None)` if no grammar knows it), or `None` for any other statement.
pub(super) fn catalog_query(script: &str, segment: &Segment, text: &str) -> Result<Option<Option<Tree>>, SqlError> {
    let first = &segment.tokens[0];
    let asks = first.kind == Kind::Open
        || ["SELECT", "WITH", "VALUES", "TABLE"]
            .iter()
            .any(|word| first.is_word(script, word));
    if !asks || !could_be(script, segment) {
        return Ok(None);
    }
    let Some(tree) = grammar::parse_catalog_query(text)? else {
        let qualified = segment.tokens.windows(2).any(|pair| {
            pair[1].kind == Kind::Dot
                && name_value(pair[0].kind, pair[0].text(script)).is_some_and(|schema| is_catalog_schema(&schema))
        });
        return Ok(qualified.then_some(None));
    };
    // A query that writes (a WITH clause around an INSERT) is not asked of the catalog.
    if !matches!(&tree, Tree::Query(query) if !matches!(*query.body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_)))
    {
        return Ok(None);
    }
    Ok(is_catalog(&tree).then_some(Some(tree)))
}

/// A cheap look, so that other statements are not parsed twice.
fn could_be(script: &str, segment: &Segment) -> bool {
    segment
        .tokens
        .iter()
        .filter_map(|token| name_value(token.kind, token.text(script)))
        .any(|name| {
            let name = name.to_ascii_lowercase();
            is_catalog_schema(&name)
                || is_relation_of_the_catalog(&name)
                || FUNCTIONS.contains(&name.as_str())
                || TABLE_FUNCTIONS.contains(&name.as_str())
                || TYPES.contains(&name.as_str())
        })
}

fn is_catalog_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case("pg_catalog") || name.eq_ignore_ascii_case("information_schema")
}

fn is_catalog(tree: &Tree) -> bool {
    let mut names = CommonTables::default();
    let _ = walk(tree, &mut names);
    let mut relations = Relations {
        common_tables: names.0,
        ..Relations::default()
    };
    let _ = walk(tree, &mut relations);
    match (relations.catalog, relations.tables) {
        (true, others) => !others,
        (false, true) => false,
        (false, false) => !relations.functions && walk(tree, &mut NeedsCatalog::default()).is_break(),
    }
}

/// The names of WITH.
#[derive(Default)]
struct CommonTables(Vec<String>);

impl Look for CommonTables {
    fn query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(tables.map(|table| folded(&table.alias.name)));
        ControlFlow::Continue(())
    }
}

/// What FROM names.
#[derive(Default)]
struct Relations {
    common_tables: Vec<String>,
    /// Relations of the catalog.
    catalog: bool,
    /// Tables and views of clients.
    tables: bool,
    functions: bool,
}

impl Look for Relations {
    fn table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table {
                args: Some(_), name, ..
            }
            | TableFactor::Function { name, .. } => {
                let last = name_parts(name).and_then(|mut parts| parts.pop());
                if last.is_some_and(|name| TABLE_FUNCTIONS.contains(&name.as_str())) {
                    self.catalog = true;
                } else {
                    self.functions = true;
                }
            }
            TableFactor::Table { name, .. } => match name_parts(name).as_deref() {
                Some([name]) if self.common_tables.contains(name) => {}
                Some([name]) if is_relation_of_the_catalog(name) => self.catalog = true,
                Some([.., schema, _]) if is_catalog_schema(schema) => self.catalog = true,
                _ => self.tables = true,
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether queries mean a relation of the catalog by this bare name.
pub(super) fn is_relation_of_the_catalog(name: &str) -> bool {
    name.starts_with("pg_") && crate::catalog::has_relation(None, name)
}

#[derive(Default)]
struct NeedsCatalog {
    /// Casts to regclass and calls of `pg_get_serial_sequence` that are to come and only name a sequence.
    sequences: usize,
}

impl Look for NeedsCatalog {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.sequences += names_sequence(expression);
        let needs = match expression {
            Expr::Function(function) if self.sequences > 0 && is_called(function, "pg_get_serial_sequence") => {
                self.sequences -= 1;
                false
            }
            Expr::Function(Function { name, .. }) => name.0.last().is_some_and(
                |last| matches!(last, ObjectNamePart::Identifier(name) if FUNCTIONS.contains(&name.value.to_ascii_lowercase().as_str())),
            ),
            Expr::Cast { data_type: DataType::Regclass, .. } if self.sequences > 0 => {
                self.sequences -= 1;
                false
            }
            Expr::Cast { data_type: DataType::Regclass, .. } => true,
            Expr::Cast { data_type: DataType::Custom(name, _), .. } => name.0.last().is_some_and(
                |last| matches!(last, ObjectNamePart::Identifier(name) if TYPES.contains(&name.value.to_ascii_lowercase().as_str())),
            ),
            _ => false,
        };
        if needs {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// In how many words `nextval('…'::regclass)`, `setval(pg_get_serial_sequence(…), …)` and their like, which the compiler knows, name a
/// sequence.
fn names_sequence(expression: &Expr) -> usize {
    let Expr::Function(function) = expression else {
        return 0;
    };
    let FunctionArguments::List(list) = &function.args else {
        return 0;
    };
    let known = ["nextval", "currval", "setval"];
    if !known.iter().any(|known| is_called(function, known)) {
        return 0;
    }
    let of = |named: &Expr| matches!(named, Expr::Function(inner) if is_called(inner, "pg_get_serial_sequence"));
    match list.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Cast {
            data_type: DataType::Regclass,
            expr,
            ..
        }))) => 1 + usize::from(of(expr)),
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(named))) => of(named).into(),
        _ => 0,
    }
}

fn is_called(function: &Function, name: &str) -> bool {
    function.name.0.last().is_some_and(
        |last| matches!(last, ObjectNamePart::Identifier(called) if called.value.eq_ignore_ascii_case(name)),
    )
}
