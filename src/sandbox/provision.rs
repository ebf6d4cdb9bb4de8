//! Installs a pinned Synapse into the user's cache folder and keeps it there.
//!
//! Several processes may want it at once: one installs under a file lock, the others wait. An
//! installation counts once its marker file names its folder, and the marker is written last;
//! whatever a crash left half-done has no marker and is removed by the next one to install.
//! Every attempt has a folder of its own, as a virtual environment cannot be moved.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use super::SandboxError;

/// The release of Synapse that is installed. Another number here is another installation.
pub const SYNAPSE_VERSION: &str = "1.163.2";

/// Runs a Python module that ends when we do. See the file itself.
pub(super) const WATCHED: &str = include_str!("watched.py");

const OLDEST_PYTHON: (u32, u32) = (3, 10);
const PYTHON_NAMES: [&str; 7] = [
    "python3",
    "python",
    "python3.14",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
];
const LOCK_POLL: Duration = Duration::from_millis(200);

/// Where and with what to install.
#[derive(Debug, Clone)]
pub struct Provision {
    cache: PathBuf,
    python: Option<String>,
}

/// A Synapse that can be started.
#[derive(Debug, Clone)]
pub struct Installed {
    python: PathBuf,
}

impl Installed {
    /// The interpreter of the virtual environment that Synapse is installed in.
    pub fn python(&self) -> &Path {
        &self.python
    }
}

impl Provision {
    /// Installs into `cache`, with the interpreter `python`, or the first one that will do.
    pub fn new(cache: PathBuf, python: Option<String>) -> Self {
        Self { cache, python }
    }

    /// As the environment says: `MATRIX_ELICIT_CACHE`, else `XDG_CACHE_HOME`, else the place
    /// where this system keeps a user's caches; and `MATRIX_ELICIT_PYTHON`. `env` looks up a
    /// variable.
    ///
    /// # Errors
    /// [`SandboxError::NoCacheFolder`] if none of them is set.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, SandboxError> {
        let set = |name| env(name).filter(|value: &String| !value.is_empty());
        let caches = if cfg!(target_os = "macos") {
            "Library/Caches"
        } else {
            ".cache"
        };
        let cache = set("MATRIX_ELICIT_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|dir| Path::new(&dir).join("matrix-elicit")))
            .or_else(|| set("HOME").map(|dir| Path::new(&dir).join(caches).join("matrix-elicit")))
            .ok_or(SandboxError::NoCacheFolder)?;
        Ok(Self {
            cache,
            python: set("MATRIX_ELICIT_PYTHON"),
        })
    }

