/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a request to a reply. A request is checked, looked up in the shard's table, and else waits
 * as an exchange for the OPEN of its file; all that ask for one file wait for the same OPEN.
 */
#include "http/site.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/list.h"
#include "http/date.h"
#include "http/file_body.h"
#include "http/mime.h"
#include "http/object_table.h"
#include "http/path.h"
#include "telem/counters.h"

/* Buckets of the table of OPENs that are out. */
#define N_OPENS 256u

/* What a reply depends on besides the file. */
struct asker {
    void *stream;
    bool is_head;
    bool had_slash; /* asked for "dir/" */
    struct nj_str query;
};

struct nj_site_wait {
    struct nj_site *site;
    struct nj_list link; /* in waiters of the job */
    struct asker who;
    bool is_answering;
    bool *answered;          /* set when answered while nj_site_request() still runs */
    char query[NJ_PATH_MAX]; /* the bytes of who.query */
};

struct nj_site {
    struct nj_site_config config;
    struct nj__files files;
    struct nj_object_table *table;
    struct nj_pool exchanges;
    int64_t date_s;
    char date[NJ_DATE_BYTES];
    struct nj_path path; /* of the request at hand; too big for the stack of a deep call */
    struct nj_list opens[N_OPENS];
};

struct nj_site *nj_site_new(const struct nj_site_config *config)
{
    struct nj_site *site = calloc(1, sizeof *site);
    if (!site)
        return NULL;
    NJ_CHECK(config->exchanges_max > 0 && config->exchanges_max <= UINT32_MAX / 2);
    site->config = *config;
    site->date_s = INT64_MIN;
    for (uint32_t i = 0; i < N_OPENS; i++)
        nj_list_init(&site->opens[i]);
    site->table = nj_object_table_new();
    bool ok = nj__files_init(&site->files, config) &&
              nj_pool_init(&site->exchanges, sizeof(struct nj_site_wait), config->exchanges_max);
    if (!site->table || !ok) {
        nj_site_free(site);
        return NULL;
    }
    return site;
}

void nj_site_free(struct nj_site *site)
{
    if (!site)
        return;
    NJ_ASSERT(site->exchanges.n_used == 0);
    nj_object_table_free(site->table);
    nj__files_fini(&site->files);
    nj_pool_fini(&site->exchanges);
    free(site);
}

uint32_t nj_site_jobs_out(const struct nj_site *site)
{
    return site->files.jobs_out;
}

/* Replies. */

struct reply {
    struct nj_http_reply http;
    char length[20]; /* decimal digits of a uint64_t */
};

static void add_field(struct reply *r, struct nj_str name, struct nj_str value)
{
    NJ_ASSERT(r->http.n_fields < NJ_REPLY_FIELDS_MAX);
    r->http.fields[r->http.n_fields++] = (struct nj_field){name, value};
}

static struct nj_str date_now(struct nj_site *site, nj_ns now)
{
    int64_t s = site->config.wall_s_at_zero + (int64_t)(now / NJ_SEC);

    if (s != site->date_s) {
        nj_date_format(s, site->date);
        site->date_s = s;
    }
    return (struct nj_str){site->date, NJ_DATE_BYTES};
}

static void begin_reply(struct nj_site *site, struct reply *r, uint16_t status, nj_ns now)
{
    r->http.status = status;
    r->http.n_fields = 0;
    r->http.body = NULL;
    add_field(r, NJ_STR("server"), NJ_STR("nightjar"));
    add_field(r, NJ_STR("date"), date_now(site, now));
}

static void add_content(struct reply *r, struct nj_str type, uint64_t n_bytes)
{
    char *end = r->length + sizeof r->length, *p = end;

    do {
        *--p = (char)('0' + n_bytes % 10);
        n_bytes /= 10;
    } while (n_bytes > 0);
    add_field(r, NJ_STR("content-type"), type);
    add_field(r, NJ_STR("content-length"), (struct nj_str){p, (uint32_t)(end - p)});
    add_field(r, NJ_STR("x-content-type-options"), NJ_STR("nosniff"));
}

static void send_reply(struct nj_site *site, const struct asker *who, const struct reply *r)
{
    site->config.events->on_reply(site->config.events_ctx, who->stream, &r->http);
}

static struct nj_str status_text(uint16_t status)
{
    switch (status) {
    case 301:
        return NJ_STR("301 Moved Permanently\n");
    case 400:
        return NJ_STR("400 Bad Request\n");
    case 403:
        return NJ_STR("403 Forbidden\n");
    case 404:
        return NJ_STR("404 Not Found\n");
    case 405:
        return NJ_STR("405 Method Not Allowed\n");
    case 414:
        return NJ_STR("414 URI Too Long\n");
    case 503:
        return NJ_STR("503 Service Unavailable\n");
    default:
        return NJ_STR("500 Internal Server Error\n");
    }
}

