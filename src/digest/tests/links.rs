//! digest.md, 5: links, ids, code.

use super::super::Standing;
use super::{Room, shown};

fn all_shown(expected: &[(&str, &str)]) {
    for (text, expected) in expected {
        assert_eq!(shown(text).as_deref(), Some(*expected), "{text:?}");
    }
}

#[test]
fn a_link_becomes_whose_site_it_is() {
    all_shown(&[
        (
            "https://github.com@evil.example/x",
            "a link to evil.example",
        ),
        (
            "https://user:pw@db.example.com:5432/x",
            "a link to example.com",
        ),
        ("postgres://u:p@db.example.com/x", "a link to example.com"),
        ("HTTPS://WWW.Example.COM", "a link to example.com"),
        ("https://аpple.com/", "a link to xn--pple-43d.com"),
        ("https://münchen.de/x", "a link to xn--mnchen-3ya.de"),
        ("https://例え.jp/x", "a link to xn--r8jz45g.jp"),
        ("https://a.b.co.uk/x", "a link to b.co.uk"),
        ("https://lea.github.io/x", "a link to lea.github.io"),
        ("https://github.io/x", "a link to github.io"),
        ("http://192.0.2.7:8080/a", "a link to 192.0.2.7"),
        ("http://3221225991/", "a link to 192.0.2.7"),
        ("http://[2001:db8::1]:80/a", "a link to [2001:db8::1]"),
        ("http://localhost:3000", "a link to localhost"),
        ("https://example.com.", "a link to example.com."),
        ("https://example.com./x", "a link to example.com"),
        ("https://ev%69l.example/x", "a link to evil.example"),
        ("https:///evil.example/x", "a link to evil.example"),
        ("file:///etc/passwd", "a link to an unknown site"),
        ("http://exa mple", "a link to exa mple"),
        ("http://a<b", "a link to a <b"),
        ("x http://%00/ y", "x a link to an unknown site y"),
        ("http://a..b/", "a link to an unknown site"),
        ("http://(x)/y", "a link to an unknown site"),
        ("git@github.com:org/repo.git", "a link to github.com"),
        ("git@build:repo", "a link to build"),
        ("ssh://git@github.com/org", "a link to github.com"),
    ]);
    let long = "a".repeat(100);
    assert_eq!(
        shown(&format!("http://{long}/")).as_deref(),
        Some("a link to an unknown site")
    );
}

#[test]
fn a_host_alone_is_a_link_only_with_a_path_and_a_listed_suffix() {
    all_shown(&[
        ("example.rs/x", "a link to example.rs"),
        ("main.rs", "main.rs"),
        ("src/main.rs", "src/main.rs"),
        ("src/main.rs/x", "src/main.rs/x"),
        ("./build.sh/x", "./build.sh/x"),
        ("and/or", "and/or"),
        ("1.2/3", "1.2/3"),
        ("node.js/express", "node.js/express"),
        ("10.0.0.1/x", "10.0.0.1/x"),
        ("example.com", "example.com"),
        ("example.com:8080/x", "a link to example.com"),
        ("//example.com/x", "// a link to example.com"),
        ("url=example.com/x", "url= a link to example.com"),
        ("看example.com/x", "看 a link to example.com"),
        ("www.example.com", "a link to example.com"),
        ("www.", "www."),
        ("awww.example.com", "awww.example.com"),
        ("WWW.example.com!", "a link to example.com!"),
    ]);
}

#[test]
fn no_link_stays_whole_because_of_what_is_put_before_or_into_it() {
    all_shown(&[
        ("-example.com/secret", "- a link to example.com"),
        (".example.com/secret", ". a link to example.com"),
        ("~example.com/secret", "~a link to example.com"),
        ("_example.com/secret_", "_a link to example.com_"),
        ("@example.com/secret", "@ a link to example.com"),
        ("＠example.com/secret", "＠ a link to example.com"),
        ("@www.example.com", "@ a link to example.com"),
        ("a_b.example.com/secret", "a link to example.com"),
        ("%example.com/secret", "% a link to example.com"),
        ("--www.example.com", "-- a link to example.com"),
        ("dir/example.com/x", "dir/example.com/x"),
        ("dir/~example.com/x", "dir/~example.com/x"),
        ("dir/@example.com/x", "dir/@example.com/x"),
        ("dir\\example.com/x", "dir\\example.com/x"),
        ("foo.www.example.com", "foo.www.example.com"),
        ("https:/example.com/secret", "a link to example.com"),
        ("HTTPS:/example.com/secret.", "a link to example.com."),
        (
            "https:\\\\example.com\\secret it",
            "a link to example.com it",
        ),
        ("https:/\\example.com/secret", "a link to example.com"),
        ("https://\\example.com/secret", "a link to example.com"),
        ("`\"https:\\n\"`", "`\"https:\\n\"`"),
        ("C:\\x and c:/x", "C:\\x and c:/x"),
        ("https:/ or ftp:/", "https:/ or ftp:/"),
        ("example．com/secret", "a link to example.com"),
        ("example。com/secret", "a link to example.com"),
        ("example｡com/secret", "a link to example.com"),
        ("https://example。com/secret", "a link to example.com"),
        ("https://www.example。com/secret", "a link to example.com"),
        ("www.example。com/secret", "a link to example.com"),
        ("https://example.com。Then", "a link to example.com。Then"),
        ("好的。example.com/x", "好的。a link to example.com"),
        ("use Rust。example.com/x", "use Rust。a link to example.com"),
        ("example.com／secret", "a link to example.com"),
        ("https://example.com／secret", "a link to example.com"),
    ]);
}

