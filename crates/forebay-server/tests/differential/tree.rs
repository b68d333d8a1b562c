//! A statement as a tree of text, so that parts of it can be left out, exchanged and put in the place of others.
//!
//! Promises: a tree renders to the statement and its parameters, numbered in the order in which they stand there. Does not
//! know SQL: a node's type is what the generator meant it to be, which PostgreSQL may see otherwise.

/// A type's OID; 0 where there is none.
pub(crate) type Oid = u32;

/// What may be done with a node when a statement is shrunk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// An expression made of others. `loose`: made of operators, so that it needs parentheses in other company.
    Expression { loose: bool },
    /// An expression of one piece.
    Leaf,
    /// A parameter; the text of the node is its literal for the simple protocol.
    Parameter(Parameter),
    /// What can be left out.
    Optional,
    /// A query or a piece of one: stays where it is.
    Clause,
}

/// A value sent apart from the statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// The type that Parse declares; 0 leaves it to the server.
    pub(crate) declared: Oid,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) is_binary: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    Node(Node),
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) shape: Shape,
    pub(crate) oid: Oid,
    /// The operator, function or form it stands for, with its types: what results are counted under.
    pub(crate) symbol: String,
    pub(crate) parts: Vec<Part>,
}

/// A statement as it is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rendered {
    pub(crate) sql: String,
    pub(crate) parameters: Vec<Parameter>,
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Node> for Part {
    fn from(node: Node) -> Self {
        Self::Node(node)
    }
}

impl Node {
    pub(crate) fn new(shape: Shape, oid: Oid, symbol: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            shape,
            oid,
            symbol: symbol.into(),
            parts,
        }
    }

    pub(crate) fn expression(oid: Oid, symbol: impl Into<String>, parts: Vec<Part>) -> Self {
        Self::new(Shape::Expression { loose: false }, oid, symbol, parts)
    }

    pub(crate) fn loose(oid: Oid, symbol: impl Into<String>, parts: Vec<Part>) -> Self {
        Self::new(Shape::Expression { loose: true }, oid, symbol, parts)
    }

    pub(crate) fn leaf(oid: Oid, text: impl Into<String>) -> Self {
        Self::new(Shape::Leaf, oid, "", vec![Part::Text(text.into())])
    }

    pub(crate) fn optional(symbol: &str, parts: Vec<Part>) -> Self {
        Self::new(Shape::Optional, 0, symbol, parts)
    }

    pub(crate) fn clause(symbol: &str, parts: Vec<Part>) -> Self {
        Self::new(Shape::Clause, 0, symbol, parts)
    }

    pub(crate) fn is_expression(&self) -> bool {
        matches!(self.shape, Shape::Expression { .. } | Shape::Leaf | Shape::Parameter(_))
    }

    pub(crate) fn is_loose(&self) -> bool {
        self.shape == Shape::Expression { loose: true }
    }

    /// As an operand that keeps together whatever stands beside it.
    pub(crate) fn in_parentheses(self) -> Vec<Part> {
        if self.is_loose() {
            vec!["(".into(), self.into(), ")".into()]
        } else {
            vec![self.into()]
        }
    }

    /// With parameters apart, or, for the simple protocol, with their literals in their places.
    pub(crate) fn rendered(&self, with_parameters: bool) -> Rendered {
        let mut rendered = Rendered::default();
        self.render(with_parameters, &mut rendered);
        rendered
    }

    fn render(&self, with_parameters: bool, into: &mut Rendered) {
        if let (Shape::Parameter(parameter), true) = (&self.shape, with_parameters) {
            into.parameters.push(parameter.clone());
            into.sql.push_str(&format!("${}", into.parameters.len()));
            return;
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => into.sql.push_str(text),
                Part::Node(node) => node.render(with_parameters, into),
            }
        }
    }

    /// The symbols of all nodes in it, outermost first.
    pub(crate) fn symbols(&self) -> Vec<&str> {
        let mut symbols = Vec::new();
        self.visit(&mut |node| {
            if !node.symbol.is_empty() {
                symbols.push(node.symbol.as_str());
            }
        });
        symbols
    }

    pub(crate) fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Self)) {
        see(self);
        for part in &self.parts {
            if let Part::Node(node) = part {
                node.visit(see);
            }
        }
    }

    /// The ways to every node, outermost first.
    pub(crate) fn paths(&self) -> Vec<Vec<usize>> {
        let mut paths = vec![Vec::new()];
        for (index, part) in self.parts.iter().enumerate() {
            if let Part::Node(node) = part {
                for mut path in node.paths() {
                    path.insert(0, index);
                    paths.push(path);
                }
            }
        }
        paths
    }

    pub(crate) fn at(&self, path: &[usize]) -> &Self {
        match path {
            [] => self,
            [first, rest @ ..] => match &self.parts[*first] {
                Part::Node(node) => node.at(rest),
                Part::Text(_) => unreachable!("paths lead to nodes"),
            },
        }
    }

    /// This tree with other parts in the place of that node.
    pub(crate) fn with(&self, path: &[usize], parts: Vec<Part>) -> Self {
        match path {
            [] => Self::clause("", parts),
            [first, rest @ ..] => {
                let mut changed = self.clone();
                if rest.is_empty() {
                    changed.parts.splice(*first..=*first, parts);
                } else if let Part::Node(node) = &self.parts[*first] {
                    changed.parts[*first] = Part::Node(node.with(rest, parts));
                }
                changed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_where_they_stand_and_parts_are_exchanged() {
        let parameter = |value: &str| {
            let parameter = Parameter {
                declared: 23,
                value: Some(value.into()),
                is_binary: false,
            };
            Node::new(Shape::Parameter(parameter), 23, "", vec![format!("'{value}'").into()])
        };
        let sum = Node::loose(
            23,
            "+",
            vec![parameter("7").into(), " + ".into(), parameter("8").into()],
        );
        let statement = Node::clause("", vec!["SELECT ".into(), sum.into(), " AS x".into()]);
        let rendered = statement.rendered(true);
        assert_eq!(rendered.sql, "SELECT $1 + $2 AS x");
        assert_eq!(rendered.parameters[1].value.as_deref(), Some(b"8".as_slice()));
        assert_eq!(statement.rendered(false).sql, "SELECT '7' + '8' AS x");
        assert_eq!(statement.paths(), [vec![], vec![1], vec![1, 0], vec![1, 2]]);
        let without = statement.with(&[1, 0], vec![Node::leaf(23, "1").into()]).rendered(true);
        assert_eq!(
            (without.sql.as_str(), without.parameters.len()),
            ("SELECT 1 + $1 AS x", 1)
        );
    }
}
