/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal stack for a thread: it is used and freed, and an existing one stays. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "base/signal_stack.h"

static volatile uintptr_t handler_at;

static void on_signal(int number)
{
    int here = number;
    handler_at = (uintptr_t)&here;
}

static stack_t present(void)
{
    stack_t is;
    cr_assert_eq(sigaltstack(NULL, &is), 0);
    return is;
}

/* Sanitizers install a signal stack in each thread: this thread removes it first. */
static void *without(void *arg)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    void (*check)(void) = *(void (**)(void))arg;

    cr_assert_eq(sigaltstack(&none, NULL), 0);
    check();
    return NULL;
}

static void in_thread(void (*check)(void))
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, without, &check), 0);
    pthread_join(thread, NULL);
}

static void check_use(void)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    void *mine = nj_altstack_install();

    cr_assert_not_null(mine);
    stack_t is = present();
    cr_expect_geq(is.ss_size, NJ_ALTSTACK_BYTES);
    cr_assert_eq(sigaction(SIGUSR1, &act, NULL), 0);
    raise(SIGUSR1);
    cr_expect(handler_at >= (uintptr_t)is.ss_sp && handler_at < (uintptr_t)is.ss_sp + is.ss_size);
    cr_expect_null(nj_altstack_install(), "one is enough");
    cr_expect_eq(present().ss_sp, is.ss_sp);
    nj_altstack_remove(mine);
    cr_expect(present().ss_flags & SS_DISABLE);
}

static void check_others(void)
{
    static uint8_t theirs[64 << 10];
    stack_t stack = {.ss_sp = theirs, .ss_size = sizeof theirs};

    cr_assert_eq(sigaltstack(&stack, NULL), 0);
    void *mine = nj_altstack_install();
    cr_expect_null(mine);
    nj_altstack_remove(mine);
    cr_expect_eq(present().ss_sp, (void *)theirs);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
}

Test(base_signal_stack, handlers_run_on_it_and_it_goes)
{
    in_thread(check_use);
}

Test(base_signal_stack, a_thread_that_has_one_keeps_it)
{
    in_thread(check_others);
}
