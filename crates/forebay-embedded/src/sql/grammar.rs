//! Parses one statement into a syntax tree, by PostgreSQL's grammar.
//!
//! Promises: never overflows the stack, however deep the text nests or chains: what is deeper than SQLite itself would take is
//! [`SqlError::TooComplex`]. What the grammar does not know is a syntax error with its place. Knows nothing of schemas.

use std::ops::ControlFlow;

use sqlparser::ast::{DataType, DateTimeField, Expr, Ident, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

use super::dialect::ForebayDialect;
use super::error::SqlError;
use super::lexer::{self, Kind, TOKENS_MAX};
use super::sequence_options;
use super::walk::{Look, walk};

/// Parentheses, subqueries and prefix operators inside one another.
const NESTING_MAX: usize = 250;
/// Operators and keywords in one run without a comma, summed over the parentheses they stand in: no tree is deeper. SQLite refuses
/// expressions deeper than 1,000, and each level of `a = 1 OR …` takes two.
const CHAIN_MAX: usize = 2_500;

/// The statement's tree, or PostgreSQL's syntax error.
pub(crate) fn parse(text: &str) -> Result<Option<Statement>, SqlError> {
    let spaced = spaced(text)?;
    let text = spaced.as_deref().unwrap_or(text);
    let unlocked = row_locks(text)?;
    let text = unlocked.as_deref().unwrap_or(text);
    let ordered = sequence_options::ordered(text)?;
    let text = ordered.as_deref().unwrap_or(text);
    let parsed = tokens_of(text).and_then(|tokens| {
        Parser::new(&ForebayDialect)
            .with_recursion_limit(NESTING_MAX)
            .with_tokens_with_locations(tokens)
            .parse_statements()
    });
    match parsed {
        Ok(mut statements) if statements.len() <= 1 => match statements.pop() {
            Some(statement) if text.contains('\'') => {
                refuse_strings_as_names(text, &statement).map(|()| Some(statement))
            }
            statement => Ok(statement),
        },
        Ok(_) => Err(SqlError::unsupported("several statements where one is wanted")),
        Err(ParserError::RecursionLimitExceeded) => Err(too_deep()),
        Err(ParserError::ParserError(message) | ParserError::TokenizerError(message)) => {
            match beyond_the_parser(text, &message)? {
                Some(what) => Err(SqlError::unsupported(what)),
                None => Err(syntax_error(text, &message)),
            }
        }
    }
}

/// The tokens of a statement. ALTER VIEW is read as ALTER TABLE, which PostgreSQL takes for views too; ONLY before a table, of which
/// none has descendants, is left out; TRIM without characters is given the space that it means; `:=` is `=>`; TABLE name is the query
/// that it stands for; `==`, which PostgreSQL knows as the name of an operator and no more, is one; strings one behind the other are one.
fn tokens_of(text: &str) -> Result<Vec<TokenWithSpan>, ParserError> {
    let mut tokens = Tokenizer::new(&ForebayDialect, text).tokenize_with_location()?;
    let is = |token: &TokenWithSpan, keyword| matches!(&token.token, Token::Word(word) if word.keyword == keyword);
    let mut words = tokens
        .iter_mut()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)));
    if words.next().is_some_and(|first| is(first, Keyword::ALTER))
        && let Some(second) = words.next().filter(|second| is(second, Keyword::VIEW))
    {
        second.token = Token::make_keyword("TABLE");
    }
    let mut words = tokens
        .iter_mut()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)));
    if words.next().is_some_and(|first| is(first, Keyword::DROP))
        && words.next().is_some_and(|second| is(second, Keyword::INDEX))
        && let Some(third) = words.next().filter(|third| is(third, Keyword::CONCURRENTLY))
    {
        third.token = Token::Whitespace(Whitespace::Space);
    }
    for token in &mut tokens {
        if token.token == Token::DoubleEq {
            token.token = Token::CustomBinaryOperator("==".to_owned());
        }
    }
    override_system_values(&mut tokens);
    let mut before: Option<Keyword> = None;
    let mut read = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            read.push(token);
            continue;
        }
        let keyword = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
            _ => None,
        };
        let from_table = matches!(before, Some(Keyword::FROM | Keyword::JOIN | Keyword::UPDATE));
        let of_trim = matches!(before, Some(Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING));
        if token.token == Token::Assignment {
            token.token = Token::RArrow;
        } else if keyword == Some(Keyword::ONLY) && from_table {
            token.token = Token::Whitespace(Whitespace::Space);
        } else if keyword == Some(Keyword::FROM) && of_trim {
            read.push(TokenWithSpan::new(
                Token::SingleQuotedString(" ".to_owned()),
                token.span,
            ));
        }
        before = keyword;
        read.push(token);
    }
    Ok(queries_of_tables(continued(read)))
}

