//! The loopback of a new network namespace.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket};

/// Asks the kernel to bring it up.
pub(super) fn bring_up() -> io::Result<()> {
    let (new_link, request_and_ack, up) = (16_u16, 5_u16, 1_u32);
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(new_link.to_ne_bytes());
    message.extend(request_and_ack.to_ne_bytes());
    // The number of the message, and its sender; no family, no kind.
    message.extend([0; 8 + 4]);
    let first_device = 1_i32;
    message.extend(first_device.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    // The protocol with the number 0 is that of devices and routes.
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let code = answer.get(16..20).filter(|_| length >= 20).and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
