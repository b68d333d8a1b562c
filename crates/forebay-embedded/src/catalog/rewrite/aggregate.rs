//! Aggregates, window functions, and arrays made from the rows of a query.
//!
//! Refuses by name whatever is not listed here.

use postgres_types::Type;
use sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, OrderByExpr,
    Query, WindowType,
};

use super::super::error::CatalogError;
use super::super::types::{Family, array_type, family, is_registered};
use super::expression::element_text;
use super::piece::Piece;
use super::query::direction;
use super::translator::Translator;

impl Translator {
    /// Translates a call if it is one of an aggregate or window function.
    pub(super) fn aggregate(&mut self, name: &str, function: &Function) -> Result<Option<Piece>, CatalogError> {
        let ranks = matches!(name, "row_number" | "rank" | "dense_rank");
        if !ranks
            && !matches!(
                name,
                "count" | "min" | "max" | "sum" | "string_agg" | "array_agg" | "bool_and" | "bool_or" | "every"
            )
        {
            return Ok(None);
        }
        let refused = || CatalogError::unsupported(format!("this form of {name}"));
        let FunctionArguments::List(list) = &function.args else {
            return Err(refused());
        };
        if function.uses_odbc_syntax
            || !matches!(function.parameters, FunctionArguments::None)
            || !function.within_group.is_empty()
            || function.null_treatment.is_some()
        {
            return Err(refused());
        }
        if function.over.is_none() {
            self.aggregates_seen += 1;
            if ranks {
                return Err(CatalogError::unsupported(format!("{name} without OVER")));
            }
        }
        let mut pieces = Vec::new();
        let mut star = false;
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => {
                    pieces.push(self.expression(expression)?);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" && list.args.len() == 1 => {
                    star = true;
                }
                _ => return Err(refused()),
            }
        }
        let order = match list.clauses.as_slice() {
            [] => String::new(),
            [FunctionArgumentClause::OrderBy(terms)] => self.order(terms)?,
            _ => return Err(refused()),
        };
        let distinct = match list.duplicate_treatment {
            Some(DuplicateTreatment::Distinct) => "DISTINCT ",
            Some(DuplicateTreatment::All) | None => "",
        };
        let filter = match &function.filter {
            Some(condition) => format!(" FILTER (WHERE {})", self.condition(condition)?),
            None => String::new(),
        };
        let over = self.over(function)?;
        let tail = format!("{filter}{over}");
        let mut pieces = pieces.into_iter();
        let piece = match (name, pieces.next(), pieces.next(), pieces.next()) {
            ("count", None, None, None) if star => Piece::new(format!("count(*){tail}"), Type::INT8),
            ("count", Some(one), None, None) => {
                let one = self.coerce(one, &Type::TEXT)?;
                Piece::new(format!("count({distinct}{}{order}){tail}", one.sql), Type::INT8)
            }
            ("min" | "max", Some(one), None, None) => {
                let one = if one.kind == Type::UNKNOWN {
                    Piece {
                        kind: Type::TEXT,
                        ..self.coerce(one, &Type::TEXT)?
                    }
                } else {
                    one
                };
                match family(&one.kind) {
                    Family::Integer | Family::Float | Family::Text if !is_registered(&one.kind) => {
                        Piece::new(format!("{name}({}){tail}", one.sql), one.kind)
                    }
                    _ => return Err(CatalogError::unsupported(format!("{name} of {}", one.kind))),
                }
            }
            ("sum", Some(one), None, None) if family(&one.kind) == Family::Integer && !is_registered(&one.kind) => {
                Piece::new(format!("sum({distinct}{}){tail}", one.sql), Type::INT8)
            }
            ("bool_and" | "every", Some(one), None, None) if one.kind == Type::BOOL => {
                Piece::new(format!("min({}){tail}", one.sql), Type::BOOL)
            }
            ("bool_or", Some(one), None, None) if one.kind == Type::BOOL => {
                Piece::new(format!("max({}){tail}", one.sql), Type::BOOL)
            }
            ("string_agg", Some(one), Some(separator), None) if distinct.is_empty() => {
                let (one, separator) = (self.text_of(one)?, self.text_of(separator)?);
                Piece::new(
                    format!("group_concat({}, {}{order}){tail}", one.sql, separator.sql),
                    Type::TEXT,
                )
            }
            ("array_agg", Some(one), None, None) => {
                let (shown, kind) = array_element(one)?;
                // No row at all is NULL, not an empty array.
                let array = format!(
                    "forebay_array(nullif(json_group_array({distinct}{}{order}){tail}, '[]'))",
                    shown.sql
                );
                Piece::new(array, kind)
            }
            ("row_number" | "rank" | "dense_rank", None, None, None) if !star => {
                Piece::new(format!("{name}(){tail}"), Type::INT8)
            }
            _ => return Err(refused()),
        };
        Ok(Some(piece))
    }

    fn order(&mut self, terms: &[OrderByExpr]) -> Result<String, CatalogError> {
        let mut written = Vec::new();
        for term in terms {
            let key = self.expression(&term.expr)?;
            written.push(direction(&key.sql, term)?);
        }
        Ok(if written.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", written.join(", "))
        })
    }

    fn over(&mut self, function: &Function) -> Result<String, CatalogError> {
        match &function.over {
            None => Ok(String::new()),
            Some(WindowType::WindowSpec(window)) if window.window_name.is_none() && window.window_frame.is_none() => {
                let mut partition = Vec::new();
                for expression in &window.partition_by {
                    partition.push(self.expression(expression)?.sql);
                }
                let order = self.order(&window.order_by)?;
                let partition = if partition.is_empty() {
                    String::new()
                } else {
                    format!("PARTITION BY {}", partition.join(", "))
                };
                Ok(format!(" OVER ({partition}{order})"))
            }
            Some(_) => Err(CatalogError::unsupported("OVER with a frame or a named window")),
        }
    }

    /// `ARRAY(SELECT …)`: the rows in their order; no rows make an empty array.
    pub(super) fn array_of_query(&mut self, query: &Query) -> Result<Piece, CatalogError> {
        let (text, columns) = self.query(query)?;
        let [column] = columns.as_slice() else {
            return Err(CatalogError::Syntax {
                message: "subquery must return only one column".to_owned(),
            });
        };
        let rows = self.fresh_name();
        let element = Piece::new(
            format!("\"{rows}\".\"{}\"", column.name.replace('"', "\"\"")),
            column.kind.clone(),
        );
        let (shown, kind) = array_element(element)?;
        Ok(Piece::new(
            format!(
                "(SELECT forebay_array(json_group_array({})) FROM ({text}) AS \"{rows}\")",
                shown.sql
            ),
            kind,
        ))
    }
}

fn array_element(piece: Piece) -> Result<(Piece, Type), CatalogError> {
    let shown = element_text(&piece)?;
    let element = if piece.kind == Type::UNKNOWN {
        Type::TEXT
    } else {
        piece.kind
    };
    // Elements of reg… types are shown by name at once: an array is text.
    let element = if is_registered(&element) { Type::TEXT } else { element };
    let kind = array_type(&element).ok_or_else(|| CatalogError::unsupported(format!("an array of {element}")))?;
    Ok((shown, kind))
}