    /// The installation, made now if it is not there. `progress` gets a line at a time.
    ///
    /// # Errors
    /// See [`SandboxError`]: no Python, no venv, no network, no room on the disk.
    pub async fn run(
        &self,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Installed, SandboxError> {
        if let Some(installed) = self.installed().await {
            return Ok(installed);
        }
        fs::create_dir_all(&self.cache).map_err(SandboxError::io(format!(
            "creating {}",
            self.cache.display()
        )))?;
        // Made absolute: the server is started in another working directory.
        let cache = fs::canonicalize(&self.cache).map_err(SandboxError::io(format!(
            "opening {}",
            self.cache.display()
        )))?;
        // Held until the file is closed, which the system sees to if we are killed.
        let _lock = lock(&cache.join("install.lock"), progress).await?;
        if let Some(installed) = self.installed().await {
            return Ok(installed);
        }
        self.remove_leftovers();

        let python = find(self.python.as_deref(), true).await?;
        let name = format!("{}{:08x}", folder_prefix(), rand::random::<u32>());
        let folder = cache.join(&name);
        let log = cache.join("install.log");
        progress(&format!(
            "installing Synapse {SYNAPSE_VERSION} into {} (once; it takes about a minute)",
            folder.display()
        ));
        install(&python, &folder, &log, progress).await?;

        let fresh = cache.join(format!("{}tmp", folder_prefix()));
        fs::write(&fresh, &name)
            .and_then(|()| fs::rename(&fresh, self.marker()))
            .map_err(SandboxError::io("marking the installation as complete"))?;
        self.installed().await.ok_or(SandboxError::Install {
            reason: format!("Synapse {SYNAPSE_VERSION} is not there afterwards"),
            log,
        })
    }

    fn marker(&self) -> PathBuf {
        self.cache.join(format!("synapse-{SYNAPSE_VERSION}.ready"))
    }

    /// The installation that the marker names, if it still works: the system's Python may have
    /// been replaced since, which leaves an environment without its packages.
    async fn installed(&self) -> Option<Installed> {
        let name = fs::read_to_string(self.marker()).ok()?;
        let cache = fs::canonicalize(&self.cache).ok()?;
        let python = interpreter(&cache.join(name.trim()));
        let version = "import importlib.metadata as m; print(m.version('matrix-synapse'))";
        let output = ask(&python.display().to_string(), version).await?;
        (output == SYNAPSE_VERSION).then_some(Installed { python })
    }

    /// Removes what earlier attempts at this version left. Called under the lock, when the
    /// marker is known to be of no use. Failure does no harm: the next folder has another name.
    fn remove_leftovers(&self) {
        let _ = fs::remove_file(self.marker());
        for entry in fs::read_dir(&self.cache).into_iter().flatten().flatten() {
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with(&folder_prefix())
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// An interpreter that is new enough for a throwaway homeserver and what else there is to run
/// beside it: the one that `MATRIX_ELICIT_PYTHON` names, else the first on the `PATH` that will do.
/// Nothing is installed, and nothing has to be. `env` looks up a variable.
///
/// # Errors
/// [`SandboxError::NoPython`].
pub async fn find_python(env: &dyn Fn(&str) -> Option<String>) -> Result<String, SandboxError> {
    let named = env("MATRIX_ELICIT_PYTHON").filter(|name| !name.is_empty());
    find(named.as_deref(), false).await
}

/// The first interpreter that is new enough and, if that is wanted, can make an environment.
async fn find(named: Option<&str>, with_venv: bool) -> Result<String, SandboxError> {
    let candidates = named.map_or_else(|| PYTHON_NAMES.to_vec(), |named| vec![named]);
    let mut too_old = None;
    let mut without_venv = None;
    for name in candidates {
        let Some(version) = ask(name, "import sys; print('%d.%d' % sys.version_info[:2])").await
        else {
            continue;
        };
        if parse_version(&version).is_none_or(|version| version < OLDEST_PYTHON) {
            too_old.get_or_insert(format!("{name} is {version}"));
        } else if with_venv
            && ask(name, "import venv, ensurepip; print('yes')")
                .await
                .is_none()
        {
            without_venv.get_or_insert(name.to_owned());
        } else {
            return Ok(name.to_owned());
        }
    }
    if let Some(python) = without_venv {
        return Err(SandboxError::NoVenv { python });
    }
    let found = too_old.unwrap_or_else(|| match named {
        Some(named) => format!("{named} does not run"),
        None => "there is none on the PATH".to_owned(),
    });
    Err(SandboxError::NoPython { found })
}

/// How the folders of this version's installations begin.
fn folder_prefix() -> String {
    format!("synapse-{SYNAPSE_VERSION}-")
}

/// Takes the lock on `path`, waiting for as long as another process holds it.
async fn lock(path: &Path, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<File, SandboxError> {
    let failed = || SandboxError::io(format!("locking {}", path.display()));
    let file = File::create(path).map_err(failed())?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => {
                if !told {
                    progress("waiting for another process that is installing Synapse");
                    told = true;
                }
                tokio::time::sleep(LOCK_POLL).await;
            }
            Err(fs::TryLockError::Error(error)) => return Err(failed()(error)),
        }
    }
}

async fn install(
    python: &str,
    folder: &Path,
    log: &Path,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), SandboxError> {
    let mut output =
        File::create(log).map_err(SandboxError::io(format!("creating {}", log.display())))?;
    progress(&format!("making a virtual environment with {python}"));
    let mut venv = Command::new(python);
    venv.args(["-m", "venv"]).arg(folder);
    installer_step(venv, log, &mut output, progress).await?;

    let mut pip = Command::new(interpreter(folder));
    pip.args([
        "-c",
        WATCHED,
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
    ])
    .args(["--progress-bar", "off", "--prefer-binary"])
    .arg(format!("matrix-synapse=={SYNAPSE_VERSION}"));
    installer_step(pip, log, &mut output, progress).await
}

/// Runs one step, its output going to the log and, in short, to `progress`.
async fn installer_step(
    mut command: Command,
    log: &Path,
    output: &mut File,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), SandboxError> {
    let running = || SandboxError::io("running the installer");
    let stderr = output.try_clone().map_err(running())?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .kill_on_drop(true)
        .spawn()
        .map_err(running())?;
    // Waiting for a child closes its standard input, and this one ends when that happens.
    let _held = child.stdin.take();
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await.map_err(running())? {
            writeln!(output, "{line}").map_err(running())?;
            if let Some(short) = worth_telling(&line) {
                progress(&short);
            }
        }
    }
    if child.wait().await.map_err(running())?.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    Err(SandboxError::Install {
        reason: last_complaint(&text),
        log: log.to_owned(),
    })
}

/// Pip's output in short: what it fetches, and that it has begun to unpack.
fn worth_telling(line: &str) -> Option<String> {
    if let Some(what) = line.strip_prefix("Collecting ") {
        let name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let end = what.find(|c| !name(c)).unwrap_or(what.len());
        return Some(format!("fetching {}", &what[..end]));
    }
    line.starts_with("Installing collected packages")
        .then(|| "unpacking".to_owned())
}

/// The last line that says what went wrong, else the last line there is.
pub(super) fn last_complaint(log: &str) -> String {
    let lines = || {
        log.lines()
            .rev()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    lines()
        .find(|line| line.starts_with("ERROR:") || line.contains("Error:"))
        .or_else(|| lines().next())
        .unwrap_or("it said nothing")
        .to_owned()
}

fn interpreter(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    })
}

/// What `python` prints for a program, or nothing if it is not there or fails.
async fn ask(python: &str, program: &str) -> Option<String> {
    let output = Command::new(python)
        .args(["-c", program])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests;
