//! The bot's session: logged in once, kept, refreshed, never wiped.
//!
//! Everything of it lives in one folder, `matrix/` in the data folder: the session (`session.json`),
//! the key of its databases (`store.key`) and the databases themselves. The folder is made beside
//! its place and moved there when the login has worked, so that a failed first login leaves
//! nothing behind. A restart restores the session with the same device.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use matrix_sdk::authentication::matrix::MatrixSession;
use matrix_sdk::config::RequestConfig;
use matrix_sdk::cross_process_lock::CrossProcessLockConfig;
use matrix_sdk::encryption::{BackupDownloadStrategy, EncryptionSettings};
use matrix_sdk::ruma::api::client::account::whoami;
use matrix_sdk::ruma::api::client::session::login;
use matrix_sdk::ruma::api::client::uiaa::{MatrixUserIdentifier, UserIdentifier};
use matrix_sdk::ruma::api::error::Error;
use matrix_sdk::ruma::{OwnedUserId, UserId};
use matrix_sdk::store::RoomLoadSettings;
use matrix_sdk::{Client, HttpError, SessionMeta, SessionTokens, SqliteStoreConfig};
use matrix_sdk_base::{StateStoreDataKey, StateStoreDataValue};

use crate::clock;
use crate::config::MatrixConfig;
use crate::crash;

const SESSION: &str = "session.json";
const KEY: &str = "store.key";
const DEVICE_NAME: &str = "matrix-elicit";

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The homeserver cannot be reached or answers nonsense; it may be tried again.
    #[error("the homeserver {homeserver} does not answer: {why}")]
    Away {
        /// The homeserver.
        homeserver: String,
        /// What happened.
        why: String,
    },
    /// The homeserver refuses the login.
    #[error("the homeserver refuses the login of {user}: {why}")]
    Refused {
        /// Who wanted to log in.
        user: String,
        /// What it says.
        why: String,
    },
    /// The token belongs to somebody else than the configuration says.
    #[error("matrix.access_token belongs to {found}, the configuration says {expected}")]
    OtherToken {
        /// User and device of the token.
        found: String,
        /// User and device of the configuration.
        expected: String,
    },
    /// The kept session belongs to another account than the configuration names.
    #[error("{} holds the session of {found}, the configuration says {expected}; \
             use another matrix.data_dir for another account", folder.display())]
    OtherAccount {
        /// The session's folder.
        folder: PathBuf,
        /// Whose session it is.
        found: String,
        /// Who is configured.
        expected: String,
    },
    /// The session's encryption keys are gone while the device lives on.
    #[error("the encryption keys of device {device} are missing in {}; restore that folder from a \
             backup, or remove it (and change matrix.device_id, if it is set) to start as a new \
             device (messages encrypted for the old one stay unreadable)", folder.display())]
    KeysLost {
        /// The device.
        device: String,
        /// The session's folder.
        folder: PathBuf,
    },
    /// The disk failed.
    #[error("{}: {why}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// The SDK's stores failed.
    #[error("the session in {} cannot be opened: {why}", folder.display())]
    Store {
        /// The session's folder.
        folder: PathBuf,
        /// What happened.
        why: String,
    },
}

impl SessionError {
    /// Whether trying again may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away { .. })
    }
}

/// Restores the kept session, or logs in and keeps it. The client continues its sync at `token`.
///
/// # Errors
/// See [`SessionError`]. A failed first login leaves nothing behind.
pub async fn connect(config: &MatrixConfig, token: Option<&str>) -> Result<Client, SessionError> {
    let folder = config.data_dir.join("matrix");
    let first = !folder.join(SESSION).exists();
    if first {
        set_up(config, &folder).await?;
    }
    let session = read_session(&folder)?;
    if session.meta.user_id != config.user {
        return Err(SessionError::OtherAccount {
            folder,
            found: session.meta.user_id.to_string(),
            expected: config.user.clone(),
        });
    }
    if !first
        && !folder.join("matrix-sdk-crypto.sqlite3").exists()
        && folder.join("started").exists()
    {
        let device = session.meta.device_id.to_string();
        return Err(SessionError::KeysLost { device, folder });
    }
    let client = open(config, &folder, token, &session).await?;
    write_private(&folder.join("started"), b"")?;
    Ok(client)
}

/// Logs in and lays the session's folder, in one step.
async fn set_up(config: &MatrixConfig, folder: &Path) -> Result<(), SessionError> {
    let session = first_session(config).await?;
    crash::point("login.done");
    let fresh = config.data_dir.join("matrix.new");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(|error| disk(&fresh, &error))?;
    }
    fs::create_dir_all(&fresh).map_err(|error| disk(&fresh, &error))?;
    make_private(&fresh)?;
    write_private(&fresh.join(KEY), &rand::random::<[u8; 32]>())?;
    write_session(&fresh, &session)?;
    fs::rename(&fresh, folder).map_err(|error| disk(folder, &error))?;
    crash::point("login.kept");
    Ok(())
}

