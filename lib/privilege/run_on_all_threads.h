/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a function on each thread of the process. Capabilities, no_new_privs and Landlock domains
 * belong to a thread (capabilities(7), prctl(2), landlock(7)), and the kernel lets no thread change
 * those of another. */
#pragma once

#include <stddef.h>

/*
 * Calls `fn` on each other thread of the process, one after the other, and then on the caller.
 * On the others it runs in a handler of a real-time signal, so it must be async-signal-safe
 * (signal-safety(7)). Threads that are started meanwhile are included. Other threads need that
 * signal unblocked; one that does not answer within five seconds, and has not ended, is an error.
 *
 * `fn` returns 0 or an errno. Returns 0, or -1 with the reason in `why`; `fn` may then have run on
 * some of the threads. One thread at a time calls it.
 */
int nj_run_on_all_threads(int (*fn)(void *ctx), void *ctx, char *why, size_t why_bytes);
