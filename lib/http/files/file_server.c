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
        job->file.wants_siblings = nj__may_have_siblings(fs, name);
    }
    memcpy(job->file.path, name->p, job->n_path);
    job->file.path[job->n_path] = '\0';
    return job;
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

/* --- names of sites --- */

/* Puts parts together in fs->name, where the first one may stand. False: too long. */
static bool join(struct nj_file_server *fs, const struct nj_str *part, uint32_t n_parts,
                 struct nj_file_name *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_parts; i++) {
        if (n + part[i].n_bytes >= sizeof fs->name)
            return false;
        if (part[i].n_bytes > 0)
            memmove(fs->name + n, part[i].p, part[i].n_bytes);
        n += part[i].n_bytes;
    }
    fs->name[n] = '\0';
    *out = hashed_name(fs, fs->name, n);
    return true;
}

static struct nj_str without_front(struct nj_str s, uint32_t n)
{
    if (s.n_bytes > 0)
        nj_str_skip(&s, nj_min_u32(n, s.n_bytes));
    return s;
}

/* The next name of a list that is separated by blanks; empty: there is none. */
static struct nj_str next_word(struct nj_str *list)
{
    const char *blank = list->n_bytes > 0 ? memchr(list->p, ' ', list->n_bytes) : NULL;
    struct nj_str word = {list->p, blank ? (uint32_t)(blank - list->p) : list->n_bytes};

    *list = without_front(*list, word.n_bytes + (blank != NULL));
    return word;
}

/* The type that the rules have for the file: that of the longest end of its name. */
static void set_type(struct nj__file_request *req, const struct nj_file_name *name)
{
    const struct nj_site_rules *rules = req->txn->rules;
    uint32_t n_best = 0;

    req->of_site.type = (struct nj_str){0};
    for (uint32_t i = 0; i < rules->n_named; i++) {
        struct nj_str end = rules->named[i].name;
        if (end.p[0] != '.' || end.n_bytes <= n_best || end.n_bytes > name->n_bytes ||
            nj_strncasecmp(name->p + name->n_bytes - end.n_bytes, end.p, end.n_bytes) != 0)
            continue;
        n_best = end.n_bytes;
        req->of_site.type = rules->named[i].value;
    }
}

/* Each of the next, which are rare, writes a name into fs->name. False: none, or it is too long. */

/* The name of the file for the path; if that is too long, the request was answered. */
__attribute__((noinline)) static bool
name_file(struct nj_file_server *fs, struct nj__file_request *req, struct nj_file_name *name)
{
    const struct nj_site_rules *rules = req->txn->rules;
    struct nj_str part[] = {
        rules->files, rules->put, without_front(req->path, 1 + rules->n_strip), {0}};

    req->of_site.n_index = 0;
    if (req->had_slash) {
        req->of_site.index = rules->index;
        /* The server's is one name, which may have blanks. */
        part[3] = rules->index.n_bytes > 0 ? next_word(&req->of_site.index) : fs->index;
        req->of_site.n_index = part[3].n_bytes;
    }
    if (rules->keys & NJ_SITE_NAMES_FILES && !join(fs, part, NJ_ARRAY_LEN(part), name)) {
        nj__respond_plain_error(req, 414);
        return false;
    }
    set_type(req, name);
    return true;
}

/* In place of an absent index file: the next one. */
__attribute__((noinline)) static bool
next_index(struct nj_file_server *fs, struct nj__file_request *req, struct nj_file_name *name)
{
    const struct nj_str part[] = {{name->p, name->n_bytes - req->of_site.n_index},
                                  next_word(&req->of_site.index)};

    if (req->of_site.n_index == 0 || part[1].n_bytes == 0 || !join(fs, part, 2, name))
        return false;
    req->of_site.n_index = part[1].n_bytes;
    set_type(req, name);
    return true;
}

/* The listing of a folder that is another one than the path says, in place of its index file: the
 * folder, '\0', and the path as the listing shows it; see struct nj_file_job. */
__attribute__((noinline)) static bool name_listing(struct nj_file_server *fs,
                                                   const struct nj__file_request *req,
                                                   struct nj_file_name *name)
{
    struct nj_str url = without_front(req->path, 1);
    uint32_t n_folder = name->n_bytes - req->of_site.n_index;

    if (url.n_bytes > 0)
        url.n_bytes--; /* without its '/' at the end */
    const struct nj_str part[] = {
        {name->p, n_folder - 1}, {"", 1}, url, req->json ? NJ_STR("//") : NJ_STR("/")};
    return join(fs, part, NJ_ARRAY_LEN(part), name);
}

