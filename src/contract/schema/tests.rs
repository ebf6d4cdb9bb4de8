use serde_json::json;

use super::*;

fn shown(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(Fault::to_string).collect()
}

#[test]
fn every_embedded_schema_compiles() {
    let stated: [(&str, &[&str]); 2] = [
        ("dev.superpipeline.elicitation", &["options[].id"]),
        ("ChatAgentDigest", &[]),
    ];
    for (contract, (title, unique_by)) in Contract::ALL.into_iter().zip(stated) {
        assert_eq!(contract.compiled().unique_by, unique_by, "{title}");
        // The validator's own reading of the draft is strict about the document.
        let schema: Value = serde_json::from_str(contract.schema_text()).unwrap();
        assert!(jsonschema::meta::validate(&schema).is_ok());
        assert_eq!(schema["title"], title);
        // Of all formats there is a rule for this one.
        let formats = contract.schema_text().matches("\"format\"").count();
        let moments = contract
            .schema_text()
            .matches("\"format\": \"date-time\"")
            .count();
        assert_eq!(formats, moments, "{title}");
        assert_eq!(Contract::of_name(contract.name()), Some(contract));
    }
    assert_eq!(Contract::of_name("chat.agent-digest@2"), None);
}

#[test]
fn every_fault_is_named_with_its_place_and_layer() {
    let card = json!({
        "schema_version": 0, "board_id": null, "card_id": "", "run_id": "", "stage_key": "",
        "card_title": "", "asked_by": "", "prompt": "",
        "options": [
            { "id": "a", "label": "A" }, { "id": "a" }, { "id": "", "label": 3 },
            { "id": "a", "label": "B" }, 5
        ],
    });
    let mut faults = shown(&validate(Contract::Card, &card));
    faults.sort();
    assert_eq!(
        faults,
        [
            "$.board_id: schema: must be of type string, is null",
            "$.elicitation_id: schema: is missing",
            "$.options: schema: must have at most 4 items",
            "$.options[1].id: unique: repeats the value of $.options[0].id",
            "$.options[1].label: schema: is missing",
            "$.options[2].id: schema: must have at least 1 character",
            "$.options[2].label: schema: must be of type string, is number",
            "$.options[3].id: unique: repeats the value of $.options[0].id",
            "$.options[4]: schema: must be of type object, is number",
            "$.schema_version: schema: must be at least 1",
        ]
    );
}

#[test]
fn a_fault_never_repeats_the_value_it_is_about() {
    let card = json!({ "schema_version": "sesame", "prompt": ["sesame"], "options": "sesame" });
    assert!(
        !shown(&validate(Contract::Card, &card))
            .concat()
            .contains("sesame")
    );
}

#[test]
fn unique_paths_may_nest_name_the_items_themselves_or_be_absent() {
    let value = json!({
        "a": [
            { "b": 1, "c": [{ "d": "x" }, { "d": "y" }] },
            { "b": 1.0, "c": [{ "d": "x" }, {}] },
            { "b": "1", "c": 7 },
            "no object",
        ],
        "e": ["p", "q", "p", null, null],
        "f": { "g": [{ "h": { "i": 1 } }, { "h": { "i": 2 } }, { "h": { "i": 1.0 } }] },
    });
    let paths = |path| -> Vec<String> {
        repeats(&value, path, "$")
            .into_iter()
            .map(|fault| fault.path)
            .collect()
    };
    assert_eq!(paths("a[].b"), ["$.a[1].b"]);
    assert_eq!(paths("a[].c[].d"), ["$.a[1].c[0].d"]);
    assert_eq!(paths("e[]"), ["$.e[2]", "$.e[4]"]);
    assert_eq!(paths("f.g[].h.i"), ["$.f.g[2].h.i"]);
    assert_eq!(paths("f.g[].h"), ["$.f.g[2].h"]);
    assert_eq!(paths("nothing[].here"), [""; 0]);
}

#[test]
fn large_integers_that_differ_are_not_taken_for_the_same() {
    let value = json!({ "a": [9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64] });
    assert_eq!(repeats(&value, "a[]", "$"), []);
}

#[test]
fn a_key_that_is_no_plain_word_is_quoted_in_a_path() {
    let mut path = "$".to_owned();
    for key in [
        "plain_key",
        "two words",
        "dev.superpipeline.elicitation",
        "a\"\n",
    ] {
        push_key(&mut path, key);
    }
    assert_eq!(
        path,
        r#"$.plain_key["two words"]["dev.superpipeline.elicitation"]["a\"\n"]"#
    );
}