/// The very first session, from the password or the configured token. Nothing is stored here.
async fn first_session(config: &MatrixConfig) -> Result<MatrixSession, SessionError> {
    match (&config.password, &config.access_token, &config.device_id) {
        (Some(password), ..) => {
            let device = config.device_id.as_deref();
            log_in(config, password.expose(), device).await
        }
        (None, Some(token), Some(device)) => {
            let expected = SessionMeta {
                user_id: user_id(config)?,
                device_id: device.as_str().into(),
            };
            let tokens = SessionTokens {
                access_token: token.expose().to_owned(),
                refresh_token: None,
            };
            let session = MatrixSession {
                meta: expected,
                tokens,
            };
            check_token(config, &session).await?;
            Ok(session)
        }
        (None, ..) => Err(SessionError::Refused {
            user: config.user.clone(),
            why: "neither matrix.password nor matrix.access_token with matrix.device_id is given"
                .to_owned(),
        }),
    }
}

/// A client without a session and without anything stored.
async fn nobody(config: &MatrixConfig) -> Result<Client, SessionError> {
    Client::builder()
        .homeserver_url(&config.homeserver)
        .request_config(requests())
        .build()
        .await
        .map_err(|error| away(config, &error))
}

async fn log_in(
    config: &MatrixConfig,
    password: &str,
    device: Option<&str>,
) -> Result<MatrixSession, SessionError> {
    let client = nobody(config).await?;
    let user = UserIdentifier::Matrix(MatrixUserIdentifier::new(config.user.clone()));
    let login = login::v3::LoginInfo::Password(login::v3::Password::new(user, password.to_owned()));
    let mut request = login::v3::Request::new(login);
    request.refresh_token = true;
    request.initial_device_display_name = Some(DEVICE_NAME.to_owned());
    request.device_id = device.map(Into::into);
    let response = client
        .send(request)
        .await
        .map_err(|error| refused(config, &error))?;
    Ok(MatrixSession::from(&response))
}

/// A token must be that of the configured user and device, or messages would be encrypted for
/// keys that nobody has.
async fn check_token(config: &MatrixConfig, session: &MatrixSession) -> Result<(), SessionError> {
    let client = nobody(config).await?;
    client
        .matrix_auth()
        .restore_session(session.clone(), RoomLoadSettings::default())
        .await
        .map_err(|error| away(config, &error))?;
    let owner = client
        .send(whoami::v3::Request::new())
        .await
        .map_err(|error| refused(config, &error))?;
    let expected = format!(
        "{} on device {}",
        session.meta.user_id, session.meta.device_id
    );
    let device = owner
        .device_id
        .as_ref()
        .map_or("none", |device| device.as_str());
    let found = format!("{} on device {device}", owner.user_id);
    if found == expected {
        Ok(())
    } else {
        Err(SessionError::OtherToken { found, expected })
    }
}

/// Opens the stores, rewinds them to the ledger's token, and restores the session.
async fn open(
    config: &MatrixConfig,
    folder: &Path,
    token: Option<&str>,
    session: &MatrixSession,
) -> Result<Client, SessionError> {
    let store = |why: String| SessionError::Store {
        folder: folder.to_owned(),
        why,
    };
    let key: [u8; 32] = fs::read(folder.join(KEY))
        .map_err(|error| disk(&folder.join(KEY), &error))?
        .try_into()
        .map_err(|_| store(format!("{KEY} is not 32 bytes")))?;
    let databases = SqliteStoreConfig::with_low_memory_config(folder).key(Some(&key));
    let client = Client::builder()
        .homeserver_url(&config.homeserver)
        .sqlite_store_with_config_and_cache_path(databases, None::<&Path>)
        .cross_process_store_config(CrossProcessLockConfig::SingleProcess)
        .request_config(requests())
        .handle_refresh_tokens()
        .with_encryption_settings(EncryptionSettings {
            // Without an identity of its own the bot's messages carry a warning in people's
            // clients. An identity that exists already is never replaced.
            auto_enable_cross_signing: true,
            auto_enable_backups: config.recovery_passphrase.is_some(),
            backup_download_strategy: BackupDownloadStrategy::AfterDecryptionFailure,
        })
        .build()
        .await
        .map_err(|error| store(error.to_string()))?;
    // The SDK saves its token before anybody has seen what came with it; the ledger's token is
    // the one whose events are committed. A store without a token has never synced: it knows no
    // room, and must be told of all of them.
    let states = client.state_store();
    let synced = states
        .get_kv_data(StateStoreDataKey::SyncToken)
        .await
        .map_err(|error| store(error.to_string()))?
        .is_some();
    match token {
        Some(token) if synced => {
            let token = StateStoreDataValue::SyncToken(token.to_owned());
            states
                .set_kv_data(StateStoreDataKey::SyncToken, token)
                .await
        }
        _ => states.remove_kv_data(StateStoreDataKey::SyncToken).await,
    }
    .map_err(|error| store(error.to_string()))?;
    // With the session its tokens may be refreshed at any moment.
    keep_refreshed(&client, folder)?;
    client
        .restore_session(session.clone())
        .await
        .map_err(|error| store(error.to_string()))?;
    Ok(client)
}

