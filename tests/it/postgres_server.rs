//! A `PostgreSQL` server of the tests' own, with its own data, socket and port. Also for the tests of modules.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// It refuses to run as root.
const NOT_ROOT: u32 = 65534;
const PATIENCE: Duration = Duration::from_mins(1);

/// A server, which ends with this.
pub(crate) struct PostgresServer {
    folder: tempfile::TempDir,
    server: Child,
}

impl PostgresServer {
    /// Starts one with these settings besides.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        let data = folder.path().join("data");
        if is_root() {
            chown(folder.path(), Some(NOT_ROOT), Some(NOT_ROOT)).unwrap();
        }
        let mut initdb = program("initdb");
        initdb.args(["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=ralph", "-D"]);
        let made = initdb.arg(&data).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = program("postgres");
        server.arg("-D").arg(&data).arg("-k").arg(folder.path());
        for setting in ["listen_addresses=", "fsync=off", "deadlock_timeout=50ms"].iter().chain(settings) {
            server.args(["-c", setting]);
        }
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        let is_ready = || {
            let mut look = program("pg_isready");
            look.arg("-q").arg("-h").arg(folder.path()).status().unwrap().success()
        };
        while !is_ready() {
            assert!(started.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { folder, server }
    }

    /// The address of a graph in this schema.
    pub(crate) fn address(&self, schema: &str) -> String {
        let host = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://ralph@{host}/postgres?schema={schema}")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // It ends its own processes at that.
        let pid = self.server.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.server.wait();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A program of the server's, as a user that it runs as.
fn program(name: &str) -> Command {
    let path = found(name).unwrap_or_else(|| {
        panic!("{name} is not there: install PostgreSQL, for example with 'apt-get install postgresql'")
    });
    if !is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    let ids = [format!("--reuid={NOT_ROOT}"), format!("--regid={NOT_ROOT}")];
    command.args(ids).arg("--clear-groups").arg(path).current_dir("/");
    command
}

fn found(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let usual = versions.map(|version| version.path().join("bin"));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = usual.chain(std::env::split_paths(&on_path)).collect();
    all.iter().map(|folder: &PathBuf| folder.join(name)).find(|path: &PathBuf| Path::is_file(path))
}
