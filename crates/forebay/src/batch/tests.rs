use super::*;
#[tokio::test]
async fn smoke() {
    let b =
        Batcher::builder()
            .max_items(10)
            .build(|v: Vec<u64>| async move {
                Ok::<_, Infallible>(v.into_iter().map(|x| x * 2).collect())
            });
    let calls: Vec<_> = (0..25).map(|i| b.call(i)).collect();
    let got = futures_util::future::join_all(calls).await;
    for (i, g) in got.into_iter().enumerate() {
        assert_eq!(g.unwrap(), 2 * i as u64);
    }
    assert_eq!(b.stats().batches, 3);
    b.drain().await;
    assert!(matches!(b.call(1).await, Err(CallError::Closed)));
}
