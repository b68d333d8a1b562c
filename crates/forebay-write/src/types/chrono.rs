//! Of `chrono`: `DateTime` of any zone, which is a moment and comes back as `DateTime<Utc>`, and the naive dates and times.

use std::time::SystemTime;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};

use super::given;
use crate::Value;
use crate::from_value::taken;
use crate::moment;

given! {
    [Zone: TimeZone] DateTime<Zone>: at => Value::Timestamp(moment_of(&at));
    [] NaiveDate: date => Value::Text(date.to_string());
    [] NaiveTime: time => Value::Text(time.to_string());
    [] NaiveDateTime: at => Value::Text(at.to_string());
}

taken! {
    DateTime<Utc>, "a moment": Value::Text(text) => moment::parse(text).and_then(at),
        Value::Timestamp(moment) => at(*moment);
    NaiveDate, "a date": Value::Text(text) => text.parse().ok();
    NaiveTime, "a time of the day": Value::Text(text) => text.parse().ok();
    NaiveDateTime, "a date and a time": Value::Text(text) => NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").ok();
}

fn moment_of<Zone: TimeZone>(at: &DateTime<Zone>) -> SystemTime {
    // A leap second is the second after it here.
    moment::from_1970(at.timestamp(), at.timestamp_subsec_nanos()).expect("a clock shows more than chrono does")
}

/// None if it is out of the crate's range.
fn at(moment: SystemTime) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = moment::since_1970(moment);
    DateTime::from_timestamp(seconds, nanoseconds)
}
