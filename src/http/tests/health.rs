use super::*;

async fn open(api: &Api, path: &str) -> Response {
    // Without a token.
    api.client
        .get(format!("{}{path}", api.base))
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn it_is_alive_before_it_is_ready() {
    let api = Api::start().await;
    assert_eq!(
        answer(open(&api, "/healthz").await).await,
        (200, json!({ "status": "ok" }))
    );
    assert_eq!(
        answer(open(&api, "/readyz").await).await,
        (
            503,
            json!({ "status": "not ready", "reasons": ["no sync with the homeserver yet"] })
        )
    );
    api.service.health().synced(clock::now());
    assert_eq!(
        answer(open(&api, "/readyz").await).await,
        (200, json!({ "status": "ready" }))
    );
}

#[tokio::test]
async fn the_metrics_count_what_the_ledger_holds() {
    let api = Api::start().await;
    api.asked("e1").await;
    let response = open(&api, "/metrics").await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = response.text().await.unwrap();
    // Other tests of this process count into the same recorder, so values are not compared.
    for name in [
        "elicit_ready",
        "elicit_elicitations_queued",
        "elicit_elicitations_open",
        "elicit_oldest_open_seconds",
        "elicit_deliveries_pending",
        "elicit_deliveries_parked",
        "elicit_board_submissions_pending",
    ] {
        assert!(
            text.contains(&format!("# TYPE {name} gauge")),
            "{name}: {text}"
        );
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {text}"
        );
    }
    assert!(
        text.contains(r#"elicit_http_requests_total{route="/v1/elicitations",status="201"}"#),
        "{text}"
    );
}

#[test]
fn the_guide_to_boards_names_every_metric_about_them() {
    use crate::board::{FOUND, SUBMISSIONS, SUBSCRIPTIONS, SWEEPS, UNREAD};

    let guide = include_str!("../../../docs/boards.md");
    for metric in [
        super::super::boards::PUSHES,
        FOUND,
        SUBMISSIONS,
        SUBSCRIPTIONS,
        SWEEPS,
        UNREAD,
        "elicit_board_submissions_pending",
    ] {
        assert!(guide.contains(&format!("| `{metric}")), "{metric}");
    }
}
