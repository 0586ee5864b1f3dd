//! The tables of the sandbox: what is known of the places of a machine.

/// Caches and stores of package managers and compilers, below the home directory.
pub(super) const CACHES: &[&str] = &[
    ".cache",
    ".bun/install/cache",
    ".bundle/cache",
    ".cabal/packages",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".cargo/git",
    ".cargo/registry",
    ".composer/cache",
    ".gradle/caches",
    ".gradle/wrapper",
    ".hex/packages",
    ".ivy2",
    ".m2/repository",
    ".npm",
    ".nuget/packages",
    ".pub-cache",
    ".sbt/boot",
    ".stack/pantry",
    ".yarn/berry",
    "go/pkg",
    ".local/share/pnpm/store",
    "Library/Caches",
];

/// What is for the user alone, below the home directory: keys, logins, browsers, histories.
pub(super) const SECRETS: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".gnupg",
    ".netrc",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".git-credentials",
    ".docker/config.json",
    ".cargo/credentials",
    ".gem/credentials",
    ".docker/contexts",
    ".docker/desktop",
    ".docker/run",
    ".colima",
    ".lima",
    ".rd",
    ".1password",
    ".cargo/credentials.toml",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".pgpass",
    ".pypirc",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".var/app/com.brave.Browser",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    ".var/app/org.mozilla.firefox",
    "snap/chromium",
    "snap/firefox",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".mysql_history",
    ".node_repl_history",
    ".psql_history",
    ".python_history",
    ".rediscli_history",
    ".sqlite_history",
];

/// Variables that name such places elsewhere, one or several.
pub(super) const OF_SECRETS: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HISTFILE",
    "KUBECONFIG",
    "NETRC",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
];
/// Variables that put folders elsewhere, and these.
pub(super) const XDG: &[(&str, &str)] = &[("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")];

/// Sockets that would do for a program what its walls keep it from, and folders of them.
pub(super) const SOCKETS: &[&str] = &[
    "/run/containerd",
    "/run/crio",
    "/run/dbus",
    "/run/docker",
    "/run/docker.sock",
    "/run/buildkit",
    "/run/k3s",
    "/run/libvirt",
    "/run/lxd.socket",
    "/run/podman",
    "/run/screen",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/user",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
];

/// Variables that name such sockets; folders and sockets that they name are hidden as well.
pub(super) const OF_SOCKETS: &[&str] = &[
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "RALPH_TMUX_SOCKET",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "TMUX",
    "TMUX_PANE",
    "TMUX_TMPDIR",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Folders of temporary files, besides the one that TMPDIR names.
pub(super) const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// What of a repository has others run programs, or leads to another one: hooks, settings, and what follows from them.
pub(super) const OF_REPOSITORY: &[&str] = &["hooks", "config", "config.worktree", "info"];
/// Names that would make a folder of git a part of another one.
pub(super) const NOT_IN_REPOSITORY: &[&str] = &["commondir", "config.worktree", "gitdir"];
/// What a linked work tree writes in the folder that it shares with others.
pub(super) const SHARED: &[&str] = &["objects", "refs", "logs", "reftable"];
