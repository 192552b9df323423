/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mgmt/access_tokens.h"
#include "support/scratch.h"

TestSuite(mgmt_access_tokens, .init = scratch_make, .fini = scratch_remove);

#define WRITE "0123456789abcdef"
#define READ  "fedcba9876543210"

static struct nj_mgmt_tokens both(void)
{
    struct nj_mgmt_tokens t = {0};

    cr_assert(nj__mgmt_token_set(&t.write, WRITE, strlen(WRITE)));
    cr_assert(nj__mgmt_token_set(&t.read, READ, strlen(READ)));
    return t;
}

Test(mgmt_access_tokens, rights)
{
    static const struct {
        const char *value;
        enum nj_mgmt_right right;
    } of[] = {
        {"Bearer " WRITE, NJ_MGMT_WRITE},
        {"bearer " WRITE, NJ_MGMT_WRITE},
        {"Bearer   " WRITE, NJ_MGMT_WRITE},
        {"Bearer " READ, NJ_MGMT_READ},
        {NULL, NJ_MGMT_NOTHING},
        {"", NJ_MGMT_NOTHING},
        {"Bearer", NJ_MGMT_NOTHING},
        {"Bearer ", NJ_MGMT_NOTHING},
        {WRITE, NJ_MGMT_NOTHING},
        {"Basic " WRITE, NJ_MGMT_NOTHING},
        {"Bearer " WRITE "0", NJ_MGMT_NOTHING},
        {"Bearer " WRITE " ", NJ_MGMT_NOTHING},
        {"Bearer 0123456789abcde", NJ_MGMT_NOTHING},
    };
    struct nj_mgmt_tokens t = both(), none = {0};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        cr_expect_eq(nj__mgmt_tokens_right(&t, of[i].value), of[i].right, "%s", of[i].value);
        cr_expect_eq(nj__mgmt_tokens_right(&none, of[i].value), NJ_MGMT_NOTHING);
    }
}

Test(mgmt_access_tokens, a_value_without_end)
{
    static char value[8192];
    struct nj_mgmt_tokens t = both();

    memset(value, 'x', sizeof value - 1);
    memcpy(value, "Bearer ", 7);
    cr_expect_eq(nj__mgmt_tokens_right(&t, value), NJ_MGMT_NOTHING);
}

static char path[96];

static void write_file(const char *text, mode_t mode)
{
    snprintf(path, sizeof path, "%s/token", scratch);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
    cr_assert_eq(chmod(path, mode), 0);
}

static void expect_error(const char *part)
{
    struct nj_mgmt_tokens t;
    char why[256] = "";

    cr_expect_eq(nj_mgmt_tokens_read(path, NULL, &t, why, sizeof why), -1);
    cr_expect(strstr(why, "--management-token /"), "%s", why);
    cr_expect(strstr(why, part), "%s", why);
    cr_expect_not(strstr(why, WRITE), "%s", why);
}

Test(mgmt_access_tokens, files)
{
    struct nj_mgmt_tokens t;
    char why[256] = "";

    write_file(WRITE "\nthe rest is a comment\n", 0640);
    cr_assert_eq(nj_mgmt_tokens_read(path, path, &t, why, sizeof why), 0, "%s", why);
    cr_expect(t.read.is_set);
    cr_expect_eq(nj__mgmt_tokens_right(&t, "Bearer " WRITE), NJ_MGMT_WRITE);
    cr_assert_eq(nj_mgmt_tokens_read(NULL, path, &t, why, sizeof why), 0, "%s", why);
    cr_expect_eq(nj__mgmt_tokens_right(&t, "Bearer " WRITE), NJ_MGMT_READ);
    cr_assert_eq(nj_mgmt_tokens_read(NULL, NULL, &t, why, sizeof why), 0);
    cr_expect_not(t.read.is_set || t.write.is_set);
}

Test(mgmt_access_tokens, files_that_are_refused)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "0123456789abcde\n",
                                      "0123456789 abcdef\n",
                                      "0123456789\tabcdef\n",
                                      "0123456789abcde\xc3\xa4\n"};
    char longest[NJ_TOKEN_BYTES_MAX + 2];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(bad[i], 0600);
        expect_error("expected a line of 16 to 512 characters");
    }
    memset(longest, 'x', sizeof longest);
    longest[NJ_TOKEN_BYTES_MAX + 1] = '\0';
    write_file(longest, 0600);
    expect_error("expected a line of 16 to 512 characters");
    write_file(WRITE "\n", 0644);
    expect_error("other users have rights to it");
    snprintf(path, sizeof path, "%s", scratch);
    expect_error("it is no file");
    snprintf(path, sizeof path, "%s/missing", scratch);
    expect_error("No such file");
}
