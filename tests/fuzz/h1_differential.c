/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: the same bytes for lib/h1 and for http_parser. Both must see the same requests, with
 * the same methods, targets, fields, bodies and ends, or refuse at the same place. h1_differences.h
 * has a row for each difference in which lib/h1 follows the RFC. Both parsers read a byte at a
 * time, so that each event has its place. (That the division into inputs makes no difference is for
 * h1.c.) Needs libhttp-parser-dev, so it is built only with -Dfuzz=true.
 */
#include <ctype.h>
#include <http_parser.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "h1/h1.h"
#include "telem/counters.h"

#include "h1_differences.h"

#define INPUT_MAX 4096u
#define ROOM      (2 * INPUT_MAX) /* of the texts of a message */
#define MESSAGES  32u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct text {
    uint32_t n;
    char p[ROOM];
};

/* Offsets are behind the last byte. */
struct message {
    uint32_t head_end, end;
    bool has_head, is_complete, persists;
    bool persists_by_head; /* of http_parser: what it said before the body */
    bool is_1_0;
    struct text method, target, fields, content;
};

struct reader {
    struct message message[MESSAGES];
    uint32_t n;  /* complete */
    uint32_t at; /* of the byte that is read */
    bool refused, ended;
    int why;
};

static struct reader ours, theirs;

static struct message *current(struct reader *r)
{
    return &r->message[r->n];
}

static void reset(struct reader *r)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message *m = &r->message[i];
        m->head_end = m->end = 0;
        m->has_head = m->is_complete = m->persists = m->is_1_0 = false;
        m->method.n = m->target.n = m->fields.n = m->content.n = 0;
    }
    r->n = r->at = 0;
    r->refused = r->ended = false;
    r->why = 0;
}

static void add(struct text *t, const void *p, size_t n)
{
    NJ_CHECK(t->n + n <= ROOM);
    if (n > 0)
        memcpy(t->p + t->n, p, n);
    t->n += (uint32_t)n;
}

static void add_str(struct text *t, struct nj_str s)
{
    add(t, s.p, s.n_bytes);
}

static void end_message(struct reader *r, bool persists)
{
    struct message *m = current(r);

    m->is_complete = true;
    m->end = r->at + 1;
    m->persists = persists;
    r->ended = !persists || ++r->n == MESSAGES;
}

/* ---- lib/h1 ---- */

static void respond(struct nj_h1 *h)
{
    (void)nj_h1_respond(h, 200, NULL, 0, 0, NULL);
    current(&ours)->is_complete = true;
}

static void on_request(void *user, struct nj_h1 *h, const struct nj_request_head *req)
{
    struct message *m = current(user);

    m->has_head = true;
    m->head_end = ours.at + 1;
    m->is_1_0 = req->version == NJ_HTTP_1_0;
    add_str(&m->method, req->method);
    if (nj_str_eq(req->method, NJ_STR("CONNECT")))
        add_str(&m->target, req->authority);
    else
        add_str(&m->target, req->path);
    for (uint32_t i = 0; i < req->n_fields; i++) {
        add_str(&m->fields, req->fields[i].name);
        add(&m->fields, ":", 1);
        add_str(&m->fields, req->fields[i].value);
        add(&m->fields, "\n", 1);
    }
    if (req->ends)
        respond(h);
}

static void on_data(void *user, struct nj_h1 *h, const uint8_t *data, size_t n)
{
    add(&current(user)->content, data, n);
    nj_h1_consume(h, n);
}

static void on_end(void *user, struct nj_h1 *h)
{
    (void)user;
    respond(h);
}

static void on_close(void *user, struct nj_h1 *h, bool complete)
{
    (void)user;
    (void)h;
    (void)complete;
}

static void on_counted(void *user, nj_counter why)
{
    struct reader *r = user;
    r->refused = true;
    r->why = (int)why;
}

static const struct nj_h1_events events = {.on_request = on_request,
                                           .on_close = on_close,
                                           .on_data = on_data,
                                           .on_end = on_end,
                                           .on_refusal_counted = on_counted};

static uint32_t sink_room(void *ctx)
{
    (void)ctx;
    return 1u << 20;
}

static bool sink_copy(void *ctx, const uint8_t *p, uint32_t n)
{
    (void)ctx;
    (void)p;
    return n > 0;
}

static bool sink_refer(void *ctx, const struct nj_slice *s)
{
    return sink_copy(ctx, s->data, s->n_bytes);
}

