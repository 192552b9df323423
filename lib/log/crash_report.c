/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal handlers that print a backtrace to standard error. The code in them is async-signal-safe
 * (signal-safety(7)): no stdio, no locks, no allocation. */
#include "log/crash_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <nightjar/server.h>

#include "base/compiler.h"
#include "base/signal_stack.h"
#include "dpdk/eal_output_capture.h"
#include "log/crash_symbols.h"
#include "log/log_writer.h"

#define FRAMES_MAX    64   /* a recursion without end shows itself in fewer */
#define QUEUE_WAIT_MS 200u /* for the log lines before the crash */
#define LOW_BYTES                                                                                  \
    0x10000 /* vm.mmap_min_addr: an address below is no mapping's, but NULL + offset */

static const struct {
    int number;
    const char *name;
} crashes[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
    {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"},
};

/* A module with symbols: the program, or this library. */
struct module {
    const struct link_map *map;
    struct nj_crash_symbols symbols;
};

static struct {
    struct module module[2];
    bool is_installed[NJ_ARRAY_LEN(crashes)]; /* our handler of this signal is installed */
    nj_crash_route_fn *route_of;
    void *altstack;       /* of the main thread */
    atomic_flag reported; /* only the first crash is reported */
    _Atomic int number;   /* of its signal */
} state = {.reported = ATOMIC_FLAG_INIT};

/* --- a line, without stdio -------------------------------------------------------------------- */

struct line {
    char text[256];
    size_t n;
};

static void put(struct line *l, const char *text)
{
    size_t n = strlen(text), room = sizeof l->text - 1 - l->n; /* one for the end of the line */

    n = n < room ? n : room;
    memcpy(l->text + l->n, text, n);
    l->n += n;
}

static void put_number(struct line *l, uint64_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;

    digits[--at] = '\0';
    do
        digits[--at] = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    put(l, base == 16 ? "0x" : "");
    put(l, digits + at);
}

static void print(struct line *l)
{
    l->text[l->n++] = '\n';
    ssize_t n = write(nj_eal_log_original_stderr_fd(), l->text, l->n);
    (void)n; /* an error cannot be handled here */
    l->n = 0;
}

/* --- in the signal handler: nothing that takes a lock ----------------------------------------- */

static const char *name_in(const struct link_map *map, uint64_t offset, uint64_t *into)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(state.module); i++)
        if (state.module[i].map == map)
            return nj_crash_symbols_find(&state.module[i].symbols, offset, into);
    return NULL;
}

/* A return address may belong to the next line or function, so the byte before it is looked up. */
static void print_frame(unsigned number, uintptr_t pc, bool returns)
{
    struct line l = {.n = 0};
    struct dl_find_object found;
    uint64_t into = 0;

    put(&l, "  #");
    put_number(&l, number, 10);
    put(&l, " ");
    if (_dl_find_object((void *)pc, &found) != 0) {
        put(&l, "(in no module)");
        print(&l);
        return;
    }
    const struct link_map *map = found.dlfo_link_map;
    const char *slash = strrchr(map->l_name, '/');
    uint64_t offset = pc - map->l_addr;
    const char *name = name_in(map, offset - returns, &into);

    put(&l, slash ? slash + 1 : map->l_name[0] ? map->l_name : "the program");
    put(&l, "+");
    put_number(&l, offset, 16);
    if (name) {
        put(&l, " ");
        put(&l, name);
        put(&l, "+");
        put_number(&l, into + returns, 16);
    }
    print(&l);
}

/* Program counter and stack pointer of a thread. */
struct place {
    uintptr_t pc, sp;
};

#if defined(__x86_64__)
#define PC_OF(u) ((u)->uc_mcontext.gregs[REG_RIP])
#define SP_OF(u) ((u)->uc_mcontext.gregs[REG_RSP])
#elif defined(__aarch64__)
#define PC_OF(u) ((u)->uc_mcontext.pc)
#define SP_OF(u) ((u)->uc_mcontext.sp)
#else
#error "crash_report.c: where does this CPU's signal frame keep the program counter?"
#endif

static struct place place_of(const ucontext_t *u)
{
    return (struct place){(uintptr_t)PC_OF(u), (uintptr_t)SP_OF(u)};
}

static void set_place(ucontext_t *u, struct place p)
{
    __typeof__(PC_OF(u)) pc = (__typeof__(pc))p.pc;
    __typeof__(SP_OF(u)) sp = (__typeof__(sp))p.sp;

    PC_OF(u) = pc;
    SP_OF(u) = sp;
}

static bool is_code(uintptr_t pc)
{
    struct dl_find_object found;
    return _dl_find_object((void *)pc, &found) == 0;
}

/* The call site of a thread that jumped to an address that is not code. */
static struct place caller_of(const ucontext_t *u)
{
    struct place p = place_of(u);

#if defined(__x86_64__)
    memcpy(&p.pc, (const void *)p.sp, sizeof p.pc); /* the call has written there */
    p.sp += sizeof p.pc;
#else
    p.pc = (uintptr_t)u->uc_mcontext.regs[30];
#endif
    return p;
}

/* The unwinder reads the code at the faulting address and would crash if that is not code. Then the
 * unwinding starts at the caller. */
