//! What the store on a `PostgreSQL` server costs beside the update of a row by its key on the same server, in alternating rounds: claims
//! and renewals in graphs of a thousand and of a million tasks, with one worker and with 64; how many tasks eight workers claim and
//! complete; how much of the server a thousand idle workers take; what a claim costs behind a snapshot that is kept open.
//! Prints verdicts for `scripts/bench`; with `--quick` it only shows that it runs. A word runs one part: `single`, `throughput`,
//! `snapshot` or `idle`.

#[path = "../tests/it/postgres_server.rs"]
mod postgres_server;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres_server::PostgresServer;
use ralph::graph::postgres::{Address, PostgresStore, Said};
use ralph::graph::{Claim, Ended, Holder, HowDone, Made, Scope, Store, import};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls};

/// So many tasks depend on each other and on nothing else: the first is the whole, the next are parts of it, and the others are parts
/// of these. The last ones wait for earlier ones, so that somewhat less than half of the tasks are ready.
const BLOCK: u64 = 100;
const MIDDLES: u64 = 10;
const READY: u64 = 45;
/// So many tasks are imported; the rows of a larger graph are copies of theirs.
const IMPORTED: u64 = 1_000;
/// So many claims, then so many updates.
const BATCH: u64 = 10;
const LEASE: Duration = Duration::from_mins(10);
/// How many workers hold claims, and how many work at once.
const HOLDERS: usize = 64;
const WORKERS: usize = 8;
/// So many workers are idle.
const IDLE: u32 = 1_000;

struct Size {
    tasks: [u64; 2],
    flat: u64,
    rounds: u64,
    /// How long eight workers work, and how often.
    span: Duration,
    turns: usize,
    /// One of so many of the calls of idle workers is made.
    idle: u32,
    bookings: u64,
}