/// Keeps refreshed tokens the moment they come: the old ones are dead by then.
fn keep_refreshed(client: &Client, folder: &Path) -> Result<(), SessionError> {
    let (reload, save) = (folder.to_owned(), folder.to_owned());
    client
        .set_session_callbacks(
            Box::new(move |_| Ok(read_session(&reload)?.tokens)),
            Box::new(move |client| {
                let session = client
                    .matrix_auth()
                    .session()
                    .ok_or("there is no session to keep")?;
                Ok(write_session(&save, &session)?)
            }),
        )
        .map_err(|error| SessionError::Store {
            folder: folder.to_owned(),
            why: error.to_string(),
        })
}

/// Logs in again on the same device after the homeserver has asked for it (a soft logout), and keeps
/// the new session. A client that has a session takes no other: the next start is on the new one.
///
/// # Errors
/// When there is no password to do it with, or the homeserver refuses.
pub(super) async fn log_in_again(config: &MatrixConfig) -> Result<(), SessionError> {
    let Some(password) = &config.password else {
        return Err(SessionError::Refused {
            user: config.user.clone(),
            why: "the access token is no longer valid and no password is configured".to_owned(),
        });
    };
    let folder = config.data_dir.join("matrix");
    let device = read_session(&folder)?.meta.device_id;
    let session = log_in(config, password.expose(), Some(device.as_str())).await?;
    write_session(&folder, &session)
}

/// Every request gives up in reasonable time; what must not be lost is repeated by us.
fn requests() -> RequestConfig {
    RequestConfig::new()
        .timeout(clock::patience(Duration::from_secs(30)))
        .retry_limit(2)
}

fn user_id(config: &MatrixConfig) -> Result<OwnedUserId, SessionError> {
    UserId::parse(&config.user).map_err(|error| SessionError::Refused {
        user: config.user.clone(),
        why: error.to_string(),
    })
}

fn away(config: &MatrixConfig, why: &dyn std::fmt::Display) -> SessionError {
    SessionError::Away {
        homeserver: config.homeserver.to_string(),
        why: why.to_string(),
    }
}

/// A client error is a refusal; everything else may pass.
fn refused(config: &MatrixConfig, error: &HttpError) -> SessionError {
    match error.as_client_api_error() {
        Some(answer) if is_final(answer) => SessionError::Refused {
            user: config.user.clone(),
            why: answer.to_string(),
        },
        _ => away(config, error),
    }
}

fn is_final(answer: &Error) -> bool {
    answer.status_code.is_client_error() && answer.status_code != 429
}

fn disk(path: &Path, error: &std::io::Error) -> SessionError {
    SessionError::Disk {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

fn read_session(folder: &Path) -> Result<MatrixSession, SessionError> {
    let path = folder.join(SESSION);
    let text = fs::read(&path).map_err(|error| disk(&path, &error))?;
    // The error of a file that holds secrets says where, never what.
    serde_json::from_slice(&text).map_err(|error| SessionError::Disk {
        why: format!(
            "is damaged at line {}, column {}",
            error.line(),
            error.column()
        ),
        path,
    })
}

/// Written beside and moved into place: a crash leaves the old or the new, never half.
fn write_session(folder: &Path, session: &MatrixSession) -> Result<(), SessionError> {
    let path = folder.join(SESSION);
    let text = serde_json::to_vec(session).map_err(|error| SessionError::Disk {
        path: path.clone(),
        why: error.to_string(),
    })?;
    let fresh = folder.join("session.json.new");
    write_private(&fresh, &text)?;
    fs::rename(&fresh, &path).map_err(|error| disk(&path, &error))?;
    // The old tokens are worthless: the new name must be on the disk too.
    #[cfg(unix)]
    fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| disk(folder, &error))?;
    Ok(())
}

/// Writes a file that only its owner reads, and waits until it is on the disk.
fn write_private(path: &Path, content: &[u8]) -> Result<(), SessionError> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .map_err(|error| disk(path, &error))
}

fn make_private(folder: &Path) -> Result<(), SessionError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
            .map_err(|error| disk(folder, &error))?;
    }
    Ok(())
}
