//! System calls that no command makes: those that reach around the other walls of the sandbox.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;

#[cfg(target_arch = "x86_64")]
use seccompiler::sock_filter;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// The set-user-ID and the set-group-ID bit of a mode.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// Refused with EPERM whatever their arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Shared objects of System V and POSIX, which outlive a command and reach from one agent to another; refused where the
/// command has no namespace of its own for them.
const SHARED: &[i64] = &[libc::SYS_mq_open, libc::SYS_mq_unlink, libc::SYS_msgget, libc::SYS_semget, libc::SYS_shmget];

/// Answered as unknown, so that programs fall back to calls whose arguments a filter can read.
const UNKNOWN: &[i64] = &[libc::SYS_clone3, libc::SYS_fchmodat2, libc::SYS_openat2];

/// Memory that needs no mapping, which only a cgroup counts; answered as unknown where the command has none. Of the objects
/// of System V, a namespace may have gigabytes.
const UNCOUNTED: &[i64] =
    &[libc::SYS_memfd_create, libc::SYS_memfd_secret, libc::SYS_msgget, libc::SYS_semget, libc::SYS_shmget];

/// Options that make the buffers of a socket larger, of which only a cgroup counts what is in them; without one they change
/// nothing. Programs must expect that the kernel gives them
/// less than they ask for; not all expect an error.
const BUFFERS: [libc::c_int; 4] = [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE];

/// The mode of `fallocate` that takes room from a file.
const PUNCH_HOLE: u64 = libc::FALLOC_FL_PUNCH_HOLE.unsigned_abs() as u64;

/// Requests of `ioctl` that do what `fallocate` does: `FS_IOC_RESVSP`, `FS_IOC_RESVSP64` and `FS_IOC_ZERO_RANGE`.
const PREALLOCATING: [u64; 3] = [0x4030_5828, 0x4030_582a, 0x4030_5839];

/// Flags of `open` with which the mode counts.
const CREATING: [u64; 2] =
    [libc::O_CREAT.unsigned_abs() as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY).unsigned_abs() as u64];

/// The calls of the x32 interface: the same under other numbers, which no rule knows. Answered as unknown (ENOSYS).
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: [sock_filter; 4] = [
    // Load the number; from the first of x32 on return the error, else allow.
    sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
    sock_filter { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::ENOSYS.unsigned_abs() },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 },
];

/// The first protocol that stands in no IP packet.
const OTHER_PROTOCOLS: u64 = 256;

/// What other walls leave to the filters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// The command may use TCP and UDP.
    pub(super) network: bool,
    /// Landlock keeps a TCP port from it: no TCP goes out but by `connect` of plain sockets, which Landlock sees.
    pub(super) closed: bool,
    /// The command has namespaces of its own.
    pub(super) namespaces: bool,
    /// The command has a cgroup of its own.
    pub(super) cgroup: bool,
}

