use super::*;

const FEW: Limits = Limits {
    header: Duration::from_secs(30),
    connections: 6,
    waiters: 3,
};

/// Asserts that an answer is the refusal of who finds no place to wait.
async fn no_place(response: Response) {
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(
        answer(response).await,
        refused(
            503,
            "UNAVAILABLE",
            "as many readers and listeners wait as this process can hold; try again in 5 s"
        )
    );
}

#[tokio::test]
async fn who_finds_no_place_to_wait_is_told_and_everybody_else_is_served() {
    let api = Api::within(FEW).await;
    for id in ["e1", "e2"] {
        api.asked(id).await;
    }
    assert_eq!(api.delete("/v1/elicitations/e2").await.0, 200);
    let events = async || api.request(Method::GET, "/v1/events").send().await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = events().await;
        assert_eq!(stream.status(), 200);
        assert!(stream.chunk().await.unwrap().is_some());
        streams.push(stream);
    }
    let long_poll = async |id: &str| {
        let path = format!("/v1/elicitations/{id}?wait=55");
        soon(api.request(Method::GET, &path).send()).await.unwrap()
    };
    for _ in 0..20 {
        no_place(long_poll("e1").await).await;
        no_place(soon(events()).await).await;
    }
    // What can be said at once is said, whoever waits.
    assert_eq!(answer(long_poll("e2").await).await.1["state"], "cancelled");
    let found = soon(api.get("/v1/elicitations/e1?wait=0")).await;
    assert_eq!((found.0, &found.1["state"]), (200, &json!("queued")));
    assert_eq!(soon(api.get("/v1/elicitations/e9?wait=55")).await.0, 404);
    assert_eq!(soon(api.get("/healthz")).await.0, 200);
    soon(api.asked("e3")).await;

    // A place that is given up is taken by the next.
    drop(streams.pop());
    let waited = async {
        loop {
            let response = api
                .request(Method::GET, "/v1/elicitations/e1?wait=1")
                .send()
                .await
                .unwrap();
            if response.status() == 200 {
                return;
            }
            no_place(response).await;
        }
    };
    soon(waited).await;
}
