//! Families of cases: cases told in the same words that differ in a number, such as "10 callers" and "1,000 callers".
//!
//! Promises: a number is what a person would read as one ("10,000", "2.5", the 10 of "10ms"), not the digits of a name
//! ("p50", "v7", "0.1.0"); singular and plural are one family. Knows nothing of what was measured.

/// A case, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case<'a> {
    /// The words around the numbers: one more than there are numbers.
    words: Vec<&'a str>,
    /// The numbers, each beside how it was written.
    numbers: Vec<(f64, &'a str)>,
}

impl<'a> Case<'a> {
    /// Takes a case apart.
    pub(super) fn read(text: &'a str) -> Self {
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        let (mut words_from, mut at) = (0, 0);
        while let Some(ahead) = text[at..].find(|letter: char| letter.is_ascii_digit()) {
            let from = at + ahead;
            let length = digits(&text[from..]);
            at = from + length;
            let written = &text[from..at];
            let before = text[..from].chars().next_back();
            let is_in_a_name = before.is_some_and(|letter| letter.is_alphanumeric() || "._-".contains(letter));
            let mut after = text[at..].chars();
            let goes_on = after.next() == Some('.') && after.next().is_some_and(|letter| letter.is_ascii_digit());
            if is_in_a_name || goes_on {
                continue;
            }
            if let Ok(value) = written.replace(',', "").parse() {
                words.push(&text[words_from..from]);
                numbers.push((value, written));
                words_from = at;
            }
        }
        words.push(&text[words_from..]);
        Self { words, numbers }
    }

    /// The numbers in it.
    pub(super) fn numbers(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.numbers.iter().map(|(value, _)| *value)
    }

    /// What it shares with its family, and only with it.
    pub(super) fn family(&self) -> String {
        let words: Vec<String> = self
            .words
            .iter()
            .enumerate()
            .map(
                |(at, words)| {
                    if at == 0 { (*words).to_owned() } else { singular(words) }
                },
            )
            .collect();
        words.join("#")
    }

    /// What it shares with those of its family that differ in this number alone.
    pub(super) fn family_but_for(&self, varying: usize) -> (String, Vec<&'a str>) {
        let others = self.numbers.iter().enumerate().filter(|(at, _)| *at != varying);
        (self.family(), others.map(|(_, (_, written))| *written).collect())
    }

    /// The case with an ellipsis for this number: "window … ms". A number that comes first leaves only the words.
    pub(super) fn without(&self, varying: usize) -> String {
        let mut text = String::new();
        for (at, words) in self.words.iter().enumerate() {
            text += words;
            if let Some((_, written)) = self.numbers.get(at) {
                text += if at == varying { "…" } else { written };
            }
        }
        let text = text.trim();
        text.strip_prefix('…').unwrap_or(text).trim().to_owned()
    }
}

/// The length of the number that the text begins with: digits, perhaps thousands apart, perhaps a fraction.
fn digits(text: &str) -> usize {
    let run = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = run(0);
    while text[end..].starts_with(',') && run(end + 1) == 3 {
        end += 4;
    }
    if text[end..].starts_with('.') && run(end + 1) > 0 {
        end += 1 + run(end + 1);
    }
    end
}

/// "callers" and "caller" are one word behind a number; "ms" is not the plural of "m".
fn singular(words: &str) -> String {
    let end = words.len() - words.trim_start().len();
    let word_end = words[end..].find([' ', ',']).map_or(words.len(), |length| end + length);
    let word = &words[..word_end];
    match word.strip_suffix('s') {
        Some(single) if word.trim().chars().count() > 3 => format!("{single}{}", &words[word_end..]),
        _ => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<f64> {
        Case::read(text).numbers().collect()
    }

    #[test]
    fn numbers_are_what_a_person_reads_as_numbers() {
        assert_eq!(numbers("window 10 ms, 6,000 callers"), [10.0, 6000.0]);
        assert_eq!(numbers("1,000 rows a transaction"), [1000.0]);
        assert_eq!(
            numbers("10ms, 2.5 µs, 1,5 and 1,000,000"),
            [10.0, 2.5, 1.0, 5.0, 1_000_000.0]
        );
        assert_eq!(numbers("p50 of v7, moka 0.1.0, utf-8, a_1"), [] as [f64; 0]);
        assert_eq!(numbers("10 callers, 1 % bad"), [10.0, 1.0]);
        assert_eq!(numbers("natural"), [] as [f64; 0]);
        assert_eq!(numbers(""), [] as [f64; 0]);
        assert_eq!(numbers("½ 1 € 2"), [1.0, 2.0]);
    }

    #[test]
    fn a_family_shares_words_and_differs_in_numbers() {
        let family = |text| Case::read(text).family();
        assert_eq!(family("1 caller"), family("10,000 callers"));
        assert_eq!(family("1 client, simple"), family("50 clients, simple"));
        assert_ne!(family("10 callers"), family("10 callers, unique column"));
        assert_ne!(family("10 ms"), family("10 m"));
        assert_ne!(family("10 clients, simple"), family("10 clients, prepared"));
        let but_for = |text, varying| Case::read(text).family_but_for(varying);
        assert_eq!(
            but_for("window 2 ms, 10 callers", 0),
            but_for("window 5 ms, 10 callers", 0)
        );
        assert_ne!(
            but_for("window 2 ms, 10 callers", 0),
            but_for("window 5 ms, 20 callers", 0)
        );
        assert_eq!(
            but_for("window 2 ms, 10 callers", 1),
            but_for("window 2 ms, 20 callers", 1)
        );
    }

    #[test]
    fn an_axis_is_called_as_the_case_without_its_number() {
        assert_eq!(Case::read("10,000 callers").without(0), "callers");
        let case = Case::read("window 10 ms, 6,000 callers");
        assert_eq!(case.without(0), "window … ms, 6,000 callers");
        assert_eq!(case.without(1), "window 10 ms, … callers");
    }
}