/* A reply that says no more than its status, and one field more when its name is not empty. */
static void reply_status(struct nj_site *site, const struct asker *who, uint16_t status,
                         struct nj_field extra, nj_ns now)
{
    struct nj_str text = status_text(status);
    struct reply r;

    begin_reply(site, &r, status, now);
    if (!who->is_head)
        r.http.body = nj__body_of_bytes(&site->files, (const uint8_t *)text.p, text.n_bytes, NULL);
    /* Out of bodies: the status still arrives. */
    add_content(&r, NJ_STR("text/plain; charset=utf-8"),
                who->is_head || r.http.body ? text.n_bytes : 0);
    if (extra.name.n_bytes > 0)
        add_field(&r, extra.name, extra.value);
    send_reply(site, who, &r);
}

static void reply_error(struct nj_site *site, const struct asker *who, uint16_t status, nj_ns now)
{
    reply_status(site, who, status, (struct nj_field){0}, now);
}

static void reply_busy(struct nj_site *site, const struct asker *who, nj_ns now)
{
    nj_count(site->config.counters, NJ_C_file_busy);
    reply_status(site, who, 503, (struct nj_field){NJ_STR("retry-after"), NJ_STR("1")}, now);
}

static void reply_redirect(struct nj_site *site, const struct asker *who, const char *name,
                           nj_ns now)
{
    char location[NJ_PATH_LOCATION_MAX];
    uint32_t n = (uint32_t)nj_path_location(name, who->query, location);

    reply_status(site, who, 301, (struct nj_field){NJ_STR("location"), {location, n}}, now);
}

static void reply_object(struct nj_site *site, const struct asker *who, const char *name,
                         struct nj_object *object, nj_ns now)
{
    struct nj_body *body = NULL;
    struct reply r;

    if (!who->is_head && object->size_bytes > 0) {
        body = nj__body_of_object(&site->files, object);
        if (!body) {
            reply_busy(site, who, now);
            return;
        }
    }
    begin_reply(site, &r, 200, now);
    add_content(&r, nj_mime_type(NULL, (struct nj_str){name, (uint32_t)strlen(name)}),
                object->size_bytes);
    r.http.body = body;
    send_reply(site, who, &r);
}

/* What OPEN said of `name`, as a reply to one who asked. */
static void reply_opened(struct nj_site *site, const struct asker *who, const char *name,
                         enum nj_file_result result, struct nj_object *object, nj_ns now)
{
    switch (result) {
    case NJ_FILE_OK:
        reply_object(site, who, name, object, now);
        return;
    case NJ_FILE_IS_DIR:
        if (who->had_slash) /* an index.html that is a directory is no index */
            reply_error(site, who, 404, now);
        else
            reply_redirect(site, who, name, now);
        return;
    case NJ_FILE_ABSENT:
        reply_error(site, who, 404, now);
        return;
    case NJ_FILE_DENIED:
        reply_error(site, who, 403, now);
        return;
    case NJ_FILE_NO_MEMORY:
        reply_status(site, who, 503, (struct nj_field){NJ_STR("retry-after"), NJ_STR("1")}, now);
        return;
    case NJ_FILE_BROKEN:
        break;
    }
    reply_error(site, who, 500, now);
}

/* Requests. */

static struct nj__job *find_open(struct nj_site *site, const struct nj_object_name *name)
{
    struct nj_list *bucket = &site->opens[name->hash % N_OPENS];

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct nj__job *job = nj_container_of(l, struct nj__job, pending);
        if (job->hash == name->hash && job->n_path == name->n_bytes &&
            memcmp(job->file.path, name->p, name->n_bytes) == 0)
            return job;
    }
    return NULL;
}

static struct nj_site_wait *new_exchange(struct nj_site *site, const struct asker *who)
{
    struct nj_site_wait *x = nj_pool_take(&site->exchanges);
    if (!x)
        return NULL;
    x->site = site;
    x->who = *who;
    memcpy(x->query, who->query.p, who->query.n_bytes);
    x->who.query.p = x->query;
    nj_list_init(&x->link);
    return x;
}

/* Hand an OPEN for `name` to the port, with `x` waiting for it. False: refused, nothing changed. */
static bool begin_open(struct nj_site *site, const struct nj_object_name *name,
                       struct nj_site_wait *x)
{
    struct nj__job *job = nj__job_take(&site->files);
    if (!job)
        return false;
    job->file.op = NJ_FILE_OPEN;
    memcpy(job->file.path, name->p, name->n_bytes + 1);
    job->hash = name->hash;
    job->n_path = name->n_bytes;
    nj_list_push_back(&site->opens[name->hash % N_OPENS], &job->pending);
    nj_list_push_back(&job->waiters, &x->link);
    if (nj__job_submit(&site->files, job))
        return true;
    nj_list_del(&x->link);
    nj_list_del(&job->pending);
    nj__job_put(&site->files, job);
    return false;
}

