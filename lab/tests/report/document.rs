//! Reads a page as strictly as its makers could wish: every tag closed in order, every attribute quoted, every `&` an entity.
//!
//! A browser forgives; this does not, so that what a result holds cannot change what the page is.

/// Elements that have no end.
const EMPTY: [&str; 5] = ["meta", "br", "link", "img", "input"];
/// Elements whose text is not markup.
const TEXT_ONLY: [&str; 2] = ["style", "script"];

/// An element's start.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// The text right inside, until the first tag.
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.attribute("class")
            .is_some_and(|classes| classes.split(' ').any(|one| one == class))
    }
}

/// All elements of the page, in order; panics where it is not well-formed.
pub(crate) fn read(page: &str) -> Vec<Element> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").expect("it is HTML");
    let mut open: Vec<String> = Vec::new();
    let mut elements: Vec<Element> = Vec::new();
    while let Some((text, behind)) = rest.split_once('<') {
        let text = plain(text);
        if let (Some(last), true) = (elements.last_mut(), last_was_start(page, rest)) {
            last.text = text;
        }
        let (tag, after) = behind.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "before {after:.80}");
            continue;
        }
        let is_closed = tag.ends_with('/');
        let element = start(tag.trim_end_matches('/'));
        let name = element.name.clone();
        elements.push(element);
        if TEXT_ONLY.contains(&&*name) {
            let end = format!("</{name}>");
            let (_, after) = rest.split_once(&end).expect("it ends");
            rest = after;
        } else if !is_closed && !EMPTY.contains(&&*name) {
            open.push(name);
        }
    }
    assert_eq!(open, [] as [&str; 0], "all is closed");
    elements
}

/// Whether what comes before `rest` is a start tag: its text is the element's own.
fn last_was_start(page: &str, rest: &str) -> bool {
    let before = &page[..page.len() - rest.len()];
    let tag = before.rfind('<').map(|at| &before[at..]);
    tag.is_some_and(|tag| !tag.starts_with("</") && !tag.ends_with("/>") && tag.ends_with('>'))
}

fn start(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
    assert!(
        name.bytes().all(|letter| letter.is_ascii_alphanumeric()),
        "an element called {name:?}"
    );
    let mut attributes = Vec::new();
    rest = rest.trim();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let key = &rest[..end];
        assert!(
            key.bytes()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'B'),
            "an attribute called {key:?} in <{tag}>"
        );
        let value = match rest[end..].strip_prefix("=\"") {
            Some(quoted) => {
                let (value, after) = quoted.split_once('"').expect("a quote ends");
                rest = after.trim_start();
                plain(value)
            }
            None => {
                assert!(!rest[end..].starts_with('='), "{key} is not quoted in <{tag}>");
                rest = rest[end..].trim_start();
                String::new()
            }
        };
        attributes.push((key.to_owned(), value));
    }
    Element {
        name: name.to_owned(),
        attributes,
        text: String::new(),
    }
}

/// The text that was escaped.
fn plain(text: &str) -> String {
    assert!(!text.contains('>'), "a bare > in {text:.80}");
    let mut plain = String::new();
    let mut parts = text.split('&');
    plain += parts.next().unwrap_or_default();
    for part in parts {
        let (entity, after) = part
            .split_once(';')
            .unwrap_or_else(|| panic!("a bare & before {part:.40}"));
        plain += match entity {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            "#39" => "'",
            _ => panic!("an unknown entity {entity:.40}"),
        };
        plain += after;
    }
    plain
}
