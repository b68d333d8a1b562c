//! Walks through a syntax tree.
//!
//! Promises: the visitor sees what sqlparser's own traversal shows it. That traversal is generic, and would be compiled anew for each type of
//! visitor; here it is compiled once, for the one visitor that passes on to the real one. Does not know what is looked for.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, Query, Select, TableFactor, Visit, VisitMut, Visitor, VisitorMut};

/// What looks at a tree, from the root down.
pub(crate) trait Look {
    /// Before what is inside the query.
    fn query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// After what is inside the query.
    fn query_end(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Before what is inside.
    fn table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Before what is inside the expression.
    fn expression(&mut self, _: &Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Each name.
    fn name(&mut self, _: &Ident) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Has it look at the tree, until it breaks off.
pub(crate) fn walk(tree: &impl Visit, look: &mut dyn Look) -> ControlFlow<()> {
    tree.visit(&mut Looking(look))
}

/// Has it look at each expression of the tree, the outer ones first, until it breaks off.
pub(crate) fn walk_expressions(tree: &impl Visit, mut look: impl FnMut(&Expr) -> ControlFlow<()>) -> ControlFlow<()> {
    walk(tree, &mut Expressions(&mut look))
}

/// Changes each expression of the tree, the outer ones first.
pub(crate) fn change_expressions(tree: &mut impl VisitMut, mut change: impl FnMut(&mut Expr)) {
    let _ = tree.visit(&mut Changing {
        expression: &mut change,
        select: &mut |_| {},
    });
}

/// Changes each SELECT of the tree, the outer ones first.
pub(crate) fn change_selects(tree: &mut impl VisitMut, mut change: impl FnMut(&mut Select)) {
    let _ = tree.visit(&mut Changing {
        expression: &mut |_| {},
        select: &mut change,
    });
}

struct Expressions<'a>(&'a mut dyn FnMut(&Expr) -> ControlFlow<()>);

impl Look for Expressions<'_> {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        (self.0)(expression)
    }
}

struct Looking<'a>(&'a mut dyn Look);

impl Visitor for Looking<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.query(query)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.0.query_end(query)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.0.table_factor(factor)
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.0.expression(expression)
    }

    fn pre_visit_ident(&mut self, name: &Ident) -> ControlFlow<()> {
        self.0.name(name)
    }
}

struct Changing<'a> {
    expression: &'a mut dyn FnMut(&mut Expr),
    select: &'a mut dyn FnMut(&mut Select),
}

impl VisitorMut for Changing<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        (self.expression)(expression);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        (self.select)(select);
        ControlFlow::Continue(())
    }
}