/* Let a request wait for its file. NULL when it was answered at once after all. */
static struct nj_site_wait *wait_for_file(struct nj_site *site, const struct nj_object_name *name,
                                          const struct asker *who, nj_ns now)
{
    struct nj_site_wait *x = new_exchange(site, who);
    bool answered = false;

    if (!x) {
        reply_busy(site, who, now);
        return NULL;
    }
    struct nj__job *job = find_open(site, name);
    if (job) {
        nj_list_push_back(&job->waiters, &x->link);
        return x;
    }
    x->answered = &answered;
    if (!begin_open(site, name, x)) {
        nj_pool_put(&site->exchanges, x);
        reply_busy(site, who, now);
        return NULL;
    }
    if (answered)
        return NULL;
    x->answered = NULL;
    return x;
}

static struct nj_site_wait *request_file(struct nj_site *site, const struct asker *who, nj_ns now)
{
    const struct nj_path *path = &site->path;
    struct nj_object_name name = {
        .p = path->name,
        .n_bytes = path->n_bytes,
        .hash = nj_hash(&site->config.hash_key, path->name, path->n_bytes),
    };
    enum nj_file_result result;
    struct nj_object *object;

    if (!nj_object_table_find(site->table, &name, now, &result, &object))
        return wait_for_file(site, &name, who, now);
    if (object)
        nj_count(site->config.counters, NJ_C_file_hits);
    reply_opened(site, who, name.p, result, object, now);
    return NULL;
}

static bool str_eq(struct nj_str a, struct nj_str b)
{
    return a.n_bytes == b.n_bytes && memcmp(a.p, b.p, a.n_bytes) == 0;
}

struct nj_site_wait *nj_site_request(struct nj_site *site, const struct nj_http_request *req,
                                     void *stream, nj_ns now)
{
    struct asker who = {.stream = stream, .is_head = str_eq(req->method, NJ_STR("HEAD"))};

    if (!who.is_head && !str_eq(req->method, NJ_STR("GET"))) {
        reply_status(site, &who, 405, (struct nj_field){NJ_STR("allow"), NJ_STR("GET, HEAD")}, now);
        return NULL;
    }
    switch (nj_path_parse(req->path, &site->path)) {
    case NJ_PATH_BAD:
        reply_error(site, &who, 400, now);
        return NULL;
    case NJ_PATH_TOO_LONG:
        reply_error(site, &who, 414, now);
        return NULL;
    case NJ_PATH_HIDDEN:
        reply_error(site, &who, 404, now);
        return NULL;
    case NJ_PATH_OK:
        break;
    }
    who.had_slash = site->path.had_slash;
    who.query = site->path.query;
    return request_file(site, &who, now);
}

void nj_site_cancel(struct nj_site_wait *x)
{
    if (x->is_answering) /* its reply runs right now and frees it afterwards */
        return;
    nj_list_del(&x->link);
    nj_pool_put(&x->site->exchanges, x);
}

/* Completions. */

static void answer(struct nj_site_wait *x, const struct nj__job *job, nj_ns now)
{
    struct nj_site *site = x->site;

    if (x->answered)
        *x->answered = true;
    x->is_answering = true;
    reply_opened(site, &x->who, job->file.path, job->file.result, job->file.object, now);
    nj_pool_put(&site->exchanges, x);
}

static void open_done(struct nj_site *site, struct nj__job *job, nj_ns now)
{
    struct nj_object_name name = {job->file.path, job->n_path, job->hash};
    struct nj_list *l;

    NJ_ASSERT((job->file.result == NJ_FILE_OK) == (job->file.object != NULL));
    /* Off the table first: a reply may lead to new requests and cancels of others that wait. */
    nj_list_del(&job->pending);
    nj_object_table_put(site->table, &name, job->file.result, job->file.object, now);
    while ((l = nj_list_pop(&job->waiters)))
        answer(nj_container_of(l, struct nj_site_wait, link), job, now);
    if (job->file.object)
        nj_ref_put(&job->file.object->ref);
    nj__job_put(&site->files, job);
}

void nj_site_file_done(struct nj_site *site, struct nj_file_job *file, nj_ns now)
{
    struct nj__job *job = nj_container_of(file, struct nj__job, file);

    NJ_ASSERT(site->files.jobs_out > 0);
    site->files.jobs_out--;
    if (file->op == NJ_FILE_OPEN)
        open_done(site, job, now);
    else
        nj__body_read_done(&site->files, job);
    nj__body_retry(&site->files);
}