/// Refuses a string where a name is wanted, which the parser lets stand for one.
fn refuse_strings_as_names(text: &str, statement: &Statement) -> Result<(), SqlError> {
    #[derive(Default)]
    struct Finder {
        /// The field of an EXTRACT may be a string.
        fields: usize,
        found: Option<Ident>,
    }
    impl Look for Finder {
        fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
            if let Expr::Extract {
                field: DateTimeField::Custom(name),
                ..
            } = expression
                && name.quote_style == Some('\'')
            {
                self.fields += 1;
            }
            ControlFlow::Continue(())
        }

        fn name(&mut self, name: &Ident) -> ControlFlow<()> {
            if name.quote_style != Some('\'') {
                return ControlFlow::Continue(());
            }
            if self.fields > 0 {
                self.fields -= 1;
                return ControlFlow::Continue(());
            }
            self.found = Some(name.clone());
            ControlFlow::Break(())
        }
    }
    // Its version is one.
    if matches!(statement, Statement::CreateExtension(_)) {
        return Ok(());
    }
    let mut finder = Finder::default();
    let _ = walk(statement, &mut finder);
    match finder.found {
        None => Ok(()),
        Some(name) => Err(SqlError::Syntax {
            message: format!("syntax error at or near \"{name}\""),
            position: Some(position_of(text, name.span.start.line, name.span.start.column)),
        }),
    }
}

/// `INSERT INTO t OVERRIDING SYSTEM VALUE …` as INSERT OVERWRITE, which the parser knows and PostgreSQL does not.
fn override_system_values(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<(usize, Keyword)> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
        .map(|(place, token)| match &token.token {
            Token::Word(word) => (place, word.keyword),
            _ => (place, Keyword::NoKeyword),
        })
        .collect();
    let found = words.windows(3).position(|three| {
        matches!(&tokens[three[0].0].token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("OVERRIDING"))
            && [three[1].1, three[2].1] == [Keyword::SYSTEM, Keyword::VALUE]
    });
    let Some(found) = found else { return };
    let Some((insert, _)) = words[..found]
        .iter()
        .rev()
        .find(|(_, keyword)| *keyword == Keyword::INSERT)
    else {
        return;
    };
    for (place, _) in &words[found..found + 3] {
        tokens[*place].token = Token::Whitespace(Whitespace::Space);
    }
    let span = tokens[*insert].span;
    tokens.insert(insert + 1, TokenWithSpan::new(Token::make_keyword("OVERWRITE"), span));
}

/// The tokens with each string that goes on behind a line's end in one piece.
fn continued(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where a string stands that nothing but white space has come behind.
    let mut open = None;
    for token in tokens {
        match (&token.token, open) {
            (Token::Whitespace(_), _) => {}
            (Token::SingleQuotedString(more), Some(place)) => {
                let before: &mut TokenWithSpan = &mut out[place];
                if let Token::SingleQuotedString(text) = &mut before.token {
                    text.push_str(more);
                }
                continue;
            }
            (Token::SingleQuotedString(_), None) => open = Some(out.len()),
            _ => open = None,
        }
        out.push(token);
    }
    out
}

