/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resolves requests to files. A request is looked up in the shard's cache; on a miss it waits for
 * the OPEN of its file. All requests for one file share one OPEN, which has the earliest
 * turn of their clients.
 *
 * One lookup may lead to another: from a file to its precompressed sibling, from a folder
 * without an index file to its listing, from an error to its error page. Each step looks in
 * the cache first. Methods and statuses follow RFC 9110 9.3 and 15.
 */
#include "http/files/file_server.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/page_alloc.h"
#include "http/files/file_body.h"
#include "http/files/file_server_internal.h"
#include "http/files/mime_type.h"
#include "http/request_admission.h"
#include "site/site_table.h"
#include "telem/counters_http.h"

struct nj_file_wait {
    struct nj_file_server *fs;
    struct nj__file_job *job;         /* the job it waits for, or NULL */
    struct nj_list link;              /* in job->waiters */
    void (*on_end)(struct nj_txn *t); /* the transaction's, which is ours while it waits */
    struct nj__file_request req;
    bool *freed; /* set when the wait ends while a caller up the stack uses it */
    char strings[NJ_PATH_MAX + NJ__REQ_FIELDS_MAX]; /* bytes of the stored query and fields */
};

static struct nj_str str_of(const char *s)
{
    return (struct nj_str){s, s ? (uint32_t)strlen(s) : 0};
}

struct nj_file_server *nj_file_server_new(const struct nj_file_server_config *config)
{
    struct nj_file_server *fs = nj_pages_map(sizeof *fs, 0); /* has a key */
    if (!fs)
        return NULL;
    NJ_CHECK(config->exchanges_max > 0 && config->exchanges_max <= UINT32_MAX / 2);
    fs->config = *config;
    fs->options = config->options;
    fs->index = fs->options->index ? str_of(fs->options->index) : NJ_STR("index.html");
    nj_path_cache_init(&fs->paths, fs->index, fs->options->dotfiles, &config->hash_key);
    fs->cache_control = str_of(fs->options->cache_control);
    for (uint32_t i = 0; i < NJ__OPEN_BUCKETS; i++)
        nj_list_init(&fs->opens[i]);
    fs->meta_cache = nj_lookup_cache_new();
    bool ok = nj__file_bodies_init(&fs->files, config) &&
              nj__multipart_init(&fs->files, config->exchanges_max) &&
              nj_pool_init(&fs->wait_pool, sizeof(struct nj_file_wait), config->exchanges_max);
    if (!fs->meta_cache || !ok) {
        nj_file_server_free(fs);
        return NULL;
    }
    return fs;
}

void nj_file_server_free(struct nj_file_server *fs)
{
    if (!fs)
        return;
    NJ_ASSERT(fs->wait_pool.n_used == 0);
    nj_lookup_cache_free(fs->meta_cache);
    nj__file_bodies_fini(&fs->files);
    nj_pool_fini(&fs->wait_pool);
    nj_pages_unmap(fs, sizeof *fs);
}

uint32_t nj_file_server_jobs_in_flight(const struct nj_file_server *fs)
{
    return fs->files.jobs_out;
}

/* --- names --- */

/* A listing's key is the folder's name with '/' appended, or "//" for JSON: no file
 * has that name */

static struct nj_file_name hashed_name(const struct nj_file_server *fs, const char *p,
                                       uint32_t n_bytes)
{
    return (struct nj_file_name){p, n_bytes, nj_hash(&fs->config.hash_key, p, n_bytes)};
}

/* The first `n` bytes of a name with `more` appended. */
static struct nj_file_name derive_name(struct nj_file_server *fs, const struct nj_file_name *name,
                                       uint32_t n, struct nj_str more)
{
    if (name->p != fs->name)
        memcpy(fs->name, name->p, n);
    memcpy(fs->name + n, more.p, more.n_bytes);
    fs->name[n + more.n_bytes] = '\0';
    return hashed_name(fs, fs->name, n + more.n_bytes);
}

static bool ends_in(const struct nj_file_name *name, struct nj_str end)
{
    return name->n_bytes >= end.n_bytes &&
           memcmp(name->p + name->n_bytes - end.n_bytes, end.p, end.n_bytes) == 0;
}

/* A compressed file has no precompressed sibling. */
static bool may_have_siblings(const struct nj_file_server *fs, const struct nj_file_name *name)
{
    if (fs->options->no_precompressed)
        return false;
    for (uint32_t i = 0; i < NJ_N_CODINGS; i++)
        if (ends_in(name, nj_coding_suffix[i]))
            return false;
    return !nj_mime_is_gzip((struct nj_str){name->p, name->n_bytes}, NJ_STR("image/svg+xml"));
}

