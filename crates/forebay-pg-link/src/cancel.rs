//! Cancel: what asks a server, on a connection of its own, to stop what a link is at.
//!
//! Promises: the request goes to the address that the link was made to, as encrypted as the link is; nothing tells whether it came
//! in time, or at all. Knows no link.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::dial::{Dialled, Dialler};
use crate::error::ConnectError;

/// The number that stands where a version would: 1234 and 5678.
const CANCEL_REQUEST: i32 = 80_877_102;

/// What the server tells a connection from others by, and knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackendKey {
    pub(crate) process_id: i32,
    /// 4 bytes; up to 256 from protocol version 3.2 on.
    pub(crate) secret: Bytes,
}

/// To cancel what a link is at, from elsewhere. Clones are the same.
#[derive(Debug, Clone)]
pub struct CancelToken {
    dialled: Arc<Dialled>,
    key: Option<BackendKey>,
}

impl CancelToken {
    pub(crate) fn new(dialled: Dialled) -> Self {
        Self {
            dialled: Arc::new(dialled),
            key: None,
        }
    }

    pub(crate) fn keep(&mut self, key: BackendKey) {
        self.key = Some(key);
    }

    /// The server's own number of the link; none if the server has given none.
    pub fn process_id(&self) -> Option<i32> {
        self.key.as_ref().map(|key| key.process_id)
    }

    /// Asks the server to cancel what the link is at now, and waits until it has read that: until it hangs up.
    ///
    /// # Errors
    /// [`ConnectError`] if it could not be asked.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the server may have been asked or not.
    pub async fn cancel(&self) -> Result<(), ConnectError> {
        let Some(key) = &self.key else {
            return Err(ConnectError::Setting(
                "the server gave nothing to cancel its statements by".to_owned(),
            ));
        };
        let mut stream = Dialler::again(&self.dialled).await?;
        let mut request = BytesMut::with_capacity(12 + key.secret.len());
        let length = i32::try_from(12 + key.secret.len()).expect("a secret is short");
        request.put_i32(length);
        request.put_i32(CANCEL_REQUEST);
        request.put_i32(key.process_id);
        request.put_slice(&key.secret);
        let asked = async {
            stream.write_all(&request).await?;
            stream.flush().await?;
            // Whatever it says: then it hangs up.
            drop(stream.read_buf(&mut BytesMut::new()).await);
            Ok(())
        };
        asked
            .await
            .map_err(|error: std::io::Error| ConnectError::Link(error.into()))
    }
}
