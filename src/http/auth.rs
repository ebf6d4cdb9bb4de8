//! Who calls: a bearer token, known by its SHA-256 alone.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::PoisonError;
use std::time::Instant;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::{Api, ApiError};
use crate::config::Config;
use crate::secret::TokenDigest;

/// The agent whose token came with the request.
pub struct Caller(pub String);

/// The digests of all agents' tokens.
pub struct Tokens(Vec<(String, TokenDigest)>);

impl Tokens {
    /// The tokens of a configuration.
    pub fn of(config: &Config) -> Self {
        let agents = config.agents.iter();
        Self(
            agents
                .map(|(id, agent)| (id.clone(), agent.token_digest()))
                .collect(),
        )
    }

    /// Whose token this is. Each comparison takes the same time whatever is compared, and all are
    /// made: how long it takes tells nothing about any token.
    pub fn owner(&self, token: &str) -> Option<&str> {
        let digest = TokenDigest::of(token);
        let mut owner = None;
        for (id, known) in &self.0 {
            if *known == digest {
                owner = Some(id.as_str());
            }
        }
        owner
    }
}

/// The token of an `Authorization: Bearer` header (RFC 6750, section 2.1). Of two such headers
/// nobody knows which one is meant.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl FromRequestParts<Api> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let token = bearer(&parts.headers).ok_or(ApiError::Unauthorized { presented: false })?;
        if let Some(agent) = api.tokens.owner(token) {
            return Ok(Self(agent.to_owned()));
        }
        let peer = parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        let mut failures = api.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.note(peer, Instant::now()) {
            Some(retry_after) => Err(ApiError::RateLimited { retry_after }),
            None => Err(ApiError::Unauthorized { presented: true }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(of: &[(&str, &str)]) -> Tokens {
        let agents = of.iter();
        Tokens(
            agents
                .map(|(id, token)| ((*id).to_owned(), TokenDigest::of(token)))
                .collect(),
        )
    }

    #[test]
    fn a_token_names_its_own_agent_only() {
        let tokens = tokens(&[("agt_1", "one"), ("agt_2", "two"), ("agt_3", "three")]);
        let owners = ["one", "two", "three", "four", "", "ONE"].map(|token| tokens.owner(token));
        assert_eq!(
            owners,
            [
                Some("agt_1"),
                Some("agt_2"),
                Some("agt_3"),
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn without_agents_no_token_is_right() {
        assert_eq!(tokens(&[]).owner("one"), None);
    }

    #[test]
    fn only_a_bearer_header_with_a_token_counts() {
        let read = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(read("Bearer one"), Some("one".to_owned()));
        assert_eq!(read("bearer  one "), Some("one".to_owned()));
        assert_eq!(read("Basic b25l"), None);
        assert_eq!(read("Bearer "), None);
        assert_eq!(read("one"), None);
        let mut two = HeaderMap::new();
        two.append(AUTHORIZATION, "Bearer one".parse().unwrap());
        two.append(AUTHORIZATION, "Bearer two".parse().unwrap());
        assert_eq!(bearer(&two), None);
    }
}
