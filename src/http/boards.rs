//! `/v1/boards/{board}/push`: where a board pushes its questions.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::elicitations::Body;
use super::error::Holder;
use super::{Api, ApiError};
use crate::board::signature_holds;
use crate::contract::board::{PENDING, Pending};
use crate::service::{BoardError, Taken};

/// The counter of pushes, by `board` and `outcome`: `stored`, `known`, `ignored`, `unsigned`,
/// `failed`.
pub const PUSHES: &str = "elicit_board_pushes_total";

const SIGNATURE: &str = "x-superpipeline-signature";

/// `POST /v1/boards/{board}/push`: 200 once the question is stored, or was before, and also with
/// `{"ignored": why}` for everything that is signed and no question: the board would push it again
/// for nothing. 401 for what is not signed, 503 while it cannot be stored.
pub async fn push(
    State(api): State<Api>,
    board: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Json<Value>, ApiError> {
    let Path(board) = board.map_err(|_| ApiError::UnknownPath)?;
    let Some(config) = api.service.config().boards.get(&board) else {
        return Err(ApiError::UnknownPath);
    };
    let signature = headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    if !signature_holds(&config.push_secrets, &body, signature.unwrap_or_default()) {
        count(&board, "unsigned");
        return Err(ApiError::Unauthorized {
            wanted: Holder::Board,
            presented: signature.is_some(),
        });
    }
    let pending = match question(&board, &body) {
        Ok(pending) => pending,
        Err(why) => return Ok(ignored(&board, &why)),
    };
    match api.service.take_pushed(&board, pending).await {
        Ok(Taken::New) => {
            count(&board, "stored");
            Ok(Json(json!({ "status": "stored" })))
        }
        Ok(Taken::Known) => {
            count(&board, "known");
            Ok(Json(json!({ "status": "known" })))
        }
        Ok(Taken::Ignored(why)) => Ok(ignored(&board, why)),
        Err(error) => {
            count(&board, "failed");
            tracing::warn!(
                board.id = %board, error = %error,
                "a question of {board} could not be stored: {error}"
            );
            Err(match error {
                BoardError::NoRoom(why) => ApiError::Unavailable(why),
                BoardError::Ledger(error) => error.into(),
            })
        }
    }
}

/// The question in a push, or why there is none.
fn question(board: &str, body: &[u8]) -> Result<Pending, String> {
    let push: Value = serde_json::from_slice(body).map_err(|_| "not JSON".to_owned())?;
    match push["event"].as_str() {
        Some(PENDING) => {}
        Some(_) => return Err(format!("not {PENDING}")),
        None => return Err("event is missing".to_owned()),
    }
    let pending = Pending::read(&push).map_err(|fault| fault.to_string())?;
    if pending.board_id != board {
        return Err("boardId is another board's".to_owned());
    }
    Ok(pending)
}

fn ignored(board: &str, why: &str) -> Json<Value> {
    count(board, "ignored");
    tracing::info!(board.id = board, why, "a push of {board} is ignored: {why}");
    Json(json!({ "ignored": why }))
}

fn count(board: &str, outcome: &'static str) {
    metrics::counter!(PUSHES, "board" => board.to_owned(), "outcome" => outcome).increment(1);
}