const FULL: Size = Size {
    tasks: [1_000, 1_000_000],
    flat: 100_000,
    rounds: 300,
    span: Duration::from_secs(3),
    turns: 5,
    idle: 2,
    bookings: 100_000,
};
const QUICK: Size = Size {
    tasks: [1_000, 10_000],
    flat: 10_000,
    rounds: BATCH,
    span: Duration::from_millis(100),
    turns: 1,
    idle: 10,
    bookings: 100,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick" || argument == "--test");
    let all = arguments.iter().all(|argument| argument.starts_with('-'));
    let is_asked = |part: &str| all || arguments.iter().any(|argument| argument == part);
    let size = if quick { QUICK } else { FULL };
    // A disk: /tmp may be memory.
    tempfile::env::override_temp_dir(Path::new("/var/tmp")).expect("it is not used yet");
    let server = PostgresServer::start(&["fsync=on", "max_connections=200"]);
    let mut judge = Judge { quick, good: true };
    for (schema, tasks) in SCHEMAS.into_iter().zip(size.tasks) {
        let begun = Instant::now();
        make_graph(&server, schema, tasks, &in_blocks);
        println!("        {tasks} tasks, made in {:.1?}", begun.elapsed());
        // The server knows nothing about the new rows yet.
        let (claim, update) = claim_beside(&mut open(&server, schema), &Plain::open(&server, SCHEMAS[0]));
        let what = format!("claim, whole graph, {tasks} tasks, just made: {claim:.1?}, update {update:.1?}");
        judge.at_most(&what, ratio(claim, update), "times an update", 3.0);
        gather(&server);
    }
    make_graph(&server, FLAT, size.flat, &alone);
    gather(&server);
    if is_asked("single") {
        single(&server, &size, &mut judge);
    }
    if is_asked("throughput") {
        throughput(&server, &size, &mut judge);
    }
    if is_asked("snapshot") {
        behind_a_snapshot(&server, &size);
    }
    if is_asked("idle") {
        idle(&server, &size, &mut judge);
    }
    if judge.good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

const SCHEMAS: [&str; 2] = ["small", "large"];
/// A graph of tasks that are parts of nothing, and wait for nothing.
const FLAT: &str = "flat";

/// Prints verdicts, and notes whether all are good.
struct Judge {
    quick: bool,
    good: bool,
}

impl Judge {
    fn at_most(&mut self, what: &str, value: f64, unit: &str, most: f64) {
        self.say(what, value <= most, &format!("{value:.2} {unit} (at most {most})"));
    }

    fn at_least(&mut self, what: &str, value: f64, unit: &str, least: f64) {
        self.say(what, value >= least, &format!("{value:.2} {unit} (at least {least})"));
    }

    fn say(&mut self, what: &str, fits: bool, figures: &str) {
        let word = match fits {
            _ if self.quick => "-",
            true => "ok",
            false => "MISSED",
        };
        println!("{word:7} {what:72} {figures}");
        self.good &= fits || self.quick;
    }
}

/// Claims and renewals of one worker beside updates, in both graphs, with one worker and with many that hold claims.
fn single(server: &PostgresServer, size: &Size, judge: &mut Judge) {
    let mut stores = SCHEMAS.map(|schema| open(server, schema));
    // The update is always that of the small graph, whose pages are all in memory.
    let plain = Plain::open(server, SCHEMAS[0]);
    let mut few: Option<[Times; 2]> = None;
    for held in [1, HOLDERS] {
        // Each on a connection of its own, as they would be.
        let holders: Vec<_> = SCHEMAS.map(|schema| (1..held).map(|_| hold(server, schema)).collect()).into();
        let (times, update) = alternate(&mut stores, &plain, size);
        for (graph, times) in times.iter().enumerate() {
            let what = format!("{} tasks, {held} workers", size.tasks[graph]);
            for (scope, claim) in SCOPES.into_iter().zip(times.claims) {
                let what = format!("claim, {scope}, {what}: {claim:.1?}, update {update:.1?}");
                judge.at_most(&what, ratio(claim, update), "times an update", 3.0);
            }
            let what = format!("renewal, {what}: {:.1?}, update {update:.1?}", times.renewal);
            judge.at_most(&what, ratio(times.renewal, update), "times an update", 1.5);
        }
        for (at, scope) in SCOPES.into_iter().enumerate() {
            let growth = ratio(times[1].claims[at], times[0].claims[at]);
            let what = format!("claim, {scope}, in {} to {} tasks", size.tasks[1], size.tasks[0]);
            judge.at_most(&what, growth, "times", 2.0);
        }
        if let Some(few) = &few {
            for (graph, tasks) in size.tasks.iter().enumerate() {
                let growth = ratio(times[graph].claims[0], few[graph].claims[0]);
                judge.at_most(
                    &format!("claim, {tasks} tasks, {HOLDERS} workers to one"),
                    growth,
                    "times",
                    2.0,
                );
            }
        }
        few = Some(times);
        for (mut store, claim) in holders.into_iter().flat_map(|all: Vec<_>| all) {
            store.release(&claim, "").expect("a release");
        }
    }
}

const SCOPES: [&str; 3] = ["whole graph", "a feature", "a subtree"];

/// Medians of one graph.
struct Times {
    claims: [Duration; 3],
    renewal: Duration,
}

/// Claims and renewals in each graph, and updates, in turn.
fn alternate(stores: &mut [PostgresStore; 2], plain: &Plain, size: &Size) -> ([Times; 2], Duration) {
    let mut claims: [[Vec<Duration>; 3]; 2] = Default::default();
    let (mut renewals, mut updates): ([Vec<Duration>; 2], Vec<Duration>) = Default::default();
    let holder = holder();
    for round in 0..size.rounds / BATCH {
        for (graph, store) in stores.iter_mut().enumerate() {
            // The first blocks are those that others have claimed.
            let far = size.tasks[graph] / BLOCK - 1 - round * 7919 % (size.tasks[graph] / BLOCK / 2);
            let scopes =
                [Scope::All, Scope::Feature(format!("f{}", far % 10)), Scope::Subtree(id(far * BLOCK))];
            for (scope, times) in scopes.iter().zip(&mut claims[graph]) {
                for _ in 0..BATCH {
                    let begun = Instant::now();
                    let claim = store.claim(scope, &holder, LEASE).expect("a claim").expect("a ready task");
                    times.push(begun.elapsed());
                    let begun = Instant::now();
                    store.renew(&claim, LEASE).expect("a renewal");
                    renewals[graph].push(begun.elapsed());
                    store.release(&claim, "").expect("a release");
                }
                for turn in 0..BATCH {
                    let begun = Instant::now();
                    plain.update((round * BATCH + turn) * 7919 % IMPORTED + 1);
                    updates.push(begun.elapsed());
                }
            }
        }
    }
    let [small, large] = claims.map(|claims| claims.map(median));
    let [of_small, of_large] = renewals.map(median);
    let times = [(small, of_small), (large, of_large)];
    (times.map(|(claims, renewal)| Times { claims, renewal }), median(updates))
}

/// Tasks that so many workers claim and complete, and updates on as many connections.
fn throughput(server: &PostgresServer, size: &Size, judge: &mut Judge) {
    let (mut alone, mut in_blocks, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns {
        // Rows of the turn before that are gone are not counted to this one.
        gather(server);
        plain.push(per_second(size.span, || {
            let plain = Plain::open(server, SCHEMAS[0]);
            move |turn| plain.update(turn * 7919 % IMPORTED + 1)
        }));
        for (schema, ours) in [(FLAT, &mut alone), (SCHEMAS[1], &mut in_blocks)] {
            ours.push(per_second(size.span, || {
                let mut store = open(server, schema);
                move |_| assert!(work_once(&mut store, &Scope::All))
            }));
        }
    }
    // A claim and a result are two transactions, each of which is an update at least.
    let [alone, in_blocks] = [alone, in_blocks].map(|tasks| 2.0 * median(tasks));
    let plain = median(plain);
    let what = format!("claims and results, {WORKERS} workers: {alone:.0}/s, updates {plain:.0}/s");
    judge.at_least(&what, alone / plain, "times the updates", 0.3);
    // They all book in the same row, that of the whole, one after the other.
    println!("        the same, parts of one whole: {in_blocks:.0}/s, {:.2} times", in_blocks / plain);
}

/// Claims a task and completes it; returns whether one was ready.
fn work_once(store: &mut PostgresStore, scope: &Scope) -> bool {
    let Some(claim) = store.claim(scope, &holder(), LEASE).expect("an answer") else { return false };
    assert_eq!(store.complete(&claim, HowDone::default()).expect("a booking"), Ended::Done);
    true
}

/// How often in a second so many threads do what `each` makes for them.
fn per_second<F: FnMut(u64)>(span: Duration, each: impl Fn() -> F + Sync) -> f64 {
    let (done, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let ready = Barrier::new(WORKERS + 1);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (each, done, is_over, ready) = (&each, &done, &is_over, &ready);
            scope.spawn(move || {
                let mut once = each();
                // Connected.
                once(worker as u64);
                ready.wait();
                while !is_over.load(Ordering::Relaxed) {
                    once(done.fetch_add(1, Ordering::Relaxed).into());
                }
            });
        }
        ready.wait();
        let begun = Instant::now();
        thread::sleep(span);
        is_over.store(true, Ordering::Relaxed);
        f64::from(done.load(Ordering::Relaxed)) / begun.elapsed().as_secs_f64()
    })
}

