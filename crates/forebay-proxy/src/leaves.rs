//! Leaves: what a text may leave in its session.
//!
//! Promises: none for a text that by itself leaves nothing. Knows no function of the user's.

use forebay_sql::{
    ends_by_resetting_all, is_unclosed, may_leave_something, settings_named, settings_named_in_what_it_makes,
};

/// What a text may leave in its session.
#[derive(Debug)]
pub(crate) struct Leaves {
    /// Settings of the user's own that it names; none where it may set others.
    pub(crate) named: Option<Vec<String>>,
    /// The server refuses it as a whole if it says that it is no SQL, before it does anything of it.
    pub(crate) is_broken: bool,
}

impl Leaves {
    /// What this text may leave; none where it leaves nothing.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        // In other encodings what stands in quotes, and names, have other letters, and nothing else.
        let text = &*String::from_utf8_lossy(text);
        let is_clear = |name: &String| !name.contains(char::REPLACEMENT_CHARACTER);
        may_leave_something(text).then(|| Self {
            named: settings_named(text).filter(|named| named.iter().all(is_clear)),
            // Where it has a backslash it may be whole by another setting.
            is_broken: !text.contains('\\') && is_unclosed(text),
        })
    }
}

/// Whether this text, which leaves nothing, may take back what another has left: a cursor.
pub(crate) fn may_take_back(text: &[u8]) -> bool {
    has_word(text, b"close")
}

/// The settings of the user's own that functions may set which this text makes; none where it makes none.
pub(crate) fn of_what_it_makes(text: &[u8]) -> Option<Vec<String>> {
    if !has_word(text, b"create") {
        return None;
    }
    settings_named_in_what_it_makes(&String::from_utf8_lossy(text))
}

/// Whether nothing that was set is left behind this text.
pub(crate) fn resets_all(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(ends_by_resetting_all)
}

/// Whether this text, which leaves something, may prepare a statement by SQL.
pub(crate) fn may_prepare(text: &[u8]) -> bool {
    has_word(text, b"prepare")
}

/// Whether the text has this word in it, in whatever letters, or what looks like it.
pub(crate) fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}