/// Rules by the number of the call; a call without rules matches always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Puts this thread, and all that it starts, under the filters.
///
/// # Errors
/// This kernel has no seccomp filters, or refuses them.
pub(super) fn restrict(left: Left) -> io::Result<()> {
    #[cfg(target_arch = "x86_64")]
    apply_filter(&OTHER_NUMBERS).map_err(io::Error::other)?;
    let mut filters =
        vec![(refused(left), libc::EPERM), (Ok(unknown(left)), libc::ENOSYS), (sockets(left), libc::EACCES)];
    filters.push((preallocations(), libc::EOPNOTSUPP));
    if !left.cgroup {
        // Done, it seems.
        filters.push((buffers(), 0));
    }
    for (rules, errno) in filters {
        let filter = rules.and_then(|rules| compile(rules, errno)).map_err(io::Error::other)?;
        apply_filter(&filter).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Lets this thread, and all that it starts, run one program only, and once: the call must name it by the very text `path`,
/// not by one that reads the same. A program that is run has memory of its own, where another text lies there or none.
///
/// # Errors
/// As [`restrict`].
pub(super) fn run_only(path: &OsStr) -> io::Result<()> {
    let address = path.as_encoded_bytes().as_ptr().addr() as u64;
    let other = || SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, address);
    let rules =
        any([vec![other()]]).map(|run| Rules::from([(libc::SYS_execve, run), (libc::SYS_execveat, Vec::new())]));
    let filter = rules.and_then(|rules| compile(rules, libc::EACCES)).map_err(io::Error::other)?;
    apply_filter(&filter).map_err(io::Error::other)
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, BackendError> {
    let matched = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, matched, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn unknown(left: Left) -> Rules {
    let uncounted = if left.cgroup { &[][..] } else { UNCOUNTED };
    UNKNOWN.iter().chain(uncounted).map(|call| (*call, Vec::new())).collect()
}

fn refused(left: Left) -> Result<Rules, BackendError> {
    let shared = if left.namespaces { &[][..] } else { SHARED };
    let mut rules: Rules = REFUSED.iter().chain(shared).map(|call| (*call, Vec::new())).collect();
    // A namespace of its own user would give a command rights over it.
    let namespaces = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID];
    rules.insert(libc::SYS_clone, any(namespaces.map(|flag| vec![has(0, u64::from(flag.unsigned_abs()))]))?);
    // The limits of other processes, the daemon's among them.
    let foreign = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0);
    rules.insert(libc::SYS_prlimit64, any([vec![foreign]])?);
    // A lease keeps the daemon from reading a file, and so from having it in a backup.
    let lease =
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(libc::F_SETLEASE.unsigned_abs()));
    rules.insert(libc::SYS_fcntl, any([vec![lease]])?);
    // Files that run with the rights of their owner.
    for (call, mode) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_mknodat, 2)] {
        rules.insert(call, any(SET_ID.map(|bit| vec![has(mode, bit)]))?);
    }
    rules.insert(libc::SYS_openat, creating(2)?);
    #[cfg(target_arch = "x86_64")]
    {
        for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            rules.insert(call, any(SET_ID.map(|bit| vec![has(1, bit)]))?);
        }
        rules.insert(libc::SYS_open, creating(1)?);
    }
    Ok(rules)
}

/// A call of the `open` family that creates a file with such a bit; its flags are the argument `flags`, its mode the next.
fn creating(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let pairs = CREATING.into_iter().flat_map(|create| SET_ID.map(|bit| vec![has(flags, create), has(flags + 1, bit)]));
    any(pairs)
}

/// Calls that give a file room on the disk without writing to it: a program would take all of a disk at once, before anybody sees
/// it. Programs must expect that file systems have no such calls, and write instead.
fn preallocations() -> Result<Rules, BackendError> {
    let adds = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(PUNCH_HOLE), 0);
    let is = |request: &u64| vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *request)];
    let requests = any(PREALLOCATING.iter().map(is))?;
    Ok(Rules::from([(libc::SYS_fallocate, any([vec![adds]])?), (libc::SYS_ioctl, requests)]))
}

/// Calls that make the buffers of a socket larger.
fn buffers() -> Result<Rules, BackendError> {
    let is = |argument: u8, value: libc::c_int| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(value.unsigned_abs()))
    };
    let larger = BUFFERS.map(|option| vec![is(1, libc::SOL_SOCKET), is(2, option)]);
    Ok(Rules::from([(libc::SYS_setsockopt, any(larger)?)]))
}

fn sockets(left: Left) -> Result<Rules, BackendError> {
    let inside = [libc::AF_UNIX];
    let families =
        if left.network { &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK][..] } else { &inside };
    let other = |family: &i32| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
    };
    let mut refused = vec![families.iter().map(other).collect()];
    let mut rules = Rules::new();
    if left.closed {
        // Protocols that carry TCP under other numbers (SMC, MPTCP).
        refused.push(vec![SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ge, OTHER_PROTOCOLS)]);
        // TCP Fast Open, which connects with the first bytes.
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            rules.insert(call, any([vec![has(flags, u64::from(libc::MSG_FASTOPEN.unsigned_abs()))]])?);
        }
    }
    rules.insert(libc::SYS_socket, any(refused)?);
    if !left.namespaces && !left.network {
        // The sockets of other programs lie in directories that it still sees.
        rules.insert(libc::SYS_connect, Vec::new());
    }
    Ok(rules)
}

/// One rule for each list of conditions, of which all must hold.
fn any(
    rules: impl IntoIterator<Item = Vec<Result<SeccompCondition, BackendError>>>,
) -> Result<Vec<SeccompRule>, BackendError> {
    rules.into_iter().map(|all| SeccompRule::new(all.into_iter().collect::<Result<_, _>>()?)).collect()
}

/// The argument has this bit.
fn has(argument: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
}
