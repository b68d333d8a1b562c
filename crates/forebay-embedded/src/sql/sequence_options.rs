//! Options of sequences, which PostgreSQL takes in any order, in the order that the parser knows.
//!
//! Promises: a text of the same meaning, or the text as it is. The name given to the sequence of an identity column is left out where it is the
//! one that PostgreSQL would choose; any other stays, and the parser refuses it.

use super::error::SqlError;
use super::identifier::{cut, made_of};
use super::lexer::{self, Kind, TOKENS_MAX, Token, name_value};

/// The text with its options in order; `None` if it has none.
pub(super) fn ordered(text: &str) -> Result<Option<String>, SqlError> {
    let has = |word: &[u8]| {
        text.as_bytes()
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
    };
    if !has(b"sequence") && !has(b"identity") {
        return Ok(None);
    }
    let tokens = lexer::tokens(text, TOKENS_MAX)?;
    let is = |place: usize, word: &str| tokens.get(place).is_some_and(|token| token.is_word(text, word));
    if is(0, "CREATE") && is(1, "SEQUENCE") {
        let first = (2..tokens.len()).find(|place| rank(text, &tokens, *place).is_some());
        let end = tokens
            .iter()
            .position(|token| token.kind == Kind::Semicolon)
            .unwrap_or(tokens.len());
        return Ok(first.map(|first| in_order(text, &tokens, first, end, None)));
    }
    if !is(0, "CREATE") && !is(0, "ALTER") {
        return Ok(None);
    }
    if is(0, "ALTER") && is(1, "TABLE") {
        return Ok(of_altered_column(text, &tokens));
    }
    let table = tokens
        .iter()
        .position(|token| token.kind == Kind::Open)
        .and_then(|open| tokens.get(open.checked_sub(1)?));
    let table = table.and_then(|token| name_value(token.kind, token.text(text)));
    let (mut depth, mut column) = (0, None::<String>);
    for (place, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open if is(place.wrapping_sub(1), "IDENTITY") => {
                let close = (place..tokens.len()).find(|place| tokens[*place].kind == Kind::Close);
                let name = table
                    .as_ref()
                    .zip(column.as_ref())
                    .map(|(table, column)| made_of(&cut(table.clone()), &cut(column.clone()), "seq"));
                // One of them is enough for a table: PostgreSQL's own tools write no second.
                return Ok(close.map(|close| in_order(text, &tokens, place + 1, close, name.as_deref())));
            }
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        let begins = matches!(token.kind, Kind::Open | Kind::Comma) && depth == 1;
        if begins && let Some(next) = tokens.get(place + 1) {
            column = name_value(next.kind, next.text(text));
        }
    }
    Ok(None)
}

/// `ALTER TABLE t ALTER c ADD GENERATED … AS IDENTITY (…)`, whose sequence is `t_c_seq` as well.
fn of_altered_column(text: &str, tokens: &[Token]) -> Option<String> {
    let is = |place: usize, word: &str| tokens.get(place).is_some_and(|token| token.is_word(text, word));
    let name = |place: usize| {
        tokens
            .get(place)
            .and_then(|token| name_value(token.kind, token.text(text)))
    };
    let identity = (0..tokens.len())
        .find(|place| is(*place, "IDENTITY") && tokens.get(place + 1).is_some_and(|next| next.kind == Kind::Open))?;
    let close = (identity..tokens.len()).find(|place| tokens[*place].kind == Kind::Close)?;
    let add = (0..identity).rfind(|place| is(*place, "ADD") && is(place + 1, "GENERATED"))?;
    let alter = (2..add).rfind(|place| is(*place, "ALTER"))?;
    let chosen = name(alter - 1)
        .zip(name(add - 1))
        .map(|(table, column)| made_of(&cut(table), &cut(column), "seq"));
    Some(in_order(text, tokens, identity + 2, close, chosen.as_deref()))
}

