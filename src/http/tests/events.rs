use super::*;

/// What a listener has read so far.
pub(super) struct Listener {
    response: Response,
    read: String,
}

impl Listener {
    pub(super) async fn open(api: &Api, query: &str, last_event_id: Option<&str>) -> Self {
        let mut request = api.request(Method::GET, &format!("/v1/events{query}"));
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut listener = Self {
            response,
            read: String::new(),
        };
        assert_eq!(listener.frame().await.unwrap(), ": listening\nretry: 1000");
        listener
    }

    /// The next frame, or `None` when the stream has ended.
    pub(super) async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.read.split_once("\n\n") {
                let frame = frame.to_owned();
                self.read = rest.to_owned();
                return Some(frame);
            }
            let chunk = soon(self.response.chunk()).await.unwrap()?;
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event: its id and its word.
    async fn event(&mut self) -> (String, String) {
        let frame = self.frame().await.unwrap();
        let mut fields = frame.lines().map(|line| line.split_once(": ").unwrap());
        let (id, event, data) = (
            fields.next().unwrap(),
            fields.next().unwrap(),
            fields.next().unwrap(),
        );
        assert_eq!(
            (id.0, event, data.0),
            ("id", ("event", "elicitation.open"), "data")
        );
        assert_eq!(fields.next(), None);
        let data: Value = serde_json::from_str(data.1).unwrap();
        assert_eq!(data["type"], "elicitation.open");
        assert!(data["timestamp"].as_str().unwrap().ends_with('Z'), "{data}");
        (
            id.1.to_owned(),
            data["data"]["word"].as_str().unwrap().to_owned(),
        )
    }
}

fn word(id: &str, word: &str) -> (String, String) {
    (id.to_owned(), word.to_owned())
}

#[tokio::test]
async fn a_listener_hears_what_happens_from_now_on_and_only_its_own() {
    let api = Api::start().await;
    api.announce("builder", "before").await;
    let mut listener = Listener::open(&api, "", None).await;
    api.announce("tester", "not ours").await;
    let one = api.announce("builder", "one").await;
    let two = api.announce("builder", "line\nbreak").await;
    assert_eq!(listener.event().await, word(&one, "one"));
    assert_eq!(listener.event().await, word(&two, "line\nbreak"));
}

#[tokio::test]
async fn a_listener_that_comes_back_misses_nothing() {
    let api = Api::start().await;
    let first = api.announce("builder", "first").await;
    api.announce("tester", "not ours").await;
    // More than are read at a time.
    let mut missed = Vec::new();
    for number in 0..120 {
        missed.push(word(
            &api.announce("builder", &number.to_string()).await,
            &number.to_string(),
        ));
    }
    for (query, header) in [
        ("", Some(first.as_str())),
        (&format!("?last_event_id={first}"), None),
    ] {
        let mut listener = Listener::open(&api, query, header).await;
        for expected in &missed {
            assert_eq!(listener.event().await, *expected);
        }
    }
    // The header is newer than the address.
    let last = missed.last().unwrap();
    let query = format!("?last_event_id={first}");
    let mut listener = Listener::open(&api, &query, Some(&last.0)).await;
    let next = api.announce("builder", "next").await;
    assert_eq!(listener.event().await, word(&next, "next"));
}

#[tokio::test]
async fn nothing_is_missed_while_a_listener_connects() {
    let api = Api::start().await;
    let first = api.announce("builder", "first").await;
    for round in 0..20 {
        let name = round.to_string();
        let (mut listener, id) = tokio::join!(
            Listener::open(&api, "", Some(&first)),
            api.announce("builder", &name)
        );
        while listener.event().await != word(&id, &name) {}
    }
}

#[tokio::test]
async fn everything_kept_can_be_asked_for() {
    let api = Api::start().await;
    let one = api.announce("builder", "one").await;
    let mut listener = Listener::open(&api, "?from=start", None).await;
    assert_eq!(listener.event().await, word(&one, "one"));
    assert_eq!(
        api.get("/v1/events?from=yesterday").await,
        refused_field("from", "must be `start` or `now`")
    );
}

#[tokio::test]
async fn an_event_that_is_not_kept_or_not_ours_cannot_be_continued_after() {
    let api = Api::start().await;
    let foreign = api.announce("tester", "not ours").await;
    for id in ["evt_gone", &foreign] {
        let request = api
            .request(Method::GET, "/v1/events")
            .header("Last-Event-ID", id);
        assert_eq!(
            answer(request.send().await.unwrap()).await,
            refused(
                410,
                "EVENTS_EXPIRED",
                "the event to continue after is not kept any more; read /v1/elicitations, then listen without Last-Event-ID"
            )
        );
    }
}
