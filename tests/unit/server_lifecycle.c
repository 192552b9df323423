/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a server's life that need no EAL; tests/e2e/test_embedded.py has the rest. */
#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <nightjar/server.h>

#include "support/scratch.h"

TestSuite(server_lifecycle, .init = scratch_make, .fini = scratch_remove);

static char why[512], lines[4096];

static void take(void *ctx, enum nj_log_level level, const char *line)
{
    size_t n = strlen(ctx);

    snprintf((char *)ctx + n, sizeof lines - n, "%d %s\n", (int)level, line);
}

static struct nj_server_config good(void)
{
    struct nj_server_config c;

    nj_server_config_init(&c);
    c.addr[0] = "198.18.0.2/24";
    c.root = scratch;
    c.log = take;
    c.log_ctx = lines;
    return c;
}

Test(server_lifecycle, a_server_that_is_not_started)
{
    struct nj_server_config c = good();
    struct nj_server *s = nj_server_new(0, NULL, &c, why, sizeof why);

    cr_assert(s, "%s", why);
    nj_server_stop(s);
    cr_expect_eq(nj_server_wait(s), 0);
    cr_expect_eq(nj_server_free(s), 0);
    cr_expect_eq(nj_server_free(NULL), 0);
    cr_expect_str_eq(lines, "");
}

Test(server_lifecycle, without_an_eal)
{
    struct nj_server_config c = good();
    sigset_t before, after;

    for (int i = 0; i < 2; i++) { /* it may be tried again */
        struct nj_server *s = nj_server_new(0, NULL, &c, why, sizeof why);
        cr_assert(s, "%s", why);
        pthread_sigmask(SIG_SETMASK, NULL, &before);
        cr_expect_eq(nj_server_start(s, why, sizeof why), -1);
        cr_expect(strstr(why, "the EAL is not initialised"), "%s", why);
        cr_expect_eq(nj_server_start(s, why, sizeof why), -1);
        cr_expect(strstr(why, "the EAL is not initialised"), "%s", why);
        pthread_sigmask(SIG_SETMASK, NULL, &after);
        for (int k = 1; k < NSIG; k++)
            cr_expect_eq(sigismember(&before, k), sigismember(&after, k));
        struct nj_server_stats stats = {.size_bytes = sizeof stats, .requests = 1};
        nj_server_read_stats(s, &stats);
        cr_expect_eq(stats.requests, 0);
        cr_expect_eq(nj_server_free(s), 0);
    }
}

Test(server_lifecycle, what_is_wrong_is_told)
{
    struct nj_server_config c = good();
    char path[256];

    c.root = "/nowhere";
    cr_expect_null(nj_server_new(0, NULL, &c, why, sizeof why));
    cr_expect_str_eq(why, "--root /nowhere: No such file or directory");
    cr_expect_str_eq(lines, "");

    c = good();
    snprintf(path, sizeof path, "%s/policy", scratch);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs("nonsense = 1\n", f) >= 0 && fclose(f) == 0);
    c.policy_file = path;
    cr_expect_null(nj_server_new(0, NULL, &c, why, sizeof why));
    cr_expect(strstr(why, "/policy:1: nonsense: "), "%s", why);
    cr_expect_eq(strncmp(lines, "0 /", 3), 0, "%s", lines);
    cr_expect(strstr(lines, "/policy:1: "), "%s", lines);
}

/* A program that fills in no option: the file has all of them, and EAL arguments. */
Test(server_lifecycle, the_file_is_enough)
{
    static const char text[] = "[eal]\npreset = tap,iface=nj%%d\n[network]\naddr = 198.18.0.2/24\n"
                               "listen = 8080\n[files]\nroot = %s\n";
    struct nj_server_config c;
    char path[256];

    nj_server_config_init(&c);
    snprintf(path, sizeof path, "%s/conf", scratch);
    FILE *f = fopen(path, "w");
    cr_assert(f && fprintf(f, text, scratch) > 0 && fclose(f) == 0);
    c.policy_file = path;
    struct nj_server *s = nj_server_new(0, NULL, &c, why, sizeof why);
    cr_assert(s, "%s", why);
    cr_expect_eq(nj_server_free(s), 0);
    f = fopen(path, "a");
    cr_assert(f && fputs("index = a/b\n", f) > 0 && fclose(f) == 0);
    cr_expect_null(nj_server_new(0, NULL, &c, why, sizeof why));
    cr_expect(strstr(why, "/conf:8: index = a/b: expected the name of one file"), "%s", why);
    f = fopen(path, "w");
    cr_assert(f && fputs("[network]\naddr = 198.18.0.2/24\n[files]\nroot = /nowhere\n", f) > 0 &&
              fclose(f) == 0);
    cr_expect_null(nj_server_new(0, NULL, &c, why, sizeof why));
    cr_expect(strstr(why, "/conf:4: root /nowhere: No such file or directory"), "%s", why);
    f = fopen(path, "w");
    cr_assert(f &&
              fprintf(f,
                      "[eal]\npreset = tapp\n[network]\naddr = 198.18.0.2/24\n[files]\n"
                      "root = %s\n",
                      scratch) > 0 &&
              fclose(f) == 0);
    cr_expect_null(nj_server_new(0, NULL, &c, why, sizeof why));
    cr_expect(strstr(why, "/conf:2: preset tapp: "), "%s", why);
}