static const struct nj_byte_sink sink = {sink_room, sink_copy, sink_refer};

static struct nj_alloc alloc;
static struct nj_h1_context *ctx;

static void read_ours(const uint8_t *data, uint32_t n)
{
    static const struct nj_h1_limits limits = {.header_bytes_max = 200 * 1024,
                                               .header_fields_max = INPUT_MAX};
    static struct nj_counters counters;
    if (!ctx) {
        nj_alloc_init(&alloc, 1u << 24);
        ctx = nj_h1_context_new(&events, &limits, &alloc, &counters);
    }
    reset(&ours);
    struct nj_h1 *h = nj_h1_open(ctx, &ours, false, false);
    while (ours.at < n && !ours.refused && !ours.ended) {
        NJ_CHECK(nj_h1_may_read(h) && nj_h1_input(h, data + ours.at, 1) == 1);
        NJ_CHECK(nj_h1_output(h, &sink, NULL) == 0);
        if (!ours.refused && current(&ours)->is_complete)
            end_message(&ours, !nj_h1_is_finished(h));
        ours.at++;
    }
    nj_h1_close(h);
    NJ_CHECK(alloc.bytes_used == 0);
}

/* ---- http_parser ---- */

static struct text url, name, value;
static bool in_value;

static struct nj_str str_of(const struct text *t)
{
    return (struct nj_str){t->p, t->n};
}

/* What lib/h1 shows of a target: of the absolute-form only the path, which is not empty. */
static void put_target(struct message *m)
{
    struct nj_str target = str_of(&url);
    bool is_options = nj_str_eq(str_of(&m->method), NJ_STR("OPTIONS"));

    if (url.n >= 7 && strncasecmp(url.p, "http://", 7) == 0) {
        nj_str_skip(&target, 7);
        while (target.n_bytes > 0 && target.p[0] != '/' && target.p[0] != '?')
            nj_str_skip(&target, 1);
        if (target.n_bytes == 0 || target.p[0] == '?')
            add(&m->target, is_options && target.n_bytes == 0 ? "*" : "/", 1);
    }
    add_str(&m->target, target);
}

/* lib/h1 does not show the fields of the connection. */
static bool is_shown(struct nj_str field)
{
    static const char *const hidden[] = {"connection", "keep-alive",        "proxy-connection",
                                         "upgrade",    "transfer-encoding", NULL};

    for (uint32_t i = 0; hidden[i]; i++)
        if (nj_str_eq_nocase_cstr(field, hidden[i]))
            return false;
    if (nj_str_eq_nocase_cstr(field, "te"))
        return nj_str_eq_nocase_cstr(nj_str_trim(str_of(&value)), "trailers");
    return !nj_str_eq_nocase_cstr(field, "host") || url.n == 0 || url.p[0] == '/' ||
           url.p[0] == '*';
}

static void put_field(struct message *m)
{
    if (name.n > 0 && is_shown(str_of(&name))) {
        for (uint32_t i = 0; i < name.n; i++)
            name.p[i] = (char)tolower((unsigned char)name.p[i]);
        add_str(&m->fields, str_of(&name));
        add(&m->fields, ":", 1);
        add_str(&m->fields, nj_str_trim(str_of(&value))); /* RFC 9112 5.1 */
        add(&m->fields, "\n", 1);
    }
    name.n = value.n = 0;
    in_value = false;
}

static int on_url(http_parser *p, const char *at, size_t n)
{
    (void)p;
    add(&url, at, n);
    return 0;
}

static int on_name(http_parser *p, const char *at, size_t n)
{
    (void)p;
    if (current(&theirs)->has_head)
        return 0;
    if (in_value)
        put_field(current(&theirs));
    add(&name, at, n);
    return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
    (void)p;
    if (current(&theirs)->has_head)
        return 0;
    in_value = true;
    add(&value, at, n);
    return 0;
}

static int on_head(http_parser *p)
{
    struct message *m = current(&theirs);
    const char *method = http_method_str(p->method);

    add(&m->method, method, strlen(method));
    put_field(m);
    put_target(m);
    m->has_head = true;
    m->head_end = theirs.at + 1;
    m->is_1_0 = p->http_major == 1 && p->http_minor == 0;
    m->persists_by_head = http_should_keep_alive(p) && p->method != HTTP_CONNECT;
    p->upgrade = p->method == HTTP_CONNECT; /* Upgrade is ignored (RFC 9110 7.8) */
    return 0;
}

