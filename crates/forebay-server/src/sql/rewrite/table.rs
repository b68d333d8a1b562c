//! PostgreSQL's column definitions in CREATE TABLE and ALTER TABLE: serial and identity columns, defaults, types of several words.
//!
//! Contract: a serial or identity column that is the primary key becomes `INTEGER PRIMARY KEY AUTOINCREMENT`, which numbers itself; one that is not
//! is refused by name. A default that is an expression gets the parentheses SQLite wants. All other types keep the name they were
//! given, by which their columns are shown. Knows nothing of tables that exist.

use sqlparser::ast::{
    AlterTableOperation, ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, DataType, Expr,
    Ident, PrimaryKeyConstraint, Statement as Tree, TableConstraint, TimezoneInfo, UnaryOperator,
};
use sqlparser::tokenizer::Token;

use super::query::strip_public;
use crate::sql::error::SqlError;

/// Rewrites the column definitions of the statement, if it has any.
pub(super) fn rewrite(tree: &mut Tree) -> Result<bool, SqlError> {
    match tree {
        Tree::CreateTable(table) => create(table),
        Tree::AlterTable(alter) => {
            let mut changed = false;
            for operation in &mut alter.operations {
                if let AlterTableOperation::AddColumn { column_def, .. } = operation {
                    if numbers_itself(column_def) {
                        return Err(not_a_key(column_def));
                    }
                    changed |= column(column_def);
                }
            }
            Ok(changed)
        }
        _ => Ok(false),
    }
}

fn create(table: &mut CreateTable) -> Result<bool, SqlError> {
    let mut changed = false;
    for constraint in &mut table.constraints {
        if let TableConstraint::ForeignKey(key) = constraint {
            changed |= strip_public(&mut key.foreign_table);
        }
    }
    for definition in &mut table.columns {
        changed |= column(definition);
        if !numbers_itself(definition) {
            continue;
        }
        if table.without_rowid {
            return Err(SqlError::unsupported(
                "a serial column in a table WITHOUT ROWID",
            ));
        }
        let key =
            take_key(definition, &mut table.constraints).ok_or_else(|| not_a_key(definition))?;
        definition.data_type = DataType::Integer(None);
        definition
            .options
            .retain(|option| !is_identity(&option.option));
        definition.options.push(key);
        definition.options.push(ColumnOptionDef {
            name: None,
            option: ColumnOption::DialectSpecific(vec![Token::make_keyword("AUTOINCREMENT")]),
        });
        changed = true;
    }
    Ok(changed)
}

fn is_identity(option: &ColumnOption) -> bool {
    matches!(
        option,
        ColumnOption::Generated {
            generation_expr: None,
            ..
        }
    )
}

fn is_serial(data_type: &DataType) -> bool {
    let name = data_type.to_string().to_ascii_lowercase();
    matches!(
        name.as_str(),
        "serial" | "bigserial" | "smallserial" | "serial2" | "serial4" | "serial8"
    )
}

fn numbers_itself(definition: &ColumnDef) -> bool {
    is_serial(&definition.data_type)
        || definition
            .options
            .iter()
            .any(|option| is_identity(&option.option))
}

fn not_a_key(definition: &ColumnDef) -> SqlError {
    SqlError::InvalidTable {
        message: format!("column \"{}\" numbers itself and is not the primary key", definition.name.value),
        hint: "SQLite numbers only an INTEGER PRIMARY KEY: make this column the primary key, or give it a plain integer type."
            .to_owned(),
    }
}

/// Takes the primary key of this column out of its own options, or out of the table's constraints.
fn take_key(
    definition: &mut ColumnDef,
    constraints: &mut Vec<TableConstraint>,
) -> Option<ColumnOptionDef> {
    let own = definition
        .options
        .iter()
        .position(|option| matches!(option.option, ColumnOption::PrimaryKey(_)));
    if let Some(own) = own {
        return Some(definition.options.remove(own));
    }
    let place = constraints.iter().position(|constraint| {
        matches!(constraint, TableConstraint::PrimaryKey(PrimaryKeyConstraint { columns, .. })
            if columns.len() == 1 && names(&columns[0].column.expr, &definition.name))
    })?;
    let TableConstraint::PrimaryKey(mut key) = constraints.remove(place) else {
        return None;
    };
    key.columns.clear();
    Some(ColumnOptionDef {
        name: key.name.take(),
        option: ColumnOption::PrimaryKey(key),
    })
}

fn names(expression: &Expr, column: &Ident) -> bool {
    matches!(expression, Expr::Identifier(name) if name.value.eq_ignore_ascii_case(&column.value))
}

/// What any column may need: parentheses around its default, and a type name that SQLite can read.
fn column(definition: &mut ColumnDef) -> bool {
    let mut changed = false;
    // SQLite reads words, then digits in parentheses, and nothing behind those.
    if let DataType::Timestamp(digits @ Some(_), zone) | DataType::Time(digits @ Some(_), zone) =
        &mut definition.data_type
        && matches!(
            zone,
            TimezoneInfo::WithTimeZone | TimezoneInfo::WithoutTimeZone
        )
    {
        *digits = None;
        changed = true;
    }
    for option in &mut definition.options {
        if let ColumnOption::ForeignKey(key) = &mut option.option {
            changed |= strip_public(&mut key.foreign_table);
        }
        if let ColumnOption::Default(default) = &mut option.option
            && !stands_alone(default)
        {
            let inner = std::mem::replace(default, Expr::value(sqlparser::ast::Value::Null));
            *default = Expr::Nested(Box::new(inner));
            changed = true;
        }
    }
    changed
}

/// Whether SQLite takes the default without parentheses.
fn stands_alone(default: &Expr) -> bool {
    match default {
        Expr::Value(_) | Expr::Nested(_) | Expr::Identifier(_) => true,
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => matches!(**expr, Expr::Value(_)),
        // CURRENT_TIMESTAMP and its like are read as functions without parentheses.
        Expr::Function(function) => {
            matches!(function.args, sqlparser::ast::FunctionArguments::None)
        }
        _ => false,
    }
}
