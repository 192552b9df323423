/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the file server's responses: evaluates preconditions and ranges, builds the head and
 * selects the body. Follows RFC 9110 13.2.2, 14 and 15. */
#include <string.h>

#include "base/compiler.h"
#include "http/files/file_server_internal.h"
#include "http/response_head.h"
#include "http/site/site_location.h"
#include "site/site_table.h"
#include "telem/counters_http.h"

#define ALLOW "GET, HEAD, OPTIONS"

/* Three numbers and the fixed text. */
#define CONTENT_RANGE_MAX (3 * NJ_U64_DIGITS_MAX + 10)

/* A response with content, under construction. */
struct file_response {
    struct nj_resp_head head;
    struct nj_body *body;
    char length[NJ_U64_DIGITS_MAX];
    char content_range[CONTENT_RANGE_MAX];
    char multipart[32 + NJ_BOUNDARY_MAX];
};

/* "bytes 0-99/1000", or without a range "bytes * /1000" (RFC 9110 14.4), at the end of `buf`. */
static struct nj_str content_range(char buf[CONTENT_RANGE_MAX], const struct nj_range *range,
                                   uint64_t size)
{
    char *end = buf + CONTENT_RANGE_MAX, *p = nj_put_digits_backward(end, size);

    *--p = '/';
    if (range) {
        p = nj_put_digits_backward(p, range->first + range->n_bytes - 1);
        *--p = '-';
        p = nj_put_digits_backward(p, range->first);
    } else {
        *--p = '*';
    }
    p -= 6;
    memcpy(p, "bytes ", 6);
    return (struct nj_str){p, (uint32_t)(end - p)};
}

/* --- files --- */

static bool ends_in(const struct nj_file_name *name, struct nj_str end)
{
    return name->n_bytes >= end.n_bytes &&
           memcmp(name->p + name->n_bytes - end.n_bytes, end.p, end.n_bytes) == 0;
}

bool nj__may_have_siblings(const struct nj_file_server *fs, const struct nj_file_name *name)
{
    if (fs->options->no_precompressed)
        return false;
    for (uint32_t i = 0; i < NJ_N_CODINGS; i++)
        if (ends_in(name, nj_coding_suffix[i]))
            return false;
    return !nj_mime_is_gzip((struct nj_str){name->p, name->n_bytes}, NJ_STR("image/svg+xml"));
}

void nj__fill_meta(const struct nj_file_server *fs, const struct nj_file_job *job, uint32_t n_path,
                   struct nj_file_meta *out)
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
        out->type = nj_mime_type(&fs->mime, path);
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

/* --- statuses --- */

/* The field that a status requires (RFC 9110 15.5.6, 15.5.17). */
static struct nj_field required_field(const struct nj__file_request *req, uint16_t status,
                                      char buf[CONTENT_RANGE_MAX])
{
    if (status == 405)
        return (struct nj_field){NJ_STR("allow"), NJ_STR(ALLOW)};
    if (status == 416)
        return (struct nj_field){NJ_STR("content-range"),
                                 content_range(buf, NULL, req->size_bytes)};
    return (struct nj_field){0};
}

/* Not a part of its caller: other errors would pay for its stack frame. */
__attribute__((noinline)) static void redirect_missing(const struct nj__file_request *req)
{
    const struct nj_site_rules *rules = req->txn->rules;
    const struct nj_site_variables v = {
        .path = req->path, .query = req->query, .prefix = rules->missing_prefix};
    struct nj_site_location l;

    nj_site_write_location(&l, rules->missing_to, &v); /* it has no $host */
    nj_respond_error_text(req->txn, 302,
                          (struct nj_field){NJ_STR("location"), {l.text, l.n_bytes}});
}

void nj__respond_plain_error(const struct nj__file_request *req, uint16_t status)
{
    char buf[CONTENT_RANGE_MAX];

    if (status != 302)
        nj_respond_error_text(req->txn, status, required_field(req, status, buf));
    else
        redirect_missing(req);
}

void nj__respond_busy(const struct nj__file_request *req)
{
    nj_count(req->txn->set->counters, NJ_C_file_busy);
    nj__respond_plain_error(req, 503);
}

