//! Notices on the desktop: a real D-Bus daemon with an address of its own, and a service of the tests' own on it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use zbus::OwnedVariant;
use zbus::block_on;
use zbus::connection::Builder;

use crate::policies::project;
use crate::scratch::{Scratch, wait_for};

const CONFIG: &str = r#"<busconfig>
  <type>session</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A bus; its daemon ends with it.
struct Bus {
    daemon: Child,
    address: String,
}

impl Bus {
    fn start(scratch: &Scratch) -> Self {
        let (config, socket) = (scratch.outside().join("bus.conf"), scratch.outside().join("bus"));
        fs::write(&config, CONFIG.replace("SOCKET", socket.to_str().unwrap())).unwrap();
        let mut command = Command::new("dbus-daemon");
        command.arg("--nofork").arg("--config-file").arg(&config).stdin(Stdio::null());
        let daemon = command.spawn().expect("dbus-daemon; scripts/test installs it");
        // Its socket is there before anybody listens to it.
        wait_for("the bus", || UnixStream::connect(&socket).ok());
        Self { daemon, address: format!("unix:path={}", socket.display()) }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Title, text and urgency of each notification.
type Shown = Arc<Mutex<Vec<(String, String, u8)>>>;

/// What a desktop has for notifications.
struct Notifications(Shown);

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Notifications {
    #[expect(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "as the specification of desktops has it"
    )]
    fn notify(
        &mut self,
        app: &str,
        replaces: u32,
        icon: &str,
        title: String,
        text: String,
        actions: Vec<String>,
        hints: HashMap<String, OwnedVariant>,
        timeout: i32,
    ) -> u32 {
        let _ = (replaces, icon, actions, timeout);
        assert_eq!(app, "ralph");
        let urgency = hints.get("urgency").and_then(|urgency| u8::try_from(urgency).ok()).unwrap_or(99);
        self.0.lock().unwrap().push((title, text, urgency));
        1
    }
}

#[test]
fn the_desktop_shows_how_loops_end() {
    let scratch = project("[ $n = 1 ] && { complete; exit; }; bad 1 x '<b>boom</b>'");
    let bus = Bus::start(&scratch);
    let shown = Shown::default();
    let service = Builder::address(bus.address.as_str())
        .name("org.freedesktop.Notifications")
        .serve_at("/org/freedesktop/Notifications", Notifications(Arc::clone(&shown)));
    let _service = block_on(service.build()).unwrap();

    let mut command = scratch.ralph("prompt p.md 1 --max-retries 0");
    command.env("RALPH_NOTIFY_DESKTOP", "true").env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    let run = Scratch::finish(&mut command);
    assert!(run.code == Some(0) && !run.stderr.contains("warning"), "{run:?}");
    let run = Scratch::finish(&mut command);
    assert_eq!(run.code, Some(4), "{run:?}");
    let shown = shown.lock().unwrap().clone();
    let [done, failed] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((&*done.0, done.2, failed.2), ("ralph in project", 1, 2));
    assert!(done.1.starts_with("✓ prompt done: 1 iteration"), "{shown:?}");
    // A desktop may read it as markup.
    assert!(failed.1.contains("&lt;b&gt;boom&lt;/b&gt;"), "{shown:?}");

    let mut test = scratch.ralph("notify test");
    test.env("RALPH_NOTIFY_DESKTOP", "true").env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    assert_eq!(Scratch::finish(&mut test).code, Some(0));
}

#[test]
fn without_a_desktop_nobody_hears_of_it() {
    let scratch = project("complete");
    let nowhere = format!("unix:path={}", scratch.outside().join("nowhere").display());
    for address in ["", &nowhere, "nonsense"] {
        let mut command = scratch.ralph("prompt p.md 1");
        command.env("RALPH_NOTIFY_DESKTOP", "true").env("DBUS_SESSION_BUS_ADDRESS", address);
        command.env("XDG_RUNTIME_DIR", scratch.outside());
        let run = Scratch::finish(&mut command);
        assert!(run.code == Some(0) && !run.stderr.contains("warning"), "{address}: {run:?}");
        let mut test = scratch.ralph("notify test");
        test.env("RALPH_NOTIFY_DESKTOP", "true").env("DBUS_SESSION_BUS_ADDRESS", address);
        let run = Scratch::finish(test.env("XDG_RUNTIME_DIR", scratch.outside()));
        assert!(run.code == Some(1) && run.stdout.starts_with("✗ desktop"), "{address}: {run:?}");
    }
}

/// A bus whose service takes a notification and never says so.
#[test]
fn a_desktop_that_hangs_holds_nobody_up() {
    let scratch = project("complete");
    let socket = scratch.outside().join("silent");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let mut command = scratch.ralph("prompt p.md 1");
    command.env("RALPH_NOTIFY_DESKTOP", "true");
    let run =
        Scratch::finish(command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", socket.display())));
    assert!(run.code == Some(0) && run.elapsed.as_secs() < 15, "{run:?}");
}
