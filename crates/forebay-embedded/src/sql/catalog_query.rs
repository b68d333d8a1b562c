//! Tells queries of PostgreSQL's catalog from those of the client's tables.
//!
//! Contract: a query that names a catalog relation is one; so is a query that names no table at all and calls a function, or casts to a
//! type, that only the catalog can answer. Knows nothing of what the catalog holds.

use std::ops::ControlFlow;

use super::walk::{Look, walk};
use crate::sql::error::SqlError;
use crate::sql::grammar;
use crate::sql::lexer::{Kind, name_value};
use crate::sql::split::Segment;
use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, ObjectNamePart, SetExpr,
    Statement as Tree,
};

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

/// The catalog's relations that queries name without `pg_catalog.` in front.
const RELATIONS: [&str; 49] = [
    "pg_aggregate",
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_auth_members",
    "pg_authid",
    "pg_available_extensions",
    "pg_cast",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_conversion",
    "pg_database",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_extension",
    "pg_foreign_table",
    "pg_index",
    "pg_indexes",
    "pg_inherits",
    "pg_language",
    "pg_locks",
    "pg_matviews",
    "pg_namespace",
    "pg_opclass",
    "pg_operator",
    "pg_partitioned_table",
    "pg_policy",
    "pg_proc",
    "pg_publication",
    "pg_range",
    "pg_rewrite",
    "pg_roles",
    "pg_sequence",
    "pg_sequences",
    "pg_settings",
    "pg_shdescription",
    "pg_stat_activity",
    "pg_stat_user_tables",
    "pg_statistic_ext",
    "pg_tables",
    "pg_tablespace",
    "pg_timezone_names",
    "pg_trigger",
    "pg_type",
    "pg_user",
    "pg_views",
    "pg_statio_user_tables",
];

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
                || RELATIONS.contains(&name.as_str())
                || FUNCTIONS.contains(&name.as_str())
                || TYPES.contains(&name.as_str())
        })
}

fn is_catalog_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case("pg_catalog") || name.eq_ignore_ascii_case("information_schema")
}

fn is_catalog(tree: &Tree) -> bool {
    let mut relations = Relations::default();
    let _ = walk(tree, &mut relations);
    relations.catalog || (!relations.other && walk(tree, &mut NeedsCatalog::default()).is_break())
}

/// Whose relations are named.
#[derive(Default)]
struct Relations {
    catalog: bool,
    other: bool,
}

impl Look for Relations {
    fn relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if is_catalog_relation(relation) {
            self.catalog = true;
        } else {
            self.other = true;
        }
        ControlFlow::Continue(())
    }
}

fn is_catalog_relation(relation: &ObjectName) -> bool {
    let part = |index: usize| match relation.0.get(index) {
        Some(ObjectNamePart::Identifier(name)) => name.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    match relation.0.len() {
        1 => RELATIONS.contains(&part(0).as_str()),
        length => is_catalog_schema(&part(length - 2)),
    }
}

/// Whether queries mean a relation of the catalog by this bare name.
pub(super) fn is_relation_of_the_catalog(name: &str) -> bool {
    RELATIONS.contains(&name)
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
