//! Arrays that are written out, and subscripts of arrays and of jsonb.
//!
//! Promises: an array of constants is a constant, unless it is long; all elements have one type, PostgreSQL's.

use forebay_pg_values::{Owned, Type};
use sqlparser::ast::{AccessExpr, Expr, Subscript};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::scalar::{CONSTANT_BYTES_MAX, Form, Scalar, common_kind};
use super::scope::Scope;
use super::sqlite_text::{quoted, type_label};
use super::syntax::unnested;
use super::types::{self, TypeName};
use crate::sql::facts::{self, Context, Oid, oid};

impl Compiler<'_> {
    pub(super) fn array(&mut self, elements: &[Expr], scope: &Scope<'_>) -> Result<Scalar> {
        if elements.is_empty() {
            return Err(Fault::new("42P18", "cannot determine type of empty array")
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let mut scalars = Vec::new();
        for element in elements {
            scalars.push(self.expression(element, scope)?);
        }
        let scalars = self.unify(scalars, "ARRAY")?;
        let element = scalars[0].oid;
        let (array, kind) = if facts::element_of(element).is_some() {
            (element, None)
        } else {
            let array = facts::array_of(element)
                .filter(|array| types::has_values(*array))
                .ok_or_else(|| Fault::unsupported(format!("an array of {}", facts::display_name(element))))?;
            (array, Type::from_oid(element))
        };
        let typmod = common_kind(&scalars).typmod;
        array_of(&scalars, kind, TypeName { oid: array, typmod })
    }

    /// `ARRAY[…]::type[]`: the cast is each element's own.
    pub(super) fn array_as(
        &mut self,
        elements: &[Expr],
        element: Oid,
        to: TypeName,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let nested = elements.iter().any(|inner| matches!(unnested(inner), Expr::Array(_)));
        let mut scalars = Vec::new();
        for inner in elements {
            let kind = if nested {
                to
            } else {
                TypeName {
                    oid: element,
                    typmod: to.typmod,
                }
            };
            let scalar = match unnested(inner) {
                Expr::Array(array) => self.array_as(&array.elem, element, to, scope)?,
                other => self.expression(other, scope)?,
            };
            scalars.push(self.cast_to(scalar, kind)?);
        }
        if !types::has_values(to.oid) {
            return Err(Fault::unsupported(format!(
                "an array of {}",
                facts::display_name(element)
            )));
        }
        let kind = if nested { None } else { Type::from_oid(element) };
        array_of(&scalars, kind, to)
    }

    pub(super) fn access(&mut self, root: &Expr, chain: &[AccessExpr], scope: &Scope<'_>) -> Result<Scalar> {
        let array = self.expression(root, scope)?;
        if array.oid == oid::JSONB {
            // What `#>` does: `->` takes a scalar for an array of one.
            let mut path = Vec::with_capacity(chain.len());
            for step in chain {
                let AccessExpr::Subscript(Subscript::Index { index }) = step else {
                    return Err(Fault::unsupported("this access to a part of a jsonb"));
                };
                let index = self.expression(index, scope)?;
                path.push(match index.constant_value() {
                    Some(Owned::Text(key)) => key,
                    Some(Owned::Integer(place)) => place.to_string(),
                    _ => {
                        return Err(Fault::unsupported("a subscript of jsonb that is no constant")
                            .with_hint("Use the operator ->."));
                    }
                });
            }
            let escaped = |part: &String| format!("\"{}\"", part.replace('\\', "\\\\").replace('"', "\\\""));
            let path: Vec<String> = path.iter().map(escaped).collect();
            let path = Scalar::constant(Owned::Text(format!("{{{}}}", path.join(","))), oid::UNKNOWN);
            return self.binary("#>", array, path);
        }
        let Some(element) = facts::element_of(array.oid) else {
            return Err(Fault::new(
                "42804",
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    facts::display_name(array.oid)
                ),
            ));
        };
        let mut indexes = Vec::new();
        for step in chain {
            let AccessExpr::Subscript(Subscript::Index { index }) = step else {
                return Err(Fault::unsupported("a slice of an array"));
            };
            indexes.push(self.expression_as(index, scope, oid::INT4, Context::Assignment)?);
        }
        let constants: Option<Vec<i64>> = indexes
            .iter()
            .map(|index| match &index.form {
                Form::Constant(Owned::Integer(index)) => Some(*index),
                _ => None,
            })
            .collect();
        if let (Form::Constant(Owned::Text(stored)), Some(constants), Some(kind)) =
            (&array.form, constants, Type::from_oid(element))
        {
            let value = forebay_pg_values::array::subscript(kind.kind(), stored, &constants)?;
            return Ok(Scalar {
                typmod: array.typmod,
                ..Scalar::constant(value, element)
            });
        }
        let list: Vec<&str> = indexes.iter().map(|index| index.sql.as_str()).collect();
        let label = Type::from_oid(element).map_or_else(String::new, type_label);
        let sql = format!(
            "\"forebay_subscript\"({}, {}, {})",
            quoted(&label),
            array.sql,
            list.join(", ")
        );
        Ok(Scalar {
            typmod: array.typmod,
            ..Scalar::new(sql, element)
        }
        .with_parts(indexes.iter().chain([&array])))
    }
}

/// An array of elements of one type; of none, they are arrays themselves. Constants make a constant, unless it is long.
fn array_of(elements: &[Scalar], kind: Option<Type>, array: TypeName) -> Result<Scalar> {
    let mut whole = Scalar {
        typmod: array.typmod,
        not_null: true,
        ..Scalar::new("", array.oid)
    }
    .with_parts(elements);
    let constants: Option<Vec<Owned>> = elements.iter().map(Scalar::constant_value).collect();
    if let (Some(Type::Scalar(kind)), Some(constants)) = (kind, constants) {
        let stored = forebay_pg_values::array::Array::of_elements(constants).into_stored(kind)?;
        if !matches!(&stored, Owned::Text(text) if text.len() > CONSTANT_BYTES_MAX) {
            return Ok(Scalar {
                typmod: array.typmod,
                ..Scalar::constant(stored, array.oid)
            }
            .with_parts(elements));
        }
    }
    let label = kind.map_or_else(|| "array".to_owned(), type_label);
    whole.sql = format!("\"forebay_array\"({}", quoted(&label));
    for element in elements {
        whole.sql.push_str(", ");
        whole.sql.push_str(&element.sql);
    }
    whole.sql.push(')');
    Ok(whole)
}
