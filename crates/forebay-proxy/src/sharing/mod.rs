//! Sharing: what clients ask at the same time travels to the server together, and each gets what it would have got alone.
//!
//! Promises: only what is *proven*, by the parser and by the catalog, to read, or to change rows of one ordinary table, and to set off
//! nothing beside; of sessions that have set the same. Whoever is on its way with few others goes alone. What fails in company is done
//! again alone, so that every error is the server's own.
//!
//! Inside: a [`unit`](unit::unit) is what a client asks in one go; its [plan](plan::Plan) says what is known of it, how it was [observed] to answer and how often ([tally]), by [facts] of
//! the catalog that are [learnt](learning), those of views and policies [followed] to their tables; sessions of one [company](company::Company) wait in a [line](line::Line), whose [pace](pace::Pace) tells who is quick, and a [carrier] takes them on [trips](trip::Trip), those of one [shape] as [one](joint), with what is
//! asked [beside]. What [rules] say of a statement comes first; by them a read may join another's [flight], by when that was [sent], or be told what was
//! told before, which a [fill] has a [filler] ask, as many [together] as wait for a connection by the same [way](filling) and take no longer for it, and which is a [recourse] where there is no connection; to which row of a table one is restricted a [restriction] says; that it has the columns its client was told is [proven](proving) once on each connection. What rules come to for a statement that nobody has asked yet is said by what they have [met]. What was asked for most before a start is [asked anew](warming).

pub(crate) mod ask;
pub(crate) mod asked;
pub(crate) mod beside;
mod bound;
pub(crate) mod carrier;
pub(crate) mod company;
mod distinct;
pub(crate) mod facts;
mod fill;
mod filler;
mod filling;
mod flight;
mod followed;
mod forms;
mod inside;
pub(crate) mod job;
pub(crate) mod joint;
pub(crate) mod known;
pub(crate) mod learning;
pub(crate) mod line;
pub(crate) mod met;
mod observed;
pub(crate) mod offer;
mod pace;
pub(crate) mod plan;
mod proving;
pub(crate) mod recourse;
pub(crate) mod restriction;
pub(crate) mod reviewed;
pub(crate) mod rules;
mod sent;
mod shape;
mod tally;
pub(crate) mod terms;
mod together;
pub(crate) mod trip;
pub(crate) mod unit;
mod warming;
