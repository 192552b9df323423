/* SPDX-License-Identifier: BSD-3-Clause */
/* The signals that the program handles, in the main thread by sigwaitinfo(2). They are blocked
 * before anything else, because the default action of each is the end of the process. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Fill the set. Any thread; async-signal-safe. */
static inline void nj_handled_signals_fill(sigset_t *set)
{
    static const int number[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};

    sigemptyset(set);
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
        sigaddset(set, number[i]);
}

/* Does the signal end the server, by a graceful shutdown? */
static inline bool nj_handled_signal_stops(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGQUIT;
}
