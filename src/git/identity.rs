//! x
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub name: Option<String>,
    pub email: Option<String>,
    pub signing_key: Option<String>,
    pub ssh_key: Option<std::path::PathBuf>,
}
impl Identity {
    pub fn is_some(&self) -> bool {
        self.name.is_some()
    }
}
pub fn check(_: &std::path::Path, _: &Identity) -> Result<(), super::GitError> {
    Ok(())
}
pub fn prepare(_: &std::path::Path) -> Result<(), super::GitError> {
    Ok(())
}
pub fn configure(_: &std::path::Path, _: &Identity) -> Result<(), super::GitError> {
    Ok(())
}
pub fn agent_env(_: &Identity) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    Vec::new()
}
