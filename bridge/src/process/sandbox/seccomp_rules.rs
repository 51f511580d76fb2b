//! Rules of seccomp: the system calls that a program cannot make, because Landlock has no rules for what they reach.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

use super::error::SandboxError;

/// Calls that are refused whatever their arguments are: the queues of requests that no filter sees (io_uring); the memory,
/// the messages and the semaphores that processes of an account share by a number (System V); the message queues that they
/// share by a name (POSIX); and the keys of the kernel.
const REFUSED: [c_long; 19] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Calls that change a process, whose number is their first argument. Number 0 is the caller.
const PROCESS_CALLS: [c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Calls that change the priority of a process, a group or an account: the kind is their first argument, the number their
/// second one. With them, the kind that is an account.
const PRIORITY_CALLS: [(c_long, c_int); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Families of sockets that a program opens. [`libc::AF_NETLINK`] lists the addresses of the machine.
const FAMILIES: [c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Protocols of those families: the one that the family and the type imply, TCP, UDP and echo requests. The others, such as
/// MPTCP, SCTP and SMC, connect past the rules of Landlock for TCP.
const PROTOCOLS: [c_int; 5] = [0, libc::IPPROTO_ICMP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMPV6];

/// Types of sockets that imply SCTP or DCCP where the protocol is 0, and the bits of the argument that are the type.
const REFUSED_TYPES: [c_int; 3] = [libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP];
const TYPE_BITS: u64 = 0xf;

/// Calls that connect a TCP socket if their flags say so (TCP Fast Open), with the index of their flags.
const SENDING_CALLS: [(c_long, u8); 3] = [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

/// Bit of the numbers of calls of x32, the second interface of x86-64, which has other numbers for the same calls.
const X32: u32 = 0x4000_0000;

/// Returns whether this system has filters of system calls.
pub(super) fn are_supported() -> bool {
    rustix::thread::secure_computing_mode().is_ok() && program().is_ok()
}

/// Refuses the calls to this process, which has one thread, and to all that it executes and starts, with EPERM. A program for
/// another architecture, such as a 32-bit one, is killed at its first call.
pub(super) fn apply() -> Result<(), SandboxError> {
    let program = program().map_err(|error| SandboxError::of("make rules for system calls (seccomp)", error))?;
    seccompiler::apply_filter(&program)
        .map_err(|error| SandboxError::of("restrict system calls (seccomp)", crate::error::chain(&error)))
}

fn program() -> Result<BpfProgram, BackendError> {
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules()?, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(if cfg!(target_arch = "x86_64") { refuse_x32().into_iter().chain(program).collect() } else { program })
}

/// Returns instructions that let no call of x32 through, as a kernel without x32 does.
fn refuse_x32() -> [sock_filter; 3] {
    let instruction =
        |code: u32, jf: u8, k: u32| sock_filter { code: code.try_into().unwrap_or_default(), jt: 0, jf, k };
    let load_number = instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let unless_x32_skip_next = instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32);
    let refuse = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    [load_number, unless_x32_skip_next, instruction(libc::BPF_RET | libc::BPF_K, 0, refuse.into())]
}

/// Returns the refused calls, each with its rules: the call is refused if one of them holds, and always without rules.
fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    for call in PROCESS_CALLS {
        rules.insert(call, vec![all_of([condition(0, SeccompCmpOp::Ne, 0)])?]);
    }
    for (call, account) in PRIORITY_CALLS {
        let of_account = all_of([condition(0, SeccompCmpOp::Eq, account)])?;
        rules.insert(call, vec![of_account, all_of([condition(1, SeccompCmpOp::Ne, 0)])?]);
    }
    for (call, flags) in SENDING_CALLS {
        let fast_open = SeccompCmpOp::MaskedEq(u64::from(libc::MSG_FASTOPEN.unsigned_abs()));
        rules.insert(call, vec![all_of([condition(flags, fast_open, libc::MSG_FASTOPEN)])?]);
    }
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        rules.insert(call, socket_rules()?);
    }
    Ok(rules)
}

/// Returns the rules for the arguments family, type and protocol of a new socket.
fn socket_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let is_family = |family| condition(0, SeccompCmpOp::Eq, family);
    let mut rules = vec![
        all_of(FAMILIES.map(|family| condition(0, SeccompCmpOp::Ne, family)))?,
        all_of(PROTOCOLS.map(|protocol| condition(2, SeccompCmpOp::Ne, protocol)))?,
        // Other protocols than 0 (NETLINK_ROUTE) tell about sockets, devices and events of others.
        all_of([is_family(libc::AF_NETLINK), condition(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE)])?,
    ];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for refused in REFUSED_TYPES {
            rules.push(all_of([is_family(family), condition(1, SeccompCmpOp::MaskedEq(TYPE_BITS), refused)])?);
        }
    }
    Ok(rules)
}

/// Returns a rule that holds if all conditions do.
fn all_of<const N: usize>(
    conditions: [Result<SeccompCondition, BackendError>; N],
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Returns a condition on the lower half of an argument, which is all that the kernel reads of a number.
fn condition(argument: u8, operator: SeccompCmpOp, value: c_int) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, u64::from(value.unsigned_abs()))
}
