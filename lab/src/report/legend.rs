//! The legend of a plot: a button a system, by which the script shows it alone.

use super::look::Looks;
use super::markup::escape;
use crate::measurement::Series;

/// A level is named with its case, which no axis has.
pub(super) fn legend(systems: &[&str], levels: &[&Series], looks: &Looks) -> String {
    let item = |system: &str, key: String, name: &str| {
        let (own, name) = (looks.of(system).own_class(), escape(name));
        format!("<li><button type=\"button\" data-system=\"{own}\">{key}{name}</button></li>\n")
    };
    let systems = systems
        .iter()
        .map(|system| item(system, looks.of(system).key(), system));
    let levels = levels.iter().map(|level| {
        let name = format!("{}, {}", level.system, level.case);
        item(&level.system, looks.of(&level.system).level_key(), &name)
    });
    let items: String = systems.chain(levels).collect();
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}
