//! Walks to a file that an agent may use.
//!
//! Each step starts from the descriptor of the folder before it, and the kernel follows no link: the target of a link is walked
//! like any other path. A step out of the granted folders, or to a file that is not for agents, ends the walk before anything is
//! opened or made there.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use super::error::Refusal;
use crate::platform::calls::STANDS_FOR;

/// How many links in a row are followed.
const LINKS: usize = 40;

/// The folders that agents may use, and the paths in them that they may not.
pub(super) struct Grant {
    roots: Vec<Root>,
    /// Our own paths, with all that is below; one that ends with `*` is a prefix.
    ours: Vec<OsString>,
}

struct Root {
    /// The path as it was given.
    named: PathBuf,
    /// The path without links.
    real: PathBuf,
}

/// What to do about missing folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Refused,
    Made,
}

/// The end of a walk.
pub(super) struct Found {
    /// The last folder.
    pub(super) folder: OwnedFd,
    /// The name in that folder, of a file or of nothing yet; `None`: the folder itself.
    pub(super) name: Option<OsString>,
    /// The whole path without links.
    pub(super) path: PathBuf,
}

impl Grant {
    /// These folders, without these paths.
    pub(super) fn new(roots: &[PathBuf], ours: &[OsString]) -> Self {
        let roots = roots
            .iter()
            .filter_map(|named| Some(Root { named: named.clone(), real: named.canonicalize().ok()? }));
        // They are compared with paths without links.
        let real = |path: &OsString| {
            let path = Path::new(path);
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            match (folder, path.file_name()) {
                (Some(folder), Some(name)) => folder.join(name).into_os_string(),
                _ => path.into(),
            }
        };
        Self { roots: roots.collect(), ours: ours.iter().map(real).collect() }
    }

    /// Walks to `path`, which is absolute.
    pub(super) fn find(&self, path: &Path, missing: Missing) -> Result<Found, Refusal> {
        if !path.is_absolute() {
            return Err(Refusal::params("the path is not absolute"));
        }
        let mut walk = Walk { grant: self, asked: path, links: 0, folders: Vec::new(), todo: Vec::new() };
        walk.begin(path)?;
        while let Some(step) = walk.todo.pop() {
            let is_last = walk.todo.is_empty();
            if step == ".." {
                walk.back()?;
            } else if let Some(name) = walk.step(&step, is_last, missing)? {
                return walk.found(Some(name));
            }
        }
        walk.found(None)
    }

    fn is_ours(&self, path: &Path) -> bool {
        self.ours.iter().any(|ours| match ours.as_bytes().strip_suffix(b"*") {
            Some(begin) => path.as_os_str().as_bytes().starts_with(begin),
            None => path.starts_with(ours),
        })
    }
}

struct Walk<'a> {
    grant: &'a Grant,
    /// The requested path.
    asked: &'a Path,
    links: usize,
    /// The folders on the way, from the root on, with their paths.
    folders: Vec<(OwnedFd, PathBuf)>,
    /// The remaining steps, the next one last.
    todo: Vec<OsString>,
}

impl Walk<'_> {
    /// Starts at the root that this absolute path is below.
    fn begin(&mut self, path: &Path) -> Result<(), Refusal> {
        let below = |root: &Root| {
            let below = path.strip_prefix(&root.real).or_else(|_| path.strip_prefix(&root.named)).ok()?;
            Some((root.real.clone(), below.to_owned()))
        };
        let found = self.grant.roots.iter().find_map(below);
        let (root, below) = found.ok_or_else(|| self.refuse(self.outside()))?;
        let folder = openat(rustix::fs::CWD, &root, FOLDER, Mode::empty());
        self.folders = vec![(folder.map_err(|errno| fault(self.asked, errno))?, root)];
        self.plan(&below)
    }

    /// Puts the steps of a path before the remaining ones.
    fn plan(&mut self, path: &Path) -> Result<(), Refusal> {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) if name == ".git" => return Err(self.refuse(NOT_FOR_AGENTS)),
                Component::Normal(name) => self.todo.push(name.to_owned()),
                Component::ParentDir => self.todo.push("..".into()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    /// Goes back to the folder above. Above a root no folder is granted; the next steps may lead into another root.
    fn back(&mut self) -> Result<(), Refusal> {
        let gone = self.folders.pop();
        if !self.folders.is_empty() {
            return Ok(());
        }
        let mut path = gone.map(|(_, path)| path).unwrap_or_default();
        path.pop();
        while let Some(step) = self.todo.pop() {
            if step == ".." {
                path.pop();
            } else {
                path.push(step);
            }
        }
        self.begin(&path)
    }

    /// Takes one step. `Some`: the walk has ended, with this name in the folder.
    fn step(&mut self, name: &OsStr, is_last: bool, missing: Missing) -> Result<Option<OsString>, Refusal> {
        let asked = self.asked;
        let failed = |errno| fault(asked, errno);
        // The list is not empty while a walk goes on.
        let (folder, at) = self.folders.last().ok_or_else(|| self.refuse(self.outside()))?;
        let path = at.join(name);
        if self.grant.is_ours(&path) {
            return Err(self.refuse(NOT_FOR_AGENTS));
        }
        let open = || openat(folder, name, STANDS_FOR | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) if is_last => return Ok(Some(name.to_owned())),
            Err(Errno::NOENT) if missing == Missing::Made => {
                match mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(errno) => Err(errno),
                }
            }
            opened => opened,
        };
        let opened = opened.map_err(failed)?;
        match FileType::from_raw_mode(fstat(&opened).map_err(failed)?.st_mode) {
            FileType::Directory => self.folders.push((opened, path)),
            FileType::Symlink => self.follow(&opened)?,
            _ if is_last => return Ok(Some(name.to_owned())),
            _ => return Err(failed(Errno::NOTDIR)),
        }
        Ok(None)
    }

    /// Goes on with the target of a link.
    fn follow(&mut self, link: &OwnedFd) -> Result<(), Refusal> {
        self.links += 1;
        if self.links > LINKS {
            return Err(self.refuse("too many links"));
        }
        let target = readlinkat(link, "", Vec::new()).map_err(|errno| fault(self.asked, errno))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() { self.begin(&target) } else { self.plan(&target) }
    }

    fn found(mut self, name: Option<OsString>) -> Result<Found, Refusal> {
        let (folder, at) = self.folders.pop().ok_or_else(|| self.refuse(self.outside()))?;
        let path = name.as_ref().map_or_else(|| at.clone(), |name| at.join(name));
        Ok(Found { folder, name, path })
    }

    fn outside(&self) -> &'static str {
        if self.links == 0 { "it is outside of the project" } else { "it leads out of the project" }
    }

    fn refuse(&self, why: &str) -> Refusal {
        Refusal::because(format!("{}: {why}", self.asked.display()))
    }
}

const NOT_FOR_AGENTS: &str = "it is not for agents";
const FOLDER: OFlags = STANDS_FOR.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What a refused call means for the agent.
pub(super) fn fault(path: &Path, errno: Errno) -> Refusal {
    match errno {
        Errno::NOENT => Refusal::not_found(&path.to_string_lossy()),
        errno => Refusal::because(format!("{}: {}", path.display(), std::io::Error::from(errno))),
    }
}
