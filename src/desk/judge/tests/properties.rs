//! What holds whatever is said.

use proptest::prelude::*;

use super::*;

fn any_said() -> impl Strategy<Value = Said> {
    let body = prop_oneof![
        Just("1".to_owned()),
        Just("deploy".to_owned()),
        Just("blue".to_owned()),
        Just("maybe".to_owned()),
        "(q[1-3] |Elicit: )?([1-4]|deploy|wait|red|the first one|no idea|1 or 2)",
        "\\PC{0,12}",
    ];
    let event = || {
        proptest::option::of(prop_oneof![
            Just("$e1"),
            Just("$e2"),
            Just("$e3"),
            Just("$root"),
            Just("$other")
        ])
    };
    (
        body,
        event(),
        any::<bool>(),
        event(),
        event(),
        any::<bool>(),
    )
        .prop_map(
            |(body, in_reply_to, falling_back, thread, replaces, mentions_bot)| Said {
                body,
                in_reply_to: in_reply_to.map(str::to_owned),
                falling_back,
                thread: thread.map(str::to_owned),
                replaces: replaces.map(str::to_owned),
                mentions_bot,
            },
        )
}

fn any_heard() -> impl Strategy<Value = Heard> {
    let trust = prop_oneof![
        Just(Trust::Plain),
        Just(Trust::Verified),
        Just(Trust::Unverified),
        Just(Trust::Clear),
        Just(Trust::Refused),
    ];
    let power = prop_oneof![Just(0), Just(50), Just(i64::MAX)];
    (
        trust,
        proptest::bool::weighted(0.8),
        any::<bool>(),
        power,
        -2_000..2_000_i64,
    )
        .prop_map(|(trust, joined, alone, power, late)| {
            let mut heard = trusted(trust);
            heard.sender.joined = joined;
            heard.sender.alone = alone;
            heard.sender.power = power;
            heard.sent_at = NOW + late;
            heard
        })
}

fn any_known() -> impl Strategy<Value = Vec<Known>> {
    let state = prop_oneof![
        4 => Just(State::Open),
        1 => proptest::sample::select(&State::ALL[2..]),
    ];
    let users =
        proptest::option::weighted(0.3, prop_oneof![Just("@mira:x.org"), Just("@ben:x.org")]);
    let min_power = proptest::option::weighted(0.3, Just(50));
    let deadline = proptest::option::of(-2_000..2_000_i64);
    let one = (
        (state, any::<bool>(), any::<bool>()),
        (users, min_power, deadline, any::<bool>()),
    );
    proptest::collection::vec(one, 0..=3).prop_map(|ones| {
        let questions = [first(), second(), in_words()];
        let varied = questions.into_iter().zip(ones);
        varied
            .map(
                |(known, ((state, visible, free_text), (user, min_power, deadline, threaded)))| {
                    let known = match user {
                        Some(user) => only_for(known, &[user]),
                        None => known,
                    };
                    with(known, |elicitation| {
                        elicitation.state = state;
                        elicitation.visible = visible;
                        let question = &mut elicitation.question;
                        question.free_text = free_text || question.options.is_empty();
                        question.answerers.min_power = min_power;
                        question.expires_at = deadline.map(|late| NOW + late);
                        question.thread = threaded.then(|| "$root".to_owned());
                    })
                },
            )
            .collect()
    })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    (
        proptest::option::weighted(0.2, Just(1)),
        proptest::bool::weighted(0.2),
    )
        .prop_map(|(min_power, require_verified)| Rules {
            users: None,
            min_power,
            require_verified,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn only_an_open_question_is_closed_once_by_someone_who_may_and_names_an_option(
        known in any_known(),
        heard in any_heard(),
        said in any_said(),
        rules in any_rules(),
    ) {
        let changes = judge(&heard, &said, &known, &rules, &elicit(), NOW);
        let mut closes = changes.iter().filter_map(|change| match change {
            Change::Close { closed, .. } => Some(closed),
            _ => None,
        });
        let Some(closed) = closes.next() else {
            // Without an answer nothing happens but a word to whoever spoke.
            let quiet = changes.iter().all(|change| matches!(change, Change::SayOnce { .. }));
            prop_assert!(quiet && changes.len() <= 1, "{changes:?}");
            return Ok(());
        };
        prop_assert!(closes.next().is_none(), "two are closed: {changes:?}");

        let open = known.iter().find(|known| known.elicitation.key() == closed.key()).unwrap();
        let open = &open.elicitation;
        prop_assert_eq!(open.state, State::Open);
        prop_assert!(heard.sender.joined);
        prop_assert_eq!(may_answer(&heard.sender, &rules, &open.question.answerers), Ok(()));
        prop_assert_ne!(heard.trust, Trust::Refused);
        if rules.require_verified {
            prop_assert!(matches!(heard.trust, Trust::Plain | Trust::Verified));
        }
        if let Some(deadline) = open.question.expires_at {
            prop_assert!(NOW < deadline || heard.sent_at <= deadline);
        }

        let answer = closed.answer.as_ref().unwrap();
        prop_assert_eq!(closed.state, State::Answered);
        prop_assert_eq!(&answer.answered_by, &heard.sender.user_id);
        match (&answer.option, answer.kind) {
            (Some(option), AnswerKind::Option) => {
                prop_assert_eq!(open.numbered(option.number - 1), Some(option.clone()));
            }
            (None, AnswerKind::Text) => {
                prop_assert!(open.question.free_text && answer.directed);
                let text = answer.text.as_deref().unwrap_or_default();
                prop_assert!(!reply::is_blank(text) && said.body.contains(text));
            }
            other => prop_assert!(false, "{other:?}"),
        }
        if !open.visible {
            let pointed = [&said.in_reply_to, &said.thread].into_iter().flatten();
            prop_assert!(pointed.into_iter().any(|event| Some(event) == open.event_id.as_ref()));
        }
    }

    #[test]
    fn a_text_that_names_no_option_closes_no_question_that_wants_one(
        body in "[^0-9]{0,20}",
        heard in any_heard(),
        mentions_bot in any::<bool>(),
    ) {
        let options = Options::new(&first().elicitation.question.options);
        prop_assume!(reply::read_option(&body, &options, true).choice == reply::Choice::None);
        let said = Said { mentions_bot, ..reply_to("$e1", &body) };
        let changes = judge_one(&first(), &heard, &said);
        let closes = changes.iter().any(|change| matches!(change, Change::Close { .. }));
        prop_assert!(!closes, "{changes:?}");
    }

    /// The service leaves the others out of what it looks up.
    #[test]
    fn to_a_rich_reply_only_its_question_and_those_it_tags_matter(
        known in any_known(),
        heard in any_heard(),
        said in any_said(),
        rules in any_rules(),
    ) {
        let said = Said {
            in_reply_to: Some("$e1".to_owned()),
            falling_back: false,
            thread: None,
            ..said
        };
        if known.is_empty() {
            return Ok(());
        }
        let tags = crate::desk::possible_tags(&said.body);
        let some: Vec<Known> = known
            .iter()
            .filter(|known| {
                known.elicitation.key().id == "e1" || tags.contains(&known.elicitation.tag)
            })
            .cloned()
            .collect();
        let of_all = judge(&heard, &said, &known, &rules, &elicit(), NOW);
        prop_assert_eq!(judge(&heard, &said, &some, &rules, &elicit(), NOW), of_all);
    }
}
