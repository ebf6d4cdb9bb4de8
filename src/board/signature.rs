//! Whether a push is the board's.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::secret::Secret;

const PREFIX: &str = "sha256=";
/// An HMAC-SHA256 in hex.
const DIGITS: usize = 64;

/// Whether one of these secrets signed exactly this body. `header` is `sha256=` and the
/// HMAC-SHA256 in lower-case hex.
///
/// It takes the same time wherever a signature is wrong and whichever secret made it.
pub fn signature_holds(secrets: &[Secret], body: &[u8], header: &str) -> bool {
    let Some(signature) = header.strip_prefix(PREFIX).and_then(bytes_of) else {
        return false;
    };
    let mut holds = false;
    for secret in secrets {
        // A key of any length will do.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else {
            continue;
        };
        mac.update(body);
        holds |= mac.verify_slice(&signature).is_ok();
    }
    holds
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != DIGITS || !digits.bytes().all(is_lower_hex) {
        return None;
    }
    hex::decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 4231, test case 2.
    const KEY: &str = "Jefe";
    const BODY: &[u8] = b"what do ya want for nothing?";
    const DIGEST: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    fn header() -> String {
        format!("sha256={DIGEST}")
    }

    #[test]
    fn a_known_signature_holds_for_its_bytes_and_its_key_alone() {
        let holds = |key: &str, body: &[u8]| signature_holds(&[key.into()], body, &header());
        assert!(holds(KEY, BODY));
        assert!(!holds("jefe", BODY));
        assert!(!holds(KEY, b"what do ya want for nothing? "));
        assert!(!holds(KEY, b""));
    }

    #[test]
    fn any_of_several_secrets_may_have_signed() {
        let holds = |keys: &[&str]| {
            let secrets: Vec<Secret> = keys.iter().map(|key| Secret::from(*key)).collect();
            signature_holds(&secrets, BODY, &header())
        };
        assert!(holds(&["newer", KEY]));
        assert!(holds(&[KEY, "older"]));
        assert!(holds(&["newer", KEY, "older"]));
        assert!(!holds(&["newer", "older"]));
        assert!(!holds(&[]));
    }

    #[test]
    fn a_key_may_be_longer_than_a_block() {
        // RFC 4231, test case 6 has a key of 131 bytes that is no UTF-8; this one is as long, and
        // its digest comes from `openssl dgst -sha256 -hmac`.
        let secret = Secret::from("a".repeat(131));
        let header = "sha256=a81889c6a46d7ac05e5a2b5c0591e0e93f8a2a4d77f0f51074c0afe11dbe3b15";
        assert!(signature_holds(&[secret], BODY, header));
    }

    #[test]
    fn any_other_way_to_write_a_signature_is_refused() {
        let secrets = [Secret::from(KEY)];
        let upper = DIGEST.to_uppercase();
        for header in [
            String::new(),
            "sha256=".to_owned(),
            DIGEST.to_owned(),
            format!("sha1={DIGEST}"),
            format!("SHA256={DIGEST}"),
            format!("sha256:{DIGEST}"),
            format!("sha256={upper}"),
            format!("sha256={}", &DIGEST[..62]),
            format!("sha256={}", &DIGEST[..63]),
            format!("sha256={DIGEST}00"),
            format!("sha256= {DIGEST}"),
            format!("sha256={DIGEST} "),
            format!("sha256={DIGEST},sha256={DIGEST}"),
            format!("sha256={}zz", &DIGEST[..62]),
            format!("sha256={}é", &DIGEST[..62]),
        ] {
            assert!(!signature_holds(&secrets, BODY, &header), "{header:?}");
        }
    }
}
