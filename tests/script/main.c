/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-script [OPTIONS] FILE.pkt|FOLDER...
 *
 * --must-fail: a script passes if it fails with the message in its first line, `// fails: MESSAGE`.
 *
 * --ipv6: scripts run over IPv6, with an MTU 20 bytes larger, so that segments are as long as over
 * IPv4. Scripts that select a version themselves are skipped.
 *
 * --foreign: for scripts written for another stack. Shell commands, which would configure a
 * kernel's TCP, are skipped (otherwise the script fails). Properties that RFCs leave to the sender
 * are not compared: PSH (RFC 9293 3.9.1.2), the size of our window, and the window scale (RFC 7323
 * 2.3).
 *
 * Runs scripts in packetdrill's language in virtual time, through the shared object and table that
 * google/packetdrill uses. Each script has a stack of its own.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/script.h"

#define FILES_MAX 1024

typedef void init_fn(const char *flags, struct packetdrill_interface *table);

/* --- one script --------------------------------------------------------------------------------
 */

_Noreturn void script_fail(struct script *s, int line, const char *format, ...)
{
    va_list ap;
    int n = snprintf(s->message, sizeof s->message, "%s:%d: ", s->path, line);

    va_start(ap, format);
    vsnprintf(s->message + n, sizeof s->message - (size_t)n, format, ap);
    va_end(ap);
    longjmp(s->failed, 1);
}

void *script_alloc(struct script *s, size_t n)
{
    if (s->n_allocated == NJ_ARRAY_LEN(s->allocated))
        script_fail(s, s->line, "too many lists");
    void *p = calloc(1, n);
    if (!p)
        script_fail(s, s->line, "no memory");
    s->allocated[s->n_allocated++] = p;
    return p;
}

struct nj_addr run_addr(const struct script *s, bool peer)
{
    static const struct nj_addr ours = {{0xfd, 0x3d, 0xfa, 0x7b, 0xd1, 0x7d, [15] = 1}};
    static const struct nj_addr theirs = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}};

    if (s->v6)
        return peer ? theirs : ours;
    return nj_addr_from_v4(htonl(peer ? 0xc0000201 : 0xc0a80001)); /* 192.0.2.1 and 192.168.0.1 */
}

uint8_t run_byte(uint32_t place, bool inbound)
{
    return (uint8_t)(place * 29 + (place >> 8) * 11 + (place >> 16) + (inbound ? 0x3b : 0));
}

int64_t run_clock(struct run *r)
{
    struct timeval tv = {0};
    r->call.gettimeofday(r->call.userdata, &tv, NULL);
    return tv.tv_sec * 1000000 + tv.tv_usec - r->start_us;
}

/* `at_us` is the time of the event; relative times count from the previous event. */
void run_check_time(struct run *r, const struct event *e, int64_t at_us, const char *what)
{
    int64_t base = e->time == TIME_RELATIVE ? r->now_us : 0, slack = r->s->tolerance_us;
    int64_t from = base + e->at_us, to = e->is_range ? base + e->end_us : from;

    if (e->time == TIME_ANY || (at_us >= from - slack && at_us <= to + slack))
        return;
    script_fail(r->s, e->line, "%s was due at %.6f%s%.6f, and came at %.6f", what,
                (double)from / 1e6, e->is_range ? " to " : ", at the latest ",
                (double)(to + slack) / 1e6, (double)at_us / 1e6);
}

static void run_event(struct run *r, const struct event *e)
{
    bool outbound = e->kind == EVENT_PACKET && !e->pkt.inbound;
    int64_t due = e->at_us + (e->time == TIME_RELATIVE ? r->now_us : 0);
    int64_t wait_us = due - run_clock(r);

    if (outbound) {
        run_outbound(r, e);
    } else {
        if (e->time == TIME_ABSOLUTE && wait_us < -r->s->tolerance_us)
            script_fail(r->s, e->line, "it is %.6f already", (double)run_clock(r) / 1e6);
        if (e->time != TIME_ANY && wait_us > 0)
            r->call.usleep(r->call.userdata, (useconds_t)wait_us);
        run_settle(r);
        if (e->time == TIME_RELATIVE && e->is_blocking)
            r->now_us = due;
        if (e->kind == EVENT_PACKET)
            run_inbound(r, e);
        else if (e->kind == EVENT_CODE)
            run_code(r, e);
        else if (e->is_blocking)
            run_blocking(r, e);
        else if (e->kind == EVENT_CALL)
            run_call(r, e);
    }
    run_settle(r);
    r->now_us = run_clock(r);
}