/* Converts a job's result, with the response fields derived from it. */
static void fill_meta(const struct nj_file_server *fs, const struct nj_file_job *job,
                      uint32_t n_path, struct nj_file_meta *out)
{
    *out = (struct nj_file_meta){
        .result = job->result,
        .siblings = job->wants_siblings && job->result == NJ_FILE_OK ? job->siblings : 0,
        .object = job->object,
    };
    if (!out->object)
        return;
    const struct nj_str path = {job->path, n_path};
    if (job->op == NJ_FILE_LIST)
        out->type = job->json ? NJ_STR("application/json") : NJ_STR("text/html; charset=utf-8");
    else
        out->type = nj_mime_type(&fs->options->mime, path);
    out->is_gzip = nj_mime_is_gzip(path, out->type);
    memcpy(out->sibling_hash, job->sibling_hash, sizeof out->sibling_hash);
    out->version_hash = nj_file_version_hash(&out->object->version);
    nj_validators_of_object(out->object, job->current_at_ns, &out->validators);
    if (out->validators.is_date_sent)
        nj_date_format(out->validators.modified_s, out->modified);
    char digits[NJ_U64_DIGITS_MAX];
    struct nj_str length = nj_str_of_u64(digits, out->object->size_bytes);
    out->n_length = (uint8_t)length.n_bytes;
    memcpy(out->length, length.p, length.n_bytes);
}

/* --- waiting --- */

enum outcome {
    OUTCOME_RESPONDED,
    OUTCOME_WAITS,
    OUTCOME_FREED /* it waited and was answered already */
};

static bool is_job_of(const struct nj__file_job *job, const struct nj__file_request *req,
                      const struct nj_file_name *name)
{
    bool is_list = req->stage == NJ__STAGE_LISTING;
    uint32_t n_path = is_list ? name->n_bytes - 1 - req->json : name->n_bytes;
    return job->hash == name->hash && (job->file.op == NJ_FILE_LIST) == is_list &&
           job->n_path == n_path && memcmp(job->file.path, name->p, n_path) == 0;
}

static struct nj__file_job *find_open(struct nj_file_server *fs, const struct nj__file_request *req,
                                      const struct nj_file_name *name)
{
    struct nj_list *bucket = &fs->opens[name->hash % NJ__OPEN_BUCKETS];

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct nj__file_job *job = nj_container_of(l, struct nj__file_job, pending);
        if (is_job_of(job, req, name))
            return job;
    }
    return NULL;
}

static struct nj__file_job *new_job(struct nj_file_server *fs, const struct nj__file_request *req,
                                    const struct nj_file_name *name)
{
    struct nj__file_job *job = nj__file_job_take(&fs->files);
    if (!job)
        return NULL;
    job->hash = name->hash;
    job->n_path = name->n_bytes;
    job->file.op = NJ_FILE_OPEN;
    job->file.client = req->txn->requester;
    if (req->stage == NJ__STAGE_LISTING) {
        job->file.op = NJ_FILE_LIST;
        job->file.json = req->json;
        job->n_path -= 1 + req->json;
    } else {
        job->file.wants_siblings = may_have_siblings(fs, name);
    }
    memcpy(job->file.path, name->p, job->n_path);
    job->file.path[job->n_path] = '\0';
    return job;
}

static void keep_str(struct nj_file_wait *x, uint32_t *at, struct nj_str *s)
{
    if (!s->p)
        return;
    NJ_ASSERT(*at + s->n_bytes <= sizeof x->strings);
    memcpy(x->strings + *at, s->p, s->n_bytes);
    s->p = x->strings + *at;
    *at += s->n_bytes;
}

/* The stream of a waiting request has closed. */
static void on_end(struct nj_txn *t)
{
    nj_file_server_cancel(t);
    if (t->on_end)
        t->on_end(t);
    else
        nj_txn_release(t);
}

static void end_wait(struct nj_file_wait *x)
{
    x->req.txn->wait = NULL;
    x->req.txn->on_end = x->on_end;
}

static struct nj_file_wait *new_wait(struct nj_file_server *fs, const struct nj__file_request *req)
{
    struct nj_file_wait *x = nj_pool_take_raw(&fs->wait_pool);
    uint32_t at = 0;

