/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the file server's responses: evaluates preconditions and ranges, builds the head and
 * selects the body. Follows RFC 9110 13.2.2, 14 and 15. */
#include <string.h>

#include "base/attr.h"
#include "http/files/file_server_internal.h"
#include "http/response_head.h"
#include "telem/counters.h"

#define ALLOW "GET, HEAD, OPTIONS"

/* Three numbers and the fixed text. */
#define CONTENT_RANGE_MAX (3 * NJ_DIGITS_MAX + 10)

/* A response with content, under construction. */
struct reply {
    struct nj_reply head;
    struct nj_body *body;
    char content_range[CONTENT_RANGE_MAX];
    char multipart[32 + NJ_BOUNDARY_MAX];
};

static void add_field(struct reply *r, struct nj_str name, struct nj_str value)
{
    nj_reply_add(&r->head, name, value);
}

/* "bytes 0-99/1000", or without a range "bytes * /1000" (RFC 9110 14.4), at the end of `buf`. */
static struct nj_str content_range(char buf[CONTENT_RANGE_MAX], const struct nj_range *range,
                                   uint64_t size)
{
    char *end = buf + CONTENT_RANGE_MAX, *p = nj_put_digits(end, size);

    *--p = '/';
    if (range) {
        p = nj_put_digits(p, range->first + range->n_bytes - 1);
        *--p = '-';
        p = nj_put_digits(p, range->first);
    } else {
        *--p = '*';
    }
    p -= 6;
    memcpy(p, "bytes ", 6);
    return (struct nj_str){p, (uint32_t)(end - p)};
}

/* --- statuses --- */

/* The field that a status requires (RFC 9110 15.5.6, 15.5.17). */
static struct nj_field what_belongs(const struct nj__asker *who, uint16_t status,
                                    char buf[CONTENT_RANGE_MAX])
{
    if (status == 405)
        return (struct nj_field){NJ_STR("allow"), NJ_STR(ALLOW)};
    if (status == 416)
        return (struct nj_field){NJ_STR("content-range"),
                                 content_range(buf, NULL, who->size_bytes)};
    return (struct nj_field){0};
}

void nj__reply_status(const struct nj__asker *who, uint16_t status)
{
    char buf[CONTENT_RANGE_MAX];

    nj_reply_error_text(who->txn, status, what_belongs(who, status, buf));
}

void nj__reply_busy(const struct nj__asker *who)
{
    nj_count(who->txn->set->counters, NJ_C_file_busy);
    nj__reply_status(who, 503);
}

void nj__reply_redirect(const struct nj__asker *who, const char *name)
{
    char location[NJ_PATH_LOCATION_MAX];
    uint32_t n = (uint32_t)nj_path_location(name, who->query, location);

    nj_reply_error_text(who->txn, 301, (struct nj_field){NJ_STR("location"), {location, n}});
}

/* RFC 9110 9.3.7. The same for the server as a whole and for a file. */
void nj__reply_options(const struct nj__asker *who)
{
    struct nj_reply r;

    nj_reply_begin(&r, who->txn, 204);
    nj_reply_add_own(&r);
    nj_reply_add(&r, NJ_STR("allow"), NJ_STR(ALLOW));
    nj_reply_send(&r, 0, NULL);
}

/* --- objects --- */

