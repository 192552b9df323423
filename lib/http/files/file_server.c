/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resolves requests to files. A request is checked and looked up in the shard's cache; on a miss it
 * waits for the OPEN of its file. All requests for one file share one OPEN, which has the earliest
 * turn of their clients.
 *
 * One lookup may lead to another: from a file to its precompressed sibling, from a folder without
 * an index file to its listing, from an error to its error page. Each step looks in the cache
 * first. Methods and statuses follow RFC 9110 9.3 and 15.
 */
#include "http/files/file_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/list.h"
#include "base/page_alloc.h"
#include "http/files/file_body.h"
#include "http/files/file_server_internal.h"
#include "http/files/mime.h"
#include "telem/counters.h"

struct nj_site_wait {
    struct nj_site *site;
    struct nj__job *job; /* the job it waits for, or NULL */
    struct nj_list link; /* in job->waiters */
    struct nj__asker who;
    bool is_answering;
    bool *gone; /* set when the wait ends while a caller up the stack uses it */
    char asked[NJ_PATH_MAX + NJ__ASKED_BYTES]; /* bytes of the stored query and fields */
};

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, s ? (uint32_t)strlen(s) : 0};
}

struct nj_site *nj_site_new(const struct nj_site_config *config)
{
    struct nj_site *site = nj_pages_map(sizeof *site, 0); /* has a key */
    if (!site)
        return NULL;
    NJ_CHECK(config->exchanges_max > 0 && config->exchanges_max <= UINT32_MAX / 2);
    site->config = *config;
    if (config->options)
        site->options = *config->options;
    site->index = site->options.index ? str(site->options.index) : NJ_STR("index.html");
    nj_targets_init(&site->targets, site->index, &config->hash_key);
    site->cache_control = str(site->options.cache_control);
    for (uint32_t i = 0; i < NJ__OPENS; i++)
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
    nj_pages_unmap(site, sizeof *site);
}

uint32_t nj_site_jobs_out(const struct nj_site *site)
{
    return site->files.jobs_out;
}

/* --- names --- */

/* A listing's key is the folder's name with '/' appended, or "//" for JSON: no file
 * has that name */

static struct nj_object_name named(const struct nj_site *site, const char *p, uint32_t n_bytes)
{
    return (struct nj_object_name){p, n_bytes, nj_hash(&site->config.hash_key, p, n_bytes)};
}

/* The first `n` bytes of a name with `more` appended. */
static struct nj_object_name derived(struct nj_site *site, const struct nj_object_name *name,
                                     uint32_t n, struct nj_str more)
{
    if (name->p != site->name)
        memcpy(site->name, name->p, n);
    memcpy(site->name + n, more.p, more.n_bytes);
    site->name[n + more.n_bytes] = '\0';
    return named(site, site->name, n + more.n_bytes);
}

static bool ends_in(const struct nj_object_name *name, struct nj_str end)
{
    return name->n_bytes >= end.n_bytes &&
           memcmp(name->p + name->n_bytes - end.n_bytes, end.p, end.n_bytes) == 0;
}

/* A compressed file has no precompressed sibling. */
static bool may_have_siblings(const struct nj_site *site, const struct nj_object_name *name)
{
    if (site->options.no_precompressed)
        return false;
    for (uint32_t i = 0; i < NJ_N_CODINGS; i++)
        if (ends_in(name, nj_coding_suffix(i)))
            return false;
    return true;
}

/* Converts a job's result, with the response fields derived from it. */
static void learn(const struct nj_site *site, const struct nj_file_job *job, uint32_t n_path,
                  struct nj_known *out)
{
    *out = (struct nj_known){
        .result = job->result,
        .siblings = job->wants_siblings && job->result == NJ_FILE_OK ? job->siblings : 0,
        .object = job->object,
    };
    if (!out->object)
        return;
    if (job->op == NJ_FILE_LIST)
        out->type = job->json ? NJ_STR("application/json") : NJ_STR("text/html; charset=utf-8");
    else
        out->type = nj_mime_type(site->options.mime, (struct nj_str){job->path, n_path});
    nj_validators_of(out->object, &out->validators);
    if (out->validators.has_date)
        nj_date_format(out->validators.modified_s, out->modified);
    char digits[NJ_DIGITS_MAX], *end = digits + sizeof digits;
    const char *p = nj_put_digits(end, out->object->size_bytes);
    out->n_length = (uint8_t)(end - p);
    memcpy(out->length, p, out->n_length);
}

/* --- waiting --- */