static void expect_refused(struct nj_server_config *c, int argc, char **argv, const char *expected)
{
    cr_expect_null(nj_server_new(argc, argv, c, why, sizeof why));
    cr_expect_str_eq(why, expected);
}

Test(server_lifecycle, arguments_that_cannot_be)
{
    struct nj_server_config c = good();
    char *argv[] = {"program", "-l", "0", "--", "--rate", "1MiB/s", NULL};

    expect_refused(NULL, 0, NULL, "config is NULL");
    expect_refused(&c, 3, NULL, "eal_argv is NULL");
    expect_refused(
        &c, 6, argv,
        "--rate: nightjar's options are not EAL arguments: set them in the configuration");
    c.addr[2] = "198.18.0.3/24";
    expect_refused(&c, 0, NULL, "addr[2] is set, but addr[1] is not");
    c = good();
    c.error_page[1] = "404=/404.html";
    expect_refused(&c, 0, NULL, "error_page[1] is set, but error_page[0] is not");
    c = good();
    c.n_routes = 2;
    expect_refused(&c, 0, NULL, "n_routes is 2, but routes is NULL");
}

Test(server_lifecycle, limits_before_the_start)
{
    struct nj_server_config c = good();
    struct nj_server *s = nj_server_new(0, NULL, &c, why, sizeof why);

    cr_assert(s, "%s", why);
    cr_expect_eq(nj_server_change_limits(s, "rate=1MiB/s", why, sizeof why), -1);
    cr_expect_str_eq(why, "the server was not started");
    nj_server_free(s);
}

/* Statistics of a program that was compiled with fewer or more fields. */
Test(server_lifecycle, sizes_of_statistics)
{
    struct nj_server_config c = good();
    struct nj_server *s = nj_server_new(0, NULL, &c, why, sizeof why);
    struct {
        struct nj_server_stats stats;
        uint64_t more;
    } a;

    cr_assert(s, "%s", why);
    memset(&a, 0xaa, sizeof a);
    a.stats.size_bytes = offsetof(struct nj_server_stats, responses);
    nj_server_read_stats(s, &a.stats);
    cr_expect_eq(a.stats.requests, 0);
    cr_expect_eq(a.stats.responses, 0xaaaaaaaaaaaaaaaa);
    a.stats.size_bytes = sizeof a;
    nj_server_read_stats(s, &a.stats);
    cr_expect_eq(a.stats.size_bytes, sizeof a);
    cr_expect_eq(a.more, 0);
    nj_server_free(s);
}

Test(server_lifecycle, errors_have_words)
{
    for (int error = NJ_ERR_TOO_LARGE; error <= 0; error++)
        cr_expect_str_neq(nj_strerror(error), "unknown error", "%d", error);
    cr_expect_str_eq(nj_strerror(1), "unknown error");
    cr_expect_str_eq(nj_strerror(NJ_ERR_TOO_LARGE - 1), "unknown error");
    cr_expect_str_eq(nj_strerror(INT_MIN), "unknown error");
    cr_expect_eq(nj_lcore_id(), UINT_MAX);
}

/* Each is an error, or has no effect. */
Test(server_lifecycle, null)
{
    struct nj_server_config c = good();
    struct nj_server_stats stats;

    cr_expect_null(nj_server_new(0, NULL, NULL, why, sizeof why));
    cr_expect_str_eq(why, "config is NULL");
    cr_expect_null(nj_server_new(2, NULL, &c, why, sizeof why));
    cr_expect_str_eq(why, "eal_argv is NULL");
    cr_expect_null(nj_server_new(0, NULL, NULL, NULL, 100));
    c.root = "/does/not/exist";
    cr_expect_null(nj_server_new(0, NULL, &c, NULL, 100));
    cr_expect_eq(nj_server_start(NULL, why, sizeof why), -1);
    cr_expect_str_eq(why, "the server is NULL");
    cr_expect_eq(nj_server_start(NULL, NULL, 0), -1);
    cr_expect_eq(nj_server_reload(NULL), NJ_ERR_INVALID);
    cr_expect_eq(nj_server_wait(NULL), NJ_ERR_INVALID);
    nj_server_stop(NULL);
    cr_expect_eq(nj_server_change_limits(NULL, "rate=1MiB/s", why, sizeof why), -1);
    nj_server_stats_init(&stats);
    stats.requests = 1;
    nj_server_read_stats(NULL, &stats);
    cr_expect_eq(stats.requests, 0);
    nj_server_read_stats(NULL, NULL);
    nj_server_config_init(NULL);
    cr_expect_eq(nj_server_config_set(NULL, "root", "/", why, sizeof why), -1);
    cr_expect_eq(nj_server_config_set(&c, NULL, "/", why, sizeof why), -1);
    cr_expect_eq(nj_server_config_set(&c, "root", NULL, NULL, 100), -1);
    cr_expect_eq(nj_server_config_takes(NULL), -1);
    cr_expect_null(nj_server_config_near(NULL, NULL));
    cr_expect_eq(nj_server_check(NULL), 2);
    cr_expect_eq(nj_print_placement(0, NULL, NULL), 2);
    cr_expect_eq(nj_print_placement(2, NULL, &c), 2);
    cr_expect_eq(nj_print_preset(NULL), 2);
}
