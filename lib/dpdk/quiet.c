/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/quiet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attr.h"

void nj_quiet_begin(struct nj_quiet *q)
{
    fflush(NULL);
    q->file = memfd_create("dpdk-output", MFD_CLOEXEC);
    q->out = dup(STDOUT_FILENO);
    q->err = dup(STDERR_FILENO);
    q->on = q->file >= 0 && q->out >= 0 && q->err >= 0;
    if (q->on) {
        dup2(q->file, STDOUT_FILENO);
        dup2(q->file, STDERR_FILENO);
    }
}

/* Everything that was written; the caller's to free, NULL when memory ran out. */
static char *contents(int file)
{
    off_t n = lseek(file, 0, SEEK_END);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) {
        ssize_t got = pread(file, text, (size_t)n, 0);
        text[got > 0 ? got : 0] = '\0';
    }
    return text;
}

static bool any_of(const char *line, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(line, words[i]))
            return true;
    return false;
}

/* How likely a line names the cause. getopt's own complaint is the most exact, and what follows
 * "FATAL" mostly repeats what was said before. */
static int weight(const char *line)
{
    static const char *const exact[] = {
        "unrecognized option", "invalid option", "requires an argument", "invalid corelist",
        "invalid coremask",    "invalid value",  "cannot parse",         "is not present",
        "not permitted",       "permission",     "not compatible",       "can't be used",
        "is ignored, because", "only supported", "not viable",           "IOMMU type"};
    static const char *const cause[] = {"cannot",     "fail",    "error", "unable",
                                        "not enough", "no free", "refus", "invalid"};
    if (any_of(line, exact, NJ_ARRAY_LEN(exact)))
        return 3;
    if (any_of(line, cause, NJ_ARRAY_LEN(cause)))
        return strstr(line, "FATAL") ? 1 : 2;
    return 0;
}

/* Lines begin with the library's name or the function's, "EAL: " or "tap_setup(): ". */
static const char *without_prefix(const char *line)
{
    const char *colon = strstr(line, ": ");
    const char *space = strchr(line, ' ');
    const char *text = colon && space > colon ? colon + 2 : line;
    return text + strspn(text, " ");
}

/* The first line of the highest weight; none of the list of options that the EAL prints behind its
 * complaint about one. Splits `text`. */
static void find_cause(char *text, char *cause, size_t cause_bytes)
{
    int best = 0;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "Usage: ", 7) == 0)
            break;
        int w = weight(line);
        if (w <= best)
            continue;
        best = w;
        snprintf(cause, cause_bytes, "%s", without_prefix(line));
    }
}

void nj_quiet_end(struct nj_quiet *q, char *cause, size_t cause_bytes)
{
    if (!q->on)
        return;
    fflush(NULL);
    dup2(q->out, STDOUT_FILENO);
    dup2(q->err, STDERR_FILENO);
    close(q->out);
    close(q->err);
    char *text = contents(q->file);
    close(q->file);
    if (text && getenv("NJ_EAL_VERBOSE"))
        fputs(text, stderr);
    if (text && cause)
        find_cause(text, cause, cause_bytes);
    free(text);
}