/// `TABLE name` where a query may begin, as `SELECT * FROM name`.
fn queries_of_tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_word = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword != Keyword::FROM);
    let mut found = Vec::new();
    let (mut first, mut before): (Option<Keyword>, Option<&Token>) = (None, None);
    for (place, token) in tokens.iter().enumerate() {
        let keyword = match &token.token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let begins = match before {
            None | Some(Token::LParen) => true,
            Some(Token::Word(word)) => match word.keyword {
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::ALL | Keyword::DISTINCT => true,
                Keyword::AS => first == Some(Keyword::CREATE),
                _ => first == Some(Keyword::INSERT),
            },
            Some(Token::RParen) => matches!(first, Some(Keyword::WITH | Keyword::INSERT)),
            Some(_) => false,
        };
        let mut behind = tokens[place + 1..]
            .iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_)));
        if keyword == Keyword::TABLE && begins && behind.next().is_some_and(is_word) {
            found.push(place);
        }
        first = first.or(Some(keyword));
        before = Some(&token.token);
    }
    if found.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 4 * found.len());
    for (place, token) in tokens.into_iter().enumerate() {
        if found.contains(&place) {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            out.extend(words.map(|word| TokenWithSpan::new(word, token.span)));
        } else {
            out.push(token);
        }
    }
    out
}

/// What of PostgreSQL's grammar stands in a text that the parser did not understand, and that it is known not to understand.
fn beyond_the_parser(text: &str, message: &str) -> Result<Option<&'static str>, SqlError> {
    const WORDS: [(&str, &str); 17] = [
        ("INCLUDING", "LIKE … INCLUDING"),
        ("EXCLUDING", "LIKE … EXCLUDING"),
        ("SYMMETRIC", "BETWEEN SYMMETRIC"),
        ("COLLATE", "COLLATE at this place"),
        ("EXCLUDE", "EXCLUDE"),
        ("CYCLE", "CYCLE"),
        ("SEARCH", "SEARCH"),
        ("TABLESAMPLE", "TABLESAMPLE"),
        ("ORDINALITY", "WITH ORDINALITY at this place"),
        ("ROWS", "ROWS FROM"),
        ("NORMALIZED", "IS NORMALIZED"),
        ("DOCUMENT", "IS DOCUMENT"),
        ("OVERRIDING", "OVERRIDING"),
        ("VARIADIC", "VARIADIC"),
        ("USING", "ORDER BY … USING"),
        ("SIMILAR", "SUBSTRING … SIMILAR"),
        ("UESCAPE", "UESCAPE"),
    ];
    if message.contains("No infix parser") {
        return Ok(Some("this sequence of operators"));
    }
    let message = message.to_ascii_uppercase();
    let found = |what: &str| message.contains(&format!("FOUND: {what} "));
    for token in lexer::tokens(text, TOKENS_MAX)? {
        if token.is_word(text, "CONFLICT") && found("WHERE") {
            return Ok(Some("a condition on the target of ON CONFLICT"));
        }
        if token.is_word(text, "CONFLICT") && found("(") {
            return Ok(Some("an expression as the target of ON CONFLICT"));
        }
        if token.is_word(text, "CURRENT") && found("OF") {
            return Ok(Some("WHERE CURRENT OF"));
        }
        if token.is_word(text, "SET") && found("[") {
            return Ok(Some("SET of an element of a column"));
        }
        if token.kind == Kind::Word
            && let Some((_, what)) = WORDS.iter().find(|(word, _)| token.is_word(text, word))
        {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// The text with a space before a sign that belongs to what follows it, where the parser would take it for a part of the operator
/// before: `a->>-1`. `None` if there is none.
fn spaced(text: &str) -> Result<Option<String>, SqlError> {
    if !text
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair[1], b'-' | b'+') && b"*/<>=~!@#%^&|`?".contains(&pair[0]))
    {
        return Ok(None);
    }
    let (mut out, mut done) = (String::with_capacity(text.len() + 8), 0);
    let mut before = None;
    for token in lexer::tokens(text, TOKENS_MAX)? {
        if token.kind == Kind::Operator
            && before == Some(token.range.start)
            && matches!(&text[token.range.clone()], "-" | "+")
        {
            out.push_str(&text[done..token.range.start]);
            out.push(' ');
            done = token.range.start;
        }
        before = (token.kind == Kind::Operator).then_some(token.range.end);
    }
    out.push_str(&text[done..]);
    Ok(Some(out))
}

