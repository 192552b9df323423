/* SPDX-License-Identifier: BSD-3-Clause */
/* What the site says: heads of responses, and which body goes with them. */
#include <string.h>

#include "base/assert.h"
#include "http/site_internal.h"
#include "telem/counters.h"

#define ALLOW "GET, HEAD, OPTIONS"

struct reply {
    struct nj_http_reply http;
    char length[NJ_DIGITS_MAX];
    char content_range[3 * NJ_DIGITS_MAX + 10]; /* and words */
    char multipart[32 + NJ_BOUNDARY_MAX];
};

static void add_field(struct reply *r, struct nj_str name, struct nj_str value)
{
    NJ_ASSERT(r->http.n_fields < NJ_REPLY_FIELDS_MAX);
    r->http.fields[r->http.n_fields++] = (struct nj_field){name, value};
}

int64_t nj__site_now_s(const struct nj_site *site, nj_ns now)
{
    return site->config.wall_s_at_zero + (int64_t)(now / NJ_SEC);
}

static void begin_reply(struct nj_site *site, struct reply *r, uint16_t status, nj_ns now)
{
    r->http.status = status;
    r->http.n_fields = 0;
    r->http.stamp = 0;
    r->http.body = NULL;
    add_field(r, NJ_STR("server"), NJ_STR("nightjar"));
    add_field(r, NJ_STR("date"), nj_date_of_now(&site->date, nj__site_now_s(site, now)));
}

static void add_type(struct reply *r, struct nj_str type)
{
    add_field(r, NJ_STR("content-type"), type);
    add_field(r, NJ_STR("x-content-type-options"), NJ_STR("nosniff"));
}

static void add_length(struct reply *r, uint64_t n_bytes)
{
    char *end = r->length + sizeof r->length, *p = nj_put_digits(end, n_bytes);
    add_field(r, NJ_STR("content-length"), (struct nj_str){p, (uint32_t)(end - p)});
}

/* "bytes 0-99/1000", or without a range, "bytes * /1000" (RFC 9110 14.4) */
static void add_content_range(struct reply *r, const struct nj_range *range, uint64_t size)
{
    char *end = r->content_range + sizeof r->content_range, *p = nj_put_digits(end, size);

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
    add_field(r, NJ_STR("content-range"), (struct nj_str){p, (uint32_t)(end - p)});
}

static void send_reply(struct nj_site *site, const struct nj__asker *who, const struct reply *r)
{
    site->config.events->on_reply(site->config.events_ctx, who->stream, &r->http);
}

/* Statuses. */

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
    case 412:
        return NJ_STR("412 Precondition Failed\n");
    case 414:
        return NJ_STR("414 URI Too Long\n");
    case 416:
        return NJ_STR("416 Range Not Satisfiable\n");
    case 431:
        return NJ_STR("431 Request Header Fields Too Large\n");
    case 503:
        return NJ_STR("503 Service Unavailable\n");
    default:
        return NJ_STR("500 Internal Server Error\n");
    }
}

/* What a status has to come with (RFC 9110 15.5.6, 15.5.17, 15.6.4). */
static void add_what_belongs(struct reply *r, const struct nj__asker *who, uint16_t status)
{
    if (status == 405)
        add_field(r, NJ_STR("allow"), NJ_STR(ALLOW));
    else if (status == 416)
        add_content_range(r, NULL, who->size_bytes);
    else if (status == 503)
        add_field(r, NJ_STR("retry-after"), NJ_STR("1"));
}

static void reply_text(struct nj_site *site, const struct nj__asker *who, uint16_t status,
                       struct nj_str location, nj_ns now)
{
    struct nj_str text = status_text(status);
    struct reply r;