static int on_content(http_parser *p, const char *at, size_t n)
{
    (void)p;
    add(&current(&theirs)->content, at, n);
    return 0;
}

static int on_complete(http_parser *p)
{
    end_message(&theirs, http_should_keep_alive(p) && !p->upgrade);
    url.n = 0;
    return 0;
}

static void read_theirs(const uint8_t *data, uint32_t n)
{
    static const http_parser_settings settings = {.on_url = on_url,
                                                  .on_header_field = on_name,
                                                  .on_header_value = on_value,
                                                  .on_headers_complete = on_head,
                                                  .on_body = on_content,
                                                  .on_message_complete = on_complete};
    http_parser p;

    reset(&theirs);
    url.n = name.n = value.n = 0;
    in_value = false;
    http_parser_init(&p, HTTP_REQUEST);
    for (; theirs.at < n && !theirs.ended && !theirs.refused; theirs.at++) {
        http_parser_execute(&p, &settings, (const char *)data + theirs.at, 1);
        theirs.refused = HTTP_PARSER_ERRNO(&p) != HPE_OK;
    }
    theirs.why = HTTP_PARSER_ERRNO(&p);
}

/* ---- the rows ---- */

static unsigned n_seen[NJ_ARRAY_LEN(rows)];

struct pattern {
    bool compiled;
    regex_t re;
};

static bool matches(struct pattern *pattern, const char *text, int flags, const char *p, size_t n)
{
    regmatch_t range = {0, (regoff_t)n};

    if (!pattern->compiled)
        NJ_CHECK(regcomp(&pattern->re, text, REG_EXTENDED | flags) == 0);
    pattern->compiled = true;
    return regexec(&pattern->re, p, 1, &range, REG_STARTEND) == 0;
}

static bool ends_behind_chunk(const char *p, size_t n)
{
    for (size_t at = 0;;) {
        const char *lf = memchr(p + at, '\n', n - at);
        unsigned long long size = strtoull(p + at, NULL, 16);
        if (!lf || size == 0)
            return false;
        at = (size_t)(lf - p) + 1;
        if (n - at <= size)
            return false;
        at += size;
        if (n - at <= 2)
            return memcmp(p + at, "\r\n", n - at) != 0;
        at += 2;
    }
}

static bool expects_other(const char *p, size_t n)
{
    static const char name[] = "\nexpect:";
    const char *end = p + n;

    for (; (p = memchr(p, '\n', (size_t)(end - p))); p++) {
        if ((size_t)(end - p) < sizeof name || strncasecmp(p, name, sizeof name - 1) != 0)
            continue;
        for (const char *at = p + sizeof name - 1; at < end && *at != '\r'; at++) {
            struct nj_str element = {at, (uint32_t)strcspn(at, ",\r")};
            at += element.n_bytes;
            element = nj_str_trim(element);
            if (element.n_bytes > 0 && !nj_str_eq_nocase_cstr(element, "100-continue"))
                return true;
            if (*at == '\r')
                break;
        }
    }
    return false;
}

static bool ends_extensions(const char *p, size_t n)
{
    size_t n_ext = 0;

    for (size_t at = 0;;) {
        char *ext;
        const char *lf = memchr(p + at, '\n', n - at);
        unsigned long long size = strtoull(p + at, &ext, 16);
        n_ext += (size_t)((lf ? lf - 1 : p + n) - ext);
        if (!lf)
            return n_ext == 1025;
        at = (size_t)(lf - p) + 1;
        if (size == 0 || size + 2 > n - at)
            return false;
        at += size + 2;
    }
}

static bool explains(uint32_t i, enum differs differs, int why, const char *p, size_t n)
{
    static struct pattern pattern[NJ_ARRAY_LEN(rows)], unless[NJ_ARRAY_LEN(rows)];
    const struct row *row = &rows[i];

    return row->differs == differs && (row->why == ANY || row->why == why) &&
           matches(&pattern[i], row->pattern, row->flags, p, n) &&
           (!row->unless || !matches(&unless[i], row->unless, row->flags, p, n)) &&
           (!row->also || row->also(p, n));
}

static void end(void)
{
    nj_h1_context_free(ctx);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(rows); i++)
        fprintf(stderr, "%10u %s\n", n_seen[i], rows[i].name);
}

