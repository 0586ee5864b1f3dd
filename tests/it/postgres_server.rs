//! A `PostgreSQL` server of the tests' own, with its own data, socket and port. Also for the tests of modules.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
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
        Self::start_in(folder(), 5432, settings)
    }

    fn start_in(folder: tempfile::TempDir, port: u16, settings: &[&str]) -> Self {
        let data = folder.path().join("data");
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
            look.arg("-q")
                .args(["-p", &port.to_string(), "-h"])
                .arg(folder.path())
                .status()
                .unwrap()
                .success()
        };
        while !is_ready() {
            assert!(started.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { folder, server }
    }

    /// Starts one that is reached by TCP, with this certificate and key; answers its port, too.
    #[allow(dead_code, reason = "the tests of modules need none")]
    pub(crate) fn start_secure(certificate: &str, key: &str) -> (Self, u16) {
        let folder = folder();
        let files = [("server.crt", certificate), ("server.key", key)].map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                chown(&path, Some(NOT_ROOT), Some(NOT_ROOT)).unwrap();
            }
            path
        });
        // It is free when it is asked for; who takes it meanwhile makes the server fail loudly.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let [certificate, key] = files.map(|path| path.display().to_string());
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={certificate}"),
            format!("ssl_key_file={key}"),
        ];
        (Self::start_in(folder, port, &settings.each_ref().map(String::as_str)), port)
    }

    /// Stops all processes of the server, which takes connections and answers nothing then; or lets them go on.
    #[allow(dead_code, reason = "the tests of modules need none")]
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let all = format!("kill {signal} {pid} $(pgrep -P {pid})", pid = self.server.id());
        assert!(Command::new("bash").args(["-c", &all]).status().unwrap().success());
    }

    /// From now on the user has this password, and has to give it.
    #[allow(dead_code, reason = "the tests of modules need none")]
    pub(crate) fn require_password(&self, password: &str) {
        let say = format!("ALTER USER ralph PASSWORD '{password}'");
        let mut psql = program("psql");
        psql.args(["-q", "-U", "ralph", "-d", "postgres", "-c", &say, "-h"]).arg(self.folder.path());
        assert!(psql.status().unwrap().success());
        fs::write(self.folder.path().join("data/pg_hba.conf"), "local all all scram-sha-256\n").unwrap();
        let mut psql = program("pg_ctl");
        psql.args(["reload", "-s", "-D"]).arg(self.folder.path().join("data"));
        assert!(psql.status().unwrap().success());
    }

    /// Its socket.
    #[allow(dead_code, reason = "only the tests of modules need it")]
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// The address of a graph in this schema.
    pub(crate) fn address(&self, schema: &str) -> String {
        let host = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://ralph@{host}/postgres?schema={schema}")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that is stopped would not hear anything.
        let _ = Command::new("kill").args(["-CONT", &self.server.id().to_string()]).status();
        // It ends its own processes at that.
        let pid = self.server.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.server.wait();
    }
}

/// A folder of the server's own.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
    if is_root() {
        chown(folder.path(), Some(NOT_ROOT), Some(NOT_ROOT)).unwrap();
    }
    folder
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
