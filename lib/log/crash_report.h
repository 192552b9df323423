/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Crash reports: on SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and SIGSYS a handler prints the
 * signal, one line for each stack frame (module, offset, function), and where to report the bug.
 * Then, or after NJ_CRASH_REPORT_S, the signal's default action ends the process, with a core dump
 * if enabled. The report contains no absolute addresses, registers or memory contents, since logs
 * are shared more widely than memory may be.
 */
#pragma once

#include <stdbool.h>

/* Maximum duration of a report in seconds: the reader of standard error may block. */
#define NJ_CRASH_REPORT_S 5u

/*
 * The name of the route whose handler the calling thread runs, or NULL. *overflowed: `address`, the
 * one of the faulty access or NULL, is the guard of the handler's stack. Called in the signal
 * handler: it only reads, takes no lock and allocates nothing.
 */
typedef const char *nj_crash_route_fn(const void *address, bool *overflowed);

/*
 * Install the handlers. `route_of` NULL: reports name no route. Existing handlers (a sanitizer, an
 * embedding program) are kept. Stack overflows are reported on threads that called
 * nj_altstack_install(). Main thread, once per process, before threads but that of log_writer.h
 * start.
 */
void nj_crash_report_install(nj_crash_route_fn *route_of);
/* Restore the default actions. Main thread, after the others have ended. */
void nj_crash_report_remove(void);