    if (!x)
        return NULL;
    x->fs = fs;
    x->req = *req;
    x->job = NULL;
    x->freed = NULL;
    keep_str(x, &at, &x->req.path);
    keep_str(x, &at, &x->req.query);
    keep_str(x, &at, &x->req.accept_encoding);
    keep_str(x, &at, &x->req.accept);
    if (!req->has_conditions)
        x->req.conditions = (struct nj_preconditions){0};
    keep_str(x, &at, &x->req.conditions.if_match);
    keep_str(x, &at, &x->req.conditions.if_none_match);
    keep_str(x, &at, &x->req.conditions.if_modified_since);
    keep_str(x, &at, &x->req.conditions.if_unmodified_since);
    keep_str(x, &at, &x->req.conditions.if_range);
    keep_str(x, &at, &x->req.conditions.range);
    nj_list_init(&x->link);
    return x;
}

/* Makes `x` wait for the lookup of `name`. The job may complete at once: then `x` is invalid on
 * return. */
static enum outcome wait_for(struct nj_file_server *fs, struct nj_file_wait *x,
                             const struct nj_file_name *name, nj_ns now)
{
    const struct nj_file_ops *file_ops = fs->config.files;
    struct nj__file_job *job = find_open(fs, &x->req, name);
    bool freed = false, *outer = x->freed;
    struct nj_txn *t = x->req.txn;

    t->wait = x;
    x->on_end = t->on_end;
    t->on_end = on_end;
    if (job) {
        x->job = job;
        nj_list_push_back(&job->waiters, &x->link);
        if (file_ops->join && t->requester != job->file.client)
            file_ops->join(file_ops->ctx, &job->file, t->requester);
        return OUTCOME_WAITS;
    }
    job = new_job(fs, &x->req, name);
    if (job) {
        x->job = job;
        nj_list_push_back(&fs->opens[name->hash % NJ__OPEN_BUCKETS], &job->pending);
        nj_list_push_back(&job->waiters, &x->link);
        x->freed = &freed;
        if (nj__file_job_submit(&fs->files, job)) {
            if (!freed)
                x->freed = outer;
            else if (outer)
                *outer = true;
            return freed ? OUTCOME_FREED : OUTCOME_WAITS;
        }
        x->freed = outer;
        nj_list_del(&x->link);
        nj_list_del(&job->pending);
        nj__file_job_put(&fs->files, job);
    }
    end_wait(x);
    nj__respond_busy(&x->req);
    return OUTCOME_RESPONDED;
}

/* --- steps --- */

/* Continues with the file that the rules of the site have for absent ones. */
static void try_other(struct nj_file_server *fs, struct nj__file_request *req,
                      struct nj_file_name *name)
{
    req->stage = NJ__STAGE_FILE;
    req->has_tried = true;
    req->had_slash = false;
    req->missing_codings = 0;
    *name = hashed_name(fs, req->txn->rules->try_file.p, req->txn->rules->try_file.n_bytes);
}

/* Handles an error: continues with its error page, if one is configured and it is not what failed.
 * True: look up *name next. */
static bool fail(struct nj_file_server *fs, struct nj__file_request *req, uint16_t status,
                 struct nj_file_name *name)
{
    if (nj_unlikely(status == 404 && req->path.n_bytes > 0 && req->stage != NJ__STAGE_ERROR)) {
        if (req->txn->rules->try_file.n_bytes > 0 && !req->has_tried) {
            try_other(fs, req, name);
            return true;
        }
        if (req->txn->rules->missing_to.n_bytes > 0)
            status = 302;
    }
    for (uint32_t i = 0; req->stage != NJ__STAGE_ERROR && i < fs->options->n_error_pages; i++) {
        if (fs->options->error_page[i].status != status)
            continue;
        struct nj_str path = str_of(fs->options->error_page[i].path);
        if (path.n_bytes >= NJ_PATH_MAX)
            break;
        req->stage = NJ__STAGE_ERROR;
        req->status = status;
        req->n_extra = 0; /* they belong to the file that the handler named */
        *name = hashed_name(fs, path.p, path.n_bytes);
        return true;
    }
    nj__respond_plain_error(req, req->stage == NJ__STAGE_ERROR ? req->status : status);
    return false;
}

