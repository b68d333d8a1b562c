//! `value operator ANY (…)` and `ALL (…)`, of a subquery or an array.
//!
//! Promises: PostgreSQL's three-valued answers. In a definition, where SQLite takes no subquery, the elements of a constant array are
//! written out, and those of another are looked at by a function.

use forebay_pg_values::{Owned, Type};
use sqlparser::ast::{BinaryOperator, Expr};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::scalar::{CONSTANT_BYTES_MAX, Form, Scalar};
use super::scope::Scope;
use super::sqlite_text::{quoted, type_label};
use super::syntax::unnested;
use super::{resolve, types};
use crate::sql::facts::{self, Context, Oid, oid};

/// Tests of more elements than this are not written one behind the other: SQLite refuses expressions deeper than 1,000.
const TESTS_MAX: usize = 500;

/// What stands before the quantifier, and which one it is.
struct Quantified<'a> {
    left: Scalar,
    operator: &'a str,
    any: bool,
}

impl Compiler<'_> {
    pub(super) fn quantified(
        &mut self,
        value: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
        any: bool,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let name = operator.to_string();
        let name = if name == "!=" { "<>" } else { name.as_str() };
        if let Expr::Subquery(query) = unnested(right) {
            return match (name, any) {
                ("=", true) => self.in_subquery(value, query, false, scope),
                ("<>", false) => self.in_subquery(value, query, true, scope),
                _ => {
                    let left = self.expression(value, scope)?;
                    let compiled = self.one_column_or(query, scope)?;
                    let item = Scalar::new("\"c1\"", compiled.columns[0].kind.oid);
                    let test = self.binary(name, left.clone(), item)?;
                    Ok(Scalar::truth(three_valued(&test.sql, &format!("({})", compiled.sql), any)).with_parts([&left]))
                }
            };
        }
        let left = self.expression(value, scope)?;
        let array = self.expression(right, scope)?;
        let element = match facts::element_of(array.oid) {
            Some(element) => element,
            None if array.oid == oid::UNKNOWN => {
                let chosen = resolve::operator(name, Some(left.oid), oid::UNKNOWN)?;
                if resolve::is_polymorphic(chosen.right) {
                    left.oid
                } else {
                    chosen.right
                }
            }
            None => {
                return Err(Fault::new("42809", "op ANY/ALL (array) requires array on right side"));
            }
        };
        let array_type = facts::array_of(element)
            .filter(|array| types::has_values(*array))
            .ok_or_else(|| Fault::unsupported(format!("an array of {}", facts::display_name(element))))?;
        let array = self.convert_type(array, array_type, Context::Implicit)?;
        let quantified = Quantified {
            left,
            operator: name,
            any,
        };
        if let Some(items) = array.constant_elements()
            && let Some(test) = self.each_of(&quantified, items, element)?
        {
            return Ok(test);
        }
        if let Some(definition) = scope.definition() {
            return self.by_function(quantified, &array, element, definition);
        }
        let null_is_false = self.null_is_false;
        let Quantified { left, .. } = quantified;
        let item = Scalar::new("\"value\"", element);
        let source = format!("json_each(\"forebay_flat\"({}))", array.sql);
        let sql = match (name, any) {
            ("=", true) | ("<>", false) => {
                let not = if any { "" } else { "NOT " };
                let (left, item) = self.comparable("=", left.clone(), item)?;
                let test = format!("({} {not}IN (SELECT {} FROM {source}))", left.compared(), item.sql);
                if array.not_null || (null_is_false && any) {
                    test
                } else {
                    format!("(CASE WHEN {} IS NOT NULL THEN {test} END)", array.sql)
                }
            }
            _ => {
                let test = self.binary(name, left.clone(), item)?;
                let test = three_valued(&test.sql, &source, any);
                let asked = asked_for(&left).map_or_else(String::new, |asked| format!("{asked} AND "));
                format!("(CASE WHEN {asked}{} IS NOT NULL THEN {test} END)", array.sql)
            }
        };
        Ok(Scalar::truth(sql).with_parts([&left, &array]))
    }

    /// The tests of known elements, written out; `None` if that would be too long.
    fn each_of(&mut self, quantified: &Quantified<'_>, items: Vec<Scalar>, element: Oid) -> Result<Option<Scalar>> {
        let Quantified { left, operator, any } = quantified;
        if let ("=", true) | ("<>", false) = (*operator, *any)
            && !items.is_empty()
        {
            let (left, probe) = self.comparable("=", left.clone(), Scalar::new("", element))?;
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                list.push(self.convert_type(item, probe.oid, Context::Implicit)?.sql);
            }
            let not = if *any { "" } else { "NOT " };
            let sql = format!("({} {not}IN ({}))", left.compared(), list.join(", "));
            return Ok(Some(Scalar::truth(sql).with_parts([&left])));
        }
        if items.len() > TESTS_MAX || items.len() * left.sql.len() > CONSTANT_BYTES_MAX {
            return Ok(None);
        }
        let mut tests = Vec::with_capacity(items.len());
        for item in items {
            tests.push(self.binary(operator, left.clone(), item)?);
        }
        let sql = if tests.is_empty() {
            // Of nothing, any is false and all is true, but the operator must be there.
            self.binary(operator, left.clone(), Scalar::new("NULL", element))?;
            let answer = if *any { "0" } else { "1" };
            match asked_for(left) {
                Some(asked) => format!("(CASE WHEN {asked} THEN {answer} END)"),
                None => answer.to_owned(),
            }
        } else {
            let tests: Vec<&str> = tests.iter().map(|test| test.sql.as_str()).collect();
            format!("({})", tests.join(if *any { " OR " } else { " AND " }))
        };
        Ok(Some(Scalar::truth(sql).with_parts([left]).with_parts(&tests)))
    }

    /// A function that looks at each element, which does for what values of one type are compared by.
    fn by_function(
        &mut self,
        quantified: Quantified<'_>,
        array: &Scalar,
        element: Oid,
        definition: &str,
    ) -> Result<Scalar> {
        let Quantified { left, operator, any } = quantified;
        if array.form == Form::Constant(Owned::Null) {
            return Ok(Scalar {
                oid: oid::BOOL,
                ..Scalar::null()
            });
        }
        let quantifier = if any { "ANY" } else { "ALL" };
        let refused = || Fault::unsupported(format!("{operator} {quantifier} of this array in a {definition}"));
        if !matches!(operator, "=" | "<>" | "<" | "<=" | ">" | ">=") {
            return Err(refused());
        }
        let (left, item) = self.comparable(operator, left, Scalar::new("", element))?;
        let kind = Type::from_oid(element)
            .filter(|_| item.oid == element)
            .ok_or_else(refused)?;
        Ok(Scalar::truth(format!(
            "\"forebay_quantified\"({}, {}, {}, {}, {})",
            quoted(&type_label(kind)),
            quoted(operator),
            i32::from(any),
            left.sql,
            array.sql
        ))
        .with_parts([&left, array]))
    }
}

/// An array without elements asks for no value; one that cannot be had is an error all the same. Always true, if there is anything to ask.
fn asked_for(left: &Scalar) -> Option<String> {
    left.sql
        .contains('(')
        .then(|| format!("({} IS NULL) IS NOT NULL", left.sql))
}

/// Whether the test holds for any of the rows, or for all: NULL where it is not certain.
fn three_valued(test: &str, source: &str, any: bool) -> String {
    if any {
        format!(
            "(SELECT CASE WHEN max(m) = 1 THEN 1 WHEN count(*) > count(m) THEN NULL ELSE 0 END FROM (SELECT {test} AS m FROM {source}))"
        )
    } else {
        format!(
            "(SELECT CASE WHEN min(m) = 0 THEN 0 WHEN count(*) > count(m) THEN NULL ELSE 1 END FROM (SELECT {test} AS m FROM {source}))"
        )
    }
}