void nj__respond_redirect(const struct nj__file_request *req, struct nj_str name)
{
    char location[NJ_PATH_LOCATION_MAX];
    uint32_t n = (uint32_t)nj_path_dir_location(name, req->query, location);

    nj_respond_error_text(req->txn, 301, (struct nj_field){NJ_STR("location"), {location, n}});
}

/* RFC 9110 9.3.7. The same for the server as a whole and for a file. */
void nj__respond_options(const struct nj__file_request *req)
{
    struct nj_resp_head r;

    r.n_given = r.n_fields = 0;
    nj_resp_head_add(&r, NJ_STR("allow"), NJ_STR(ALLOW));
    nj_resp_head_send(&r, req->txn, 204, 0, NULL);
}

/* --- objects --- */

static const struct nj_field *given_type(const struct nj__file_request *req)
{
    return nj_field_find(req->extra, req->n_extra, NJ_STR("content-type"));
}

static struct nj_str type_of(const struct nj_file_server *fs, const struct nj__file_request *req,
                             const struct nj_file_meta *meta)
{
    const struct nj_field *given = given_type(req);
    struct nj_str type = req->stage == NJ__STAGE_VARIANT ? req->type : meta->type;

    if (nj_unlikely(given != NULL))
        return given->value;
    if (nj_likely(req->path.n_bytes == 0) || req->stage == NJ__STAGE_LISTING)
        return type;
    if (req->of_site.type.n_bytes > 0)
        return req->of_site.type;
    const char *site_default = req->txn->rules->default_type;
    return site_default && type.p == fs->mime.default_type
               ? (struct nj_str){site_default, (uint32_t)strlen(site_default)}
               : type;
}

static bool accepts_codings(const struct nj__file_request *req)
{
    struct nj_accepted_codings codings = nj_accept_encoding_parse(req->accept_encoding);

    return nj_coding_select(&codings, (1u << NJ_N_CODINGS) - 1) != NJ_CODING_IDENTITY;
}

void nj__eval_request(struct nj_file_server *fs, const struct nj__file_request *req,
                      const struct nj_file_meta *meta, struct nj__response_plan *out)
{
    out->status = 200;
    out->ranges = &fs->ranges;
    out->validators = &meta->validators;
    if (req->stage == NJ__STAGE_VARIANT) {
        fs->coded = meta->validators;
        nj_validators_add_coding(&fs->coded, nj_coding_name[req->coding]);
        out->validators = &fs->coded;
    }
    if (!req->has_conditions)
        return;

    enum nj_precond_result v =
        nj_preconditions_eval(&req->conditions, out->validators, nj_txns_now_s(req->txn->set),
                              req->conditions.range.p && accepts_codings(req));
    if (v == NJ_PRECOND_FAILED || v == NJ_PRECOND_NOT_MODIFIED)
        out->status = v == NJ_PRECOND_FAILED ? 412 : 304;
    /* RFC 9110 14.2: ranges apply to GET only. Listings have none: they are rendered per
     * request. */
    if (v != NJ_PRECOND_RANGE || req->txn->method == NJ_METHOD_HEAD ||
        req->stage == NJ__STAGE_LISTING)
        return;
    switch (nj_ranges_parse(req->conditions.range, meta->object->size_bytes,
                            type_of(fs, req, meta).n_bytes, &fs->ranges)) {
    case NJ_RANGES_OK:
        out->status = 206;
        break;
    case NJ_RANGES_UNSATISFIABLE:
        out->status = 416;
        break;
    case NJ_RANGES_IGNORED:
        break;
    }
}

/* Fields that 200, 206 and 304 share (RFC 9110 15.4.5). */
static void add_validators(struct nj_file_server *fs, struct file_response *r,
                           const struct nj__file_request *req, const struct nj__response_plan *v)
{
    if (v->validators->n_etag > 0)
        nj_resp_head_add(&r->head, NJ_STR("etag"),
                         (struct nj_str){v->validators->etag, v->validators->n_etag});
    if (req->stage == NJ__STAGE_LISTING)
        nj_resp_head_add(&r->head, NJ_STR("vary"), NJ_STR("accept"));
    else if (req->siblings) /* also when none is selected (RFC 9110 12.5.5) */
        nj_resp_head_add(&r->head, NJ_STR("vary"), NJ_STR("accept-encoding"));
    const struct nj_site_rules *rules = req->txn->rules;
    struct nj_str cache_control = nj_unlikely(rules && (rules->keys & NJ_SITE_CACHE_CONTROL))
                                      ? rules->cache_control
                                      : fs->cache_control;
    if (cache_control.n_bytes > 0 && req->stage != NJ__STAGE_LISTING &&
        !nj_field_find(req->extra, req->n_extra, NJ_STR("cache-control")))
        nj_resp_head_add(&r->head, NJ_STR("cache-control"), cache_control);
}

