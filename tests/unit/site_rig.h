/* SPDX-License-Identifier: BSD-3-Clause */
/* A site over a fake file port: prompt, late, refusing or broken. Every test ends with a count of
 * what was made and not freed. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "http/dispatch.h"
#include "http/files/file_server.h"
#include "http/files/mime_type.h"
#include "http/http_options.h"
#include "http/proto/negotiate.h"
#include "http/response_head.h"
#include "telem/counters.h"

#define EXCHANGES  8
#define JOBS       64
#define SEC        NJ_SEC
#define BIG_BYTES  (3 * NJ_CHUNK_BYTES + 12345u)
#define HUGE_BYTES (900ull * NJ_CHUNK_BYTES)

static int live; /* objects and chunks */

struct fake_object {
    struct nj_file_object object;
    uint8_t *memory;
};

struct fake_chunk {
    struct nj_file_chunk chunk;
    uint8_t bytes[NJ_CHUNK_BYTES];
};

/* State that the test observes and controls. */
struct bench {
    struct nj_file_server *site;
    struct nj_counters counters;
    nj_ns now;

    struct nj_file_server_options options;
    bool prompt;                 /* jobs complete inside submit */
    uint32_t room;               /* jobs that submit accepts before it refuses */
    enum nj_file_result failure; /* of OPEN and LIST, unless OK; not of files called page... */
    uint8_t siblings;            /* of every file */
    bool no_siblings;            /* ... and none of them can be opened */
    bool no_index;               /* neither can any index.html or none.html */
    bool racy;                   /* all are */
    int64_t mtime_ns;            /* of all, unless 0 */
    bool other_siblings;         /* the siblings that can be opened are other versions */
    bool asked_siblings;         /* the last OPEN did */
    enum nj_file_result read_failure;
    uint64_t read_fails_at;        /* offset from which READs fail */
    bool short_read;               /* chunks end before the requested byte */
    bool odd_chunks;               /* chunks begin earlier and end elsewhere */
    uint32_t read_bytes;           /* the last READ's wish */
    uint32_t read_ahead;           /* and its n_ahead */
    bool is_cold;                  /* READs have to be read */
    uint64_t read_first, read_end; /* where the first READ began, and the last ends */
    struct nj_file_job *out[JOBS];
    uint32_t n_out;

    struct nj_txns txns;
    struct nj_txn txn[256]; /* of requests, in turn */
    uint32_t n_txns;
    uint32_t n_replies, n_wakes;
    uint16_t status;
    uint32_t n_fields;
    char fields[NJ_RESP_HEAD_FIELDS_MAX][2][256];
    struct nj_body *body;
    void *stream;
    struct nj_body *bodies[64]; /* by order of reply */
    uint64_t stamp;
    struct {
        uint64_t stamp;
        char text[4096];
    } said[16]; /* the response of each of the last stamps */

    struct nj_txn *cancel_in_reply; /* whose stream closes inside the next response */
    bool close_in_wake;
};

