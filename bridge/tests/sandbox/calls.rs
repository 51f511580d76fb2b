//! Attempts that Landlock does not see: the strict sandbox prevents them by its rules for system calls, and by the list of its
//! devices.

use std::net::TcpListener;
use std::path::Path;

use bridge::process::{AllowedAccess, ProcessSandbox};

use crate::restrictions::assert_verdicts;
use crate::{Fixture, PROGRAM};

const REFUSED: &str = "prevented: Operation not permitted";

/// Families, types and protocols of sockets, as `socket` takes them.
const OPEN_SOCKETS: [&str; 9] = ["1 1 0", "1 2 0", "1 5 0", "2 1 0", "2 1 6", "2 2 17", "10 1 0", "10 2 17", "16 3 0"];
/// AF_AX25, AF_PACKET, AF_KEY, AF_ALG, AF_VSOCK, AF_SMC and AF_XDP; MPTCP, SCTP, DCCP, UDP-Lite and SMC; SCTP and DCCP by their
/// types; NETLINK_SOCK_DIAG and NETLINK_KOBJECT_UEVENT.
const REFUSED_SOCKETS: [&str; 19] = [
    "3 5 0", "17 3 0", "15 3 2", "38 5 0", "40 1 0", "43 1 0", "44 3 0", "2 1 262", "10 1 262", "2 1 132", "10 5 132",
    "2 6 33", "2 2 136", "2 1 256", "2 5 0", "10 5 0", "2 6 0", "16 3 4", "16 2 15",
];

/// Landlock sees connect(2) alone, and TCP alone.
///
/// Shows: hosting.md#sandbox "or by MPTCP, SCTP, DCCP or SMC | possible | possible | prevented"
/// Shows: hosting.md#sandbox "queue requests with io_uring"
/// Shows: hosting.md#sandbox "open sockets of other families than Unix, IPv4, IPv6 and the routing table"
#[tokio::test]
async fn strict_program_connects_by_no_other_call_and_no_other_protocol() {
    let fixture = Fixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for attempt in ["connect by TCP Fast Open", "connect by MPTCP"] {
        // Some systems are built without it.
        let without = fixture.attempt(attempt, &address, ProcessSandbox::None).await;
        let without = if without.starts_with("possible") { "possible: " } else { "prevented: " };
        assert_verdicts(&fixture, attempt, &address, [without, without, REFUSED]).await;
    }
    for socket in OPEN_SOCKETS {
        assert_verdicts(&fixture, "open a socket", socket, ["possible: "; 3]).await;
    }
    for socket in REFUSED_SOCKETS {
        let found = fixture.attempt("open a socket", socket, fixture.strict()).await;
        assert!(found.starts_with(REFUSED), "{socket}: {found}");
    }
}

/// Shows: hosting.md#sandbox "set limits, priority, scheduling or processors of other processes"
/// Shows: hosting.md#sandbox "use shared memory, messages and semaphores of System V, message queues of POSIX, and keys
///   of the kernel"
#[tokio::test]
async fn strict_program_changes_no_other_process() {
    let fixture = Fixture::new();
    let own = std::process::id();
    assert_verdicts(&fixture, "set the limit of", own.to_string(), ["possible: ", "possible: ", REFUSED]).await;
    assert_verdicts(&fixture, "set the limit of", "0", ["possible: "; 3]).await;
    // setpriority of a process, a group and an account, then with number 0, which is the own process or group.
    for (command, strict) in [
        (format!("setpriority(0, {own}, getpriority(0, {own}))"), REFUSED),
        ("setpriority(1, getppid(), 0)".to_owned(), REFUSED),
        ("setpriority(2, 0, 0)".to_owned(), REFUSED),
        ("setpriority(0, 0, 5)".to_owned(), "possible: "),
        ("setpriority(1, 0, 5)".to_owned(), "possible: "),
    ] {
        let found = fixture.attempt("run", &format!("perl -e '{command} or die $!'"), fixture.strict()).await;
        assert!(found.starts_with(strict), "{command}: {found}");
    }
}

/// Numbers of a call on x86-64 and on aarch64.
type Call = (&'static str, u32, u32);

/// Runs a call by its number with Perl, in a sandbox.
async fn call(fixture: &Fixture, (_, x86_64, aarch64): Call, arguments: &str, sandbox: ProcessSandbox) -> String {
    let number = if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 };
    let script = format!("syscall({number}, {arguments}) >= 0 or die $!");
    fixture.attempt("run", &format!("perl -e '{script}'"), sandbox).await
}