/// Where the option that begins with this word stands in the parser's order.
fn rank(text: &str, tokens: &[Token], place: usize) -> Option<usize> {
    const ORDER: [&str; 8] = [
        "AS",
        "INCREMENT",
        "MINVALUE",
        "MAXVALUE",
        "START",
        "CACHE",
        "CYCLE",
        "OWNED",
    ];
    let of = |place: usize| {
        let token = tokens.get(place)?;
        ORDER.iter().position(|word| token.is_word(text, word))
    };
    if tokens[place].is_word(text, "NO") {
        return of(place + 1);
    }
    // NO belongs to what follows it.
    let negated = place > 0 && tokens[place - 1].is_word(text, "NO");
    of(place).filter(|_| !negated)
}

fn in_order(text: &str, tokens: &[Token], first: usize, end: usize, name: Option<&str>) -> String {
    let mut starts: Vec<usize> = (first..end)
        .filter(|place| rank(text, tokens, *place).is_some())
        .collect();
    let lead_end = starts.first().copied().unwrap_or(end);
    starts.push(end);
    let of = |from: usize, to: usize| {
        let stop = if to > from {
            tokens[to - 1].range.end
        } else {
            tokens[from].range.start
        };
        &text[tokens[from].range.start..stop]
    };
    // SEQUENCE NAME x, which only an identity column has.
    let lead = match (&tokens[first..lead_end], name) {
        ([word, second, schema @ .., last], Some(name))
            if word.is_word(text, "SEQUENCE")
                && second.is_word(text, "NAME")
                && match schema {
                    [] => true,
                    [schema, dot] => schema.is_word(text, "PUBLIC") && dot.kind == Kind::Dot,
                    _ => false,
                }
                && name_value(last.kind, last.text(text)).as_deref() == Some(name) =>
        {
            ""
        }
        ([], _) => "",
        _ => of(first, lead_end),
    };
    let mut options: Vec<(usize, &str)> = starts
        .windows(2)
        .filter_map(|pair| Some((rank(text, tokens, pair[0])?, of(pair[0], pair[1]))))
        .collect();
    options.sort_by_key(|(rank, _)| *rank);
    let options: Vec<&str> = options.into_iter().map(|(_, option)| option).collect();
    let from = tokens.get(first).map_or(text.len(), |token| token.range.start);
    let rest = tokens.get(end).map_or(text.len(), |token| token.range.start);
    format!("{}{lead} {} {}", &text[..from], options.join(" "), &text[rest..])
}

#[cfg(test)]
mod tests {
    use super::ordered;

    fn words(text: &str) -> Option<String> {
        let ordered = ordered(text).unwrap()?;
        Some(ordered.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn options_come_in_the_order_that_the_parser_knows() {
        assert_eq!(
            words("CREATE SEQUENCE s START WITH 1 NO CYCLE INCREMENT BY 20").unwrap(),
            "CREATE SEQUENCE s INCREMENT BY 20 START WITH 1 NO CYCLE"
        );
        assert_eq!(words("CREATE SEQUENCE s"), None);
        assert_eq!(words("SELECT 'identity'"), None);
    }

    #[test]
    fn only_the_name_that_postgresql_would_choose_is_left_out() {
        assert_eq!(
            words("CREATE TABLE \"t\" (a int, \"id\" int GENERATED ALWAYS AS IDENTITY (sequence name \"t_id_seq\" START 5 INCREMENT 1), b int)").unwrap(),
            "CREATE TABLE \"t\" (a int, \"id\" int GENERATED ALWAYS AS IDENTITY ( INCREMENT 1 START 5 ), b int)"
        );
        assert_eq!(
            words("ALTER TABLE public.t ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME public.t_id_seq START WITH 1 INCREMENT BY 1)").unwrap(),
            "ALTER TABLE public.t ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY ( INCREMENT BY 1 START WITH 1 )"
        );
        let other = "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME mine START 5))";
        assert!(words(other).unwrap().contains("SEQUENCE NAME mine"));
    }
}