/* Continues with the file that the site has in place of absent ones. */
__attribute__((noinline)) static bool
begin_other_file(struct nj_file_server *fs, struct nj__file_request *req, struct nj_file_name *name)
{
    const struct nj_site_rules *rules = req->txn->rules;
    bool is_whole = nj_str_eq(rules->try_file, NJ_SITE_TRY_WHOLE);
    const struct nj_str part[] = {is_whole ? rules->files : rules->root,
                                  is_whole ? without_front(req->path, 1) : rules->try_file};

    req->has_tried = true;
    if (!join(fs, part, 2, name))
        return false;
    req->stage = NJ__STAGE_FILE;
    req->had_slash = false;
    req->missing_codings = 0;
    set_type(req, name);
    return true;
}

/* Continues with the page of the site, or else of the server, for an error. */
__attribute__((noinline)) static bool begin_error_page(struct nj_file_server *fs,
                                                       struct nj__file_request *req,
                                                       uint16_t status, struct nj_file_name *name)
{
    const struct nj_file_server_options *o = fs->options;
    const struct nj_site_rules *rules = req->txn->rules;
    struct nj_str part[2] = {{0}};
    char digits[NJ_U64_DIGITS_MAX];

    for (uint32_t i = 0; rules && i < rules->n_named; i++) {
        if (nj_str_eq(rules->named[i].name, nj_str_of_u64(digits, status))) {
            part[0] = rules->root;
            part[1] = rules->named[i].value;
        }
    }
    for (uint32_t i = 0; !part[1].p && i < o->n_error_pages; i++)
        if (o->error_page[i].status == status)
            part[1] =
                (struct nj_str){o->error_page[i].path, (uint32_t)strlen(o->error_page[i].path)};
    if (part[1].n_bytes == 0 || !join(fs, part, 2, name))
        return false;
    req->stage = NJ__STAGE_ERROR;
    req->status = status;
    req->of_site.type = (struct nj_str){0};
    req->n_extra = 0; /* they belong to the file that the handler named */
    return true;
}

/* --- steps --- */

/* Handles an error: continues with its error page, if one is configured and it is not what failed.
 * True: look up *name next. */
static bool fail(struct nj_file_server *fs, struct nj__file_request *req, uint16_t status,
                 struct nj_file_name *name)
{
    const struct nj_site_rules *rules = req->txn->rules;

    if (nj_unlikely(status == 404 && req->path.n_bytes > 0 && req->stage != NJ__STAGE_ERROR)) {
        if (rules->try_file.n_bytes > 0 && !req->has_tried && begin_other_file(fs, req, name))
            return true;
        if (rules->missing_to.n_bytes > 0)
            status = 302;
    }
    if (req->stage != NJ__STAGE_ERROR && begin_error_page(fs, req, status, name))
        return true;
    nj__respond_plain_error(req, req->stage == NJ__STAGE_ERROR ? req->status : status);
    return false;
}

/* Continues with the listing of a folder; *name is that of its absent index file. */
static bool list_folder(struct nj_file_server *fs, struct nj__file_request *req,
                        struct nj_file_name *name)
{
    const struct nj_site_rules *rules = req->path.n_bytes > 0 ? req->txn->rules : NULL;
    bool is_wanted = rules && rules->keys & NJ_SITE_LISTING ? rules->listing : fs->options->listing;
    uint32_t n_index = rules ? req->of_site.n_index : fs->index.n_bytes;
    uint32_t n_folder = name->n_bytes - n_index; /* and the '/' behind it */

    if (!is_wanted)
        return fail(fs, req, 404, name);
    req->stage = NJ__STAGE_LISTING;
    req->json = req->accept.p && nj_accept_prefers_json(req->accept);
    if (name->p[0] == '/')
        return name_listing(fs, req, name) || fail(fs, req, 404, name);
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
    nj__respond_object(fs, req, meta, &plan, name);
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
            struct nj_str path = without_front(req->path, 1); /* its '/' */
            nj__respond_redirect(req,
                                 path.n_bytes > 0 ? path : (struct nj_str){name->p, name->n_bytes});
            return false;
        }
        if (req->had_slash && (meta->result == NJ_FILE_ABSENT || meta->result == NJ_FILE_IS_DIR))
            return (req->path.n_bytes > 0 && next_index(fs, req, name)) ||
                   list_folder(fs, req, name);
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
    if (!*x && !(*x = nj__file_wait_new(fs, req))) {
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
    if (nj_unlikely(t->rules)) {
        req.path = target->path;
        memset(&req.of_site, 0, sizeof req.of_site);
        req.of_site.n_index = target->had_slash ? fs->index.n_bytes : 0;
        if (t->rules->keys & (NJ_SITE_NAMES_FILES | NJ_SITE_NAMED) && is_get_or_head(t) &&
            !name_file(fs, &req, &name))
            return;
    }
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
    nj__fill_meta(fs, &job->file, job->n_path, &meta);
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