static void print_message(const char *whose, const struct reader *r, uint32_t i)
{
    const struct message *m = &r->message[i];

    fprintf(stderr, "%s: %u complete, refused %d, why %d, read %u\n", whose, r->n, r->refused,
            r->why, r->at);
    fprintf(stderr,
            "  %.*s|%.*s|%s, head %u, end %u, persists %d\n  fields: %.*s\n  content: %.*s\n",
            (int)m->method.n, m->method.p, (int)m->target.n, m->target.p, m->is_1_0 ? "1.0" : "1.1",
            m->head_end, m->end, m->persists, (int)m->fields.n, m->fields.p, (int)m->content.n,
            m->content.p);
}

/* Message `i` differs in bytes from `from` to `to`. */
static void check(const uint8_t *data, uint32_t i, enum differs differs, int why, uint32_t from,
                  uint32_t to)
{
    for (uint32_t k = 0; k < NJ_ARRAY_LEN(rows); k++) {
        if (explains(k, differs, why, (const char *)data + from, to - from)) {
            n_seen[k]++;
            return;
        }
    }
    bool is_theirs = differs == THEY_REFUSE_HEAD || differs == THEY_REFUSE_BODY;
    fprintf(stderr, "message %u: difference %d, why %s\n", i, (int)differs,
            is_theirs ? http_errno_name((enum http_errno)why) : nj_counter_info[why].name);
    print_message("ours", &ours, i);
    print_message("theirs", &theirs, i);
    abort();
}

static bool is_same(const struct text *a, const struct text *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* The first difference decides: behind it the two read different messages. */
static void compare(const uint8_t *data)
{
    uint32_t begin = 0;

    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct message *a = &ours.message[i], *b = &theirs.message[i];
        if (!a->has_head || !b->has_head) {
            if (ours.refused && !a->has_head && !(theirs.refused && !b->has_head))
                check(data, i, WE_REFUSE_HEAD, ours.why, begin, ours.at);
            else if (theirs.refused && !b->has_head && !(ours.refused && !a->has_head))
                check(data, i, THEY_REFUSE_HEAD, theirs.why, begin,
                      a->has_head ? a->head_end : ours.at);
            else
                NJ_CHECK(a->has_head == b->has_head);
            return;
        }
        NJ_CHECK(a->head_end == b->head_end && a->is_1_0 == b->is_1_0);
        NJ_CHECK(is_same(&a->method, &b->method));
        if (!is_same(&a->target, &b->target))
            return check(data, i, TARGET, 0, begin, a->head_end);
        if (!is_same(&a->fields, &b->fields))
            return check(data, i, FIELDS, 0, begin, a->head_end);
        uint32_t n = nj_min_u32(a->content.n, b->content.n);
        if (memcmp(a->content.p, b->content.p, n) != 0)
            return check(data, i, CONTENT, 0, begin, a->head_end);
        if (a->is_complete && b->is_complete) {
            if (a->end != b->end || a->content.n != b->content.n)
                return check(data, i, END, 0, begin, a->head_end);
            if (a->persists != b->persists && a->persists == b->persists_by_head)
                return check(data, i, PERSISTS_BY_TRAILERS, 0, a->head_end, a->end);
            if (a->persists != b->persists)
                return check(data, i, PERSISTS, 0, begin, a->head_end);
            if (!a->persists)
                return;
            begin = a->end;
            continue;
        }
        if (ours.refused && ours.n == i && !(theirs.refused && theirs.n == i))
            check(data, i, WE_REFUSE_BODY, ours.why, a->head_end, ours.at);
        else if (theirs.refused && theirs.n == i && theirs.at == b->head_end)
            check(data, i, THEY_REFUSE_HEAD, theirs.why, begin, a->head_end);
        else if (theirs.refused && theirs.n == i && !(ours.refused && ours.n == i))
            check(data, i, THEY_REFUSE_BODY, theirs.why, a->head_end, theirs.at);
        else if (a->is_complete != b->is_complete)
            check(data, i, END, 0, begin, a->head_end);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char last[] = "\r\n\r\n"; /* so that the last line and head are complete */
    static uint8_t input[INPUT_MAX + 1]; /* ends with 0: a sanitizer looks for that in regexec() */
    static bool began;

    if (!began)
        atexit(end);
    began = true;
    if (n_bytes > INPUT_MAX - 4)
        return 0;
    if (n_bytes > 0)
        memcpy(input, data, n_bytes);
    memcpy(input + n_bytes, last, 4);
    read_ours(input, (uint32_t)n_bytes + 4);
    read_theirs(input, (uint32_t)n_bytes + 4);
    compare(input);
    return 0;
}
