//! A call of a tier's code, bounded in time, with its panics as errors. Knows nothing of what is called.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;

use super::TierError;
use forebay_batch::panics::panic_message;

pub(crate) async fn guarded<T>(
    timeout: Duration,
    call: impl AsyncFnOnce() -> Result<T, TierError>,
) -> Result<T, TierError> {
    let call = AssertUnwindSafe(call()).catch_unwind();
    match tokio::time::timeout(timeout, call).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => {
            let message = panic_message(&*panic).to_string();
            Err(TierError::Panicked { message })
        }
        Err(_) => Err(TierError::TimedOut { after: timeout }),
    }
}
