//! The words that PostgreSQL knows in dates, times and intervals, and the names of fields. A word counts up to its tenth letter.

/// What a word says in a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Epoch,
    Infinity,
    MinusInfinity,
    AllBalls,
    Month(i32),
    DayOfWeek(i32),
    Am,
    Pm,
    AnnoDomini,
    BeforeChrist,
    IsoTime,
    DaylightSaving,
    Ignored,
    Unit(Unit),
}

/// A part of a moment or of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Zone,
    ZoneHour,
    ZoneMinute,
    DayOfWeek,
    DayOfYear,
    IsoDayOfWeek,
    IsoYear,
    Julian,
}

fn significant(word: &str) -> &str {
    word.get(..10).unwrap_or(word)
}

/// The keyword of a date or time.
pub(crate) fn keyword(word: &str) -> Option<Keyword> {
    Some(match significant(word) {
        "now" => Keyword::Now,
        "today" => Keyword::Today,
        "tomorrow" => Keyword::Tomorrow,
        "yesterday" => Keyword::Yesterday,
        "epoch" => Keyword::Epoch,
        "infinity" | "+infinity" => Keyword::Infinity,
        "-infinity" => Keyword::MinusInfinity,
        "allballs" => Keyword::AllBalls,
        "jan" | "january" => Keyword::Month(1),
        "feb" | "february" => Keyword::Month(2),
        "mar" | "march" => Keyword::Month(3),
        "apr" | "april" => Keyword::Month(4),
        "may" => Keyword::Month(5),
        "jun" | "june" => Keyword::Month(6),
        "jul" | "july" => Keyword::Month(7),
        "aug" | "august" => Keyword::Month(8),
        "sep" | "sept" | "september" => Keyword::Month(9),
        "oct" | "october" => Keyword::Month(10),
        "nov" | "november" => Keyword::Month(11),
        "dec" | "december" => Keyword::Month(12),
        "sun" | "sunday" => Keyword::DayOfWeek(0),
        "mon" | "monday" => Keyword::DayOfWeek(1),
        "tue" | "tues" | "tuesday" => Keyword::DayOfWeek(2),
        "wed" | "wednesday" | "weds" => Keyword::DayOfWeek(3),
        "thu" | "thur" | "thurs" | "thursday" => Keyword::DayOfWeek(4),
        "fri" | "friday" => Keyword::DayOfWeek(5),
        "sat" | "saturday" => Keyword::DayOfWeek(6),
        "am" => Keyword::Am,
        "pm" => Keyword::Pm,
        "ad" => Keyword::AnnoDomini,
        "bc" => Keyword::BeforeChrist,
        "t" => Keyword::IsoTime,
        "dst" => Keyword::DaylightSaving,
        "at" | "on" => Keyword::Ignored,
        "d" => Keyword::Unit(Unit::Day),
        "dow" => Keyword::Unit(Unit::DayOfWeek),
        "doy" => Keyword::Unit(Unit::DayOfYear),
        "h" => Keyword::Unit(Unit::Hour),
        "isodow" => Keyword::Unit(Unit::IsoDayOfWeek),
        "isoyear" => Keyword::Unit(Unit::IsoYear),
        "j" | "jd" | "julian" => Keyword::Unit(Unit::Julian),
        "m" => Keyword::Unit(Unit::Month),
        "mm" => Keyword::Unit(Unit::Minute),
        "s" => Keyword::Unit(Unit::Second),
        "y" => Keyword::Unit(Unit::Year),
        _ => return None,
    })
}

/// The unit of an interval or of a field.
pub(crate) fn unit(word: &str) -> Option<Unit> {
    Some(match significant(word) {
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "timezone" => Unit::Zone,
        "timezone_h" => Unit::ZoneHour,
        "timezone_m" => Unit::ZoneMinute,
        _ => return None,
    })
}