/* RFC 9110 15.3.7: a client that sent If-Range knows it. */
static void add_modified(struct file_response *r, const struct nj__file_request *req,
                         const struct nj_file_meta *meta, const struct nj__response_plan *plan)
{
    if (!plan->validators->is_date_sent || (plan->status == 206 && req->conditions.if_range.p))
        return;
    nj_resp_head_add(&r->head, NJ_STR("last-modified"),
                     (struct nj_str){meta->modified, NJ_DATE_BYTES});
}

static const char hex_digits[] = "0123456789abcdef";

/* A boundary that a file's author cannot predict: a keyed hash of the validators and ranges. */
static struct nj_str boundary_of(const struct nj_file_server *fs, const struct nj__response_plan *v,
                                 char out[NJ_BOUNDARY_MAX])
{
    static const char words[] = "nightjar-";
    uint64_t h =
        nj_hash(&fs->config.hash_key, v->ranges->range, v->ranges->n * sizeof v->ranges->range[0]);
    uint32_t n = sizeof words - 1;

    h ^= nj_hash(&fs->config.hash_key, v->validators->etag, v->validators->n_etag);
    memcpy(out, words, n);
    for (int i = 0; i < 16; i++, h >>= 4)
        out[n++] = hex_digits[h & 15];
    return (struct nj_str){out, n};
}

/* Several ranges: the file's type becomes that of the parts. False: no body is left. */
static bool begin_multipart(struct nj_file_server *fs, struct file_response *r,
                            const struct nj__file_request *req, const struct nj_file_meta *meta,
                            const struct nj__response_plan *v)
{
    static const char words[] = "multipart/byteranges; boundary=";
    char *at = r->multipart + sizeof words - 1;
    struct nj_str boundary = boundary_of(fs, v, at);
    uint64_t n_bytes;

    r->body = nj__multipart_body_new(&fs->files, meta->object, v->ranges, type_of(fs, req, meta),
                                     boundary, req->txn->requester, &n_bytes);
    if (!r->body)
        return false;
    memcpy(r->multipart, words, sizeof words - 1);
    nj_resp_head_add_type(
        &r->head, (struct nj_str){r->multipart, (uint32_t)sizeof words - 1 + boundary.n_bytes});
    nj_resp_head_add(&r->head, NJ_STR("content-length"), nj_str_of_u64(r->length, n_bytes));
    return true;
}

/* Makes the body of a range, or of the whole object if `range` is NULL. False: no body is left. */
static bool make_body(struct nj_file_server *fs, const struct nj__file_request *req,
                      const struct nj_file_meta *meta, const struct nj_range *range,
                      struct nj_body **body)
{
    struct nj_range all = {0, meta->object->size_bytes};

    if (*body || req->txn->method == NJ_METHOD_HEAD || all.n_bytes == 0)
        return true;
    *body = nj__range_body_new(&fs->files, meta->object, range ? *range : all, req->txn->requester);
    return *body != NULL;
}

/* Adds type, length and body of one range (206), or of the whole object. */
static bool begin_range(struct nj_file_server *fs, struct file_response *r,
                        const struct nj__file_request *req, const struct nj_file_meta *meta,
                        const struct nj_range *range)
{
    if (!make_body(fs, req, meta, range, &r->body))
        return false;
    if (nj_likely(!given_type(req)))
        nj_resp_head_add_type(&r->head, type_of(fs, req, meta));
    if (range) {
        nj_resp_head_add(&r->head, NJ_STR("content-length"),
                         nj_str_of_u64(r->length, range->n_bytes));
        nj_resp_head_add(&r->head, NJ_STR("content-range"),
                         content_range(r->content_range, range, meta->object->size_bytes));
    } else {
        nj_resp_head_add(&r->head, NJ_STR("content-length"),
                         (struct nj_str){meta->length, meta->n_length});
    }
    return true;
}

