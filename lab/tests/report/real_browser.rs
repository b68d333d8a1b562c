//! The page as its readers see it. `cargo xtask test` runs this as a step of its own, where a browser is installed.

use std::path::Path;

use serde_json::Value;

use crate::browser::Browser;
use crate::synthetic_page;

const LAYOUT: &str = include_str!("layout.js");
const BACKGROUND: &str = "getComputedStyle(document.body).backgroundColor";

/// Holds the page against what `layout.js` looks for, in a narrow and a wide place, in light and in dark.
fn check_layout(browser: &mut Browser, page: &Path) {
    for width in [375, 768, 1440] {
        for scheme in ["light", "dark"] {
            browser.open(page, width, scheme);
            let wrong = browser.evaluate(LAYOUT);
            let wrong: Vec<&str> = wrong.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert!(wrong.is_empty(), "{width} wide, {scheme}:\n{}", wrong.join("\n"));
            assert_eq!(browser.complaints(), [] as [&str; 0], "{width} wide, {scheme}");
        }
    }
}

#[test]
fn the_page_fits_every_width_and_scheme_with_and_without_its_script() {
    let (out, page) = synthetic_page("browser");
    let mut browser = Browser::start();
    check_layout(&mut browser, &out);
    let (before, behind) = page.split_once("<script>").unwrap();
    let (_, after) = behind.split_once("</script>").unwrap();
    let without = out.with_file_name("without-script.html");
    std::fs::write(&without, before.to_owned() + after).unwrap();
    check_layout(&mut browser, &without);
}

#[test]
fn a_reader_can_change_colours_hide_systems_and_sort() {
    let (out, _) = synthetic_page("script");
    let mut browser = Browser::start();
    browser.open(&out, 1440, "light");
    let light = browser.evaluate(BACKGROUND);
    browser.evaluate("document.getElementById('theme').click()");
    let dark = browser.evaluate(BACKGROUND);
    assert_ne!(light, dark, "asked to be dark");
    browser.evaluate("document.getElementById('theme').click()");
    assert_eq!(browser.evaluate(BACKGROUND), light, "asked to be light again");
    browser.open(&out, 1440, "dark");
    assert_eq!(browser.evaluate(BACKGROUND), dark, "as the reader prefers");

    let shown = "[...document.querySelectorAll('#scenario-batcher .plot .forebay.system')].filter((one) => \
                 one.getClientRects().length > 0).length";
    let all = browser.evaluate(shown).as_u64().unwrap();
    let press = "document.querySelector('#scenario-batcher .legend button').click()";
    browser.evaluate(press);
    assert_eq!(
        (browser.evaluate(shown).as_u64(), all > 0),
        (Some(0), true),
        "a system can be hidden"
    );
    browser.evaluate(press);
    assert_eq!(browser.evaluate(shown).as_u64(), Some(all), "and shown again");

    let medians =
        "[...document.querySelectorAll('#scenario-batcher tbody tr')].map((row) => Number(row.cells[3].dataset.value))";
    let medians = |browser: &mut Browser| -> Vec<f64> {
        let told = browser.evaluate(medians);
        told.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
    };
    let measured = medians(&mut browser);
    let mut rising = measured.clone();
    rising.sort_by(f64::total_cmp);
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    for expected in [rising, falling, measured] {
        browser.evaluate("document.querySelectorAll('#scenario-batcher thead button')[3].click()");
        assert_eq!(medians(&mut browser), expected);
    }
    assert_eq!(browser.complaints(), [] as [&str; 0]);
}

#[test]
fn what_a_page_throws_or_asks_for_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("bad.html");
    let mut browser = Browser::start();
    for bad in [
        "<script>throw new Error('a')</script>",
        "<script>console.error('a')</script>",
    ] {
        std::fs::write(&page, bad).unwrap();
        browser.open(&page, 375, "light");
        // What was said before the answer has been heard.
        browser.evaluate("0");
        assert_eq!(browser.complaints().len(), 1, "{bad}");
    }
    std::fs::write(&page, "<body style='width: 2000px'>wide").unwrap();
    browser.open(&page, 375, "light");
    assert!(browser.evaluate(LAYOUT)[0].as_str().unwrap().contains("wide"));
}
