/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists are names, so that a call that this CPU, kernel or libseccomp does not know is left
 * out. docs/adr/0023-what-a-server-gives-up.md says how the allow-list was found. */
#include "rights/syscall_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/set_error.h"

#define INSTRUCTIONS_MAX 2048u
#define REFUSED          SCMP_ACT_ERRNO(EPERM)
/* What a call that is not in allowed[] gets. In a checked build the list is one of our own
 * invariants: SIGSYS, whose crash report names the call and its caller. */
#ifdef NJ_CHECKED
#define NOT_ALLOWED SCMP_ACT_TRAP
#else
#define NOT_ALLOWED REFUSED
#endif

/* clang-format off */
static const char *const denied[] = {
    /* other processes, and tracing */
    "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise", "bpf",
    "perf_event_open", "userfaultfd", "lookup_dcookie",
    /* mounts and namespaces */
    "mount", "umount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig",
    "fsmount", "fspick", "pivot_root", "chroot", "setns", "unshare", "open_by_handle_at",
    "name_to_handle_at", "quotactl", "quotactl_fd", "fanotify_init",
    /* the kernel and the machine */
    "init_module", "finit_module", "delete_module", "create_module", "query_module",
    "get_kernel_syms", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct",
    "syslog", "iopl", "ioperm", "nfsservctl", "vhangup", "_sysctl", "sysfs", "uselib", "ustat",
    "sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_settime64",
    "clock_adjtime", "clock_adjtime64", "adjtimex", "stime",
    /* keys, and memory of other nodes */
    "add_key", "request_key", "keyctl", "migrate_pages", "move_pages",
    /* the execution domain, and the local descriptor table */
    "personality", "modify_ldt", "vm86", "vm86old",
};

/* Calls of lcores, the supervisor, the threads of the access log, of log lines and of management,
 * and the reader of files. */
static const char *const allowed[] = {
    /* time and sleep */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "futex", "futex_waitv", "restart_syscall", "sched_yield", "pause", "alarm", "setitimer",
    "timerfd_create", "timerfd_settime", "timerfd_gettime",
    /* memory */
    "mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "mlock", "munlock", "mlock2", "mbind",
    "get_mempolicy", "set_mempolicy", "mincore", "membarrier", "memfd_create", "fallocate",
    /* descriptors that are open */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "close", "close_range", "lseek", "ioctl", "fcntl", "dup", "dup2", "dup3", "pipe2",
    "poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "epoll_pwait2", "eventfd2", "flock", "fsync", "fdatasync", "ftruncate",
    "fadvise64", "readahead", "io_uring_enter", "io_uring_setup", "io_uring_register",
    /* sockets that are open: af_packet, requests of net_tap, another process in an upgrade,
     * management */
    "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "getsockopt", "setsockopt",
    "getsockname", "shutdown", "accept4", "listen",
    /* files: the access log, and hugepages when memory grows */
    "open", "openat", "openat2", "stat", "fstat", "lstat", "newfstatat", "statx", "fstatfs",
    "statfs", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "unlink",
    "unlinkat", "getcwd",
    /* this thread, and the end of the process after a crash */
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getgroups",
    "getrlimit", "prlimit64", "getrusage", "uname", "sysinfo", "getcpu", "getrandom", "tgkill",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigpending",
    "rt_sigsuspend", "sigaltstack", "sched_getaffinity", "sched_setaffinity", "sched_getparam",
    "sched_getscheduler", "set_robust_list", "rseq", "set_tid_address", "prctl", "arch_prctl",
    "exit", "exit_group",
};
/* clang-format on */

static struct {
    struct sock_filter code[INSTRUCTIONS_MAX];
    struct sock_fprog program;
    _Atomic bool is_ready;
} allow_list;

/* 0 or a negative errno. A name without a call on this CPU adds nothing. */
static int add_names(scmp_filter_ctx f, uint32_t action, const char *const *names, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        if (call != __NR_SCMP_ERROR)
            rc = seccomp_rule_add(f, action, call, 0);
    }
    return rc;
}

/* clone(2) must not make namespaces. The filter cannot read the flags of clone3(2), which are in
 * memory: glibc uses clone() where clone3() is missing. */
static int deny_namespaces(scmp_filter_ctx f)
{
    static const uint64_t flags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                     CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
    int rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    for (size_t i = 0; i < NJ_ARRAY_LEN(flags) && rc == 0; i++)
        rc = seccomp_rule_add(f, REFUSED, SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
    return rc;
}

/* Programs that handlers start may be of another architecture of this CPU. */
static void add_other_architectures(scmp_filter_ctx f)
{
#if defined(__x86_64__)
    (void)seccomp_arch_add(f, SCMP_ARCH_X86);
    (void)seccomp_arch_add(f, SCMP_ARCH_X32);
#elif defined(__aarch64__)
    (void)seccomp_arch_add(f, SCMP_ARCH_ARM);
#endif
    (void)f;
}

int nj_syscall_deny_list_load(char *why, size_t why_bytes)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    int rc = f ? 0 : -ENOMEM;

    if (f)
        add_other_architectures(f);
    if (rc == 0)
        rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
    if (rc == 0)
        rc = add_names(f, REFUSED, denied, NJ_ARRAY_LEN(denied));
    if (rc == 0 && !NJ_IS_SANITIZED)
        rc = seccomp_rule_add(f, REFUSED, SCMP_SYS(ptrace), 0);
    if (rc == 0)
        rc = deny_namespaces(f);
    if (rc == 0)
        rc = seccomp_load(f);
    if (f)
        seccomp_release(f);
    return rc == 0 ? 0 : nj_set_error(why, why_bytes, "seccomp: %s", strerror(-rc));
}

/* libseccomp 2.5 exports a filter to a descriptor only. */
static int export_code(scmp_filter_ctx f)
{
    struct stat st;
    int fd = memfd_create("nj_seccomp", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : seccomp_export_bpf(f, fd);

    if (rc == 0 && (fstat(fd, &st) != 0 || (size_t)st.st_size > sizeof allow_list.code))
        rc = -E2BIG;
    if (rc == 0 && pread(fd, allow_list.code, (size_t)st.st_size, 0) != st.st_size)
        rc = -EIO;
    if (rc == 0)
        allow_list.program = (struct sock_fprog){
            .len = (unsigned short)((size_t)st.st_size / sizeof *allow_list.code),
            .filter = allow_list.code};
    if (fd >= 0)
        close(fd);
    return rc;
}

int nj_syscall_allow_list_prepare(char *why, size_t why_bytes)
{
    if (NJ_IS_SANITIZED)
        return 0;
    scmp_filter_ctx f = seccomp_init(NOT_ALLOWED);
    int rc = f ? add_names(f, SCMP_ACT_ALLOW, allowed, NJ_ARRAY_LEN(allowed)) : -ENOMEM;
    if (rc == 0)
        rc = export_code(f);
    if (f)
        seccomp_release(f);
    if (rc != 0)
        return nj_set_error(why, why_bytes, "seccomp: %s", strerror(-rc));
    atomic_store_explicit(&allow_list.is_ready, true, memory_order_release);
    return 0;
}

void nj_syscall_allow_list_forget(void)
{
    atomic_store_explicit(&allow_list.is_ready, false, memory_order_release);
}

bool nj_syscall_allow_list_is_prepared(void)
{
    return atomic_load_explicit(&allow_list.is_ready, memory_order_acquire);
}

void nj_syscall_allow_list_load(void)
{
    if (!nj_syscall_allow_list_is_prepared())
        return;
    /* The thread must not run without it. The same program was loaded into other threads. */
    NJ_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &allow_list.program) == 0);
}
