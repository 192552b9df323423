/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions check invariants of this program, never the behaviour of a peer: a bad packet is
 * counted and dropped.
 *
 * NJ_ASSERT is compiled into checked builds only (debug, sanitizers, tests).
 * NJ_CHECK is always compiled in; use it on cold paths.
 */
#pragma once

/* Print the failed condition and its place on stderr, if that takes it within 2 s, then abort(). */
_Noreturn void nj__assert_failed(const char *what, const char *file, int line);

#define NJ_CHECK(cond)                                                                             \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0))                                                          \
            nj__assert_failed(#cond, __FILE__, __LINE__);                                          \
    } while (0)

#ifdef NJ_CHECKED
#define NJ_ASSERT(cond) NJ_CHECK(cond)
#else
#define NJ_ASSERT(cond)                                                                            \
    do {                                                                                           \
        (void)sizeof(cond);                                                                        \
    } while (0)
#endif

#define NJ_UNREACHABLE(why) nj__assert_failed("unreachable: " why, __FILE__, __LINE__)