/* Continues with the listing of a folder; *name is that of its absent index file. */
static bool list_folder(struct nj_file_server *fs, struct nj__file_request *req,
                        struct nj_file_name *name)
{
    if (!fs->options->listing)
        return fail(fs, req, 404, name);
    uint32_t n_folder = name->n_bytes - fs->index.n_bytes; /* and the '/' behind it */
    req->stage = NJ__STAGE_LISTING;
    req->json = req->accept.p && nj_accept_prefers_json(req->accept);
    *name = derive_name(fs, name, n_folder > 0 ? n_folder - 1 : 0,
                        req->json ? NJ_STR("//") : NJ_STR("/"));
    return true;
}

/* Continues without a sibling that turned out to be unusable. */
static bool without_sibling(struct nj_file_server *fs, struct nj__file_request *req,
                            struct nj_file_name *name)
{
    req->missing_codings |= (uint8_t)(1u << req->coding);
    req->stage = NJ__STAGE_FILE;
    *name =
        derive_name(fs, name, name->n_bytes - nj_coding_suffix[req->coding].n_bytes, NJ_STR(""));
    return true;
}

static bool send_object(struct nj_file_server *fs, struct nj__file_request *req,
                        struct nj_file_meta *meta, struct nj_file_name *name)
{
    struct nj__response_plan plan;

    nj__eval_request(fs, req, meta, &plan);
    if (plan.status >= 400) {
        req->size_bytes = meta->object->size_bytes;
        return fail(fs, req, plan.status, name);
    }
    nj__respond_object(fs, req, meta, &plan);
    return false;
}

static bool file_found(struct nj_file_server *fs, struct nj__file_request *req,
                       struct nj_file_meta *meta, struct nj_file_name *name)
{
    uint8_t siblings = meta->siblings & (uint8_t)~req->missing_codings;
    uint32_t coding = NJ_CODING_IDENTITY;

    req->siblings = meta->siblings;
    if (siblings) {
        struct nj_accepted_codings codings = nj_accept_encoding_parse(req->accept_encoding);
        coding = nj_coding_select(&codings, siblings);
    }
    if (coding == NJ_CODING_IDENTITY ||
        name->n_bytes + nj_coding_suffix[coding].n_bytes >= NJ_PATH_MAX)
        return send_object(fs, req, meta, name);
    req->stage = NJ__STAGE_VARIANT;
    req->coding = (uint8_t)coding;
    req->sibling_hash = meta->sibling_hash[coding];
    req->type = meta->type;
    *name = derive_name(fs, name, name->n_bytes, nj_coding_suffix[coding]);
    return true;
}

static uint16_t status_of(enum nj_file_result result)
{
    switch (result) {
    case NJ_FILE_ABSENT:
    case NJ_FILE_IS_DIR: /* neither an index file nor a file a handler may send */
        return 404;
    case NJ_FILE_DENIED:
        return 403;
    case NJ_FILE_LEASED:
    case NJ_FILE_UNSETTLED:
    case NJ_FILE_NO_MEMORY:
    case NJ_FILE_DISPLACED:
        return 503;
    case NJ_FILE_OK:
    case NJ_FILE_BUSY:
    case NJ_FILE_BROKEN:
        break;
    }
    return 500;
}

/* Acts on a lookup's result. True: look up *name next; false: the request was answered. Each round
 * ends a stage or excludes one coding, so there are at most nine for each of the two files that a
 * request can have. */
static bool step(struct nj_file_server *fs, struct nj__file_request *req, struct nj_file_meta *meta,
                 struct nj_file_name *name)
{
    bool is_found = meta->result == NJ_FILE_OK;

    switch (req->stage) {
    case NJ__STAGE_FILE:
        if (is_found)
            return file_found(fs, req, meta, name);
        if (meta->result == NJ_FILE_IS_DIR && !req->had_slash && !req->has_tried &&
            !req->is_handlers) {
            nj__respond_redirect(req, name->p);
            return false;
        }
        if (req->had_slash && (meta->result == NJ_FILE_ABSENT || meta->result == NJ_FILE_IS_DIR))
            return list_folder(fs, req, name);
        break;
    case NJ__STAGE_VARIANT:
        if (!is_found || meta->version_hash != req->sibling_hash)
            return without_sibling(fs, req, name);
        return send_object(fs, req, meta, name);
    case NJ__STAGE_LISTING:
        if (is_found)
            return send_object(fs, req, meta, name);
        break;
    case NJ__STAGE_ERROR:
        if (is_found) {
            nj__respond_error_page(fs, req, meta);
            return false;
        }
        break;
    }
    return fail(fs, req, status_of(meta->result), name);
}

