/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy, routes and a file server, called as the shard calls them (lib/conn/conn_requests.c).
 * struct seen holds the result of each for a request. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "http/dispatch.h"
#include "http/files/file_server.h"
#include "http/handlers/exchange_state.h"
#include "http/http_options.h"
#include "http/request_admission.h"
#include "http/response_head.h"
#include "sched/ewyk_fiber_scheduler.h"

#define ROUTES      8u
#define RULES       6u
#define CLASSES     5u
#define CLASS_403   4u /* the policy refuses the requests of this class */
#define BYTES_MAX   (8u * NJ_PATH_MAX)
#define PATTERN_MAX 256u

struct bytes {
    uint32_t n;
    char p[BYTES_MAX];
};

static inline void put(struct bytes *b, const char *p, uint32_t n)
{
    cr_assert_leq(b->n + n, BYTES_MAX);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void put_byte(struct bytes *b, char c)
{
    cr_assert_lt(b->n, BYTES_MAX);
    b->p[b->n++] = c;
}

static inline void set(struct bytes *b, const char *p, uint32_t n)
{
    b->n = 0;
    put(b, p, n);
}

static inline bool same_bytes(const struct bytes *a, const struct bytes *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* A route: the path that it matches, and the spelling of its pattern. */
struct route {
    char plain[PATTERN_MAX];
    uint32_t n_plain;
    bool is_prefix;
    const char *method; /* NULL: any */
    char pattern[PATTERN_MAX];
};

struct rule {
    char prefix[PATTERN_MAX];
    uint32_t n_prefix, class_index;
};

struct table {
    uint32_t n_routes, n_rules;
    struct route route[ROUTES];
    struct rule rule[RULES];
    const char *index;
    bool listing;
};

/* The result of a request. */
struct seen {
    uint16_t status;
    char class_of[NJ_CLASS_NAME_MAX];
    int route;          /* whose handler ran; -1: no handler */
    struct bytes path;  /* that the handler was shown */
    struct bytes query; /* likewise */
    struct bytes file;  /* of 200: the name under which the file, or list, was asked for; a response
                         * to HEAD has only its length. Of 301: the plain path of its location */
    uint64_t length;    /* of 200: its content-length */
};

/* The kinds of files of this server, by their names. */
enum kind { THERE, FOLDER, ABSENT };

static inline enum kind kind_of(const char *name, uint32_t n)
{
    uint32_t sum = n;

    for (uint32_t i = 0; i < n; i++)
        sum = sum * 31 + (uint8_t)name[i];
    return sum % 8 == 0 ? ABSENT : sum % 8 == 1 ? FOLDER : THERE;
}

#define LIST_OF "list of "

struct handler_arg {
    struct rig *rig;
    uint32_t index;
};

struct rig {
    nj_ns now;
    struct nj_counters counters;
    struct nj_txns txns;
    struct nj_file_server *site;
    struct nj_exchanges *exchanges;
    struct nj_shape_shared *shared;
    struct nj_policy policy;
    struct nj_route list[ROUTES];
    struct handler_arg arg[ROUTES];
    struct nj_routes *routes;
    struct nj_task_class classes[ROUTES];
    struct nj_file_ops port;
    struct nj_file_server_options options;
    struct nj_access_record record;
    struct nj_body *body;
    struct bytes location;
    struct seen *seen;
    uint32_t n_replies, n_objects, n_records;
};

/* ---- files: the content of each is its name ---- */

struct named_object {
    struct nj_file_object object;
    struct rig *rig;
    uint8_t bytes[];
};

static inline void last_object(struct nj_ref *ref)
{
    struct named_object *o = nj_container_of(ref, struct named_object, object.ref);
    o->rig->n_objects--;
    free(o);
}

static inline struct nj_file_object *new_object(struct rig *g, const char *before, const char *name)
{
    size_t n_before = strlen(before), n_name = strlen(name);
    struct named_object *o = calloc(1, sizeof *o + n_before + n_name + 1);

    nj_ref_init(&o->object.ref, last_object);
    o->rig = g;
    memcpy(o->bytes, before, n_before);
    memcpy(o->bytes + n_before, name, n_name);
    o->object.bytes = o->bytes;
    o->object.size_bytes = n_before + n_name;
    o->object.version = NJ_FILE_NO_VERSION;
    g->n_objects++;
    return &o->object;
}

static inline bool submit(void *ctx, struct nj_file_job *job)
{
    struct rig *g = ctx;
    enum kind kind = kind_of(job->path, (uint32_t)strlen(job->path));

    job->object = NULL;
    job->siblings = 0;
    job->result = kind == ABSENT ? NJ_FILE_ABSENT : NJ_FILE_IS_DIR;
    if (job->op == NJ_FILE_LIST)
        job->object = new_object(g, LIST_OF, job->path);
    else if (kind == THERE)
        job->object = new_object(g, "", job->path);
    if (job->object)
        job->result = NJ_FILE_OK;
    nj_file_server_job_done(g->site, job, g->now);
    return true;
}

/* ---- handlers, the framing, the access log ---- */

static inline void handle(struct nj_request *req, struct nj_response *resp, void *arg)
{
    const struct handler_arg *of = arg;
    struct seen *seen = of->rig->seen;
    struct nj_view path = nj_request_plain_path(req), query = nj_request_query(req);

    seen->route = (int)of->index;
    set(&seen->path, path.p, (uint32_t)path.n_bytes);
    set(&seen->query, query.p, (uint32_t)query.n_bytes);
    nj_response_status(resp, 204);
}

static inline int respond(void *stream, uint16_t status, const struct nj_field *fields,
                          uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    struct rig *g = stream;

    g->n_replies++;
    g->seen->status = status;
    g->body = body;
    for (uint32_t i = 0; i < n_fields; i++) {
        struct nj_str value = fields[i].value;
        if (nj_str_eq(fields[i].name, NJ_STR("location")))
            set(&g->location, value.p, value.n_bytes);
        if (nj_str_eq(fields[i].name, NJ_STR("content-length")))
            for (uint32_t k = 0; k < value.n_bytes; k++)
                g->seen->length = g->seen->length * 10 + (uint64_t)(value.p[k] - '0');
    }
    return 0;
}

static inline bool respond_cached(void *stream, uint16_t status, uint64_t stamp,
                                  struct nj_body *body)
{
    return false;
}

static const struct nj_framing framing = {.respond = respond, .respond_cached = respond_cached};

static inline void watch_progress(struct nj_txn *t, nj_ns now)
{
}

static const struct nj_txn_events events = {.watch_progress = watch_progress};

static inline struct nj_access_record *take_record(void *ctx)
{
    struct rig *g = ctx;
    return &g->record;
}

static inline void put_record(void *ctx, struct nj_access_record *a)
{
    struct rig *g = ctx;

    g->n_records++;
    cr_assert_eq(a->status, g->seen->status);
    memcpy(g->seen->class_of, a->class_of, sizeof g->seen->class_of);
}

/* ---- life ---- */

static inline void class_name(uint32_t i, char out[NJ_CLASS_NAME_MAX])
{
    snprintf(out, NJ_CLASS_NAME_MAX, i == 0 ? "default" : "c%u", i);
}

static inline void begin_policy(struct rig *g, const struct table *t)
{
    struct nj_policy *p = &g->policy;

    *p = nj_policy_none;
    p->n_classes = CLASSES;
    for (uint32_t i = 0; i < CLASSES; i++) {
        class_name(i, p->classes[i].name);
        p->classes[i].slot = (uint8_t)i;
    }
    p->classes[CLASS_403].action = NJ_ACTION_FORBID;
    p->n_rules = t->n_rules;
    for (uint32_t i = 0; i < t->n_rules; i++)
        p->rules[i] =
            (struct nj_class_rule){.class_index = (uint8_t)t->rule[i].class_index,
                                   .path_prefix = {t->rule[i].prefix, t->rule[i].n_prefix}};
    g->shared = nj_shape_shared_new(64);
    struct nj_shape_config c = {
        .shared = g->shared, .policy = p, .counters = &g->counters, .paced_max = 4};
    g->txns.shape = nj_shape_new(&c, g->now);
    g->txns.clients = nj_shape_clients(g->shared);
    cr_assert(g->txns.shape);
}

static inline void begin_routes(struct rig *g, const struct table *t)
{
    char why[256];

    for (uint32_t i = 0; i < t->n_routes; i++) {
        g->arg[i] = (struct handler_arg){g, i};
        g->list[i] = (struct nj_route){.method = t->route[i].method,
                                       .path = t->route[i].pattern,
                                       .handle = handle,
                                       .arg = &g->arg[i]};
    }
    g->routes = nj_routes_new(g->list, t->n_routes, why, sizeof why);
    cr_assert(g->routes, "%s", why);
    for (uint32_t i = 0; i < t->n_routes; i++)
        nj_task_class_init(&g->classes[i], nj_routes_name(g->routes, i), NJ_NON_BLOCKING);
    struct nj_exchanges_config c = {.txns = &g->txns,
                                    .site = g->site,
                                    .routes = g->routes,
                                    .classes = g->classes,
                                    .n_max = 4,
                                    .blocks_share = 1024};
    g->exchanges = nj_exchanges_new(&c, g->now);
    cr_assert(g->exchanges);
}

static inline struct rig *rig_begin(const struct table *t)
{
    struct rig *g = calloc(1, sizeof *g);

    g->now = NJ_SEC;
    g->txns.events = &events;
    g->txns.now = &g->now;
    g->txns.counters = &g->counters;
    g->txns.options = &nj_http_options_default;
    g->txns.wall_s_at_zero = 784111777;
    g->txns.access = (struct nj_access_ops){g, take_record, put_record, put_record};
    cr_assert(nj_txns_init(&g->txns, 4));
    begin_policy(g, t);
    g->port = (struct nj_file_ops){.ctx = g, .submit = submit};
    g->options.index = t->index;
    g->options.listing = t->listing;
    struct nj_file_server_config c = {
        .txns = &g->txns, .files = &g->port, .exchanges_max = 4, .options = &g->options};
    g->site = nj_file_server_new(&c);
    cr_assert(g->site);
    begin_routes(g, t);
    return g;
}

static inline void rig_end(struct rig *g)
{
    nj_exchanges_free(g->exchanges);
    nj_routes_free(g->routes);
    nj_file_server_free(g->site);
    nj_shape_free(g->txns.shape);
    nj_shape_shared_free(g->shared);
    cr_assert_eq(g->txns.pool.n_used, 0);
    nj_txns_fini(&g->txns);
    cr_assert_eq(g->n_objects, 0);
    free(g);
}

/* ---- a request ---- */

/* All of a body that is in memory. */
static inline void read_body(struct nj_body *body, struct bytes *out)
{
    struct nj_slice s;

    while (body->ops->remaining(body) > 0) {
        int n = body->ops->peek(body, BYTES_MAX, &s);
        cr_assert_gt(n, 0);
        put(out, (const char *)s.data, s.n_bytes);
        body->ops->advance(body, s.n_bytes);
    }
}

static inline void serve(struct rig *g, struct nj_txn *t, const struct nj_request_head *head,
                         const struct nj_target *target)
{
    struct nj_exchange *x = nj_http_dispatch(g->site, g->exchanges, t, head, target, 0);

    if (!x)
        return;
    struct nj_task *task = nj_exchange_task(x);
    nj_exchange_note_scheduled(x);
    task->ops->run(task);
    nj_exchanges_process_dirty(g->exchanges, g->now);
}

static inline void rig_ask(struct rig *g, const char *method, const struct bytes *target,
                           struct seen *seen)
{
    const struct nj_addr addr = nj_addr_from_v4(0x01020304);
    struct nj_request_head head = {
        .method = {method, (uint32_t)strlen(method)}, .path = {target->p, target->n}, .ends = true};
    struct nj_txn_origin from = {.framing = &framing, .stream = g, .remote = &addr, .peer = &addr};
    struct nj_target parsed;
    struct nj_txn *t;

    seen->status = 0;
    seen->route = -1;
    seen->length = 0;
    seen->path.n = seen->query.n = seen->file.n = g->location.n = 0;
    g->n_replies = g->n_records = 0;
    g->body = NULL;
    g->seen = seen;
    nj_file_server_parse_target(g->site, head.path, &parsed);
    if (nj_txn_begin(&g->txns, &from, &head, parsed.path, &t))
        serve(g, t, &head, &parsed);
    cr_assert_eq(g->n_replies, 1);
    cr_assert(t && !t->wait);
    if (g->body && seen->status == 200)
        read_body(g->body, &seen->file);
    if (g->body)
        g->body->ops->close(g->body);
    nj_txn_end(t, true);
    nj_exchanges_process_dirty(g->exchanges, g->now);
    cr_assert_eq(g->n_records, 1);
    if (seen->status != 200)
        seen->length = 0; /* of a text for people */
}