/// What claims cost after many bookings whose old rows cannot be removed, as another connection may still read them.
fn behind_a_snapshot(server: &PostgresServer, size: &Size) {
    let mut store = open(server, SCHEMAS[1]);
    let plain = Plain::open(server, SCHEMAS[0]);
    let before = claim_beside(&mut store, &plain);
    let reader = Plain::open(server, SCHEMAS[1]);
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM meta");
    // A claim and a result for each task, from the first block on; each worker in another one, as they would wait for each other.
    let (next, blocks) = (AtomicU64::new(0), (size.bookings / 2).div_ceil(BLOCK));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let mut store = open(server, SCHEMAS[1]);
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks {
                        break;
                    }
                    while work_once(&mut store, &Scope::Subtree(id(block * BLOCK))) {}
                }
            });
        }
    });
    let behind = claim_beside(&mut store, &plain);
    reader.run("ROLLBACK");
    server.sql("VACUUM");
    let after = claim_beside(&mut store, &plain);
    let [before, behind, after] = [before, behind, after]
        .map(|(claim, update)| format!("{claim:.1?} ({:.1} times an update)", ratio(claim, update)));
    let bookings = size.bookings;
    println!(
        "        claim behind a snapshot from before {bookings} bookings: {behind}; before: {before}; after: {after}"
    );
}

/// The medians of some claims, which are given back, and of updates.
fn claim_beside(store: &mut PostgresStore, plain: &Plain) -> (Duration, Duration) {
    let (mut claims, mut updates, holder) = (Vec::new(), Vec::new(), holder());
    for turn in 0..5 * BATCH {
        let begun = Instant::now();
        let claim = store.claim(&Scope::All, &holder, LEASE).expect("a claim").expect("a ready task");
        claims.push(begun.elapsed());
        store.release(&claim, "").expect("a release");
        let begun = Instant::now();
        plain.update(turn * 7919 % IMPORTED + 1);
        updates.push(begun.elapsed());
    }
    (median(claims), median(updates))
}

