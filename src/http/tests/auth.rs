use super::*;

async fn with(api: &Api, authorization: Option<&str>) -> Response {
    let mut request = api.client.get(format!("{}/v1/elicitations", api.base));
    if let Some(authorization) = authorization {
        request = request.header("Authorization", authorization);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn without_a_token_nothing_is_served() {
    let api = Api::start().await;
    for authorization in [None, Some("Basic YTpi"), Some("Bearer")] {
        let response = with(&api, authorization).await;
        assert_eq!(
            response.headers()["www-authenticate"],
            "Bearer realm=\"matrix-elicit\""
        );
        assert_eq!(
            answer(response).await,
            refused(
                401,
                "UNAUTHORIZED",
                "send the agent's token: Authorization: Bearer …"
            )
        );
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_guessing_is_slowed_down() {
    let api = Api::start().await;
    for _ in 0..10 {
        let response = with(&api, Some("Bearer builder-token-0124")).await;
        assert_eq!(
            response.headers()["www-authenticate"],
            "Bearer realm=\"matrix-elicit\", error=\"invalid_token\""
        );
        assert_eq!(
            answer(response).await,
            refused(401, "UNAUTHORIZED", "this token is no agent's")
        );
    }
    let response = with(&api, Some("Bearer builder-token-0124")).await;
    let retry_after: u64 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    let (status, body) = answer(response).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (429, &json!("RATE_LIMITED"))
    );
    // A right one is served all the same, and a missing one is no guess.
    assert_eq!(
        with(&api, Some("Bearer builder-token-0123")).await.status(),
        200
    );
    assert_eq!(with(&api, None).await.status(), 401);
}
