/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A crash tells where it happened: on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT one line with the
 * signal, one for each frame (module, offset in it, function), and one that says where to report
 * it. Then, or when that has taken NJ_CRASH_REPORT_S, the signal has its default action: the
 * process ends by it, with a core dump where those are on. Absolute addresses, registers and
 * contents of memory are not printed: the log of a server goes further than its memory may.
 */
#ifndef NJ_LOG_CRASH_REPORT_H
#define NJ_LOG_CRASH_REPORT_H

/* So long a report may take, for what reads stderr may not. Then the process ends without it. */
#define NJ_CRASH_REPORT_S 5u

/*
 * The name of the route whose handler owns the stack that has its guard at `address`, or NULL.
 * Called in the signal handler: it only reads, takes no lock and allocates nothing.
 */
typedef const char *nj_crash_route_of(void *ctx, const void *address);

/*
 * Report crashes of this process from now on. A signal that somebody has a handler for (a
 * sanitizer, an embedding program) keeps that. Threads that nj_altstack_begin() was called on are
 * reported also when their stack has overflowed. Main thread, once per process, before others
 * start.
 */
void nj_crash_report_begin(void);
/* No longer: signals have their default action again. Main thread, after the others have ended. */
void nj_crash_report_end(void);

/* Who knows the stacks of handlers. NULL: nobody does. Main thread, while no other runs. */
void nj_crash_ask_route(nj_crash_route_of *route_of, void *ctx);

#endif