/// The kernel refuses a call whose arguments are wrong with another error than EPERM.
///
/// Shows: hosting.md#sandbox "or by MPTCP, SCTP, DCCP or SMC | possible | possible | prevented"
/// Shows: hosting.md#sandbox "queue requests with io_uring"
/// Shows: hosting.md#sandbox "open sockets of other families than Unix, IPv4, IPv6 and the routing table"
/// Shows: hosting.md#sandbox "set limits, priority, scheduling or processors of other processes"
/// Shows: hosting.md#sandbox "use shared memory, messages and semaphores of System V, message queues of POSIX, and keys
///   of the kernel"
#[tokio::test]
async fn strict_program_makes_no_refused_call() {
    let fixture = Fixture::new();
    let calls: [(Call, &str); 24] = [
        (("io_uring_setup", 425, 425), "1, 0"),
        (("io_uring_enter", 426, 426), "-1, 0, 0, 0, 0, 0"),
        (("io_uring_register", 427, 427), "-1, 0, 0, 0"),
        (("shmget", 29, 194), "0, 0, 0"),
        (("shmat", 30, 196), "-1, 0, 0"),
        (("shmctl", 31, 195), "-1, 0, 0"),
        (("msgget", 68, 186), "1234567, 0"),
        (("msgsnd", 69, 189), "-1, 0, 0, 0"),
        (("msgrcv", 70, 188), "-1, 0, 0, 0, 0"),
        (("msgctl", 71, 187), "-1, 0, 0"),
        (("semget", 64, 190), "0, 0, 0"),
        (("semop", 65, 193), "-1, 0, 0"),
        (("semtimedop", 220, 192), "-1, 0, 0, 0"),
        (("semctl", 66, 191), "-1, 0, 0, 0"),
        (("mq_open", 240, 180), "0, 0, 0, 0"),
        (("mq_unlink", 241, 181), "0"),
        (("add_key", 248, 217), "0, 0, 0, 0, 0"),
        (("request_key", 249, 218), "0, 0, 0, 0"),
        (("keyctl", 250, 219), "-1, 0, 0, 0, 0"),
        (("sched_setaffinity", 203, 122), "-1, 0, 0"),
        (("sched_setscheduler", 144, 119), "-1, 0, 0"),
        (("sched_setattr", 314, 274), "-1, 0, 0"),
        (("ioprio_set", 251, 30), "1, -1, 0"),
        // MSG_FASTOPEN.
        (("sendmmsg", 307, 269), "-1, 0, 0, 0x20000000"),
    ];
    for (name, arguments) in calls.into_iter().chain([(("sendmsg", 46, 211), "-1, 0, 0x20000000")]) {
        let strict = call(&fixture, name, arguments, fixture.strict()).await;
        assert!(strict.starts_with(REFUSED), "{name:?}: {strict}");
        let basic = call(&fixture, name, arguments, ProcessSandbox::Basic).await;
        assert!(basic.starts_with("prevented: ") && !basic.starts_with(REFUSED), "{name:?}: {basic}");
    }
    // Without the flag of TCP Fast Open, the kernel looks at the arguments.
    let sent = call(&fixture, ("sendmsg", 46, 211), "-1, 0, 0", fixture.strict()).await;
    assert!(sent.starts_with("prevented: Bad file descriptor"), "{sent}");
}

/// A program that another interface of the processor lets past the numbers of the rules.
///
/// Shows: hosting.md#sandbox "or by MPTCP, SCTP, DCCP or SMC | possible | possible | prevented"
/// Shows: hosting.md#sandbox "queue requests with io_uring"
/// Shows: hosting.md#sandbox "open sockets of other families than Unix, IPv4, IPv6 and the routing table"
#[tokio::test]
async fn strict_program_makes_no_calls_of_other_interfaces() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let fixture = Fixture::new();
    // getpid, and sendmsg by the number that it has in x32.
    for number in [0x4000_0000_u32 + 39, 0x4000_0000 + 518, u32::MAX] {
        let found = call(&fixture, ("x32", number, number), "0, 0, 0", fixture.strict()).await;
        assert!(found.starts_with("prevented: Function not implemented"), "{number:x}: {found}");
    }
}

