//! What many cases came to, in a table by operator and function, and a short list of differences.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::PathBuf,
};

use crate::{
    connection::Answer,
    shrink::Judged,
    verdict::{self, KINDS, Verdict},
};

/// Differences of one kind, of the same operators and functions.
#[derive(Debug)]
struct Group {
    count: usize,
    /// How many of them were made small.
    shrunk: usize,
    /// The shortest, in words.
    example: String,
    example_size: usize,
}

/// Before others that look like a group are counted with it unseen.
const SHRUNK_BEFORE_LIKENESS: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Summary {
    cases: usize,
    kinds: [usize; KINDS.len()],
    symbols: BTreeMap<String, [usize; KINDS.len()]>,
    refusals: BTreeMap<String, (usize, String)>,
    groups: BTreeMap<String, Group>,
    /// By what a difference looks like before it is made small.
    likenesses: BTreeMap<String, String>,
    extras: BTreeMap<String, (usize, String)>,
    states: BTreeMap<String, (usize, String)>,
    unordered: Vec<String>,
    /// Errors that both have: many of one kind are cases made badly.
    errors: BTreeMap<String, (usize, String)>,
}

impl Summary {
    pub(crate) fn differences(&self) -> usize {
        self.kinds[KINDS.len() - 1]
    }

    pub(crate) fn count(&mut self, judged: &Judged) {
        let symbols: BTreeSet<&str> = judged
            .case
            .symbols()
            .into_iter()
            .filter(|symbol| !symbol.is_empty())
            .collect();
        let kind = judged.verdict.kind();
        self.cases += 1;
        self.kinds[kind] += 1;
        let told = statement(judged);
        match &judged.verdict {
            Verdict::Refused(message) => {
                let entry = self
                    .refusals
                    .entry(normalized(message))
                    .or_insert_with(|| (0, told.clone()));
                entry.0 += 1;
            }
            Verdict::Extra | Verdict::BothError { .. } => {
                let error = |answers: &[Answer]| {
                    let failure = answers.iter().find_map(|answer| answer.error.as_ref());
                    failure.map_or_else(String::new, |failure| {
                        format!("{} {}", failure.sqlstate, normalized(&failure.message))
                    })
                };
                let (postgres, forebay) = (error(&judged.postgres), error(&judged.forebay));
                let (table, key) = match &judged.verdict {
                    Verdict::Extra => (&mut self.extras, postgres),
                    Verdict::BothError { same_state: true } => (&mut self.errors, postgres),
                    _ => (&mut self.states, format!("{postgres}  |  {forebay}")),
                };
                table.entry(key).or_insert_with(|| (0, told.clone())).0 += 1;
            }
            Verdict::Unordered => self.unordered.push(told.clone()),
            _ => {}
        }
        // Which of several it was that was refused is not known.
        if matches!(judged.verdict, Verdict::Refused(_)) && symbols.len() > 1 {
            return;
        }
        for symbol in symbols {
            self.symbols.entry(symbol.to_owned()).or_default()[kind] += 1;
        }
    }

    /// Whether a difference looks like one that is known well enough.
    pub(crate) fn is_known(&mut self, judged: &Judged) -> bool {
        let key = likeness(judged);
        if let Some(known) = self.likenesses.get(&key)
            && let Some(group) = self.groups.get_mut(known)
        {
            group.count += 1;
            self.cases += 1;
            self.kinds[judged.verdict.kind()] += 1;
            return true;
        }
        let Verdict::Different(how) = &judged.verdict else {
            return false;
        };
        let symbols = judged.case.symbols();
        let found = self.groups.iter_mut().find(|(name, group)| {
            let is_one_of_ours = name
                .strip_suffix(how.as_str())
                .is_some_and(|rest| symbols.contains(&rest.trim_end_matches(": ")));
            group.shrunk >= SHRUNK_BEFORE_LIKENESS && is_one_of_ours
        });
        if let Some((_, group)) = found {
            group.count += 1;
            self.cases += 1;
            self.kinds[judged.verdict.kind()] += 1;
            return true;
        }
        false
    }

    /// A difference, as it was and as it is now that it is small; `data` are the rows it is about.
    pub(crate) fn difference(&mut self, original: &Judged, shrunk: &Judged, data: &str) {
        self.count(shrunk);
        let name = likeness(shrunk);
        let size = statement(shrunk).len();
        let example = described(original, shrunk, data);
        self.likenesses.insert(likeness(original), name.clone());
        let group = self.groups.entry(name).or_insert_with(|| Group {
            count: 0,
            shrunk: 0,
            example: example.clone(),
            example_size: size,
        });
        group.count += 1;
        group.shrunk += 1;
        if size < group.example_size {
            group.example = example;
            group.example_size = size;
        }
    }

    /// One of those that are too many to be made small.
    pub(crate) fn difference_unseen(&mut self, judged: &Judged) {
        let Verdict::Different(how) = &judged.verdict else {
            return;
        };
        let how = how.clone();
        self.cases += 1;
        self.kinds[judged.verdict.kind()] += 1;
        let example = described(judged, judged, "");
        let group = self
            .groups
            .entry(format!("not made small: {how}"))
            .or_insert_with(|| Group {
                count: 0,
                shrunk: 0,
                example_size: example.len(),
                example,
            });
        group.count += 1;
    }

