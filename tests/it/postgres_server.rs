//! A `PostgreSQL` server of the tests' own, with its own data, socket and port. Also for the tests of modules.

#![allow(dead_code, reason = "neither kind of tests needs all of it")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// It refuses to run as root.
const NOT_ROOT: u32 = 65534;
const PATIENCE: Duration = Duration::from_mins(2);

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
        let mut initdb = program("initdb");
        initdb.args(["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=ralph", "-D"]);
        succeed(initdb.arg(folder.path().join("data")));
        Self::serve(folder, port, settings)
    }

    /// Starts a standby, which gets what is written here afterwards.
    pub(crate) fn standby(&self) -> Self {
        let standby = folder();
        let mut copy = program("pg_basebackup");
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--username=ralph", "-h"]);
        succeed(copy.arg(self.folder.path()).arg("-D").arg(standby.path().join("data")));
        Self::serve(standby, self.port, &[])
    }

    /// Stops what sends to standbys: they lack what is written from now on.
    pub(crate) fn send_no_more(&self) {
        let is_sender = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("walsender"))
        };
        let senders: Vec<String> = self.processes().filter(is_sender).map(|pid| pid.to_string()).collect();
        succeed(Command::new("kill").arg("-STOP").args(senders));
    }

    /// Kills all processes of the server with -9, and leaves it so.
    pub(crate) fn kill(&mut self) {
        // It begins no other process meanwhile, which would live on and keep the next one from starting.
        succeed(Command::new("kill").args(["-STOP", &self.server.id().to_string()]));
        self.signal("-KILL");
        self.server.wait().unwrap();
    }

    /// Whether this standby has all that was written to that server.
    pub(crate) fn has_all_of(&self, server: &Self) -> bool {
        let written = server.sql("SELECT pg_current_wal_lsn()");
        self.sql(&format!("SELECT pg_last_wal_replay_lsn() >= '{}'", written.trim())) == "t\n"
    }

    /// Makes this standby the server that takes writes.
    pub(crate) fn promote(&self) {
        succeed(
            program("pg_ctl").args(["promote", "--wait", "-s", "-D"]).arg(self.folder.path().join("data")),
        );
    }

    fn serve(folder: tempfile::TempDir, port: u16, settings: &[&str]) -> Self {
        let settings = ["listen_addresses=", "fsync=off", "deadlock_timeout=50ms"].iter().chain(settings);
        let settings: Vec<String> = settings.map(|setting| (*setting).to_owned()).collect();
        let server = serve(folder.path(), port, &settings);
        Self { folder, port, settings, server }
    }

    /// Kills all processes of the server with -9, and starts it again on what it has left.
    pub(crate) fn crash(&mut self) {
        self.kill();
        self.server = serve(self.folder.path(), self.port, &self.settings);
    }

    /// Sends a signal to all processes of the server.
    fn signal(&self, signal: &str) {
        let pids = self.processes().map(|pid| pid.to_string());
        // One of them may have ended meanwhile.
        let _ = Command::new("kill").arg(signal).args(pids).stderr(Stdio::null()).status();
    }

    fn processes(&self) -> impl Iterator<Item = u32> {
        let server = self.server.id();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(move |pid| *pid == server || parent(*pid) == Some(server))
    }

    /// The processor time that all its processes have taken.
    pub(crate) fn cpu_time(&self) -> Duration {
        let ticks = self.processes().filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
            // Its own, and, of the first one, also of those that have ended.
            let count = if pid == self.server.id() { 4 } else { 2 };
            numbers.by_ref().take(count).map(|number| number.parse::<u64>().ok()).sum::<Option<u64>>()
        });
        Duration::from_secs(ticks.sum()) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap()
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
        self.sql(&say);
        fs::write(self.folder.path().join("data/pg_hba.conf"), "local all all scram-sha-256\n").unwrap();
        succeed(program("pg_ctl").args(["reload", "-s", "-D"]).arg(self.folder.path().join("data")));
    }

    /// Runs statements as a user who may do everything; answers what they have said.
    pub(crate) fn sql(&self, statements: &str) -> String {
        let mut psql = program("psql");
        psql.args(["-qAt", "--no-psqlrc", "-U", "ralph", "-d", "postgres", "-c", statements, "-h"]);
        succeed(psql.arg(self.folder.path()))
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// The address of a graph in this schema.
    pub(crate) fn address(&self, schema: &str) -> String {
        format!("postgres://ralph@{}/postgres?schema={schema}", self.host())
    }

    /// Its host, as addresses have it.
    pub(crate) fn host(&self) -> String {
        host(self.folder.path())
    }
}

/// The folder of a socket, as addresses have it.
fn host(folder: &Path) -> String {
    folder.to_str().unwrap().replace('/', "%2F")
}

/// A pooler before a server, `pgbouncer` in transaction mode; it ends with this.
pub(crate) struct Pooler {
    folder: tempfile::TempDir,
    pooler: Child,
}

impl Pooler {
    /// Starts one that has so many connections to the server.
    pub(crate) fn start(server: &PostgresServer, connections: usize) -> Self {
        let folder = folder();
        let (at, to) = (folder.path().display(), server.folder.path().display());
        let settings = format!(
            "[databases]\npostgres = host={to} port={} user=ralph pool_size={connections}\n[pgbouncer]\nlisten_port = 5432\n\
            unix_socket_dir = {at}\nauth_type = any\npool_mode = transaction\nmax_client_conn = 1000\n",
            server.port
        );
        let config = folder.path().join("pgbouncer.ini");
        fs::write(&config, settings).unwrap();
        let pooler = program("pgbouncer").arg("-q").arg(config).stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while !folder.path().join(".s.PGSQL.5432").exists() {
            assert!(started.elapsed() < PATIENCE, "the pooler does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { folder, pooler }
    }

    /// The address of a graph in this schema, through the pooler.
    pub(crate) fn address(&self, schema: &str) -> String {
        format!("postgres://ralph@{}/postgres?schema={schema}", host(self.folder.path()))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.pooler.kill();
        let _ = self.pooler.wait();
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

/// Runs a program to its end; answers what it has printed.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let run = command.output().unwrap();
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A program of the server's, as a user that it runs as.
fn program(name: &str) -> Command {
    let path = found(name)
        .unwrap_or_else(|| panic!("{name} is not there: scripts/test, or scripts/test --fleet, installs it"));
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