/// The text with FOR NO KEY UPDATE and FOR KEY SHARE as the stronger locks that the parser knows: rows have no locks of their own
/// here, and all of these lock the same. `None` if there is none.
fn row_locks(text: &str) -> Result<Option<String>, SqlError> {
    if !text.as_bytes().windows(3).any(|part| part.eq_ignore_ascii_case(b"key")) {
        return Ok(None);
    }
    let tokens = lexer::tokens(text, TOKENS_MAX)?;
    let mut out = None;
    for place in 0..tokens.len() {
        let is = |ahead: usize, word: &str| tokens.get(place + ahead).is_some_and(|token| token.is_word(text, word));
        let words = match (is(0, "FOR"), is(1, "NO"), is(1, "KEY")) {
            (true, true, _) if is(2, "KEY") && is(3, "UPDATE") => 1..3,
            (true, _, true) if is(2, "SHARE") => 1..2,
            _ => continue,
        };
        let text = out.get_or_insert_with(|| text.to_owned());
        for token in &tokens[place + words.start..place + words.end] {
            text.replace_range(token.range.clone(), &" ".repeat(token.range.len()));
        }
    }
    Ok(out)
}

/// The tree of an expression by itself.
pub(crate) fn expression(text: &str) -> Option<Expr> {
    let mut parser = Parser::new(&ForebayDialect)
        .with_recursion_limit(NESTING_MAX)
        .try_with_sql(text)
        .ok()?;
    let expression = parser.parse_expr().ok()?;
    (parser.peek_token_ref().token == Token::EOF).then_some(expression)
}

/// A type by itself.
pub(crate) fn data_type(text: &str) -> Option<DataType> {
    let mut parser = Parser::new(&ForebayDialect)
        .with_recursion_limit(NESTING_MAX)
        .try_with_sql(text)
        .ok()?;
    let data_type = parser.parse_data_type().ok()?;
    (parser.peek_token_ref().token == Token::EOF).then_some(data_type)
}

/// The tree of a catalog query, with its literals as they were written.
pub(crate) fn parse_catalog_query(text: &str) -> Result<Option<Statement>, SqlError> {
    let statements = Parser::new(&PostgreSqlDialect {})
        .with_options(ParserOptions::new().with_unescape(false))
        .with_recursion_limit(NESTING_MAX)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements());
    match statements {
        Ok(mut statements) if statements.len() == 1 => Ok(statements.pop()),
        Err(ParserError::RecursionLimitExceeded) => Err(too_deep()),
        Ok(_) | Err(_) => Ok(None),
    }
}

fn too_deep() -> SqlError {
    SqlError::TooComplex {
        what: format!("it nests deeper than {NESTING_MAX} levels"),
    }
}

/// PostgreSQL's words for what the parser says: `Expected: …, found: X at Line: 1, Column: 8`.
fn syntax_error(text: &str, message: &str) -> SqlError {
    let place = message.rsplit_once(" at Line: ").and_then(|(before, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        let column = column.trim_end_matches(|character: char| !character.is_ascii_digit());
        Some((before, line.trim().parse().ok()?, column.trim().parse().ok()?))
    });
    let Some((before, line, column)) = place else {
        let words = message.split(", found: EOF").next().unwrap_or(message);
        let at_end = words.len() < message.len();
        return SqlError::Syntax {
            message: if at_end {
                "syntax error at end of input".to_owned()
            } else {
                format!("syntax error: {message}")
            },
            position: at_end.then(|| text.chars().count() + 1),
        };
    };
    let found = before.rsplit_once("found: ").map_or("", |(_, found)| found);
    let position = position_of(text, line, column);
    if found == "EOF" || found.is_empty() {
        return SqlError::Syntax {
            message: if found.is_empty() {
                format!("syntax error: {before}")
            } else {
                "syntax error at end of input".to_owned()
            },
            position: Some(position),
        };
    }
    SqlError::Syntax {
        message: format!("syntax error at or near \"{found}\""),
        position: Some(position),
    }
}