enum outcome { REPLIED, WAITS, GONE /* it waited and was answered already */ };

static bool is_job_of(const struct nj__job *job, const struct nj__asker *who,
                      const struct nj_object_name *name)
{
    bool is_list = who->stage == NJ__STAGE_LIST;
    uint32_t n_path = is_list ? name->n_bytes - 1 - who->json : name->n_bytes;
    return job->hash == name->hash && (job->file.op == NJ_FILE_LIST) == is_list &&
           job->n_path == n_path && memcmp(job->file.path, name->p, n_path) == 0;
}

static struct nj__job *find_open(struct nj_site *site, const struct nj__asker *who,
                                 const struct nj_object_name *name)
{
    struct nj_list *bucket = &site->opens[name->hash % NJ__OPENS];

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct nj__job *job = nj_container_of(l, struct nj__job, pending);
        if (is_job_of(job, who, name))
            return job;
    }
    return NULL;
}

static struct nj__job *new_job(struct nj_site *site, const struct nj__asker *who,
                               const struct nj_object_name *name)
{
    struct nj__job *job = nj__job_take(&site->files);
    if (!job)
        return NULL;
    job->hash = name->hash;
    job->n_path = name->n_bytes;
    job->file.op = NJ_FILE_OPEN;
    job->file.client = who->txn->requester;
    if (who->stage == NJ__STAGE_LIST) {
        job->file.op = NJ_FILE_LIST;
        job->file.json = who->json;
        job->n_path -= 1 + who->json;
    } else {
        job->file.wants_siblings = may_have_siblings(site, name);
    }
    memcpy(job->file.path, name->p, job->n_path);
    job->file.path[job->n_path] = '\0';
    return job;
}

static void keep_str(struct nj_site_wait *x, uint32_t *at, struct nj_str *s)
{
    if (!s->p)
        return;
    NJ_ASSERT(*at + s->n_bytes <= sizeof x->asked);
    memcpy(x->asked + *at, s->p, s->n_bytes);
    s->p = x->asked + *at;
    *at += s->n_bytes;
}

static struct nj_site_wait *new_exchange(struct nj_site *site, const struct nj__asker *who)
{
    struct nj_site_wait *x = nj_pool_take_raw(&site->exchanges);
    uint32_t at = 0;

    if (!x)
        return NULL;
    x->site = site;
    x->who = *who;
    who->txn->wait = x;
    x->job = NULL;
    x->is_answering = false;
    x->gone = NULL;
    keep_str(x, &at, &x->who.query);
    keep_str(x, &at, &x->who.accept_encoding);
    if (!who->has_conditions)
        x->who.conditions = (struct nj_conditions){0};
    keep_str(x, &at, &x->who.conditions.if_match);
    keep_str(x, &at, &x->who.conditions.if_none_match);
    keep_str(x, &at, &x->who.conditions.if_modified_since);
    keep_str(x, &at, &x->who.conditions.if_unmodified_since);
    keep_str(x, &at, &x->who.conditions.if_range);
    keep_str(x, &at, &x->who.conditions.range);
    nj_list_init(&x->link);
    return x;
}

/* Makes `x` wait for the lookup of `name`. The job may complete at once: then `x` is invalid on
 * return. */
static enum outcome wait_for(struct nj_site *site, struct nj_site_wait *x,
                             const struct nj_object_name *name, nj_ns now)
{
    const struct nj_file_port *port = site->config.files;
    struct nj__job *job = find_open(site, &x->who, name);
    bool gone = false, *outer = x->gone;

    x->is_answering = false;
    if (job) {
        x->job = job;
        nj_list_push_back(&job->waiters, &x->link);
        if (port->join && x->who.txn->requester != job->file.client)
            port->join(port->ctx, &job->file, x->who.txn->requester);
        return WAITS;
    }
    job = new_job(site, &x->who, name);
    if (job) {
        x->job = job;
        nj_list_push_back(&site->opens[name->hash % NJ__OPENS], &job->pending);
        nj_list_push_back(&job->waiters, &x->link);
        x->gone = &gone;
        if (nj__job_submit(&site->files, job)) {
            if (!gone)
                x->gone = outer;
            else if (outer)
                *outer = true;
            return gone ? GONE : WAITS;
        }
        x->gone = outer;
        nj_list_del(&x->link);
        nj_list_del(&job->pending);
        nj__job_put(&site->files, job);
    }
    x->is_answering = true;
    nj__reply_busy(&x->who);
    return REPLIED;
}

/* --- steps --- */