#[test]
fn a_scheme_behind_a_comma_begins_a_link() {
    all_shown(&[
        (
            "https://a.com/,https://b.com/",
            "a link to a.com, a link to b.com",
        ),
        (
            "https://a.com/x;ssh://b.com/y;z",
            "a link to a.com; a link to b.com",
        ),
        ("https://a.com/x,y;z", "a link to a.com"),
        ("https://a.com/?u=https://b.com/", "a link to a.com"),
    ]);
}

#[test]
fn a_link_ends_where_a_reader_ends_it() {
    all_shown(&[
        ("(see https://a.example/x).", "(see a link to a.example)."),
        ("(https://a.example/f_(b))", "(a link to a.example)"),
        ("https://a.example/f_(b)", "a link to a.example"),
        ("<https://a.example/x>", "<a link to a.example>"),
        ("\"https://a.example/x\"", "\"a link to a.example\""),
        ("«https://a.example/x»", "«a link to a.example»"),
        ("https://a.example/x|sh", "a link to a.example |sh"),
        ("https://a.example/x،", "a link to a.example،"),
        ("https://a.example/x؟", "a link to a.example؟"),
        ("看https://a.example/x，好", "看 a link to a.example，好"),
        ("https://a.example/x。", "a link to a.example。"),
        ("*https://a.example/x*", "*a link to a.example*"),
        ("[docs](https://a.example/x)", "[docs](a link to a.example)"),
        ("https://a.example/x?!", "a link to a.example?!"),
        (
            "https://a.example\\@b.example",
            "a link to a.example \\@b.example",
        ),
        ("http://", "http://"),
        ("http://...", "http://..."),
        ("see:https://a.example", "see: a link to a.example"),
    ]);
}

#[test]
fn links_in_code_are_reduced_and_the_rest_of_code_stays() {
    all_shown(&[
        ("`curl https://a.example/x`", "`curl a link to a.example`"),
        (
            "```\nlet x = \"https://a.example/\";\n```",
            "``` let x = \"a link to a.example\"; ```",
        ),
        (
            "``a ` b https://a.example/x``",
            "``a ` b a link to a.example``",
        ),
        ("run `rm -rf /`", "run `rm -rf /`"),
    ]);
}

#[test]
fn ids_and_addresses_are_nobodys_business() {
    all_shown(&[
        ("ask @sam:example.org.", "ask @sam."),
        ("ask @SAM:Example.org", "ask @sam"),
        ("ask ＠sam:example.org", "ask @sam"),
        ("@quiet:example.org knows", "@someone knows"),
        ("@nobody:b.example knows", "@someone knows"),
        ("@x:b.example:8448 knows", "@someone knows"),
        ("@x:[::1] knows", "@someone knows"),
        ("@agent:example.org look", "@agent look"),
        ("@agent look", "@agent look"),
        ("@Quiet knows", "@someone knows"),
        ("@quiet's idea", "@someone's idea"),
        ("@quieter is better", "@quieter is better"),
        ("@Sam knows", "@Sam knows"),
        ("@sam:please look", "@sam:please look"),
        ("@quiet:please look", "@someone:please look"),
        ("@sam: please look", "@sam: please look"),
        ("`@quiet:example.org`", "`@someone`"),
        ("x@sam:example.org", "x@sam"),
        ("x@sam:example.org1", "x@sam1"),
        ("x@quiet:example.orgs", "x@someones"),
        ("x@quiet:example.org.evil.net", "x@someone.evil.net"),
        ("image@sha256:1f2e", "image@sha256:1f2e"),
        ("https://matrix.to/#/@sam:example.org", "@sam"),
        (
            "https://matrix.to/#/%40quiet%3Aexample.org?via=x",
            "@someone",
        ),
        ("matrix.to/#/@sam:example.org", "@sam"),
        ("matrix:u/sam:example.org", "@sam"),
        (
            "https://matrix.to/#/!room:example.org",
            "a link to matrix.to",
        ),
        ("mail sam@example.org1", "mail an email address"),
        ("take tokio@1.47.rc1", "take tokio@1.47.rc1"),
        ("mail sam@example.org.", "mail an email address."),
        ("mailto:sam@example.org", "an email address"),
        ("邮箱sam@example.org吧", "邮箱 an email address 吧"),
        ("josé@example.org", "an email address"),
        ("@sam@mastodon.example", "an email address"),
        ("lodash@4.17.21", "lodash@4.17.21"),
        ("root@localhost", "root@localhost"),
        ("`sam@example.org`", "`an email address`"),
    ]);
}