/// What workers that find nothing to do take of the server: all that some of them ask in a minute is asked as fast as it can be.
fn idle(server: &PostgresServer, size: &Size, judge: &mut Judge) {
    let mut other = open(server, SCHEMAS[0]);
    let mut claims = Vec::new();
    while let Some(claim) = other.claim(&Scope::All, &holder(), LEASE).expect("a claim") {
        claims.push(claim);
    }
    for worker in 0..IDLE {
        report(&other, worker);
    }
    idle_for_a_minute(server, size, false, "nothing lands", judge);
    // Another worker has the lead, and its gate runs.
    let made = Made { trunk: TRUNK.into(), base: "0".repeat(40), head: "1".repeat(40) };
    other.queue(&claims[0], &made, HowDone::default()).expect("it is handed in");
    other.lead(TRUNK, &holder(), LEASE).expect("an answer").expect("the lead");
    idle_for_a_minute(server, size, true, "something waits to land", judge);
}

const TRUNK: &str = "main";

fn idle_for_a_minute(server: &PostgresServer, size: &Size, lands: bool, what: &str, judge: &mut Judge) {
    let (next, most) = (AtomicU32::new(0), IDLE / size.idle);
    let ready = Barrier::new(WORKERS + 1);
    let (cpu, took) = thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let store = open(server, SCHEMAS[0]);
                let a_minute = |worker| {
                    member_for_a_minute(&store, worker);
                    lane_for_a_minute(&store);
                    lander_for_a_minute(&store, lands);
                };
                // A worker connects once.
                a_minute(0);
                ready.wait();
                ready.wait();
                loop {
                    let worker = next.fetch_add(1, Ordering::Relaxed);
                    if worker >= most {
                        break;
                    }
                    a_minute(worker);
                }
                // Nor does it end meanwhile.
                ready.wait();
                ready.wait();
            });
        }
        ready.wait();
        let (before, begun) = (server.cpu_time(), Instant::now());
        ready.wait();
        ready.wait();
        let spent = (server.cpu_time().saturating_sub(before), begun.elapsed());
        ready.wait();
        spent
    });
    let cpu = cpu.as_secs_f64() * f64::from(IDLE) / f64::from(most);
    let what = format!("{IDLE} idle workers, {what} ({most} minutes in {took:.1?})");
    judge.at_most(&what, cpu / 60.0 * 100.0, "% of one core", 5.0);
}

/// It looks every six seconds whether it is asked something, and reports instead when it has not done that for a minute.
fn member_for_a_minute(store: &PostgresStore, worker: u32) {
    for look in 0..10 {
        if look == 0 {
            report(store, worker);
        } else {
            assert!(!store.is_asked(&run(worker)).expect("an answer"));
        }
    }
}

/// It looks for a task, then for what it may wait for, every thirty seconds.
fn lane_for_a_minute(store: &PostgresStore) {
    for _ in 0..2 {
        assert!(!store.may_claim().expect("an answer"));
        assert!(!store.at_work(&Scope::All, 6).expect("an answer").is_empty());
    }
}

/// It looks for what waits to land, and who lands it, every thirty seconds.
fn lander_for_a_minute(store: &PostgresStore, lands: bool) {
    for _ in 0..2 {
        store.landings().expect("an answer");
        if lands {
            assert!(store.leader(TRUNK).expect("an answer").is_some());
        }
    }
}

fn run(worker: u32) -> String {
    format!("run-{worker}")
}

fn report(store: &PostgresStore, worker: u32) {
    let said = Said { run: &run(worker), machine: "bench", logs: "/logs", ..Said::default() };
    store.report(&said).expect("a report");
}

/// A connection of the same library, settled as those of the store, for statements that are transactions of their own.
struct Plain {
    client: Client,
    runtime: Runtime,
    update: String,
}

