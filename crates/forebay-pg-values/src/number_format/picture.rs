//! A format picture, taken apart: its items in order, and what they say together about the number.

use crate::{Result, ValueError};

/// A pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    LocalPoint,
    Exponent,
    FillMode,
    Group,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman,
    SmallRoman,
    PlusMinus,
    Sign,
    Ordinal,
    SmallOrdinal,
    Multiply,
    /// C and SP, which do nothing.
    Nothing,
}

/// A pattern, or a character that stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Pattern(Pattern),
    Character(char),
}

/// Each spelling; of those that begin alike the first counts.
const SPELLINGS: &[(&str, Pattern)] = &[
    (",", Pattern::Comma),
    (".", Pattern::Point),
    ("0", Pattern::Zero),
    ("9", Pattern::Nine),
    ("B", Pattern::Blank),
    ("C", Pattern::Nothing),
    ("D", Pattern::LocalPoint),
    ("EEEE", Pattern::Exponent),
    ("FM", Pattern::FillMode),
    ("G", Pattern::Group),
    ("L", Pattern::Currency),
    ("MI", Pattern::Minus),
    ("PL", Pattern::Plus),
    ("PR", Pattern::Brackets),
    ("RN", Pattern::Roman),
    ("SG", Pattern::PlusMinus),
    ("SP", Pattern::Nothing),
    ("S", Pattern::Sign),
    ("TH", Pattern::Ordinal),
    ("V", Pattern::Multiply),
    ("b", Pattern::Blank),
    ("c", Pattern::Nothing),
    ("d", Pattern::LocalPoint),
    ("eeee", Pattern::Exponent),
    ("fm", Pattern::FillMode),
    ("g", Pattern::Group),
    ("l", Pattern::Currency),
    ("mi", Pattern::Minus),
    ("pl", Pattern::Plus),
    ("pr", Pattern::Brackets),
    ("rn", Pattern::SmallRoman),
    ("sg", Pattern::PlusMinus),
    ("sp", Pattern::Nothing),
    ("s", Pattern::Sign),
    ("th", Pattern::SmallOrdinal),
    ("v", Pattern::Multiply),
];

/// Where the sign of S goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignPlace {
    Before,
    After,
}

/// What the items say together.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one of PostgreSQL's flags")]
pub(super) struct Description {
    /// Digits before the point.
    pub(super) pre: usize,
    /// Digits behind it.
    pub(super) post: usize,
    /// Nines behind V.
    pub(super) multiplied: usize,
    /// Whether there is an S, and where its sign goes.
    pub(super) sign_place: Option<SignPlace>,
    /// How many digits stood before S.
    pub(super) pre_at_sign: usize,
    /// One more than the digits before the first 0; 0 if there is none before the point.
    pub(super) zero_start: usize,
    /// The digits up to the last 0.
    pub(super) zero_end: usize,
    pub(super) point: bool,
    pub(super) zero: bool,
    pub(super) blank: bool,
    pub(super) fill_mode: bool,
    pub(super) brackets: bool,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) roman: bool,
    pub(super) multiply: bool,
    pub(super) scientific: bool,
}

fn wrong(message: &str) -> ValueError {
    ValueError::new("42601", message)
}

impl Description {
    fn digit(&mut self) {
        if self.point {
            self.post += 1;
        } else {
            self.pre += 1;
        }
    }

    fn add(&mut self, pattern: Pattern) -> Result<()> {
        if self.scientific && pattern != Pattern::Exponent {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        let signed = self.sign_place.is_some();
        match pattern {
            Pattern::Nine => {
                if self.brackets {
                    return Err(wrong("\"9\" must be ahead of \"PR\""));
                }
                if self.multiply {
                    self.multiplied += 1;
                } else {
                    self.digit();
                }
            }
            Pattern::Zero => {
                if self.brackets {
                    return Err(wrong("\"0\" must be ahead of \"PR\""));
                }
                if !self.zero && !self.point {
                    self.zero = true;
                    self.zero_start = self.pre + 1;
                }
                self.digit();
                self.zero_end = self.pre + self.post;
            }
            Pattern::Blank => self.blank |= self.pre == 0 && self.post == 0 && !self.zero,
            Pattern::Point | Pattern::LocalPoint => {
                if self.point {
                    return Err(wrong("multiple decimal points"));
                }
                if self.multiply {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.point = true;
            }
            Pattern::FillMode => self.fill_mode = true,
            Pattern::Sign => {
                if signed {
                    return Err(wrong("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.brackets {
                    return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                if self.point {
                    self.sign_place = Some(SignPlace::After);
                } else {
                    self.sign_place = Some(SignPlace::Before);
                    self.pre_at_sign = self.pre;
                }
            }
            Pattern::Minus if signed => return Err(wrong("cannot use \"S\" and \"MI\" together")),
            Pattern::Minus => self.minus = true,
            Pattern::Plus if signed => return Err(wrong("cannot use \"S\" and \"PL\" together")),
            Pattern::Plus => self.plus = true,
            Pattern::PlusMinus if signed => return Err(wrong("cannot use \"S\" and \"SG\" together")),
            Pattern::PlusMinus => (self.plus, self.minus) = (true, true),
            Pattern::Brackets => {
                if signed || self.plus || self.minus {
                    return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.brackets = true;
            }
            Pattern::Roman | Pattern::SmallRoman => self.roman = true,
            Pattern::Multiply => {
                if self.point {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.multiply = true;
            }
            Pattern::Exponent => {
                if self.scientific {
                    return Err(wrong("cannot use \"EEEE\" twice"));
                }
                let others = [
                    self.blank,
                    self.fill_mode,
                    signed,
                    self.brackets,
                    self.minus,
                    self.plus,
                    self.roman,
                ];
                if others.contains(&true) || self.multiply {
                    return Err(wrong("\"EEEE\" is incompatible with other formats")
                        .with_detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
                }
                self.scientific = true;
            }
            Pattern::Comma
            | Pattern::Group
            | Pattern::Currency
            | Pattern::Ordinal
            | Pattern::SmallOrdinal
            | Pattern::Nothing => {}
        }
        Ok(())
    }
}

/// Takes a picture apart.
pub(super) fn parse(picture: &str) -> Result<(Vec<Item>, Description)> {
    let mut items = Vec::with_capacity(picture.len());
    let mut description = Description::default();
    let mut rest = picture;
    while let Some(first) = rest.chars().next() {
        if let Some((spelling, pattern)) = SPELLINGS.iter().find(|(spelling, _)| rest.starts_with(spelling)) {
            description.add(*pattern)?;
            items.push(Item::Pattern(*pattern));
            rest = &rest[spelling.len()..];
        } else if first == '"' {
            rest = quoted(&rest[1..], &mut items);
        } else {
            // Outside of quotes a backslash counts only before one.
            let character = if rest.starts_with("\\\"") { '"' } else { first };
            rest = &rest[if rest.starts_with("\\\"") { 2 } else { first.len_utf8() }..];
            items.push(Item::Character(character));
        }
    }
    Ok((items, description))
}

/// Takes what is quoted as it stands, up to the closing quote or the end; gives what follows.
fn quoted<'a>(text: &'a str, items: &mut Vec<Item>) -> &'a str {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            // A backslash quotes the next character, if there is one.
            '\\' => items.push(Item::Character(characters.next().unwrap_or('\\'))),
            other => items.push(Item::Character(other)),
        }
    }
    characters.as_str()
}
