//! The log: what is written to standard error, and in which form.
//!
//! Promises: what is logged may be changed while the server runs; how it is written stays as it was at the start.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::{EnvFilter, reload};

use crate::config::{LogFormat, Options};

/// The log of this process.
pub struct Log {
    change: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error>>,
}

/// What is to be logged cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("log: {0}")]
pub struct LogError(#[from] ParseError);

impl Log {
    /// Begins to log.
    ///
    /// # Errors
    /// [`LogError`].
    ///
    /// # Panics
    /// When this process logs already.
    pub fn start(options: &Options) -> Result<Self, LogError> {
        let filter = check(options)?;
        let builder = tracing_subscriber::fmt().with_writer(io::stderr);
        Ok(Self {
            change: match options.log_format {
                LogFormat::Text => {
                    let text = builder.with_ansi(io::stderr().is_terminal());
                    let text = text.with_env_filter(filter).with_filter_reloading();
                    let handle = text.reload_handle();
                    text.init();
                    Box::new(move |filter| handle.reload(filter))
                }
                LogFormat::Json => {
                    let json = builder.json().with_env_filter(filter).with_filter_reloading();
                    let handle = json.reload_handle();
                    json.init();
                    Box::new(move |filter| handle.reload(filter))
                }
            },
        })
    }

    /// From now on what these options say is logged.
    ///
    /// # Errors
    /// [`LogError`]; then all stays as it was.
    pub fn change(&self, options: &Options) -> Result<(), LogError> {
        if let Err(error) = (self.change)(check(options)?) {
            tracing::warn!(%error, "what is logged stays as it was");
        }
        Ok(())
    }
}

/// What is to be logged.
///
/// # Errors
/// [`LogError`].
pub fn check(options: &Options) -> Result<EnvFilter, LogError> {
    Ok(EnvFilter::builder().parse(&options.log)?)
}
