//! Free space of a file system, and how much has to stay free.

use std::path::Path;

use rustix::fs::statvfs;

/// The space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What we may still write.
    pub free: u64,
    /// Its size.
    pub size: u64,
}

/// How much of a file system has to be free: the smaller of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// In bytes.
    pub bytes: u64,
    /// In percent of its size.
    pub percent: u64,
}

/// A shortage of space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The free space in bytes.
    pub free: u64,
    /// The required space in bytes.
    pub wanted: u64,
}

impl Room {
    /// The space of the file system with this path; `None` if it does not report any, as virtual ones.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let found = statvfs(path).ok().filter(|found| found.f_blocks > 0)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Self { free: bytes(found.f_bavail), size: bytes(found.f_blocks) })
    }
}

impl Floor {
    /// The default: space for a log and a commit on a disk of any size.
    pub const USUAL: Self = Self { bytes: 1_000_000_000, percent: 5 };
    /// No requirement.
    pub const NONE: Self = Self { bytes: 0, percent: 0 };

    /// This many bytes, however large the file system is.
    #[must_use]
    pub fn of_bytes(bytes: u64) -> Self {
        Self { bytes, percent: u64::MAX }
    }

    /// A share of each file system.
    #[must_use]
    pub fn of_percent(percent: u64) -> Self {
        Self { bytes: u64::MAX, percent }
    }

    /// The shortage with this space, if any.
    #[must_use]
    pub fn lacks(self, room: Room) -> Option<Shortage> {
        let share = u128::from(room.size) * u128::from(self.percent) / 100;
        let wanted = self.bytes.min(u64::try_from(share).unwrap_or(u64::MAX));
        (room.free < wanted).then_some(Shortage { free: room.free, wanted })
    }
}

impl Default for Floor {
    fn default() -> Self {
        Self::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn a_small_disk_needs_less_than_a_large_one() {
        let lacks = |floor: Floor, free, size| floor.lacks(Room { free, size }).map(|lack| lack.wanted);
        assert_eq!(lacks(Floor::USUAL, GB - 1, 1000 * GB), Some(GB));
        assert_eq!(lacks(Floor::USUAL, GB, 1000 * GB), None);
        assert_eq!(lacks(Floor::USUAL, GB / 10, 4 * GB), Some(GB / 5));
        assert_eq!(lacks(Floor::USUAL, GB / 5, 4 * GB), None);
        assert_eq!(lacks(Floor::NONE, 0, GB), None);
        assert_eq!(lacks(Floor::of_percent(50), GB, 4 * GB), Some(2 * GB));
        assert_eq!(lacks(Floor::of_bytes(900_000 * GB), GB, GB), Some(900_000 * GB));
    }

    #[test]
    fn every_folder_has_room_of_some_file_system() {
        let room = Room::of(Path::new("/")).unwrap();
        assert!(room.size > 0 && room.free <= room.size);
        assert_eq!(Room::of(Path::new("/no/such/folder")), None);
        assert_eq!(Room::of(Path::new("/proc")), None, "it holds no files of disks");
    }
}
