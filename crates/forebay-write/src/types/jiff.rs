//! Of `jiff`: `Timestamp`, and the dates and times of `jiff::civil`. No `Zoned`: a database keeps no zone; its `timestamp()` is a
//! moment.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};

use super::given;
use crate::Value;
use crate::from_value::taken;
use crate::moment;

given! {
    [] Timestamp: moment => Value::Timestamp(moment.into());
    [] Date: date => Value::Text(date.to_string());
    [] Time: time => Value::Text(time.to_string());
    [] DateTime: at => Value::Text(format!("{} {}", at.date(), at.time()));
}

taken! {
    Timestamp, "a moment": Value::Text(text) => moment::parse(text).and_then(|moment| moment.try_into().ok()),
        Value::Timestamp(moment) => (*moment).try_into().ok();
    Date, "a date": Value::Text(text) => text.parse().ok();
    Time, "a time of the day": Value::Text(text) => text.parse().ok();
    DateTime, "a date and a time": Value::Text(text) => text.parse().ok();
}
