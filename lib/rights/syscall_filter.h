/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters of system calls (seccomp(2)), made by libseccomp. A refused call returns EPERM.
 *
 * The deny-list holds for all threads: calls that change the machine, the address space of other
 * processes, or namespaces. The allow-list holds for lcores and service threads: what they call,
 * and no way to a new process or a new socket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Under a sanitizer threads call more, and LeakSanitizer stops all threads by ptrace(2): no
 * allow-list, and ptrace() is not denied. No Landlock either: each thread that enters a domain gets
 * one of its own, and a thread cannot trace another one of another domain. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NJ_IS_SANITIZED true
#else
#define NJ_IS_SANITIZED false
#endif

/* Load the deny-list into all threads of the process, and those that they start. Sets no_new_privs
 * of all threads. Returns 0, or -1 with the reason in `why`. */
int nj_syscall_deny_list_load(char *why, size_t why_bytes);

/* Prepare the allow-list: from now on nj_syscall_allow_list_load() loads it. Returns 0, or -1 with
 * the reason in `why`. One thread, before the others call nj_syscall_allow_list_load(). */
int nj_syscall_allow_list_prepare(char *why, size_t why_bytes);
/* After it nj_syscall_allow_list_load() does nothing. Threads that have the allow-list keep it. */
void nj_syscall_allow_list_forget(void);

/* Was it prepared? For a thread that starts before. Any thread. */
bool nj_syscall_allow_list_is_prepared(void);
/* Load the allow-list into the calling thread alone, for ever. Does nothing if it was not prepared.
 * Any thread with no_new_privs. */
void nj_syscall_allow_list_load(void);
