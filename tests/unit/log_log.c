/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefixes of lines, and the lines that reach standard error. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log_line_head.h"

#define AT 1795402620123456789ll /* 2026-11-23T02:57:00.123 */

Test(log_log, heads)
{
    char head[64];

    cr_expect_eq(nj_log_format_head(head, sizeof head, NJ_LEVEL_WARNING, false, AT), strlen(head));
    cr_expect_str_eq(head, "2026-11-23T02:57:00.123Z nightjar: warning: ");
    nj_log_format_head(head, sizeof head, NJ_LEVEL_ERROR, false, 0);
    cr_expect_str_eq(head, "1970-01-01T00:00:00.000Z nightjar: error: ");
    nj_log_format_head(head, sizeof head, NJ_LEVEL_INFO, false, AT);
    cr_expect(strstr(head, "nightjar: info: "));
    nj_log_format_head(head, sizeof head, NJ_LEVEL_ERROR, true, AT);
    cr_expect_str_eq(head, "<3>nightjar: ");
    nj_log_format_head(head, sizeof head, NJ_LEVEL_WARNING, true, AT);
    cr_expect_str_eq(head, "<4>nightjar: ");
    nj_log_format_head(head, sizeof head, NJ_LEVEL_INFO, true, AT);
    cr_expect_str_eq(head, "<6>nightjar: ");
    cr_expect_eq(nj_log_format_head(head, 5, NJ_LEVEL_INFO, true, AT), 4);
}

/* The variable that systemd sets is valid for the process that was started with the journal as
 * standard error. A child whose standard error is another file inherits the variable, too. */
Test(log_log, journal)
{
    struct stat st;
    char stream[64];
    FILE *f = tmpfile();

    cr_assert(f && fstat(fileno(f), &st) == 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    cr_expect(nj_log_fd_is_journal(stream, fileno(f)));
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
    cr_expect(!nj_log_fd_is_journal(stream, fileno(f)));
    cr_expect(!nj_log_fd_is_journal(NULL, fileno(f)));
    cr_expect(!nj_log_fd_is_journal("", fileno(f)));
    cr_expect(!nj_log_fd_is_journal("8:x", fileno(f)));
    cr_expect(!nj_log_fd_is_journal(stream, -1));
    fclose(f);
}

/* Write to a file that replaces standard error. */
static void said(bool journal, char *text, size_t n)
{
    FILE *f = tmpfile();
    char stream[64], longer[4000];
    struct stat st;
    int saved = dup(2);

    cr_assert(f && fstat(fileno(f), &st) == 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    if (journal)
        setenv("JOURNAL_STREAM", stream, 1);
    else
        unsetenv("JOURNAL_STREAM");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    dup2(fileno(f), 2);
    nj_log(NJ_LEVEL_ERROR, "%s:%d: a\nb\n", "p", 3);
    nj_log(NJ_LEVEL_INFO, "%s", longer);
    dup2(saved, 2);
    close(saved);
    rewind(f);
    text[fread(text, 1, n - 1, f)] = '\0';
    fclose(f);
}

Test(log_log, lines)
{
    char text[4096];

    said(true, text, sizeof text);
    cr_expect_eq(strncmp(text, "<3>nightjar: p:3: a\n<3>nightjar: b\n<6>nightjar: xxx", 50), 0);
    cr_expect_eq(text[strlen(text) - 1], '\n', "a line that is cut is a line");
    cr_expect_leq(strlen(text), 2048 + 50);

    said(false, text, sizeof text);
    cr_expect_eq(strncmp(text, "20", 2), 0);
    cr_expect(strstr(text, "Z nightjar: error: p:3: a\n20"));
    cr_expect(strstr(text, "Z nightjar: error: b\n"));
}

static char sunk[256];

static void sink(void *ctx, enum nj_log_level level, const char *line)
{
    size_t n = strlen(sunk);

    cr_expect_eq(ctx, sunk);
    snprintf(sunk + n, sizeof sunk - n, "[%d %s]", (int)level, line);
}

Test(log_log, to_the_program)
{
    char text[64];

    nj_log_set_sink((struct nj_log_sink){sink, sunk});
    nj_log(NJ_LEVEL_WARNING, "a%d\n\nb\n", 1);
    nj_log(NJ_LEVEL_INFO, "c");
    nj_log(NJ_LEVEL_INFO, "%s", "");
    cr_expect_str_eq(sunk, "[1 a1][1 ][1 b][2 c]");
    nj_log_set_sink((struct nj_log_sink){NULL, NULL});
    said(true, text, sizeof text);
    cr_expect_eq(strncmp(text, "<3>nightjar: p:3: a\n", 20), 0, "to standard error again");
    nj_log_lines_to_sink((struct nj_log_sink){sink, sunk}, NJ_LEVEL_ERROR, "d\n");
    cr_expect_str_eq(sunk, "[1 a1][1 ][1 b][2 c][0 d]");
}