/* Handles an error: continues with its error page, if one is configured and it is not what failed.
 * True: look up *name next. */
static bool fail(struct nj_site *site, struct nj__asker *who, uint16_t status,
                 struct nj_object_name *name)
{
    for (uint32_t i = 0; who->stage != NJ__STAGE_ERROR && i < site->options.n_error_pages; i++) {
        if (site->options.error_page[i].status != status)
            continue;
        struct nj_str path = str(site->options.error_page[i].path);
        if (path.n_bytes >= NJ_PATH_MAX)
            break;
        who->stage = NJ__STAGE_ERROR;
        who->status = status;
        who->n_extra = 0; /* they belong to the file that the handler named */
        *name = named(site, path.p, path.n_bytes);
        return true;
    }
    nj__reply_status(who, who->stage == NJ__STAGE_ERROR ? who->status : status);
    return false;
}

/* Continues with the listing of a folder; *name is that of its absent index file. */
static bool list_folder(struct nj_site *site, struct nj__asker *who, struct nj_object_name *name)
{
    if (!site->options.listing)
        return fail(site, who, 404, name);
    uint32_t n_folder = name->n_bytes - site->index.n_bytes; /* and the '/' behind it */
    who->stage = NJ__STAGE_LIST;
    *name = derived(site, name, n_folder > 0 ? n_folder - 1 : 0,
                    who->json ? NJ_STR("//") : NJ_STR("/"));
    return true;
}

/* Continues without a sibling that turned out to be unusable. */
static bool without_sibling(struct nj_site *site, struct nj__asker *who,
                            struct nj_object_name *name)
{
    who->without |= (uint8_t)(1u << who->coding);
    who->stage = NJ__STAGE_FILE;
    *name = derived(site, name, name->n_bytes - nj_coding_suffix(who->coding).n_bytes, NJ_STR(""));
    return true;
}

static bool send_object(struct nj_site *site, struct nj__asker *who, struct nj_known *known,
                        struct nj_object_name *name)
{
    struct nj__verdict verdict;

    nj__judge(who, known, &verdict);
    if (verdict.status >= 400) {
        who->size_bytes = known->object->size_bytes;
        return fail(site, who, verdict.status, name);
    }
    nj__reply_object(site, who, known, &verdict);
    return false;
}

static bool file_found(struct nj_site *site, struct nj__asker *who, struct nj_known *known,
                       struct nj_object_name *name)
{
    uint8_t siblings = known->siblings & (uint8_t)~who->without;
    uint32_t coding = NJ_NO_CODING;

    who->siblings = known->siblings;
    if (siblings) {
        struct nj_codings codings = nj_codings_parse(who->accept_encoding);
        coding = nj_codings_pick(&codings, siblings);
    }
    if (coding == NJ_NO_CODING || name->n_bytes + nj_coding_suffix(coding).n_bytes >= NJ_PATH_MAX)
        return send_object(site, who, known, name);
    who->stage = NJ__STAGE_VARIANT;
    who->coding = (uint8_t)coding;
    who->type = known->type;
    *name = derived(site, name, name->n_bytes, nj_coding_suffix(coding));
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
    case NJ_FILE_NO_MEMORY:
    case NJ_FILE_NO_ROOM:
        return 503;
    case NJ_FILE_OK:
    case NJ_FILE_BUSY:
    case NJ_FILE_BROKEN:
        break;
    }
    return 500;
}

/* Acts on a lookup's result. True: look up *name next; false: the request was answered. Each round
 * ends a stage or excludes one coding, so there are at most nine. */
static bool step(struct nj_site *site, struct nj__asker *who, struct nj_known *known,
                 struct nj_object_name *name)
{
    bool is_here = known->result == NJ_FILE_OK;

    switch (who->stage) {
    case NJ__STAGE_FILE:
        if (is_here)
            return file_found(site, who, known, name);
        if (known->result == NJ_FILE_IS_DIR && !who->had_slash && !who->txn->exchange) {
            nj__reply_redirect(who, name->p);
            return false;
        }
        if (who->had_slash && (known->result == NJ_FILE_ABSENT || known->result == NJ_FILE_IS_DIR))
            return list_folder(site, who, name);
        break;
    case NJ__STAGE_VARIANT:
        if (!is_here)
            return without_sibling(site, who, name);
        return send_object(site, who, known, name);
    case NJ__STAGE_LIST:
        if (is_here)
            return send_object(site, who, known, name);
        break;
    case NJ__STAGE_ERROR:
        if (is_here) {
            nj__reply_page(site, who, known);
            return false;
        }
        break;
    }
    return fail(site, who, status_of(known->result), name);
}