impl Plain {
    fn open(server: &PostgresServer, schema: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut config = Config::new();
        config.host_path(server.socket().parent().expect("its folder")).user("ralph").dbname("postgres");
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.expect("a connection");
            tokio::spawn(connection);
            client
        });
        let update = "UPDATE tasks SET updated_at = updated_at + 1 WHERE seq = $1".to_owned();
        let plain = Self { client, runtime, update };
        plain.run(&format!("SET synchronous_commit = on; SET search_path TO {schema}"));
        plain
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("SQL");
    }

    /// Without a name, as the statements of the store: one round trip.
    fn update(&self, task: u64) {
        let task = i64::try_from(task).expect("a small number");
        let changed = self
            .runtime
            .block_on(async { self.client.execute_typed(&self.update, &[(&task, Type::INT8)]).await });
        assert_eq!(changed.expect("an update"), 1);
    }
}

fn open(server: &PostgresServer, schema: &str) -> PostgresStore {
    let address = Address::read(&server.address(schema)).expect("an address");
    PostgresStore::create(address).expect("the graph")
}

/// Another worker, with a claim.
fn hold(server: &PostgresServer, schema: &str) -> (PostgresStore, Claim) {
    let mut store = open(server, schema);
    let claim = store.claim(&Scope::All, &holder(), LEASE).expect("a claim").expect("a ready task");
    (store, claim)
}

fn holder() -> Holder {
    Holder::of_self("run-bench").expect("we are alive")
}

/// What the server does by itself in time.
fn gather(server: &PostgresServer) {
    server.sql("VACUUM ANALYZE");
    server.sql("CHECKPOINT");
}

/// A graph in a new schema: an import, and copies of its rows.
fn make_graph(server: &PostgresServer, schema: &str, tasks: u64, line: &dyn Fn(u64) -> String) {
    let lines = import::header() + "\n" + &(0..IMPORTED).map(line).collect::<String>();
    let mut entries = import::read(lines.as_bytes(), &|_| true).expect("an export");
    let imported = open(server, schema).import(&mut entries, false).expect("a new graph");
    assert_eq!(imported.added as u64, IMPORTED);
    server.sql(&format!(
        "SET search_path TO {schema};
        CREATE TEMP TABLE copies AS SELECT n * {IMPORTED} AS n FROM generate_series(1, {tasks} / {IMPORTED} - 1) n;
        INSERT INTO tasks (seq, id, parent, feature, title, status, priority, created_at, updated_at, children, open_blockers, held,
          ready, work)
        SELECT seq + n, 't-' || lpad(to_hex(seq + n - 1), 6, '0'), parent + n, feature, title, status, priority, created_at,
          updated_at, children, open_blockers, held, ready, work FROM copies, tasks ORDER BY n, seq;
        INSERT INTO dependencies SELECT blocker + n, blocked + n FROM copies, dependencies ORDER BY n;
        INSERT INTO ready SELECT CASE WHEN scope > 0 THEN scope + n ELSE scope END, priority, task + n FROM copies, ready ORDER BY n;"
    ));
    assert_eq!(open(server, schema).counts(&Scope::All).expect("counts").total, tasks);
}

/// A task of an export, that depends on others of its block.
fn in_blocks(number: u64) -> String {
    let (block, place) = (number / BLOCK * BLOCK, number % BLOCK);
    let parent = match place {
        0 => None,
        middle if middle <= MIDDLES => Some(block),
        part => Some(block + 1 + part % MIDDLES),
    };
    let blockers =
        if place > MIDDLES + READY { vec![number - READY, number - READY + 1] } else { Vec::new() };
    line(number, parent, &blockers)
}

fn alone(number: u64) -> String {
    line(number, None, &[])
}

fn line(number: u64, parent: Option<u64>, blockers: &[u64]) -> String {
    let quoted = |number: u64| format!("\"{}\"", id(number));
    let parent = parent.map_or("null".to_owned(), quoted);
    let blockers: Vec<String> = blockers.iter().copied().map(quoted).collect();
    format!(
        "{{\"id\":{},\"parent_id\":{parent},\"feature\":\"f{}\",\"title\":\"Task number {number} of many\",\"status\":\"pending\",\"priority\":0,\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-01T00:00:00Z\",\"retry_count\":0,\"max_retries\":3,\"blockers\":[{}]}}\n",
        quoted(number),
        number / BLOCK % 10,
        blockers.join(",")
    )
}

fn id(number: u64) -> String {
    format!("t-{number:06x}")
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable_by(|one, other| one.partial_cmp(other).expect("numbers"));
    values[values.len() / 2]
}