/// A 32-bit program, which the kernel may not execute at all, makes its calls by other numbers.
///
/// Shows: hosting.md#sandbox "or by MPTCP, SCTP, DCCP or SMC | possible | possible | prevented"
/// Shows: hosting.md#sandbox "queue requests with io_uring"
/// Shows: hosting.md#sandbox "open sockets of other families than Unix, IPv4, IPv6 and the routing table"
#[tokio::test]
async fn strict_program_of_another_architecture_is_killed() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let fixture = Fixture::new();
    // mov eax, 1 (exit); xor ebx, ebx; int 0x80
    let code = [0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80];
    let (base, header, length) = (0x0804_8000_u32, 84, 84 + u32::try_from(code.len()).unwrap());
    let entry = base + header;
    let file = [&b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0"[..], &[2, 0, 3, 0, 1, 0, 0, 0]].concat();
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let sizes = [52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let program = words(&[1, 0, base, base, length, length, 5, 0x1000]);
    let file = [file, words(&[entry, 52, 0, 0]), sizes.to_vec(), program, code.to_vec()].concat();
    let path = fixture.file("program", &file, 0o755);
    let command = path.display().to_string();
    let basic = fixture.attempt("run", &command, ProcessSandbox::Basic).await;
    if basic.starts_with("possible: ") {
        let allowed = AllowedAccess { readable: vec![PROGRAM.into(), path], ..AllowedAccess::default() };
        let strict = fixture.attempt("run", &command, ProcessSandbox::Strict(allowed)).await;
        assert!(strict.starts_with("prevented: Bad system call"), "{strict}");
    }
}

/// A terminal of the account has what its user types, and a disk has all files.
///
/// Shows: hosting.md#sandbox "read or write terminals, disks and other devices"
/// Shows: hosting.md#sandbox "another device has to be in `readable` or `writable`"
#[tokio::test]
async fn strict_program_reads_no_terminals_and_no_disks_unless_they_are_declared() {
    let fixture = Fixture::new();
    for device in
        ["/dev/ptmx", "/dev/pts/ptmx", "/dev/tty", "/dev/kmsg", "/dev/fuse", "/dev/vda", "/dev/sda", "/dev/loop0"]
    {
        if Path::new(device).exists() {
            let found = fixture.attempt("read", device, fixture.strict()).await;
            assert!(found.starts_with("prevented: Permission denied"), "{device}: {found}");
        }
    }
    for folder in ["/dev", "/dev/pts", "/dev/shm"] {
        let found = fixture.attempt("list", folder, fixture.strict()).await;
        assert!(found.starts_with("prevented: Permission denied"), "{folder}: {found}");
    }
    for device in ["null", "zero", "full", "random", "urandom"] {
        let script = format!("head -c 0 < /dev/{device} && echo x > /dev/null && echo done > /dev/stdout");
        let found = fixture.attempt("run", &script, fixture.strict()).await;
        assert!(found.starts_with("possible: "), "{device}: {found}");
    }
    let declared = AllowedAccess { readable: vec![PROGRAM.into(), "/dev/ptmx".into()], ..AllowedAccess::default() };
    let found = fixture.attempt("run", "exec 3< /dev/ptmx", ProcessSandbox::Strict(declared)).await;
    assert!(found.starts_with("possible: "), "{found}");
}

/// Programs of the interpreters of most plugins: threads, processes, sockets, names, timers and random numbers.
///
/// Shows: hosting.md#sandbox "Shells, Perl, Python and Node run unchanged with `strict`"
#[tokio::test]
async fn interpreters_run_unchanged_in_the_strict_sandbox() {
    let fixture = Fixture::new();
    let paths = ["/usr", "/root/.pyenv"].into_iter().filter(|path| Path::new(path).exists());
    let readable = paths.chain([PROGRAM]).map(Into::into).collect();
    let sandbox = ProcessSandbox::Strict(AllowedAccess { readable, ..AllowedAccess::default() });
    for (program, command) in [
        ("sh", "echo x > /dev/null; (echo ran; nice true) | cat"),
        ("perl", "perl -e 'print \"ran\"'"),
        (
            "python3",
            "python3 -c 'import asyncio, os, socket, subprocess, tempfile, threading
t = threading.Thread(target=lambda: os.urandom(8)); t.start(); t.join()
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); socket.getaddrinfo(\"localhost\", 80); socket.socketpair()
os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0)); tempfile.NamedTemporaryFile().write(b\"x\")
asyncio.run(asyncio.sleep(0)); print(subprocess.check_output([\"echo\", \"ran\"]))'",
        ),
        (
            "node",
            "node -e 'const { Worker } = require(\"worker_threads\");
require(\"os\").setPriority(5); require(\"os\").networkInterfaces();
new Worker(\"require(`fs`).readFileSync(`/etc/passwd`)\", { eval: true }).on(\"exit\", () =>
  require(\"dns\").lookup(\"localhost\", () => require(\"net\").createServer().listen(0, function () {
    this.close(); console.log(require(\"child_process\").execSync(\"echo ran\").toString()) })))'",
        ),
    ] {
        let is_there = fixture.attempt("run", &format!("{program} -c : || {program} -v"), ProcessSandbox::None).await;
        if is_there.starts_with("possible: ") {
            let found = fixture.attempt("run", command, sandbox.clone()).await;
            assert!(found.starts_with("possible: ") && found.contains("ran"), "{program}: {found}");
        }
    }
}