static void print_frames(ucontext_t *u)
{
    struct place was = place_of(u), from = was;
    void *frame[FRAMES_MAX];
    unsigned number = 0;

    if (!is_code(was.pc)) {
        print_frame(number++, was.pc, false);
        from = caller_of(u);
        if (!is_code(from.pc))
            return;
        set_place(u, from);
    }
    int n = backtrace(frame, FRAMES_MAX), i = 0;
    set_place(u, was);
    while (i < n && (uintptr_t)frame[i] != from.pc) /* skip handler and kernel frames */
        i++;
    for (; i < n; i++, number++)
        print_frame(number, (uintptr_t)frame[i], number > 0);
}

static void print_cause(const char *signal_name, const siginfo_t *info)
{
    struct line l = {.n = 0};
    char thread[17] = "";
    uintptr_t address = (uintptr_t)info->si_addr;
    bool by_access = info->si_code > 0 && (info->si_signo == SIGSEGV || info->si_signo == SIGBUS);
    bool overflowed = false;
    const char *route =
        state.route_of ? state.route_of(by_access ? info->si_addr : NULL, &overflowed) : NULL;

    prctl(PR_GET_NAME, thread);
    put(&l, "nightjar: ");
    put(&l, nj_version());
    put(&l, " crashed: ");
    put(&l, signal_name);
    if (by_access && address < LOW_BYTES) {
        put(&l, " at address ");
        put_number(&l, address, 16);
    }
    if (info->si_signo == SIGSYS && info->si_code > 0) { /* not by kill(2) */
        put(&l, " by system call ");
        put_number(&l, (uintptr_t)info->si_syscall, 10);
    }
    put(&l, " in thread ");
    put(&l, thread);
    print(&l);
    if (route) {
        put(&l,
            overflowed ? "nightjar: the handler of route " : "nightjar: in the handler of route ");
        put(&l, route);
        put(&l, overflowed ? " overflowed its stack" : "");
        print(&l);
    }
}

/* Timeout on any thread: the report blocks on its reader or a lock. */
static void on_report_timeout(int alarm_number)
{
    int number = atomic_load(&state.number);
    sigset_t only;

    (void)alarm_number;
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
}

static void start_report_timer(int number)
{
    struct sigaction act = {.sa_handler = on_report_timeout, .sa_flags = SA_ONSTACK};
    sigset_t only;

    atomic_store(&state.number, number);
    sigaction(SIGALRM, &act, NULL);
    sigemptyset(&only);
    sigaddset(&only, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL); /* all threads may have blocked it */
    alarm(NJ_CRASH_REPORT_S);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    const char *name = "?";
    struct line l = {.n = 0};

    if (atomic_flag_test_and_set(&state.reported))
        for (;;)
            pause(); /* the first crashing thread ends the process */
    start_report_timer(number);
    (void)nj_log_writer_wait(QUEUE_WAIT_MS);
    for (size_t i = 0; i < NJ_ARRAY_LEN(crashes); i++)
        if (crashes[i].number == number)
            name = crashes[i].name;
    print_cause(name, info);
    print_frames(context);
    put(&l, "nightjar: addr2line -fie MODULE OFFSET prints the source lines");
    print(&l);
    put(&l, "nightjar: please report this as SECURITY.md says, in private if a peer can cause it");
    print(&l);

    /* The signal is blocked until this handler returns, so a core dump has the crash state. */
    signal(number, SIG_DFL);
    syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
}

/* --- installation ----------------------------------------------------------------------------- */

static void read_module(struct module *m, const void *code, const char *path)
{
    struct dl_find_object found;

    if (_dl_find_object((void *)code, &found) != 0)
        return;
    m->map = found.dlfo_link_map;
    nj_crash_symbols_read(&m->symbols, path ? path : m->map->l_name);
}

static void catch_all(void)
{
    struct sigaction act = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction is;

    /* A second fault while the first is reported ends the process at once: its signal is blocked.
     */
    for (size_t i = 0; i < NJ_ARRAY_LEN(crashes); i++)
        sigaddset(&act.sa_mask, crashes[i].number);
    for (size_t i = 0; i < NJ_ARRAY_LEN(crashes); i++)
        state.is_installed[i] = sigaction(crashes[i].number, NULL, &is) == 0 &&
                                is.sa_handler == SIG_DFL &&
                                sigaction(crashes[i].number, &act, NULL) == 0;
}

void nj_crash_report_install(nj_crash_route_fn *route_of)
{
    void *frame[2];

    state.route_of = route_of;
    backtrace(frame, 2); /* the first call loads the unwinder, which takes locks and memory */
    read_module(&state.module[0], (const void *)getauxval(AT_ENTRY), "/proc/self/exe");
    read_module(&state.module[1], (const void *)(uintptr_t)nj_crash_report_install, NULL);
    state.altstack = nj_altstack_install();
    catch_all();
}

void nj_crash_report_remove(void)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(crashes); i++)
        if (state.is_installed[i])
            signal(crashes[i].number, SIG_DFL);
    nj_altstack_remove(state.altstack);
    state.altstack = NULL;
    for (size_t i = 0; i < NJ_ARRAY_LEN(state.module); i++)
        nj_crash_symbols_free(&state.module[i].symbols);
}
