//! What a scenario says of itself, taken apart: what is measured, and who takes part.
//!
//! Promises: no word is lost. A sentence that begins with a system's name and a colon is about that system.

/// What a scenario says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct About<'a> {
    pub(super) measured: String,
    /// What is said of a system, in the order of the text.
    pub(super) systems: Vec<(&'a str, String)>,
}

impl<'a> About<'a> {
    /// Takes the text apart at the names of these systems.
    pub(super) fn read(text: &str, systems: impl Iterator<Item = &'a str>) -> Self {
        // Lines are broken for terminals.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut found: Vec<(usize, &str)> = systems
            .filter_map(|system| {
                let named = format!("{system}: ");
                let mut begins = text.match_indices(&named).map(|(at, _)| at);
                let begins_sentence = |at: &usize| *at == 0 || text[..*at].ends_with(". ");
                Some((begins.find(begins_sentence)?, system))
            })
            .collect();
        found.sort_unstable();
        let end = |index: usize| found.get(index).map_or(text.len(), |(at, _)| *at);
        let measured = text[..end(0)].trim().to_owned();
        let systems = found.iter().enumerate().map(|(index, (at, system))| {
            let said = &text[at + system.len() + 2..end(index + 1)];
            (*system, said.trim().to_owned())
        });
        Self {
            measured,
            systems: systems.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_about_systems_are_told_apart_from_what_is_measured() {
        let text = "Rows into a file.\nby hand: a channel, and no more: that is all. limit: nobody to\nanswer.";
        let about = About::read(text, ["limit", "by hand", "more", "absent"].into_iter());
        assert_eq!(about.measured, "Rows into a file.");
        assert_eq!(
            about.systems,
            [
                ("by hand", "a channel, and no more: that is all.".to_owned()),
                ("limit", "nobody to answer.".to_owned()),
            ]
        );
        let without = About::read("Only this: that.", ["limit"].into_iter());
        assert_eq!((&*without.measured, without.systems.len()), ("Only this: that.", 0));
        assert_eq!(About::read("", ["limit"].into_iter()).measured, "");
    }
}