/* Resolves a name as far as the cache allows, then waits. */
static enum outcome resolve(struct nj_file_server *fs, struct nj__file_request *req,
                            struct nj_file_wait **x, struct nj_file_name *name, nj_ns now)
{
    struct nj_file_meta *meta;

    while ((meta = nj_lookup_cache_find(fs->meta_cache, name, now))) {
        bool is_hit = meta->object && req->stage == NJ__STAGE_FILE && !*x;
        bool is_answered = !step(fs, req, meta, name);
        if (is_hit)
            nj_count(fs->config.txns->counters, NJ_C_file_hits);
        if (is_answered)
            return OUTCOME_RESPONDED;
    }
    if (!*x && !(*x = new_wait(fs, req))) {
        nj__respond_busy(req);
        return OUTCOME_RESPONDED;
    }
    return wait_for(fs, *x, name, now);
}

/* --- requests --- */

/* Frees the wait of an answered request. */
static void free_wait(struct nj_file_wait *x)
{
    if (x->freed)
        *x->freed = true;
    nj_pool_put(&x->fs->wait_pool, x);
}

void nj_file_server_parse_target(struct nj_file_server *fs, struct nj_str path,
                                 struct nj_target *out)
{
    nj_path_cache_parse(&fs->paths, path, out);
}

static bool is_get_or_head(const struct nj_txn *t)
{
    return t->method == NJ_METHOD_GET || t->method == NJ_METHOD_HEAD;
}

/* A request as it arrives: `conditions` are not valid. False: its client has its share of waiting
 * requests, and it was answered. */
static bool begin_request(const struct nj_file_server *fs, struct nj__file_request *req,
                          struct nj_txn *t)
{
    memset(req, 0, offsetof(struct nj__file_request, conditions));
    req->txn = t;
    return !nj_txn_deny_if_over_share(t, fs->wait_pool.n_max - fs->wait_pool.n_used);
}

static inline void resolve_first(struct nj_file_server *fs, struct nj__file_request *req,
                                 struct nj_file_name *name, nj_ns now)
{
    struct nj_file_wait *x = NULL;

    if (resolve(fs, req, &x, name, now) == OUTCOME_RESPONDED && x)
        free_wait(x);
    nj_lookup_cache_sweep(fs->meta_cache, now);
}

void nj_file_server_serve(struct nj_file_server *fs, struct nj_txn *t,
                          const struct nj_request_head *head, const struct nj_target *target,
                          nj_ns now)
{
    struct nj__file_request req;
    struct nj_file_name name = target->name;

    if (!begin_request(fs, &req, t))
        return;
    req.had_slash = target->had_slash;
    req.query = target->query;
    if (nj_unlikely(t->rules))
        req.path = target->path;
    if (is_get_or_head(t)) {
        if (nj__collect_fields(fs, head, &req) || fail(fs, &req, 431, &name))
            resolve_first(fs, &req, &name, now);
    } else {
        nj__respond_options(&req);
    }
}

void nj_file_server_send(struct nj_file_server *fs, struct nj_txn *t,
                         const struct nj_request_head *head, struct nj_str path,
                         const struct nj_field *extra, uint32_t n_extra, nj_ns now)
{
    struct nj__file_request req;
    struct nj_file_name name = hashed_name(fs, path.p, path.n_bytes);

    if (!begin_request(fs, &req, t))
        return;
    req.is_handlers = true;
    req.extra = extra;
    req.n_extra = n_extra;
    if (!is_get_or_head(t) || nj__collect_fields(fs, head, &req) || fail(fs, &req, 431, &name))
        resolve_first(fs, &req, &name, now);
}

void nj_file_server_send_error(struct nj_file_server *fs, struct nj_txn *t, uint16_t status,
                               nj_ns now)
{
    struct nj__file_request req;
    struct nj_file_name name;

    if (begin_request(fs, &req, t) && fail(fs, &req, status, &name))
        resolve_first(fs, &req, &name, now);
}

void nj_file_server_cancel(struct nj_txn *t)
{
    struct nj_file_wait *x = t->wait;

    if (!x)
        return;
    struct nj_file_server *fs = x->fs;
    struct nj__file_job *job = x->job;
    end_wait(x);
    nj_list_del(&x->link);
    nj_pool_put(&fs->wait_pool, x);
    /* Once unlinked the job has completed, and its waiters are being answered. */
    if (!job || !nj_list_linked(&job->pending) || !nj_list_empty(&job->waiters) ||
        !nj__file_job_withdraw(&fs->files, job))
        return;
    nj_list_del(&job->pending);
    nj__file_job_put(&fs->files, job);
}