    pub(crate) fn line(&self) -> String {
        let kinds: Vec<String> = KINDS
            .iter()
            .zip(self.kinds)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        format!(
            "{} cases: {}; {} groups of differences",
            self.cases,
            kinds.join(", "),
            self.groups.len()
        )
    }

    /// The differences, the most frequent first.
    pub(crate) fn differences_shown(&self, max: usize) -> String {
        let mut groups: Vec<(&String, &Group)> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        let mut shown = String::new();
        for (name, group) in groups.iter().take(max) {
            let _ = writeln!(shown, "== {} x {name}\n{}", group.count, group.example);
        }
        if groups.len() > max {
            let _ = writeln!(shown, "… and {} groups more", groups.len() - max);
        }
        shown
    }

    pub(crate) fn written(&self) -> String {
        let mut text = format!("{}\n\n# By operator, function and form\n\n", self.line());
        let _ = writeln!(text, "{:<64} {}", "", KINDS.map_to_header());
        let mut rows: Vec<_> = self.symbols.iter().collect();
        rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[KINDS.len() - 1]));
        for (symbol, counts) in rows {
            let counts: Vec<String> = counts
                .iter()
                .map(|count| {
                    format!(
                        "{:>11}",
                        if *count == 0 {
                            "·".to_owned()
                        } else {
                            count.to_string()
                        }
                    )
                })
                .collect();
            let _ = writeln!(text, "{symbol:<64} {}", counts.join(" "));
        }
        for (title, table) in [
            ("Refused", &self.refusals),
            ("Values where PostgreSQL knows no such thing", &self.extras),
            ("Errors with different states", &self.states),
            ("Errors with the same state", &self.errors),
        ] {
            let _ = writeln!(text, "\n# {title}\n");
            let mut rows: Vec<_> = table.iter().collect();
            rows.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
            for (message, (count, example)) in rows {
                let _ = writeln!(text, "{count:>7}  {message}\n         e.g. {example}");
            }
        }
        let _ = writeln!(
            text,
            "\n# Left open by the order of evaluation\n\n{}",
            self.unordered.join("\n")
        );
        let _ = writeln!(text, "\n# Differences\n\n{}", self.differences_shown(usize::MAX));
        text
    }

    /// Writes it all to `target/differential/NAME`.
    pub(crate) fn write(&self, name: &str) -> PathBuf {
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = target
            .parent()
            .expect("the target folder has one above it")
            .join("differential");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, self.written()).unwrap();
        path
    }
}

trait Header {
    fn map_to_header(&self) -> String;
}

impl Header for &[&str] {
    fn map_to_header(&self) -> String {
        self.iter()
            .map(|kind| format!("{kind:>11}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The symbols and the kind of difference: what makes two differences one.
fn likeness(judged: &Judged) -> String {
    let Verdict::Different(how) = &judged.verdict else {
        return String::new();
    };
    let mut symbols: Vec<&str> = judged
        .case
        .symbols()
        .into_iter()
        .filter(|symbol| !symbol.is_empty())
        .collect();
    symbols.dedup();
    let symbols = if symbols.is_empty() {
        "literal".to_owned()
    } else {
        symbols.join(" · ")
    };
    format!("{symbols}: {how}")
}

/// Without what differs from case to case.
fn normalized(message: &str) -> String {
    let mut normal = String::new();
    let mut in_quotes = false;
    for letter in message.chars().take(160) {
        match letter {
            '\'' => {
                in_quotes = !in_quotes;
                normal.push_str(if in_quotes { "'…" } else { "'" });
            }
            _ if in_quotes => {}
            '0'..='9' if normal.ends_with('N') => {}
            '0'..='9' => normal.push('N'),
            other => normal.push(other),
        }
    }
    normal
}

pub(crate) fn statement(judged: &Judged) -> String {
    let shown: Vec<String> = judged
        .case
        .sends()
        .into_iter()
        .map(|send| {
            let mut text = send.rendered.sql;
            for (index, parameter) in send.rendered.parameters.iter().enumerate() {
                let value = match &parameter.value {
                    None => "NULL".to_owned(),
                    Some(bytes) if parameter.is_binary => format!("{bytes:02x?}"),
                    Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
                };
                let declared = if parameter.declared == 0 {
                    String::new()
                } else {
                    format!(" {}", crate::facts::type_name(parameter.declared))
                };
                let _ = write!(text, "  ${}{declared} = {value}", index + 1);
            }
            if send.is_simple {
                text.push_str("  (simple)");
            }
            if send.binary {
                text.push_str("  (binary)");
            }
            text
        })
        .collect();
    shown.join("; ")
}

fn described(original: &Judged, shrunk: &Judged, data: &str) -> String {
    let mut text = format!("    {}\n    statement   {}\n", shrunk.case.origin, statement(shrunk));
    if !data.is_empty() {
        let _ = writeln!(text, "    rows        {data}");
    }
    let ordered = shrunk.case.ordered();
    for ((postgres, forebay), ordered) in shrunk.postgres.iter().zip(&shrunk.forebay).zip(ordered) {
        if verdict::of(postgres, forebay, ordered) != Verdict::Equal {
            let _ = writeln!(
                text,
                "    PostgreSQL  {}\n    Forebay     {}",
                verdict::shown(postgres),
                verdict::shown(forebay)
            );
            break;
        }
    }
    let whole = statement(original);
    if whole != statement(shrunk) {
        let _ = writeln!(text, "    was         {whole}");
    }
    text
}