static inline uint8_t big_byte(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static inline void last_object(struct nj_ref *ref)
{
    struct fake_object *o = (struct fake_object *)ref;
    free(o->memory);
    free(o);
    live--;
}

static inline void last_chunk(struct nj_ref *ref)
{
    free(ref);
    live--;
}

#define MTIME_S 784000000 /* Sat, 05 Nov 1994 01:46:40 GMT, before the time of the tests */

static inline struct nj_file_version version_of_size(uint64_t n_bytes)
{
    return (struct nj_file_version){
        .size_bytes = n_bytes, .mtime_ns = MTIME_S * NJ_SEC, .ctime_ns = MTIME_S * NJ_SEC};
}

static inline struct nj_file_object *new_object(const char *text, uint64_t n_bytes)
{
    struct fake_object *o = calloc(1, sizeof *o);
    nj_ref_init(&o->object.ref, last_object);
    o->object.size_bytes = n_bytes;
    o->object.version = version_of_size(n_bytes);
    if (text) {
        o->memory = malloc(n_bytes + 1);
        memcpy(o->memory, text, n_bytes);
        o->object.bytes = o->memory;
    }
    live++;
    return &o->object;
}

static inline void run_open(struct bench *b, struct nj_file_job *job)
{
    job->result = b->failure;
    job->object = NULL;
    if (b->failure != NJ_FILE_OK && strncmp(job->path, "page", 4) != 0)
        return;
    job->result = NJ_FILE_OK;
    b->asked_siblings = job->wants_siblings;
    job->siblings = b->siblings;
    job->current_at_ns = 784111777 * NJ_SEC;
    for (uint32_t i = 0; i < NJ_N_CODINGS; i++) {
        struct nj_file_version sibling =
            version_of_size(strlen(job->path) + nj_coding_suffix[i].n_bytes + b->other_siblings);
        job->sibling_hash[i] = nj_file_version_hash(&sibling);
    }
    const char *dot = strrchr(job->path, '.');
    bool is_sibling = dot && (!strcmp(dot, ".br") || !strcmp(dot, ".gz") || !strcmp(dot, ".zst"));
    if ((b->no_siblings && is_sibling) ||
        (b->no_index && (strstr(job->path, "index.html") || strstr(job->path, "none.html"))))
        job->result = NJ_FILE_ABSENT;
    else if (strncmp(job->path, "big", 3) == 0)
        job->object = new_object(NULL, BIG_BYTES);
    else if (strcmp(job->path, "huge") == 0)
        job->object = new_object(NULL, HUGE_BYTES);
    else if (strcmp(job->path, "empty") == 0)
        job->object = new_object("", 0);
    else if (strncmp(job->path, "dir", 3) == 0 && !strchr(job->path, '.'))
        job->result = NJ_FILE_IS_DIR;
    else if (strncmp(job->path, "none", 4) == 0)
        job->result = NJ_FILE_ABSENT;
    else
        job->object = new_object(job->path, strlen(job->path));
    if (!job->object)
        return;
    job->object->is_racy = b->racy;
    if (b->mtime_ns)
        job->object->version.mtime_ns = b->mtime_ns;
}

static inline void run_list(struct bench *b, struct nj_file_job *job)
{
    char text[NJ_PATH_MAX + 8];
    job->result = b->failure;
    job->object = NULL;
    if (strncmp(job->path, "none", 4) == 0)
        job->result = NJ_FILE_ABSENT;
    if (job->result != NJ_FILE_OK)
        return;
    snprintf(text, sizeof text, "%s of %s", job->json ? "json" : "html", job->path);
    job->object = new_object(text, strlen(text));
    job->object->version = NJ_FILE_NO_VERSION;
}

static inline void run_read(struct bench *b, struct nj_file_job *job)
{
    cr_assert(job->n_bytes > 0 && job->n_bytes <= NJ_CHUNK_BYTES);
    cr_assert_leq(job->offset + job->n_bytes, job->object->size_bytes);
    job->chunk = NULL;
    job->result = NJ_FILE_OK;
    if (b->read_failure != NJ_FILE_OK && job->offset >= b->read_fails_at) {
        job->result = b->read_failure;
        return;
    }
    struct fake_chunk *c = malloc(sizeof *c);
    nj_ref_init(&c->chunk.ref, last_chunk);
    /* Another range than the requested one, as far as that is allowed. */
    uint64_t first = job->offset, end = first + job->n_bytes;
    if (b->odd_chunks) {
        first -= first % 3000;
        end = first + 9000 < job->object->size_bytes ? first + 9000 : job->object->size_bytes;
    }
    if (b->short_read && job->offset >= b->read_fails_at)
        end = job->offset;
    c->chunk.offset = first;
    c->chunk.n_bytes = (uint32_t)(end - first);
    c->chunk.bytes = c->bytes;
    for (uint32_t i = 0; i < c->chunk.n_bytes; i++)
        c->bytes[i] = big_byte(first + i);
    b->read_bytes = job->n_bytes;
    b->read_ahead = job->n_ahead;
    job->was_read = b->is_cold;
    if (b->read_end == 0)
        b->read_first = job->offset;
    b->read_end = job->offset + job->n_bytes;
    job->chunk = &c->chunk;
    live++;
}

static inline void run_job(struct bench *b, struct nj_file_job *job)
{
    if (job->op == NJ_FILE_OPEN)
        run_open(b, job);
    else if (job->op == NJ_FILE_LIST)
        run_list(b, job);
    else
        run_read(b, job);
    nj_file_server_job_done(b->site, job, b->now);
}

static inline bool submit(void *ctx, struct nj_file_job *job)
{
    struct bench *b = ctx;

    if (b->n_out >= b->room)
        return false;
    if (b->prompt) {
        run_job(b, job);
        return true;
    }
    b->out[b->n_out++] = job;
    return true;
}

static inline bool withdraw(void *ctx, struct nj_file_job *job)
{
    struct bench *b = ctx;
    uint32_t i = 0;

    while (i < b->n_out && b->out[i] != job)
        i++;
    cr_assert_lt(i, b->n_out, "it is not out");
    memmove(b->out + i, b->out + i + 1, (--b->n_out - i) * sizeof b->out[0]);
    return true;
}

/* Complete the oldest job. */
static inline bool step(struct bench *b)
{
    if (b->n_out == 0)
        return false;
    struct nj_file_job *job = b->out[0];
    memmove(b->out, b->out + 1, --b->n_out * sizeof b->out[0]);
    run_job(b, job);
    return true;
}

/* The same stamp, the same status and fields. */
static inline void check_stamp(struct bench *b)
{
    uint32_t at = b->stamp % NJ_ARRAY_LEN(b->said);
    char text[sizeof b->said[at].text];
    int n = snprintf(text, sizeof text, "%u\n", b->status);

    for (uint32_t i = 0; i < b->n_fields; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s: %s\n", b->fields[i][0],
                      b->fields[i][1]);
    if (b->said[at].stamp == b->stamp)
        cr_expect_str_eq(text, b->said[at].text);
    b->said[at].stamp = b->stamp;
    memcpy(b->said[at].text, text, sizeof text);
}

static struct bench the_bench;

static inline int respond(void *stream, uint16_t status, const struct nj_field *fields,
                          uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    struct bench *b = &the_bench;

    if (b->cancel_in_reply) {
        struct nj_txn *t = b->cancel_in_reply;
        b->cancel_in_reply = NULL;
        t->on_end(t);
    }
    b->stream = stream;
    b->status = status;
    b->n_fields = n_fields;
    for (uint32_t i = 0; i < n_fields; i++) {
        const struct nj_field *f = &fields[i];
        snprintf(b->fields[i][0], 256, "%.*s", (int)f->name.n_bytes, f->name.p);
        snprintf(b->fields[i][1], 256, "%.*s", (int)f->value.n_bytes, f->value.p);
    }
    b->stamp = stamp;
    if (b->stamp)
        check_stamp(b);
    b->body = body;
    if (b->n_replies < 64)
        b->bodies[b->n_replies] = body;
    b->n_replies++;
    return 0;
}

/* Each is built, so that check_stamp() sees it. */
static inline bool respond_cached(void *stream, uint16_t status, uint64_t stamp,
                                  struct nj_body *body)
{
    return false;
}

static const struct nj_framing framing = {.respond = respond, .respond_cached = respond_cached};

static inline void wake(void *waiter)
{
    struct bench *b = &the_bench;
    struct nj_body *body = waiter;

    b->n_wakes++;
    if (b->close_in_wake)
        body->ops->close(body);
}

static const struct nj_txn_events events = {.wake = wake};

static struct nj_file_ops port;

static inline struct bench *begin_with(const struct nj_file_server_options *options)
{
    struct bench *b = &the_bench;
    memset(b, 0, sizeof *b);
    if (options)
        b->options = *options;
    live = 0;
    b->room = JOBS;
    port = (struct nj_file_ops){.ctx = b, .submit = submit};
    b->txns.events = &events;
    b->txns.now = &b->now;
    b->txns.counters = &b->counters;
    b->txns.options = &nj_http_options_default;
    b->txns.wall_s_at_zero = 784111777;
    struct nj_file_server_config config = {
        .txns = &b->txns,
        .files = &port,
        .exchanges_max = EXCHANGES,
        .options = &b->options,
    };
    b->site = nj_file_server_new(&config);
    cr_assert(b->site);
    b->txns.requester[0].n_open = 1;
    return b;
}

static inline struct bench *begin(void)
{
    return begin_with(NULL);
}

static inline void end(struct bench *b)
{
    cr_expect_eq(nj_file_server_jobs_in_flight(b->site), 0);
    cr_expect_eq(b->n_out, 0);
    nj_file_server_free(b->site);
    cr_expect_eq(live, 0, "%d objects or chunks leaked", live);
}

static inline struct nj_str str(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

static inline void keep(struct nj_txn *t)
{
}

/* With fields, each "name: value", up to a NULL. Returns the transaction if it waits, else NULL.
 * Its stream closes by t->on_end(t). */
static inline struct nj_txn *ask_with(struct bench *b, const char *method, const char *path,
                                      const char *const *lines)
{
    struct nj_field fields[16];
    struct nj_request_head head = {.method = str(method), .path = str(path), .fields = fields};
    uint32_t n = 0;
    for (; lines && lines[n]; n++) {
        const char *colon = strstr(lines[n], ": ");
        cr_assert(colon && n < 16);
        fields[n].name = (struct nj_str){lines[n], (uint32_t)(colon - lines[n])};
        fields[n].value = str(colon + 2);
        enum nj_header known = nj_header_id_of_name(fields[n].name);
        if (known != NJ_N_HEADERS)
            nj_header_add(&head, known, fields[n].value);
    }
    head.n_fields = n;
    struct nj_target target;
    nj_file_server_parse_target(b->site, str(path), &target);
    struct nj_txn *t = &b->txn[b->n_txns++ % NJ_ARRAY_LEN(b->txn)];
    *t = (struct nj_txn){.set = &b->txns,
                         .framing = &framing,
                         .stream = (void *)path,
                         .on_end = keep,
                         .requester = &b->txns.requester[0],
                         .method = (uint8_t)nj_method_parse(head.method)};
    nj_http_dispatch(b->site, NULL, t, &head, &target, 0);
    return t->wait ? t : NULL;
}

static inline struct nj_txn *ask(struct bench *b, const char *method, const char *path)
{
    return ask_with(b, method, path, NULL);
}

static inline const char *field(struct bench *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_fields; i++)
        if (strcmp(b->fields[i][0], name) == 0)
            return b->fields[i][1];
    return "(none)";
}

static inline void close_body(struct nj_body *body)
{
    if (body)
        body->ops->close(body);
}

/* Read a body of bytes to its end, in pieces of `n_max`, completing jobs when it has none. Returns
 * the bytes read; *result is 0 at the end and < 0 when it broke. */
static inline uint64_t drain(struct bench *b, struct nj_body *body, uint32_t n_max, int *result)
{
    uint64_t n = 0, size = body->ops->remaining(body);

    *result = 0;
    body->waiter = body;
    while (body->ops->remaining(body) > 0) {
        struct nj_slice s;
        int r = body->ops->peek(body, n_max, &s);
        if (r < 0) {
            *result = r;
            break;
        }
        if (r == 0) {
            uint32_t n_wakes = b->n_wakes;
            cr_assert(step(b), "the body waits and no job is out");
            cr_assert_eq(b->n_wakes, n_wakes + 1);
            continue;
        }
        cr_assert(s.n_bytes == (uint32_t)r && s.n_bytes <= n_max && s.ref);
        for (uint32_t i = 0; i < s.n_bytes; i++)
            cr_assert_eq(s.data[i], big_byte(n + i), "at %lu", (unsigned long)(n + i));
        /* Consume fewer bytes than shown in some calls. */
        uint32_t take = s.n_bytes > 1 && n % 3 == 0 ? s.n_bytes - 1 : s.n_bytes;
        body->ops->advance(body, take);
        n += take;
        cr_assert_eq(body->ops->remaining(body), size - n);
    }
    return n;
}

static inline void expect_text(struct nj_body *body, const char *want)
{
    struct nj_slice s;
    cr_assert(body);
    cr_assert_eq(body->ops->peek(body, 1000, &s), (int)strlen(want));
    cr_expect_eq(memcmp(s.data, want, s.n_bytes), 0);
    body->ops->advance(body, s.n_bytes);
    cr_expect_eq(body->ops->remaining(body), 0);
}

#define MODIFIED  "Sat, 05 Nov 1994 01:46:40 GMT"
#define ETAG_OF_8 "\"5b8beeaaeca41f15-8\"" /* of "/a/x.html" */

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline bool has(struct bench *b, const char *name)
{
    return strcmp(field(b, name), "(none)") != 0;
}

/* The whole body as text; jobs are completed while it waits. */
static inline const char *text_of(struct bench *b)
{
    static char text[1u << 16];
    struct nj_slice s;
    uint32_t n = 0;
    int r;

    if (!b->body)
        return "";
    b->body->waiter = b->body;
    uint64_t size = b->body->ops->remaining(b->body);
    while (b->body->ops->remaining(b->body) > 0) {
        r = b->body->ops->peek(b->body, 777, &s);
        cr_assert_geq(r, 0);
        if (r == 0) {
            cr_assert(step(b), "the body waits and no job is out");
            continue;
        }
        cr_assert_lt(n + s.n_bytes, sizeof text);
        memcpy(text + n, s.data, s.n_bytes);
        b->body->ops->advance(b->body, s.n_bytes);
        n += s.n_bytes;
    }
    cr_assert_eq(n, size);
    text[n] = '\0';
    close_body(b->body);
    b->body = NULL;
    return text;
}

static inline void get(struct bench *b, const char *path, const char *const *lines)
{
    ask_with(b, "GET", path, lines);
    while (step(b))
        ;
}
