//! A real browser without a window, driven through a pair of pipes: no port is opened and nothing is fetched.
//!
//! Promises: what a page writes to its console as a warning or an error, and what it throws, is kept until asked for; an
//! answer that does not come in time is a failure; the browser ends with its value. Knows no page.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Any of these does, the first that is there.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Long enough for a busy machine; a browser that hangs fails the test instead of stopping it.
const ANSWER_MAX: Duration = Duration::from_secs(60);
const OPTIONS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
];

/// A running browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    asked: u64,
    complaints: Vec<String>,
    /// The browser's own files.
    _folder: TempDir,
}

/// Where the browser is; none if it is not installed.
fn program() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let candidates = PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|program| program.is_file())
}

impl Browser {
    /// Starts it; that it is not installed is a failure that says how to install it.
    pub(crate) fn start() -> Self {
        let program = program().expect("no browser found; to install one: cargo xtask setup");
        let folder = tempfile::tempdir().unwrap();
        // The browser reads commands from descriptor 3 and writes answers to 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .arg(program)
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .args(OPTIONS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        // Ends when the browser closes its pipe.
        std::thread::spawn(move || {
            for answer in answers.split(0).map_while(Result::ok) {
                let answer = serde_json::from_slice(&answer).expect("the browser speaks JSON");
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: None,
            asked: 0,
            complaints: Vec::new(),
            _folder: folder,
        };
        let page = browser.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Opens a file in a place of this width, for someone who prefers this colour scheme.
    pub(crate) fn open(&mut self, file: &Path, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", &size);
        let prefers = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", &prefers);
        let told = self.ask("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        assert!(told["errorText"].is_null(), "{told}");
        while self.hear()["method"] != "Page.loadEventFired" {}
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut told = self.ask("Runtime.evaluate", &asked);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].take()
    }

    /// What the pages complained of since this was asked last.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let mut question = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            question["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{question}\0").as_bytes()).unwrap();
        loop {
            let mut heard = self.hear();
            if heard["id"] == self.asked {
                assert!(heard["error"].is_null(), "{method}: {heard}");
                return heard["result"].take();
            }
        }
    }

    fn hear(&mut self) -> Value {
        let heard = self.from.recv_timeout(ANSWER_MAX).expect("the browser answers in time");
        let is_bad = match heard["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                matches!(heard["params"]["type"].as_str(), Some("error" | "warning" | "assert"))
            }
            Some("Log.entryAdded") => matches!(heard["params"]["entry"]["level"].as_str(), Some("error" | "warning")),
            _ => false,
        };
        if is_bad {
            self.complaints.push(heard["params"].to_string());
        }
        heard
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
