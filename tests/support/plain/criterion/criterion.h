/* SPDX-License-Identifier: BSD-3-Clause */
/* The subset of Criterion that tests with threads use, in one process. Criterion forks its tests
 * around a memory arena at an address that ThreadSanitizer reserves, and does not start. This
 * header replaces it when b_sanitize=thread. Every failed expectation ends the run. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plain_test {
    const char *name;
    void (*run)(void);
    struct plain_test *next;
};

static struct plain_test *plain_tests;

/* One per file; meson has its time-out here, as those of tests. */
struct plain_suite {
    void (*init)(void), (*fini)(void);
    double timeout;
};
static struct plain_suite plain_suite;
#define TestSuite(suite, ...)                                                                      \
    __attribute__((constructor)) static void suite##_suite(void)                                   \
    {                                                                                              \
        plain_suite = (struct plain_suite){__VA_ARGS__};                                           \
    }                                                                                              \
    struct plain_suite

#define Test(suite, test, ...)                                                                     \
    static void suite##_##test(void);                                                              \
    __attribute__((constructor)) static void suite##_##test##_add(void)                            \
    {                                                                                              \
        static struct plain_test t = {#suite "::" #test, suite##_##test, NULL};                    \
        t.next = plain_tests;                                                                      \
        plain_tests = &t;                                                                          \
    }                                                                                              \
    static void suite##_##test(void)

int main(void)
{
    for (struct plain_test *t = plain_tests; t; t = t->next) {
        fprintf(stderr, "%s\n", t->name);
        if (plain_suite.init)
            plain_suite.init();
        t->run();
        if (plain_suite.fini)
            plain_suite.fini();
    }
    return 0;
}

/* Runs the test's cleanup, as Criterion does; a second failure during it ends the process at once.
 */
static inline _Noreturn void plain_failed(void)
{
    void (*fini)(void) = plain_suite.fini;

    plain_suite.fini = NULL;
    if (fini)
        fini();
    exit(1);
}

#define plain_check(cond, text)                                                                    \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, text);                              \
            plain_failed();                                                                        \
        }                                                                                          \
    } while (0)

/* In the body of a test only. */
#define cr_skip(why)                                                                               \
    do {                                                                                           \
        fprintf(stderr, "skipped: %s\n", why);                                                     \
        return;                                                                                    \
    } while (0)
#define cr_log_info(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))

#define plain_first(a, ...)         a
#define cr_assert(...)              plain_check(plain_first(__VA_ARGS__, 0), #__VA_ARGS__)
#define cr_assert_not(a, ...)       plain_check(!(a), "not " #a)
#define cr_assert_not_null(a, ...)  plain_check(a, #a " is not NULL")
#define cr_assert_eq(a, b, ...)     plain_check((a) == (b), #a " == " #b)
#define cr_assert_neq(a, b, ...)    plain_check((a) != (b), #a " != " #b)
#define cr_assert_gt(a, b, ...)     plain_check((a) > (b), #a " > " #b)
#define cr_assert_geq(a, b, ...)    plain_check((a) >= (b), #a " >= " #b)
#define cr_assert_lt(a, b, ...)     plain_check((a) < (b), #a " < " #b)
#define cr_assert_leq(a, b, ...)    plain_check((a) <= (b), #a " <= " #b)
#define cr_assert_null(a, ...)      plain_check(!(a), #a " is NULL")
#define cr_assert_str_eq(a, b, ...) plain_check(strcmp(a, b) == 0, #a " is " #b)
#define cr_expect(...)              cr_assert(__VA_ARGS__)
#define cr_expect_not(...)          cr_assert_not(__VA_ARGS__)
#define cr_expect_eq(...)           cr_assert_eq(__VA_ARGS__)
#define cr_expect_neq(...)          cr_assert_neq(__VA_ARGS__)
#define cr_expect_gt(...)           cr_assert_gt(__VA_ARGS__)
#define cr_expect_geq(...)          cr_assert_geq(__VA_ARGS__)
#define cr_expect_lt(...)           cr_assert_lt(__VA_ARGS__)
#define cr_expect_leq(...)          cr_assert_leq(__VA_ARGS__)
#define cr_expect_null(...)         cr_assert_null(__VA_ARGS__)
#define cr_expect_not_null(...)     cr_assert_not_null(__VA_ARGS__)
#define cr_expect_str_eq(...)       cr_assert_str_eq(__VA_ARGS__)