#[test]
fn nobody_is_reached_by_an_id_or_an_address_written_otherwise() {
    all_shown(&[
        ("x@nobody:example.org did", "x@someone did"),
        ("x@nobody:example.org:8448 did", "x@someone did"),
        ("cc@bob.secret:matrix.org", "cc@someone"),
        ("cc@bob.com:matrix.org", "an email address"),
        ("deploy@web1:backup.tar", "deploy@web1:backup.tar"),
        ("x@h:foo@bar.com did", "an email address did"),
        ("@h:foo@bar.com did", "an email address did"),
        ("a@b.example@c.example", "an email address"),
        ("@lea:example.org@sam:example.org", "@lea@sam"),
        ("@sam%3Aexample.org", "@sam"),
        ("@sam%3aexample.org", "@sam"),
        ("%40sam%3Aexample.org", "@sam"),
        ("%40sam:example.org", "@sam"),
        ("%40quiet%3Aexample.org knows", "@someone knows"),
        ("@nobody%3Aexample.org knows", "@someone knows"),
        ("x%40nobody%3Aexample.org knows", "x@someone knows"),
        ("%40sam", "%40sam"),
        ("100%40 of it", "100%40 of it"),
        ("_matrix:u/sam:example.org", "_@sam"),
        ("matrix:u/%ff matrix:u/", "matrix:u/%ff matrix:u/"),
        ("matrix:u/%ff,matrix:u/sam:example.org", "matrix:u/%ff,@sam"),
        ("ｆｏｏ@example.com did", "an email address did"),
        ("foo@ｅxample.com did", "an email address did"),
        ("foo＠ｅｘａｍｐｌｅ．ｃｏｍ did", "an email address did"),
        ("foo@example。com", "an email address"),
        ("foo@example.com。Then", "an email address。Then"),
        ("\"a b\"@example.com did", "an email address did"),
        ("foo!@example.com did", "an email address did"),
        ("{foo}@example.com did", "an email address did"),
        ("{foo,bar}@example.com did", "an email address did"),
        ("o'brien@example.com did", "an email address did"),
        ("o’brien@example.com did", "an email address did"),
        ("'foo@example.com'", "'an email address'"),
        ("*foo@example.com*", "*an email address*"),
        ("foo@example.com.1", "an email address.1"),
        ("foo@example.com.x.2", "an email address.x.2"),
        ("foo@[127.0.0.1] did", "an email address did"),
        ("foo@[IPv6:2001:db8::1] did", "an email address did"),
        ("let x = v@[1];", "let x = v@[1];"),
        ("mailto:alice%40example.com", "an email address"),
        ("alice%40example.com", "an email address"),
        ("take tokio@1.47.1.rc.2", "take tokio@1.47.1.rc.2"),
        ("thanks!@sam", "thanks!@sam"),
    ]);
}

#[test]
fn a_scope_of_packages_in_code_is_nobody() {
    let mut room = Room::new()
        .with("@types:example.org", Some("T"), Standing::OptedOut)
        .with("@t.y:example.org", Some("Y"), Standing::OptedOut);
    room = room
        .says("mira", "run `npm i @types/node` now")
        .says("mira", "`@types` and `@t_y` but `@t.y`")
        .says("mira", "ask @types/node or @t.y");
    assert_eq!(
        room.said_in_short(),
        [
            "mira: suggestion: run `npm i @types/node` now",
            "mira: suggestion: `@someone` and `@someone` but `@t.y`",
            "mira: suggestion: ask @someone/node or @someone",
        ]
    );
}

#[test]
fn whoever_is_left_out_is_not_named_by_what_matrix_calls_them_either() {
    let room = Room::new().with("@q.t-1:example.org", Some("Q"), Standing::Banned);
    let said = room.says("mira", "@q.t-1 or @q_t_1 knows").said_in_short();
    assert_eq!(said, ["mira: suggestion: @someone or @someone knows"]);
}

#[test]
fn an_opt_out_reaches_what_was_said_before_it() {
    let mut room = Room::new().says("mira", "ask @sam:example.org");
    assert_eq!(room.said_in_short(), ["mira: suggestion: ask @sam"]);
    room.person("sam").standing = Standing::OptedOut;
    assert_eq!(room.said_in_short(), ["mira: suggestion: ask @someone"]);
}