static void run_script(struct script *s, struct run *r, init_fn *init, bool all_v6)
{
    char flags[sizeof s->flags + 64];

    snprintf(flags, sizeof flags, "mtu=%u,%s%s", (s->mtu ? s->mtu : 1500) + (all_v6 ? 20 : 0),
             s->v6 ? "local=fd3d:fa7b:d17d::1," : "", s->flags);
    init(flags, &r->call);
    if (!r->call.userdata)
        script_fail(s, 1, "the stack does not start with --so_flags=%s", s->flags);
    r->start_us = run_clock(r);
    for (uint32_t i = 0; i < s->n_events; i++)
        run_event(r, &s->event[i]);
    run_all_returned(r);
    run_nothing_left(r);
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? calloc(1, SCRIPT_BYTES_MAX + 1) : NULL;

    if (text && fread(text, 1, SCRIPT_BYTES_MAX + 1, f) > SCRIPT_BYTES_MAX) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

static void begin_peers(struct run *r)
{
    for (int i = 0; i < SCRIPT_PEERS_MAX; i++)
        r->peer[i] = (struct peer){.local_port = 8080, .remote_port = (uint16_t)(50000 + i)};
    r->cur = &r->peer[0];
    r->last_conn = -1;
}

/* Did it fail for the announced reason? */
static bool failed_rightly(const struct script *s)
{
    static const char mark[] = "// fails: ";
    const char *why = s->text + sizeof mark - 1;
    char want[256];

    if (strncmp(s->text, mark, sizeof mark - 1) != 0)
        return false;
    snprintf(want, sizeof want, "%.*s", (int)strcspn(why, "\n"), why);
    return strstr(s->message, want) != NULL;
}

struct how {
    init_fn *init;
    bool must_fail, v6, foreign;
};

enum outcome { PASSED, FAILED, LEFT_OUT };

static enum outcome run_file(const char *path, const struct how *how)
{
    struct script *s = calloc(1, sizeof *s);
    struct run *r = calloc(1, sizeof *r);
    enum outcome outcome = FAILED;

    s->path = path;
    s->tolerance_us = 4000; /* the default of packetdrill */
    s->remote_isn = 0x2f00f00d;
    s->foreign = how->foreign;
    s->text = read_text(path);
    r->s = s;
    begin_peers(r);
    if (!s->text) {
        printf("%s: can't be read, or is longer than %u bytes\n", path, SCRIPT_BYTES_MAX);
    } else if (setjmp(s->failed) == 0) {
        script_parse(s);
        bool left_out = how->v6 && (s->v4_only || s->v6);
        s->v6 |= how->v6;
        if (!left_out)
            run_script(s, r, how->init, how->v6);
        outcome = left_out ? LEFT_OUT : how->must_fail ? FAILED : PASSED;
        if (outcome == FAILED)
            printf("%s: it should have failed\n", path);
    } else {
        outcome = how->must_fail && failed_rightly(s) ? PASSED : FAILED;
        if (outcome == FAILED)
            printf("%s\n", s->message);
    }
    run_end(r);
    for (uint32_t i = 0; i < s->n_allocated; i++)
        free(s->allocated[i]);
    free(s->text);
    free(s);
    free(r);
    return outcome;
}

/* --- many --------------------------------------------------------------------------------------
 */

struct files {
    char *path[FILES_MAX];
    int n;
    const char *pattern;
};

static void add_file(struct files *f, const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    if (f->n < FILES_MAX && strstr(name, f->pattern))
        f->path[f->n++] = strdup(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A folder contributes its own scripts, without subfolders. */
static void add(struct files *f, const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    char full[4096];

    if (!d) {
        add_file(f, path);
        return;
    }
    while ((e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (n > 4 && strcmp(e->d_name + n - 4, ".pkt") == 0) {
            snprintf(full, sizeof full, "%s/%s", path, e->d_name);
            add_file(f, full);
        }
    }
    closedir(d);
}

/* The shared object is in the folder of this program, or at --so. */
static init_fn *load(const char *path)
{
    char beside[4096] = "";
    union {
        void *sym;
        init_fn *fn;
    } init;

    if (!path) {
        ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - 64);
        char *slash = n > 0 ? strrchr(beside, '/') : NULL;
        if (slash)
            strcpy(slash + 1, "libnightjar-packetdrill.so");
        path = beside;
    }
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    init.sym = so ? dlsym(so, "packetdrill_interface_init") : NULL;
    if (!init.sym)
        fprintf(stderr, "nj-script: %s\n", dlerror());
    return init.fn;
}

static int usage(FILE *to)
{
    fputs(
        "usage: nj-script [OPTIONS] FILE.pkt|FOLDER...\n"
        "\n"
        "Runs scripts of packets, of a folder all *.pkt in it (docs/rfc/packetdrill.md).\n"
        "\n"
        "  --ipv6          over IPv6, but for scripts that name a version\n"
        "  --foreign       scripts of another stack: no shell commands, and choices that the RFCs\n"
        "                  leave to the sender are not compared\n"
        "  --must-fail     a script passes when it fails as its first line says\n"
        "  --pattern WORD  only files with WORD in their name\n"
        "  --so FILE       the stack [libnightjar-packetdrill.so beside this program]\n"
        "\n"
        "Exit status: 0 when all passed, 1 when a script failed, 2 for a wrong argument.\n",
        to);
    return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
    static struct files files;
    const char *so = NULL;
    struct how how = {0};
    int n[3] = {0};
    bool named = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    files.pattern = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--so") == 0 && i + 1 < argc)
            so = argv[++i];
        else if (strcmp(argv[i], "--pattern") == 0 && i + 1 < argc)
            files.pattern = argv[++i];
        else if (strcmp(argv[i], "--must-fail") == 0)
            how.must_fail = true;
        else if (strcmp(argv[i], "--ipv6") == 0)
            how.v6 = true;
        else if (strcmp(argv[i], "--foreign") == 0)
            how.foreign = true;
        else if (strcmp(argv[i], "--help") == 0)
            return usage(stdout);
        else if (argv[i][0] == '-') {
            fprintf(stderr, "nj-script: %s: unknown option, or its value is missing\n", argv[i]);
            return usage(stderr);
        } else {
            add(&files, argv[i]);
            named = true;
        }
    }
    if (!named)
        return usage(stderr);
    how.init = load(so);
    if (!how.init)
        return 2;
    qsort(files.path, (size_t)files.n, sizeof files.path[0], by_name);
    for (int i = 0; i < files.n; i++) {
        n[run_file(files.path[i], &how)]++;
        free(files.path[i]);
    }
    printf("%d passed, %d failed\n", n[PASSED], n[FAILED]);
    return n[FAILED] ? 1 : 0;
}
