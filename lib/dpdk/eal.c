/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/eal.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "base/attr.h"
#include "base/types.h"

/* stdout and stderr of the process, led into a memory file for a while. */
struct capture {
    int file, out, err;
};

static bool capture_begin(struct capture *c)
{
    fflush(NULL);
    c->file = memfd_create("eal-output", MFD_CLOEXEC);
    c->out = dup(STDOUT_FILENO);
    c->err = dup(STDERR_FILENO);
    if (c->file < 0 || c->out < 0 || c->err < 0)
        return false;
    dup2(c->file, STDOUT_FILENO);
    dup2(c->file, STDERR_FILENO);
    return true;
}

/* Ends the capture; the text is the caller's to free, NULL when there is none. */
static char *capture_end(struct capture *c)
{
    fflush(NULL);
    dup2(c->out, STDOUT_FILENO);
    dup2(c->err, STDERR_FILENO);
    close(c->out);
    close(c->err);
    off_t n = lseek(c->file, 0, SEEK_END);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) {
        ssize_t got = pread(c->file, text, (size_t)n, 0);
        text[got > 0 ? got : 0] = '\0';
    }
    close(c->file);
    return text;
}

static bool says(const char *line, const char *word)
{
    return strcasestr(line, word) != NULL;
}

/* How likely a line of EAL's output names the cause. getopt's own complaint is the most exact. */
static int weight(const char *line)
{
    static const char *const exact[] = {
        "unrecognized option", "invalid option", "requires an argument", "invalid corelist",
        "invalid coremask",    "invalid value",  "cannot parse",         "is not present"};
    static const char *const cause[] = {"cannot",     "failed",  "fail",       "error", "unable",
                                        "not enough", "no free", "permission", "refus", "invalid"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(exact); i++)
        if (says(line, exact[i]))
            return 3;
    for (size_t i = 0; i < NJ_ARRAY_LEN(cause); i++)
        if (says(line, cause[i]))
            return says(line, "FATAL") ? 1 : 2;
    return 0;
}

/* The first line of the highest weight, without EAL's own prefix. */
static void find_cause(char *text, char *why, size_t why_bytes)
{
    int best = 0;
    char *save = NULL;

    snprintf(why, why_bytes, "%s", rte_strerror(rte_errno));
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        int w = weight(line);
        if (w <= best)
            continue;
        best = w;
        const char *colon = strstr(line, ": ");
        bool prefix = colon && colon - line < 24 && strchr(line, ' ') > colon;
        snprintf(why, why_bytes, "%s", prefix ? colon + 2 : line);
    }
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0 ||
            strcmp(argv[i], "-v") == 0)
            return true;
    return false;
}

int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes)
{
    struct capture c;

    if (wants_help(argc, argv)) /* EAL prints its help and exits */
        return rte_eal_init(argc, argv) < 0 ? -1 : 0;
    if (!capture_begin(&c)) {
        snprintf(why, why_bytes, "%s", strerror(errno));
        return -1;
    }
    int rc = rte_eal_init(argc, argv);
    char *text = capture_end(&c);
    if (rc < 0)
        find_cause(text ? text : (char[]){""}, why, why_bytes);
    else if (text && getenv("NJ_EAL_VERBOSE"))
        fputs(text, stderr);
    free(text);
    return rc < 0 ? -1 : 0;
}

void nj_eal_fini(void)
{
    char dir[256];

    snprintf(dir, sizeof dir, "%s", rte_eal_get_runtime_dir());
    rte_eal_cleanup();
    rmdir(dir); /* fails when something of another process is in it, and that is right */
}

/* The value of iface= in a net_tap device string; `name` receives it. */
static bool tap_name(const char *arg, char *name, size_t name_bytes)
{
    const char *dev = strstr(arg, "net_tap");
    const char *key = dev ? strstr(dev, "iface=") : NULL;
    if (!key)
        return false;
    key += strlen("iface=");
    size_t n = strcspn(key, ",");
    if (n == 0 || n >= name_bytes)
        return false;
    memcpy(name, key, n);
    name[n] = '\0';
    return true;
}

const char *nj_eal_tap_taken(int argc, char **argv)
{
    char name[IF_NAMESIZE];

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (tap_name(argv[i], name, sizeof name) && if_nametoindex(name) != 0)
            return strstr(argv[i], "iface=") + strlen("iface=");
    return NULL;
}
