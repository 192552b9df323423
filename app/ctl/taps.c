/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures and traces: the server sends them while they run. At the first SIGINT or SIGTERM it is
 * asked to end them, so that they are complete; the second one ends this program. */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

#define TARGET_BYTES 400
#define TIMEOUT_S    10

static void complain(const char *text)
{
    fputs("nightjar ctl: ", stderr);
    ctl_print_text(stderr, text);
    fputc('\n', stderr);
}

/* --- signals ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_told_to_end;

static void note_signal(int number)
{
    is_told_to_end = 1;
    signal(number, SIG_DFL);
}

static void note_signals(void)
{
    const struct sigaction action = {.sa_handler = note_signal}; /* poll(2) is interrupted */

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Of the request that asks for the end. */
struct ending {
    const char *socket, *target;
    bool is_asked;
};

static bool ask_for_end(void *of)
{
    struct ending *e = of;
    struct ctl_answer answer = {0};
    char why[512];

    if (!is_told_to_end || e->is_asked)
        return true;
    e->is_asked = true;
    struct ctl_client *c = ctl_client_new(e->socket, TIMEOUT_S);
    bool ok = c && ctl_request(c, e->target, "", &answer, why, sizeof why);
    ctl_answer_free(&answer);
    if (c)
        ctl_client_free(c);
    return ok;
}

/* --- the request ------------------------------------------------------------------------------ */

/* The parameters that the options give: "KEY=VALUE" of each, separated by '&'. */
static bool make_target(const struct ctl *c, const char *name, char target[TARGET_BYTES])
{
    static const enum ctl_option_id options[] = {CTL_OPT_CLIENT,  CTL_OPT_PORT,
                                                 CTL_OPT_SNAPLEN, CTL_OPT_SECONDS,
                                                 CTL_OPT_PACKETS, CTL_OPT_REQUESTS};
    int n = snprintf(target, TARGET_BYTES, "/api/v1/%s", name);
    char mark = '?';

    for (size_t i = 0; i < NJ_ARRAY_LEN(options) && n < TARGET_BYTES; i++) {
        const char *value = c->given[options[i]];
        if (!value)
            continue;
        for (const char *p = value; *p; p++)
            if (!isalnum((unsigned char)*p) && !strchr("/.:", *p))
                return false;
        n += snprintf(target + n, TARGET_BYTES - (size_t)n, "%c%s=%s", mark,
                      ctl_options[options[i]].name, value);
        mark = '&';
    }
    return n < TARGET_BYTES;
}

/* Passes what the server sends to `take`. CTL_OK: to its end. */
static enum ctl_status receive(struct ctl *c, const char *name,
                               bool (*take)(void *ctx, const char *bytes, size_t n), void *ctx)
{
    char target[TARGET_BYTES], end[64], why[512];
    struct ending ending = {c->socket, end, false};
    struct ctl_answer answer;

    if (!make_target(c, name, target)) {
        complain("a value of an option is too long, or has other characters than letters, digits "
                 "and / . :");
        return CTL_USAGE;
    }
    snprintf(end, sizeof end, "/api/v1/%s/end", name);
    note_signals();
    ctl_client_watch(c->client, -1, ask_for_end, &ending);
    ctl_client_stream_to(c->client, take, ctx);
    bool ok = ctl_request(c->client, target, NULL, &answer, why, sizeof why);
    enum ctl_status status = CTL_OK;
    if (!ok) {
        complain(why);
        status = CTL_UNREACHABLE;
    } else if (answer.status != 200) {
        ctl_print_reasons(&answer);
        status = CTL_REFUSED;
    }
    ctl_answer_free(&answer);
    return status;
}

/* The first bytes come when all lcores record. */
static void say_begun(bool *has_begun, const char *what)
{
    if (!*has_begun)
        fprintf(stderr, "%s; Ctrl-C ends it\n", what);
    *has_begun = true;
}

/* --- captures --------------------------------------------------------------------------------- */

enum { BLOCK_STATISTICS = 5, BLOCK_PACKET = 6, OPTION_IFDROP = 5 };
#define BLOCK_BYTES_MAX  (1u << 20)
#define STATISTICS_FIXED 20u /* bytes before its options */

/* Only whole blocks of pcapng are written, so that the file is valid however it ends. */
struct capture {
    uint8_t *block;
    size_t n, n_room;
    uint64_t n_packets, n_dropped;
    bool has_begun, has_end, is_bad, is_unwritten;
};

static uint32_t u32_at(const struct capture *c, size_t at)
{
    uint32_t v;

    memcpy(&v, c->block + at, sizeof v);
    return v;
}

static void read_statistics(struct capture *c, uint32_t n_bytes)
{
    uint16_t option[2]; /* code, length */
    uint64_t n;

    c->has_end = true;
    for (size_t at = STATISTICS_FIXED; at + sizeof option + sizeof n <= n_bytes - 4;) {
        memcpy(option, c->block + at, sizeof option);
        at += sizeof option;
        memcpy(&n, c->block + at, sizeof n);
        if (option[0] == OPTION_IFDROP && option[1] == sizeof n)
            c->n_dropped += n;
        at += (option[1] + 3u) & ~3u;
    }
}

/* Writes the blocks that are whole. */
static bool write_blocks(struct capture *c)
{
    while (c->n >= 12) {
        uint32_t type = u32_at(c, 0), n_bytes = u32_at(c, 4);
        c->is_bad = n_bytes < 12 || n_bytes % 4 != 0 || n_bytes > BLOCK_BYTES_MAX;
        if (c->is_bad)
            return false;
        if (c->n < n_bytes)
            return true;
        if (type == BLOCK_STATISTICS)
            read_statistics(c, n_bytes);
        c->n_packets += type == BLOCK_PACKET;
        c->is_unwritten = fwrite(c->block, 1, n_bytes, stdout) != n_bytes;
        if (c->is_unwritten)
            return false;
        c->n -= n_bytes;
        memmove(c->block, c->block + n_bytes, c->n);
    }
    return true;
}