void nj__judge(const struct nj__asker *who, const struct nj_known *known, struct nj__verdict *out)
{
    out->status = 200;
    out->validators = known->validators;
    if (who->stage == NJ__STAGE_VARIANT)
        nj_validators_mark(&out->validators, nj_coding_name(who->coding));
    if (!who->has_conditions)
        return;

    int64_t now_s = nj_txns_now_s(who->txn->set);
    enum nj_verdict v = nj_conditions_check(&who->conditions, &out->validators, now_s);
    if (v != NJ_VERDICT_SEND) {
        out->status = v == NJ_VERDICT_FAILED ? 412 : 304;
        return;
    }
    /* RFC 9110 14.2: ranges apply to GET only. Listings have none: each request renders the listing
     * anew. */
    if (!who->conditions.range.p || who->txn->is_head || who->stage == NJ__STAGE_LIST ||
        !nj_conditions_range_counts(&who->conditions, &out->validators, now_s))
        return;
    switch (nj_ranges_parse(who->conditions.range, known->object->size_bytes, &out->ranges)) {
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
static void add_validity(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                         const struct nj__verdict *v)
{
    if (v->validators.n_etag > 0)
        add_field(r, NJ_STR("etag"), (struct nj_str){v->validators.etag, v->validators.n_etag});
    if (who->stage == NJ__STAGE_LIST)
        add_field(r, NJ_STR("vary"), NJ_STR("accept"));
    else if (who->siblings) /* also when none is selected (RFC 9110 12.5.5) */
        add_field(r, NJ_STR("vary"), NJ_STR("accept-encoding"));
    if (site->cache_control.n_bytes > 0 && who->stage != NJ__STAGE_LIST &&
        !nj_field_find(who->extra, who->n_extra, NJ_STR("cache-control")))
        add_field(r, NJ_STR("cache-control"), site->cache_control);
}

/* RFC 9110 8.8.2.1: a modification time in the future is sent as now. RFC 9110 15.3.7: a client
 * that sent If-Range knows it. */
static void add_modified(struct reply *r, const struct nj__asker *who, const struct nj_known *known,
                         uint16_t status)
{
    if (!known->validators.has_date || (status == 206 && who->conditions.if_range.p))
        return;
    bool is_future = known->validators.modified_s > nj_txns_now_s(who->txn->set);
    add_field(r, NJ_STR("last-modified"),
              is_future ? nj_txns_date(who->txn->set)
                        : (struct nj_str){known->modified, NJ_DATE_BYTES});
}

static const char hex_digits[] = "0123456789abcdef";

/* A boundary that a file's author cannot predict: a keyed hash of the validators and ranges. */
static struct nj_str boundary_of(const struct nj_site *site, const struct nj__verdict *v,
                                 char out[NJ_BOUNDARY_MAX])
{
    static const char words[] = "nightjar-";
    uint64_t h =
        nj_hash(&site->config.hash_key, &v->ranges.range, v->ranges.n * sizeof v->ranges.range[0]);
    uint32_t n = sizeof words - 1;

    h ^= nj_hash(&site->config.hash_key, v->validators.etag, v->validators.n_etag);
    memcpy(out, words, n);
    for (int i = 0; i < 16; i++, h >>= 4)
        out[n++] = hex_digits[h & 15];
    return (struct nj_str){out, n};
}

static const struct nj_field *type_given(const struct nj__asker *who)
{
    return nj_field_find(who->extra, who->n_extra, NJ_STR("content-type"));
}

static struct nj_str type_of(const struct nj__asker *who, const struct nj_known *known)
{
    const struct nj_field *given = type_given(who);

    if (nj_unlikely(given != NULL))
        return given->value;
    return who->stage == NJ__STAGE_VARIANT ? who->type : known->type;
}

/* Several ranges: the file's type becomes that of the parts. False: no body is left. */
static bool begin_parts(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                        const struct nj_known *known, const struct nj__verdict *v)
{
    static const char words[] = "multipart/byteranges; boundary=";
    char *at = r->multipart + sizeof words - 1;
    struct nj_str boundary = boundary_of(site, v, at);
    uint64_t n_bytes;

    r->body = nj__body_of_parts(&site->files, known->object, &v->ranges, type_of(who, known),
                                boundary, who->txn->requester, &n_bytes);
    if (!r->body)
        return false;
    memcpy(r->multipart, words, sizeof words - 1);
    nj_reply_add_type(&r->head,
                      (struct nj_str){r->multipart, (uint32_t)sizeof words - 1 + boundary.n_bytes});
    nj_reply_add_length(&r->head, n_bytes);
    return true;
}

/* Makes the body of a range, or of the whole object if `range` is NULL. False: no body is left. */
static bool make_body(struct nj_site *site, const struct nj__asker *who,
                      const struct nj_known *known, const struct nj_range *range,
                      struct nj_body **body)
{
    struct nj_range all = {0, known->object->size_bytes};

    if (*body || who->txn->is_head || all.n_bytes == 0)
        return true;
    *body =
        nj__body_of_range(&site->files, known->object, range ? *range : all, who->txn->requester);
    return *body != NULL;
}

/* Adds type, length and body of one range (206), or of the whole object. */
static bool begin_range(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                        const struct nj_known *known, const struct nj_range *range)
{
    if (!make_body(site, who, known, range, &r->body))
        return false;
    if (nj_likely(!type_given(who)))
        nj_reply_add_type(&r->head, type_of(who, known));
    if (range) {
        nj_reply_add_length(&r->head, range->n_bytes);
        add_field(r, NJ_STR("content-range"),
                  content_range(r->content_range, range, known->object->size_bytes));
    } else {
        add_field(r, NJ_STR("content-length"), (struct nj_str){known->length, known->n_length});
    }
    return true;
}

static bool is_of_parts(const struct nj__verdict *v)
{
    return v->status == 206 && v->ranges.n > 1;
}

static bool begin_content(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                          const struct nj_known *known, const struct nj__verdict *v)
{
    if (is_of_parts(v))
        return begin_parts(site, r, who, known, v);
    return begin_range(site, r, who, known, v->status == 206 ? &v->ranges.range[0] : NULL);
}

/* A stamp identifies an encoded head. Responses with 200 for an object have equal heads within one
 * second; a sibling has another head when requested by its own name. The first response within a
 * second gets no stamp: most objects have no second one. Listings have other fields and no
 * stamp. */
static uint64_t stamp_of(struct nj_site *site, const struct nj__asker *who, struct nj_known *known)
{
    uint64_t *stamp = &known->stamp[who->stage == NJ__STAGE_VARIANT];

    int64_t now_s = nj_txns_now_s(who->txn->set);

    if (who->stage == NJ__STAGE_LIST || who->n_extra > 0)
        return 0;
    if (known->said_s != now_s) {
        known->said_s = now_s;
        known->stamp[0] = known->stamp[1] = 0;
        return 0;
    }
    if (*stamp == 0)
        *stamp = ++site->stamp;
    return *stamp;
}

/* False: no body is left. */
static bool reply_built(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                        const struct nj_known *known, const struct nj__verdict *v, uint64_t stamp)
{
    const struct nj_field *type = is_of_parts(v) ? type_given(who) : NULL; /* goes into the parts */

    nj_reply_begin(&r->head, who->txn, v->status);
    for (const struct nj_field *f = who->extra; f < who->extra + who->n_extra; f++)
        if (f != type)
            add_field(r, f->name, f->value);
    nj_reply_add_own(&r->head);
    if (v->status != 304) {
        if (!begin_content(site, r, who, known, v))
            return false;
        if (who->stage == NJ__STAGE_VARIANT)
            add_field(r, NJ_STR("content-encoding"), nj_coding_name(who->coding));
        if (who->stage != NJ__STAGE_LIST)
            add_field(r, NJ_STR("accept-ranges"), NJ_STR("bytes"));
        add_modified(r, who, known, v->status);
    }
    add_validity(site, r, who, v);
    nj_reply_send(&r->head, stamp, r->body);
    return true;
}

void nj__reply_object(struct nj_site *site, const struct nj__asker *who, struct nj_known *known,
                      const struct nj__verdict *verdict)
{
    uint64_t stamp = verdict->status == 200 ? stamp_of(site, who, known) : 0;
    struct reply r;
    bool ok = true;

    r.body = NULL;
    if (nj_likely(stamp)) {
        ok = make_body(site, who, known, NULL, &r.body);
        if (ok && nj_txn_respond_again(who->txn, 200, stamp, r.body))
            return;
    }
    if (!ok || !reply_built(site, &r, who, known, verdict, stamp))
        nj__reply_busy(who);
}

void nj__reply_page(struct nj_site *site, const struct nj__asker *who, const struct nj_known *known)
{
    struct reply r;

    r.body = NULL;
    nj_reply_begin(&r.head, who->txn, who->status);
    nj_reply_add_own(&r.head);
    if (!begin_range(site, &r, who, known, NULL)) {
        nj__reply_status(who, who->status);
        return;
    }
    nj_reply_add_extra(&r.head, what_belongs(who, who->status, r.content_range));
    nj_reply_send(&r.head, 0, r.body);
}