/* RFC 9110 8.4. A handler that gives the file another type means its bytes as they are. */
static void add_coding(const struct nj_file_server *fs, struct file_response *r,
                       const struct nj__file_request *req, const struct nj_file_meta *meta)
{
    if (req->stage == NJ__STAGE_VARIANT)
        nj_resp_head_add(&r->head, NJ_STR("content-encoding"), nj_coding_name[req->coding]);
    else if (meta->is_gzip && !given_type(req) && nj_str_eq(type_of(fs, req, meta), meta->type))
        nj_resp_head_add(&r->head, NJ_STR("content-encoding"), nj_coding_name[NJ_CODING_GZIP]);
}

/* The path of a long response is kept for management. */
static bool is_long_response(const struct nj_file_meta *meta)
{
    return meta->object->size_bytes > NJ_TXN_PATH_FROM_BYTES;
}

/* A stamp identifies an encoded head. Responses with 200 for an object have equal heads within one
 * second; a sibling has another head when requested by its own name. The first response within a
 * second gets no stamp: most objects have no second one. Listings have other fields and no
 * stamp. *stamp_s is meta->stamp_s, or that of long responses. */
static inline uint64_t stamp_in(struct nj_file_server *fs, const struct nj__file_request *req,
                                struct nj_file_meta *meta, int64_t *stamp_s, bool is_long)
{
    uint64_t *stamp = &meta->stamp[req->stage == NJ__STAGE_VARIANT];

    int64_t now_s = nj_txns_now_s(req->txn->set);
    const struct nj_site_rules *rules = req->txn->rules;
    /* HSTS is sent for https only; a file of a handler has no type of the site. */
    uint64_t fields_id =
        nj_unlikely(rules)
            ? rules->fields_id << 2 | (uint64_t)req->is_handlers << 1 | req->txn->is_https
            : 0;

    if (req->stage == NJ__STAGE_LISTING || req->n_extra > 0)
        return 0;
    if (*stamp_s != now_s || nj_unlikely(meta->stamp_rules != fields_id)) {
        if (!is_long && is_long_response(meta))
            return 0;
        *stamp_s = now_s;
        meta->stamp_rules = fields_id;
        meta->stamp[0] = meta->stamp[1] = 0;
        return 0;
    }
    if (*stamp == 0)
        *stamp = ++fs->stamp;
    return *stamp;
}

/* Long responses have none here, so that others do not pay for their test: begin_long(). */
static uint64_t stamp_of(struct nj_file_server *fs, const struct nj__file_request *req,
                         struct nj_file_meta *meta)
{
    return stamp_in(fs, req, meta, &meta->stamp_s, false);
}

/* The fields of a handler but for `without`, which may be NULL. */
static void begin_head(struct file_response *r, const struct nj__file_request *req,
                       const struct nj_field *without)
{
    r->head.n_fields = 0;
    for (uint32_t i = 0; i < req->n_extra; i++) /* extra may be NULL, which has no sum with 0 */
        if (&req->extra[i] != without)
            nj_resp_head_add(&r->head, req->extra[i].name, req->extra[i].value);
    r->head.n_given = r->head.n_fields;
}

static void send(struct nj_file_server *fs, struct file_response *r,
                 const struct nj__file_request *req, const struct nj_file_meta *meta,
                 const struct nj__response_plan *v, uint64_t stamp)
{
    if (v->status != 304) {
        add_coding(fs, r, req, meta);
        if (req->stage != NJ__STAGE_LISTING)
            nj_resp_head_add(&r->head, NJ_STR("accept-ranges"), NJ_STR("bytes"));
        add_modified(r, req, meta, v);
    }
    add_validators(fs, r, req, v);
    nj_resp_head_send(&r->head, req->txn, v->status, stamp, r->body);
}

/* Sends an object, or one range of it. False: no body is left. Not a part of its caller: responses
 * that are cached would pay for its stack frame. */