/* Resolves a name as far as the cache allows, then waits. */
static enum outcome resolve(struct nj_site *site, struct nj__asker *who, struct nj_site_wait **x,
                            struct nj_object_name *name, nj_ns now)
{
    struct nj_known *known;

    while ((known = nj_object_table_find(site->table, name, now))) {
        if (known->object && who->stage == NJ__STAGE_FILE && !*x)
            nj_count(site->config.txns->counters, NJ_C_file_hits);
        if (!step(site, who, known, name))
            return REPLIED;
    }
    if (!*x && !(*x = new_exchange(site, who))) {
        nj__reply_busy(who);
        return REPLIED;
    }
    return wait_for(site, *x, name, now);
}

/* --- requests --- */

/* Frees the wait of an answered request. */
static void leave(struct nj_site_wait *x)
{
    if (x->gone)
        *x->gone = true;
    nj_pool_put(&x->site->exchanges, x);
}

void nj_site_target(struct nj_site *site, struct nj_str path, struct nj_target *out)
{
    nj_target_parse(&site->targets, path, out);
}

/* Error status of a target that is invalid for any method, or 0. A redirect contains the query and
 * a wait stores it, so the target is bounded. */
static uint16_t check_target(const struct nj_request_head *head, const struct nj_target *target)
{
    if (target->result == NJ_PATH_BAD)
        return 400;
    bool too_long = target->result == NJ_PATH_TOO_LONG || head->path.n_bytes >= NJ_PATH_MAX;
    return too_long ? 414 : 0;
}

/* Error status of a request, or 0: then its fields are parsed and *name is set. */
static uint16_t check_request(struct nj_site *site, const struct nj_request_head *head,
                              const struct nj_target *target, struct nj__asker *who,
                              struct nj_object_name *name)
{
    uint16_t status = check_target(head, target);

    if (!who->txn->is_head && !nj_str_eq(head->method, NJ_STR("GET")))
        return status && head->path.n_bytes > 0 ? status : 405; /* CONNECT has no path to reject */
    if (status)
        return status;
    if (target->result == NJ_PATH_HIDDEN)
        return 404;
    if (!nj__read_fields(site, head, who))
        return 431;
    who->had_slash = target->had_slash;
    who->query = target->query;
    *name = target->name;
    return 0;
}

/* OPTIONS describes what is possible with any file, not which exist: 204, unless the target is
 * invalid. */
static uint16_t check_options(const struct nj_request_head *head, const struct nj_target *target)
{
    uint16_t status = nj_str_eq(head->path, NJ_STR("*")) ? 0 : check_target(head, target);
    return status ? status : 204;
}

void nj_site_serve(struct nj_site *site, struct nj_txn *t, const struct nj_request_head *head,
                   const struct nj_target *target, nj_ns now)
{
    struct nj__asker who;
    struct nj_site_wait *x = NULL;
    struct nj_object_name name;
    bool is_options = nj_str_eq(head->method, NJ_STR("OPTIONS"));

    memset(&who, 0, offsetof(struct nj__asker, conditions));
    who.txn = t;
    uint16_t status =
        is_options ? check_options(head, target) : check_request(site, head, target, &who, &name);
    if (status == 204) {
        nj__reply_options(&who);
        return;
    }
    if (status && !fail(site, &who, status, &name))
        return;
    if (resolve(site, &who, &x, &name, now) == REPLIED && x)
        leave(x);
}

void nj_site_send(struct nj_site *site, struct nj_txn *t, const struct nj_request_head *head,
                  struct nj_str path, const struct nj_field *extra, uint32_t n_extra, nj_ns now)
{
    struct nj__asker who;
    struct nj_site_wait *x = NULL;
    struct nj_object_name name = named(site, path.p, path.n_bytes);

    memset(&who, 0, offsetof(struct nj__asker, conditions));
    who.txn = t;
    who.extra = extra;
    who.n_extra = n_extra;
    bool counts = t->is_head || nj_str_eq(head->method, NJ_STR("GET"));
    if (counts && !nj__read_fields(site, head, &who) && !fail(site, &who, 431, &name))
        return;
    if (resolve(site, &who, &x, &name, now) == REPLIED && x)
        leave(x);
}

