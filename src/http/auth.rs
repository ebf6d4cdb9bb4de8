//! Who calls: a bearer token, known by its SHA-256 alone.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::PoisonError;
use std::time::Instant;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::error::Holder;
use super::{Api, ApiError};
use crate::config::Config;
use crate::secret::{Secret, TokenDigest};

/// The agent whose token came with the request.
pub struct Caller(pub String);

/// The operator's token came with the request. An agent is never this, whatever its id.
pub struct Operator;

/// The digests of all tokens. Those of the agents and the operator's are no one list: none of
/// them opens what another kind of holder may do.
pub struct Tokens {
    agents: Vec<(String, TokenDigest)>,
    operator: Option<TokenDigest>,
}

impl Tokens {
    /// The tokens of a configuration.
    pub fn of(config: &Config) -> Self {
        let agents = config.agents.iter();
        Self {
            agents: agents
                .map(|(id, agent)| (id.clone(), agent.token_digest()))
                .collect(),
            operator: config.http.operator_token.as_ref().map(Secret::digest),
        }
    }

    /// Whether this token is the operator's. The comparison takes the same time whatever is
    /// compared.
    pub fn is_operator(&self, token: &str) -> bool {
        let digest = TokenDigest::of(token);
        self.operator.is_some_and(|operator| operator == digest)
    }

    /// Whose token this is. Each comparison takes the same time whatever is compared, and all are
    /// made: how long it takes tells nothing about any token.
    pub fn owner(&self, token: &str) -> Option<&str> {
        let digest = TokenDigest::of(token);
        let mut owner = None;
        for (id, known) in &self.agents {
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
        let token = bearer(&parts.headers).ok_or(missing(Holder::Agent))?;
        match api.tokens.owner(token) {
            Some(agent) => Ok(Self(agent.to_owned())),
            None => Err(wrong(Holder::Agent, parts, api)),
        }
    }
}

impl FromRequestParts<Api> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        if api.tokens.operator.is_none() {
            return Err(ApiError::NoOperator);
        }
        let token = bearer(&parts.headers).ok_or(missing(Holder::Operator))?;
        if api.tokens.is_operator(token) {
            Ok(Self)
        } else {
            Err(wrong(Holder::Operator, parts, api))
        }
    }
}

fn missing(wanted: Holder) -> ApiError {
    ApiError::Unauthorized {
        wanted,
        presented: false,
    }
}

/// Counts a wrong token, and says no to it.
fn wrong(wanted: Holder, parts: &Parts, api: &Api) -> ApiError {
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let mut failures = api.failures.lock().unwrap_or_else(PoisonError::into_inner);
    match failures.note(peer, Instant::now()) {
        Some(retry_after) => ApiError::RateLimited { retry_after },
        None => ApiError::Unauthorized {
            wanted,
            presented: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(of: &[(&str, &str)]) -> Tokens {
        let agents = of.iter();
        Tokens {
            agents: agents
                .map(|(id, token)| ((*id).to_owned(), TokenDigest::of(token)))
                .collect(),
            operator: Some(TokenDigest::of("boss")),
        }
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
    fn no_agent_is_the_operator_and_the_operator_is_no_agent() {
        let tokens = tokens(&[("operator", "one")]);
        let operators = ["one", "boss", "", "BOSS"].map(|token| tokens.is_operator(token));
        assert_eq!(operators, [false, true, false, false]);
        assert_eq!(tokens.owner("boss"), None);
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