static bool take_blocks(void *ctx, const char *bytes, size_t n)
{
    struct capture *c = ctx;

    say_begun(&c->has_begun, "capturing packets");
    if (c->n + n > c->n_room) {
        uint8_t *more = realloc(c->block, c->n + n);
        if (!more)
            return false;
        c->block = more;
        c->n_room = c->n + n;
    }
    memcpy(c->block + c->n, bytes, n);
    c->n += n;
    bool ok = write_blocks(c);
    c->is_unwritten |= fflush(stdout) != 0;
    return ok && !c->is_unwritten;
}

enum ctl_status ctl_capture(struct ctl *c)
{
    struct capture capture = {0};

    if (isatty(STDOUT_FILENO)) {
        complain("a capture is binary: write it to a file (> x.pcapng) or to a pipe");
        return CTL_USAGE;
    }
    enum ctl_status status = receive(c, "capture", take_blocks, &capture);
    free(capture.block);
    if (capture.is_unwritten)
        complain("standard output cannot be written");
    if (status != CTL_OK && capture.n_packets == 0)
        return status;
    fprintf(stderr, "captured %" PRIu64 " packets, dropped %" PRIu64 "\n", capture.n_packets,
            capture.n_dropped);
    if (!capture.has_end)
        complain("the capture was cut: whether packets were dropped is not known");
    return status == CTL_OK && (!capture.has_end || capture.n_dropped > 0) ? CTL_REFUSED : status;
}

/* --- traces ----------------------------------------------------------------------------------- */

struct trace {
    bool is_json;
    char *line;
    size_t n, n_room;
    uint64_t n_requests, n_dropped;
    bool has_begun, has_end;
};

static const char *text_of(json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text && *text ? text : "-";
}

static void print_ms(json_t *o, const char *key, const char *name)
{
    json_t *value = json_object_get(o, key);

    if (json_is_number(value))
        printf(" %s=%.3fms", name, json_number_value(value));
}

/* "21:43:48.123456 198.18.0.5 GET /big 200 1048576 bytes class=default first=..." */
static void print_request(json_t *o)
{
    const char *key, *between = " waits: ", *arrived = text_of(o, "arrived");
    json_t *value;

    ctl_print_text(stdout, strlen(arrived) > 11 ? arrived + 11 : arrived);
    putchar(' ');
    ctl_print_text(stdout, text_of(o, "client"));
    putchar(' ');
    ctl_print_text(stdout, text_of(o, "method"));
    putchar(' ');
    ctl_print_text(stdout, text_of(o, "path"));
    printf("%s %" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT " bytes class=",
           json_is_true(json_object_get(o, "path_cut")) ? "..." : "",
           json_integer_value(json_object_get(o, "status")),
           json_integer_value(json_object_get(o, "bytes")));
    ctl_print_text(stdout, text_of(o, "class"));
    print_ms(o, "first_byte_ms", "first");
    print_ms(o, "last_byte_ms", "last");
    print_ms(o, "age_ms", "running");
    if (json_number_value(json_object_get(o, "throttled_ms")) > 0)
        print_ms(o, "throttled_ms", "throttled");
    if (!json_is_true(json_object_get(o, "complete")) &&
        !json_is_true(json_object_get(o, "running")))
        fputs(" incomplete", stdout);
    json_object_foreach(json_object_get(o, "waits_ms"), key, value)
    {
        fputs(between, stdout);
        ctl_print_text(stdout, key);
        printf(" %.3fms", json_number_value(value));
        between = ", ";
    }
    putchar('\n');
}

static void read_line(struct trace *t, const char *line, size_t n)
{
    json_t *o = json_loadb(line, n, 0, NULL), *dropped = json_object_get(o, "dropped");

    if (dropped) {
        t->has_end = true;
        t->n_dropped = (uint64_t)json_integer_value(dropped);
    } else if (json_object_get(o, "arrived")) {
        t->n_requests++;
        if (t->is_json)
            printf("%.*s\n", (int)n, line);
        else
            print_request(o);
    }
    json_decref(o);
}

static bool take_lines(void *ctx, const char *bytes, size_t n)
{
    struct trace *t = ctx;
    size_t from = 0;
    char *end;

    say_begun(&t->has_begun, "tracing requests");
    if (t->n + n > BLOCK_BYTES_MAX)
        return false;
    char *more = realloc(t->line, t->n + n);
    if (!more)
        return false;
    t->line = more;
    memcpy(t->line + t->n, bytes, n);
    t->n += n;
    while ((end = memchr(t->line + from, '\n', t->n - from))) {
        read_line(t, t->line + from, (size_t)(end - t->line) - from);
        from = (size_t)(end - t->line) + 1;
    }
    t->n -= from;
    memmove(t->line, t->line + from, t->n);
    return fflush(stdout) == 0;
}

enum ctl_status ctl_trace(struct ctl *c)
{
    struct trace trace = {.is_json = c->json};
    enum ctl_status status = receive(c, "trace", take_lines, &trace);

    free(trace.line);
    if (status != CTL_OK && trace.n_requests == 0)
        return status;
    fprintf(stderr, "traced %" PRIu64 " requests, dropped %" PRIu64 "\n", trace.n_requests,
            trace.n_dropped);
    if (!trace.has_end)
        complain("the trace was cut: whether requests were dropped is not known");
    return status == CTL_OK && (!trace.has_end || trace.n_dropped > 0) ? CTL_REFUSED : status;
}
