//! Processes that this one has not started.

/// Waits until a process that this one has not started has exited. Never returns where the system does not show it.
#[cfg(target_os = "linux")]
pub async fn exit_of_other(process: i32) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::{Errno, retry_on_intr};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::sync::oneshot;

    use super::background::start_thread;

    let descriptor = match Pid::from_raw(process).map(|process| pidfd_open(process, PidfdFlags::empty())) {
        None | Some(Err(Errno::SRCH)) => return,
        Some(Err(_)) => return std::future::pending().await,
        Some(Ok(descriptor)) => descriptor,
    };
    let (sender, exited) = oneshot::channel();
    let started = start_thread("exit of another", move || {
        // The descriptor of a process can be read once it has exited.
        let polled = retry_on_intr(|| poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None));
        if polled.is_ok() {
            sender.send(()).ok();
        }
    });
    if started.is_err() || exited.await.is_err() {
        std::future::pending().await
    }
}

/// Waits until a process that this one has not started has exited. Never returns where the system does not show it.
#[cfg(not(target_os = "linux"))]
pub async fn exit_of_other(_: i32) {
    std::future::pending().await
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn exit_of_another_process_is_noticed() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = i32::try_from(child.id()).unwrap();
        let mut exited = std::pin::pin!(exit_of_other(process));
        assert!(futures_util::poll!(&mut exited).is_pending());
        child.kill().unwrap();
        exited.await;
        child.wait().unwrap();
        exit_of_other(process).await;
    }
}