__attribute__((noinline)) static bool send_built(struct nj_file_server *fs, struct nj_body *body,
                                                 const struct nj__file_request *req,
                                                 const struct nj_file_meta *meta,
                                                 const struct nj__response_plan *v, uint64_t stamp)
{
    struct file_response r;

    r.body = body;
    begin_head(&r, req, NULL);
    if (v->status != 304 &&
        !begin_range(fs, &r, req, meta, v->status == 206 ? &v->ranges->range[0] : NULL))
        return false;
    send(fs, &r, req, meta, v, stamp);
    return true;
}

/* Sends several ranges. False: no body is left. */
__attribute__((noinline)) static bool send_multipart(struct nj_file_server *fs,
                                                     const struct nj__file_request *req,
                                                     const struct nj_file_meta *meta,
                                                     const struct nj__response_plan *v)
{
    struct file_response r;

    begin_head(&r, req, given_type(req)); /* it goes into the parts */
    if (!begin_multipart(fs, &r, req, meta, v))
        return false;
    send(fs, &r, req, meta, v, 0);
    return true;
}

/* Keeps '/' and the name, cut, for as long as the request is open. A sibling is named as its file,
 * and a file of a site by its path in the site. */
static void keep_path(const struct nj__file_request *req, const struct nj_file_name *name)
{
    const struct nj_txn *t = req->txn;
    struct nj_str from = {name->p, name->n_bytes};

    if (!t->framing->id)
        return;
    if (req->path.n_bytes > 0 && req->stage != NJ__STAGE_ERROR)
        from = req->path;
    else if (req->stage == NJ__STAGE_VARIANT)
        from.n_bytes -= nj_coding_suffix[req->coding].n_bytes;
    nj_str_skip(&from, from.n_bytes > 0 && from.p[0] == '/');
    struct nj_txn_path *path = &t->set->paths[nj_pool_index(&t->set->pool, t)];
    uint32_t n = nj_min_u32(from.n_bytes, NJ_TXN_PATH_BYTES - 1);
    path->id = t->framing->id(t->stream);
    path->site = t->rules ? t->rules->identity.site : 0;
    path->text[0] = '/';
    memcpy(path->text + 1, from.p, n);
    path->n_bytes = (uint8_t)(1 + n);
    path->is_cut = n < from.n_bytes;
}

/* A response that may take a while: keeps its path. Returns its stamp, if it may have one. */
__attribute__((noinline)) static uint64_t
begin_long(struct nj_file_server *fs, const struct nj__file_request *req, struct nj_file_meta *meta,
           const struct nj_file_name *name, bool has_stamp)
{
    keep_path(req, name);
    return has_stamp ? stamp_in(fs, req, meta, &meta->long_stamp_s, true) : 0;
}

void nj__respond_object(struct nj_file_server *fs, const struct nj__file_request *req,
                        struct nj_file_meta *meta, const struct nj__response_plan *plan,
                        const struct nj_file_name *name)
{
    uint64_t stamp = plan->status == 200 ? stamp_of(fs, req, meta) : 0;
    struct nj_body *body = NULL;
    bool ok = true;

    if (!stamp && is_long_response(meta))
        stamp = begin_long(fs, req, meta, name, plan->status == 200);
    if (nj_likely(stamp)) {
        ok = make_body(fs, req, meta, NULL, &body);
        if (ok && nj_txn_respond_cached(req->txn, 200, stamp, body))
            return;
    }
    bool is_multipart = plan->status == 206 && plan->ranges->n > 1;
    if (ok)
        ok = !is_multipart ? send_built(fs, body, req, meta, plan, stamp)
                           : send_multipart(fs, req, meta, plan);
    if (!ok)
        nj__respond_busy(req);
}

void nj__respond_error_page(struct nj_file_server *fs, const struct nj__file_request *req,
                            const struct nj_file_meta *meta)
{
    struct file_response r;

    r.body = NULL;
    r.head.n_given = r.head.n_fields = 0;
    if (!begin_range(fs, &r, req, meta, NULL)) {
        nj__respond_plain_error(req, req->status);
        return;
    }
    add_coding(fs, &r, req, meta);
    nj_resp_head_add_by_status(&r.head, req->status,
                               required_field(req, req->status, r.content_range));
    nj_resp_head_send(&r.head, req->txn, req->status, 0, r.body);
}
