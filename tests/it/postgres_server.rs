//! A `PostgreSQL` server of the tests' own, with its own data, socket and port. Also for the tests of modules.

#![allow(dead_code, reason = "neither kind of tests needs all of it")]

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
    port: u16,
    settings: Vec<String>,
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
        let settings = ["listen_addresses=", "fsync=off", "deadlock_timeout=50ms"].iter().chain(settings);
        let settings: Vec<String> = settings.map(|setting| (*setting).to_owned()).collect();
        let server = serve(folder.path(), port, &settings);
        Self { folder, port, settings, server }
    }

    /// Kills all processes of the server with -9, and starts it again on what it has left.
    pub(crate) fn crash(&mut self) {
        self.signal("-KILL");
        self.server.wait().unwrap();
        self.server = serve(self.folder.path(), self.port, &self.settings);
    }

    /// Sends a signal to all processes of the server.
    fn signal(&self, signal: &str) {
        let server = self.server.id();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_ours = |pid: &u32| *pid == server || parent(*pid) == Some(server);
        let pids: Vec<String> = pids.filter(is_ours).map(|pid| pid.to_string()).collect();
        // One of them may have ended meanwhile.
        let _ = Command::new("kill").arg(signal).args(pids).stderr(Stdio::null()).status();
    }

    /// Starts one that is reached by TCP, with this certificate and key; answers its port, too.
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
    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.signal(if is_frozen { "-STOP" } else { "-CONT" });
    }

    /// From now on the user has this password, and has to give it.
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
        self.signal("-CONT");
        // It ends its own processes at that.
        let pid = self.server.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.server.wait();
    }
}

/// Starts the server, and waits until it can be used.
fn serve(folder: &Path, port: u16, settings: &[String]) -> Child {
    let started = Instant::now();
    loop {
        let mut server = program("postgres");
        server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
        for setting in settings {
            server.args(["-c", setting]);
        }
        let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_ready = || {
            let mut look = program("pg_isready");
            look.arg("-q").args(["-p", &port.to_string(), "-h"]).arg(folder).status().unwrap().success()
        };
        // It refuses to start as long as a process of the last one lives.
        while server.try_wait().unwrap().is_none() {
            if is_ready() {
                return server;
            }
            assert!(started.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(started.elapsed() < PATIENCE, "the server does not start");
    }
}

/// The process that has started this one.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may have blanks.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
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