void nj_site_cancel(struct nj_site_wait *x)
{
    struct nj_site *site = x->site;
    struct nj__job *job = x->job;

    if (x->is_answering) /* its response is being sent, which frees it */
        return;
    nj_list_del(&x->link);
    nj_pool_put(&site->exchanges, x);
    /* Once unlinked the job has completed, and its waiters are being answered. */
    if (!job || !nj_list_linked(&job->pending) || !nj_list_empty(&job->waiters) ||
        !nj__job_withdraw(&site->files, job))
        return;
    nj_list_del(&job->pending);
    nj__job_put(&site->files, job);
}

/* --- completions --- */

static void answer(struct nj_site_wait *x, struct nj_known *known,
                   const struct nj_object_name *asked, nj_ns now)
{
    struct nj_site *site = x->site;
    struct nj_object_name name = *asked;
    enum outcome outcome = REPLIED;

    x->is_answering = true;
    if (step(site, &x->who, known, &name))
        outcome = resolve(site, &x->who, &x, &name, now);
    if (outcome == REPLIED)
        leave(x);
}

static struct nj_site_wait *pop_waiter(struct nj_list *waiters)
{
    struct nj_list *l = nj_list_pop(waiters);
    return l ? nj_container_of(l, struct nj_site_wait, link) : NULL;
}

static void refuse(struct nj_list *refused, struct nj_site_wait *x)
{
    x->job = NULL;
    nj_list_push_back(refused, &x->link);
}

/* The job was displaced by another client's. Requests of its own client get 503; for the others it
 * is submitted as the first one's. */
static void ask_for_others(struct nj_site *site, struct nj__job *job, nj_ns now)
{
    struct nj_list refused, others;
    struct nj_site_wait *x;

    nj_list_init(&refused);
    nj_list_init(&others);
    while ((x = pop_waiter(&job->waiters))) {
        if (x->who.txn->requester == job->file.client)
            refuse(&refused, x);
        else
            nj_list_push_back(&others, &x->link);
    }
    if (!nj_list_empty(&others)) {
        x = nj_container_of(others.next, struct nj_site_wait, link);
        job->file.client = x->who.txn->requester;
        nj_list_splice(&job->waiters, &others);
    }
    if (nj_list_empty(&job->waiters) || !nj__job_submit(&site->files, job)) {
        while ((x = pop_waiter(&job->waiters)))
            refuse(&refused, x);
        nj_list_del(&job->pending);
        nj__job_put(&site->files, job);
    }
    while ((x = pop_waiter(&refused))) {
        x->is_answering = true;
        nj__reply_busy(&x->who);
        leave(x);
    }
}

static void open_done(struct nj_site *site, struct nj__job *job, nj_ns now)
{
    static const char slashes[] = "//";
    char key[NJ_PATH_MAX + sizeof slashes];
    struct nj_object_name name = {job->file.path, job->n_path, job->hash};
    struct nj_known known;
    struct nj_site_wait *x;

    NJ_ASSERT((job->file.result == NJ_FILE_OK) == (job->file.object != NULL));
    if (job->file.op == NJ_FILE_LIST) {
        memcpy(key, job->file.path, job->n_path);
        memcpy(key + job->n_path, slashes, sizeof slashes);
        name.p = key;
        name.n_bytes += 1 + job->file.json;
    }
    learn(site, &job->file, job->n_path, &known);
    /* Unlink first: a response may lead to new requests, and may cancel others that wait. */
    nj_list_del(&job->pending);
    nj_object_table_put(site->table, &name, &known, now);
    while ((x = pop_waiter(&job->waiters)))
        answer(x, &known, &name, now);
    if (known.object)
        nj_ref_put(&known.object->ref);
    nj__job_put(&site->files, job);
}

void nj_site_file_done(struct nj_site *site, struct nj_file_job *file, nj_ns now)
{
    struct nj__job *job = nj_container_of(file, struct nj__job, file);

    NJ_ASSERT(site->files.jobs_out > 0);
    site->files.jobs_out--;
    if (file->op == NJ_FILE_READ)
        nj__body_read_done(&site->files, job);
    else if (file->result == NJ_FILE_NO_ROOM)
        ask_for_others(site, job, now);
    else
        open_done(site, job, now);
    nj__body_retry(&site->files);
}

void nj_site_polled(struct nj_site *site)
{
    const struct nj_file_port *port = site->config.files;

    if (!nj_list_empty(&site->files.starved) && port->has_room && port->has_room(port->ctx))
        nj__body_retry(&site->files);
}

bool nj_site_wants_room(const struct nj_site *site)
{
    return !nj_list_empty(&site->files.starved);
}

uint32_t nj_site_left(const struct nj_site *site)
{
    return site->exchanges.n_max - site->exchanges.n_used;
}
