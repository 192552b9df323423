/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard below a stack, and how a handler of SIGSEGV recognizes it. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sched/ewyk_fiber_scheduler.h"
#include "sched/fiber_internal.h"
#include "support/fiber_root.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FACTOR 4u
#else
#define FACTOR 1u
#endif

enum { NEAR = 42, FAR = 43 };

/* One frame that is larger than the stack, written to at its far end only, as code does that was
 * compiled without -fstack-clash-protection. */
static void leap(void *arg)
{
    uintptr_t at = (uintptr_t)__builtin_frame_address(0);

    *(volatile char *)(at - FACTOR * NJ_FIBER_STACK_BYTES - 12u * 1024) = 1;
}

static struct nj_task_class of_route;

/* The handler distinguishes the guard from any other address, and finds its stack. */
static void on_leap(int signal, siginfo_t *info, void *context)
{
    int here;

    bool hit = nj_fiber_guard_hit(info->si_addr) && nj_task_class_running() == &of_route;
    bool none = nj_fiber_guard_hit(&here) || nj_fiber_guard_hit(NULL);
    _exit(hit && !none ? NEAR : FAR);
}

static void leap_in_fiber(void *arg)
{
    static uint8_t handler_stack[65536];
    stack_t alt = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction act = {.sa_sigaction = on_leap, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigaltstack(&alt, NULL);
    sigaction(SIGSEGV, &act, NULL);
    nj__fiber_start_for_class(arg, leap, NULL, &of_route);
}

static void stay(void *arg)
{
    *(struct nj_fiber **)arg = nj_fiber_self();
    nj_fiber_park(NULL, NJ_NEVER);
}

/* EWYK 5.62: a large frame does not skip the guard; the memory of the neighbouring stack is
 * unchanged. */
Test(sched_fiber_guard, one_large_frame_hits_the_guard)
{
    struct nj_fibers *fs = nj_fibers_new(&(struct nj_fibers_config){.n_max = 3, .now = NJ_SEC});
    struct nj_fiber *f = NULL;
    int status = 0;

    cr_assert(fs);
    fiber_start(fs, stay, &f);
    pid_t child = fork();
    if (child == 0) {
        leap_in_fiber(fs);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == NEAR, "status %x", status);
    cr_expect(!nj_fiber_guard_hit(fs->stacks), "no fiber runs");
    cr_expect_null(nj_task_class_running());
    nj_fiber_cancel(f);
    fibers_run(fs, 2 * NJ_SEC, 10);
    nj_fibers_free(fs);
}