/* --- completions --- */

static void resume_request(struct nj_file_wait *x, struct nj_file_meta *meta,
                           const struct nj_file_name *strings, nj_ns now)
{
    struct nj_file_server *fs = x->fs;
    struct nj_file_name name = *strings;
    enum outcome outcome = OUTCOME_RESPONDED;

    end_wait(x);
    if (step(fs, &x->req, meta, &name))
        outcome = resolve(fs, &x->req, &x, &name, now);
    if (outcome == OUTCOME_RESPONDED)
        free_wait(x);
}

static struct nj_file_wait *pop_waiter(struct nj_list *waiters)
{
    struct nj_list *l = nj_list_pop(waiters);
    return l ? nj_container_of(l, struct nj_file_wait, link) : NULL;
}

static void move_to_refused(struct nj_list *refused, struct nj_file_wait *x)
{
    x->job = NULL;
    nj_list_push_back(refused, &x->link);
}

/* The job was displaced by another client's. Requests of its own client get 503; for the others it
 * is submitted as the first one's. */
static void resubmit_for_others(struct nj_file_server *fs, struct nj__file_job *job, nj_ns now)
{
    struct nj_list refused, others;
    struct nj_file_wait *x;

    nj_list_init(&refused);
    nj_list_init(&others);
    while ((x = pop_waiter(&job->waiters))) {
        if (x->req.txn->requester == job->file.client)
            move_to_refused(&refused, x);
        else
            nj_list_push_back(&others, &x->link);
    }
    if (!nj_list_empty(&others)) {
        x = nj_container_of(others.next, struct nj_file_wait, link);
        job->file.client = x->req.txn->requester;
        nj_list_splice(&job->waiters, &others);
    }
    if (nj_list_empty(&job->waiters) || !nj__file_job_submit(&fs->files, job)) {
        while ((x = pop_waiter(&job->waiters)))
            move_to_refused(&refused, x);
        nj_list_del(&job->pending);
        nj__file_job_put(&fs->files, job);
    }
    while ((x = pop_waiter(&refused))) {
        end_wait(x);
        nj__respond_busy(&x->req);
        free_wait(x);
    }
}

static void open_done(struct nj_file_server *fs, struct nj__file_job *job, nj_ns now)
{
    static const char slashes[] = "//";
    char key[NJ_PATH_MAX + sizeof slashes];
    struct nj_file_name name = {job->file.path, job->n_path, job->hash};
    struct nj_file_meta meta;
    struct nj_file_wait *x;

    NJ_ASSERT((job->file.result == NJ_FILE_OK) == (job->file.object != NULL));
    if (job->file.op == NJ_FILE_LIST) {
        memcpy(key, job->file.path, job->n_path);
        memcpy(key + job->n_path, slashes, sizeof slashes);
        name.p = key;
        name.n_bytes += 1 + job->file.json;
    }
    fill_meta(fs, &job->file, job->n_path, &meta);
    /* Unlink first: a response may lead to new requests, and may cancel others that wait. */
    nj_list_del(&job->pending);
    nj_lookup_cache_put(fs->meta_cache, &name, &meta, now);
    while ((x = pop_waiter(&job->waiters)))
        resume_request(x, &meta, &name, now);
    if (meta.object)
        nj_ref_put(&meta.object->ref);
    nj__file_job_put(&fs->files, job);
}

void nj_file_server_job_done(struct nj_file_server *fs, struct nj_file_job *file, nj_ns now)
{
    struct nj__file_job *job = nj_container_of(file, struct nj__file_job, file);

    NJ_ASSERT(fs->files.jobs_out > 0);
    fs->files.jobs_out--;
    if (file->op == NJ_FILE_READ)
        nj__body_read_done(&fs->files, job);
    else if (file->result == NJ_FILE_DISPLACED)
        resubmit_for_others(fs, job, now);
    else
        open_done(fs, job, now);
    nj__file_bodies_retry_reads(&fs->files);
}

void nj_file_server_retry_reads(struct nj_file_server *fs)
{
    const struct nj_file_ops *file_ops = fs->config.files;

    if (!nj_list_empty(&fs->files.starved) && file_ops->has_room &&
        file_ops->has_room(file_ops->ctx))
        nj__file_bodies_retry_reads(&fs->files);
}

bool nj_file_server_has_refused_reads(const struct nj_file_server *fs)
{
    return !nj_list_empty(&fs->files.starved);
}