    begin_reply(site, &r, status, now);
    if (!who->is_head)
        r.http.body = nj__body_of_bytes(&site->files, (const uint8_t *)text.p, text.n_bytes, NULL);
    add_type(&r, NJ_STR("text/plain; charset=utf-8"));
    /* Out of bodies: the status still arrives. */
    add_length(&r, who->is_head || r.http.body ? text.n_bytes : 0);
    add_what_belongs(&r, who, status);
    if (location.n_bytes > 0)
        add_field(&r, NJ_STR("location"), location);
    send_reply(site, who, &r);
}

void nj__reply_status(struct nj_site *site, const struct nj__asker *who, uint16_t status, nj_ns now)
{
    reply_text(site, who, status, NJ_STR(""), now);
}

void nj__reply_busy(struct nj_site *site, const struct nj__asker *who, nj_ns now)
{
    nj_count(site->config.counters, NJ_C_file_busy);
    nj__reply_status(site, who, 503, now);
}

void nj__reply_redirect(struct nj_site *site, const struct nj__asker *who, const char *name,
                        nj_ns now)
{
    char location[NJ_PATH_LOCATION_MAX];
    uint32_t n = (uint32_t)nj_path_location(name, who->query, location);

    reply_text(site, who, 301, (struct nj_str){location, n}, now);
}

/* RFC 9110 9.3.7. Of the server as a whole or of a file: the same. */
void nj__reply_options(struct nj_site *site, const struct nj__asker *who, nj_ns now)
{
    struct reply r;

    begin_reply(site, &r, 204, now);
    add_field(&r, NJ_STR("allow"), NJ_STR(ALLOW));
    send_reply(site, who, &r);
}

/* Objects. */