/// The character, counted from 1, at a line and column as the parser counts them.
pub(crate) fn position_of(text: &str, line: u64, column: u64) -> usize {
    let mut before = 0;
    for (number, content) in (1_u64..).zip(text.split('\n')) {
        if number == line {
            break;
        }
        before += content.chars().count() + 1;
    }
    before + usize::try_from(column).unwrap_or(1)
}

/// More than this and a tree is walked and dropped on a stack of its own.
const DEEP: usize = 16;
/// What the deepest tree there can be takes, generously; only what is used of it is ever memory.
const DEEP_STACK: usize = 128 << 20;

/// Runs something that walks a tree, with as much stack as the deepest tree there can be needs.
pub(crate) fn with_deep_stack<T>(depth: usize, walk: impl FnOnce() -> T) -> T {
    if depth > DEEP {
        stacker::grow(DEEP_STACK, walk)
    } else {
        walk()
    }
}

/// A tree that can be dropped wherever its owner is, however deep it is.
#[derive(Debug)]
pub(crate) struct Tree {
    depth: usize,
    /// Taken only by `drop`.
    statement: Option<Box<Statement>>,
}

impl Tree {
    pub(crate) fn new(statement: Statement, depth: usize) -> Self {
        Self {
            depth,
            statement: Some(Box::new(statement)),
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn statement(&self) -> &Statement {
        self.statement.as_deref().expect("only drop takes it")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let statement = self.statement.take();
        with_deep_stack(self.depth, || drop(statement));
    }
}

/// How deep the statement's tree is at most, judged by its tokens alone; an error if that is more than can be walked.
pub(crate) fn check_depth(source: &str, tokens: &[lexer::Token]) -> Result<usize, SqlError> {
    let mut deepest = 0;
    // One entry per open parenthesis: (its run, what of the run commas do not reset).
    let mut levels = vec![(0_usize, 0_usize)];
    let mut total = 0_usize;
    for token in tokens {
        let level = levels.last_mut().expect("the outermost level is never taken away");
        match token.kind {
            Kind::Open => {
                if levels.len() > NESTING_MAX {
                    return Err(SqlError::TooComplex {
                        what: format!("it nests deeper than {NESTING_MAX} levels"),
                    });
                }
                levels.push((1, 0));
                total += 1;
            }
            Kind::Close => {
                total -= level.0 + level.1;
                levels.pop();
                if levels.is_empty() {
                    levels.push((0, 0));
                }
            }
            Kind::Comma | Kind::Semicolon => {
                total -= level.0;
                level.0 = 0;
            }
            Kind::Word => {
                let text = token.text(source);
                if ["UNION", "INTERSECT", "EXCEPT", "EXPLAIN"]
                    .iter()
                    .any(|word| text.eq_ignore_ascii_case(word))
                {
                    level.1 += 1;
                    total += 1;
                } else if [
                    "OR", "AND", "NOT", "IS", "LIKE", "ILIKE", "GLOB", "MATCH", "REGEXP", "BETWEEN", "IN", "CASE",
                    "COLLATE", "NOTNULL", "ISNULL", "ARRAY", "AT", "OVERLAPS", "SIMILAR", "RLIKE", "INTERVAL",
                    "EXISTS", "CAST", "PRIOR", "DIV", "XOR", "OPERATOR", "DISTINCT", "BINARY",
                ]
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word))
                {
                    level.0 += 1;
                    total += 1;
                }
            }
            Kind::Operator => {
                level.0 += 1;
                total += 1;
            }
            _ => {}
        }
        deepest = deepest.max(total);
        if total > CHAIN_MAX {
            return Err(SqlError::TooComplex {
                what: format!("a chain of more than {CHAIN_MAX} operators"),
            });
        }
    }
    Ok(deepest)
}
