//! `[http]` alone, for whoever speaks to a bot that runs already.

use super::*;

fn http(text: &str) -> Result<HttpConfig, Vec<String>> {
    let read = HttpConfig::read(text, "config.toml", &env);
    read.map_err(|faults| faults.iter().map(ConfigFault::to_string).collect())
}

#[test]
fn the_rest_of_the_file_may_be_out_of_reach() {
    let text = r#"
[matrix]
homeserver = "nowhere"
password = "env:NOT_HERE"
recovery_passphrase = "file:/not/here"
[http]
listen = "127.0.0.1:80"
operator_token = "env:ELICIT_OPERATOR_TOKEN"
[agents.a]
token = "0123456789abcdef-operator"
"#;
    assert!(read(text).is_err());
    let expected = HttpConfig {
        listen: "127.0.0.1:80".parse().unwrap(),
        public_url: None,
        operator_token: Some(Secret::from("0123456789abcdef-operator")),
    };
    assert_eq!(http(text), Ok(expected));
    assert_eq!(http(""), Ok(HttpConfig::default()));
}

#[test]
fn its_own_mistakes_are_told_and_so_is_what_is_no_toml() {
    assert_eq!(
        http("[http]\nlisten = \"here\"\noperator_token = \"env:NOT_HERE\"\nport = 1\n[matrix\n"),
        Err([
            "config.toml:2: http.listen: must be an address and a port, like \"127.0.0.1:8470\" or \"[::1]:8470\"",
            "config.toml:3: http.operator_token: the environment variable NOT_HERE is not set",
            "config.toml:4: http.port: is not known",
            "config.toml:5: not valid TOML: unclosed table, expected `]`",
        ]
        .map(str::to_owned)
        .to_vec())
    );
    assert_eq!(
        http("http = 1"),
        Err(vec![
            "config.toml:1: http: must be a table, not a whole number".to_owned()
        ])
    );
}