void nj__judge(const struct nj_site *site, const struct nj__asker *who,
               const struct nj_known *known, nj_ns now, struct nj__verdict *out)
{
    out->status = 200;
    out->validators = known->validators;
    if (who->stage == NJ__STAGE_VARIANT)
        nj_validators_mark(&out->validators, nj_coding_name(who->coding));
    if (!who->has_conditions)
        return;

    int64_t now_s = nj__site_now_s(site, now);
    enum nj_verdict v = nj_conditions_check(&who->conditions, &out->validators, now_s);
    if (v != NJ_VERDICT_SEND) {
        out->status = v == NJ_VERDICT_FAILED ? 412 : 304;
        return;
    }
    /* RFC 9110 14.2: of GET only. The list of a folder is made for each who asks: no ranges. */
    if (!who->conditions.range.p || who->is_head || who->stage == NJ__STAGE_LIST ||
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

/* What 200, 206 and 304 have in common (RFC 9110 15.4.5). */
static void add_validity(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                         const struct nj__verdict *v)
{
    if (v->validators.n_etag > 0)
        add_field(r, NJ_STR("etag"), (struct nj_str){v->validators.etag, v->validators.n_etag});
    if (who->stage == NJ__STAGE_LIST)
        add_field(r, NJ_STR("vary"), NJ_STR("accept"));
    else if (who->siblings) /* also when the client gets none of them (RFC 9110 12.5.5) */
        add_field(r, NJ_STR("vary"), NJ_STR("accept-encoding"));
    if (site->cache_control.n_bytes > 0 && who->stage != NJ__STAGE_LIST)
        add_field(r, NJ_STR("cache-control"), site->cache_control);
}

/* RFC 9110 8.8.2.1: a time of change that is still to come is now. And 15.3.7: whoever sent
 * If-Range knows it. */
static void add_modified(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                         const struct nj_known *known, uint16_t status)
{
    if (!known->validators.has_date || (status == 206 && who->conditions.if_range.p))
        return;
    bool is_future = known->validators.modified_s > site->date.unix_s;
    add_field(r, NJ_STR("last-modified"),
              (struct nj_str){is_future ? site->date.text : known->modified, NJ_DATE_BYTES});
}

static const char hex_digits[] = "0123456789abcdef";

/* A boundary that nobody can have written into a file: a keyed hash of what is sent. */
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

/* Several ranges: the type is that of the parts, too. False: out of bodies. */
static bool begin_parts(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                        const struct nj_known *known, const struct nj__verdict *v)
{
    struct nj_str type = who->stage == NJ__STAGE_VARIANT ? who->type : known->type;
    static const char words[] = "multipart/byteranges; boundary=";
    char *at = r->multipart + sizeof words - 1;
    struct nj_str boundary = boundary_of(site, v, at);
    uint64_t n_bytes;

    r->http.body = nj__body_of_parts(&site->files, known->object, &v->ranges, type, boundary,
                                     who->client, &n_bytes);
    if (!r->http.body)
        return false;
    memcpy(r->multipart, words, sizeof words - 1);
    add_type(r, (struct nj_str){r->multipart, (uint32_t)sizeof words - 1 + boundary.n_bytes});
    add_length(r, n_bytes);
    return true;
}

/* One range, of 206, or all there is. */
static bool begin_range(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                        const struct nj_known *known, const struct nj_range *range)
{
    struct nj_range all = {0, known->object->size_bytes};

    if (!who->is_head && all.n_bytes > 0) {
        r->http.body =
            nj__body_of_range(&site->files, known->object, range ? *range : all, who->client);
        if (!r->http.body)
            return false;
    }
    add_type(r, who->stage == NJ__STAGE_VARIANT ? who->type : known->type);
    if (range) {
        add_length(r, range->n_bytes);
        add_content_range(r, range, known->object->size_bytes);
    } else {
        add_field(r, NJ_STR("content-length"), (struct nj_str){known->length, known->n_length});
    }
    return true;
}

static bool begin_content(struct nj_site *site, struct reply *r, const struct nj__asker *who,
                          const struct nj_known *known, const struct nj__verdict *v)
{
    if (v->status == 206 && v->ranges.n > 1)
        return begin_parts(site, r, who, known, v);
    return begin_range(site, r, who, known, v->status == 206 ? &v->ranges.range[0] : NULL);
}

/* Replies with 200 and what is known of an object are the same as long as the date is, whoever
 * asks; but a sibling has another head when it is asked for by its own name. The first within a
 * second has no stamp: of most objects it is the only one. A list has other fields. */
static uint64_t stamp_of(struct nj_site *site, const struct nj__asker *who, struct nj_known *known)
{
    uint64_t *stamp = &known->stamp[who->stage == NJ__STAGE_VARIANT];

    if (who->stage == NJ__STAGE_LIST)
        return 0;
    if (known->said_s != site->date.unix_s) {
        known->said_s = site->date.unix_s;
        known->stamp[0] = known->stamp[1] = 0;
        return 0;
    }
    if (*stamp == 0)
        *stamp = ++site->stamp;
    return *stamp;
}

void nj__reply_object(struct nj_site *site, const struct nj__asker *who, struct nj_known *known,
                      const struct nj__verdict *verdict, nj_ns now)
{
    struct reply r;

    begin_reply(site, &r, verdict->status, now);
    if (verdict->status != 304) {
        if (!begin_content(site, &r, who, known, verdict)) {
            nj__reply_busy(site, who, now);
            return;
        }
        if (who->stage == NJ__STAGE_VARIANT)
            add_field(&r, NJ_STR("content-encoding"), nj_coding_name(who->coding));
        if (who->stage != NJ__STAGE_LIST)
            add_field(&r, NJ_STR("accept-ranges"), NJ_STR("bytes"));
        add_modified(site, &r, who, known, verdict->status);
    }
    add_validity(site, &r, who, verdict);
    if (verdict->status == 200)
        r.http.stamp = stamp_of(site, who, known);
    send_reply(site, who, &r);
}

void nj__reply_page(struct nj_site *site, const struct nj__asker *who, const struct nj_known *known,
                    nj_ns now)
{
    struct reply r;

    begin_reply(site, &r, who->status, now);
    if (!begin_range(site, &r, who, known, NULL)) {
        nj__reply_status(site, who, who->status, now);
        return;
    }
    add_what_belongs(&r, who, who->status);
    send_reply(site, who, &r);
}
