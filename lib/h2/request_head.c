/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoding and validation of the fields of a header block: limits, and the rules by which a request
 * is malformed (RFC 9113 8.1.1, 8.2, 8.3).
 *
 * Nothing is copied: strings point into HPACK memory and are valid until the next block of any
 * connection of the context.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/compiler.h"
#include "base/field_list.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

enum { TOO_MANY = -3 }; /* in addition to the results of nj__hpack_decode_next() */

/* Store a pseudo-header or host, each allowed once. HPACK decoding has validated the value. */
static bool take_once(struct nj_str *slot, struct nj_str value)
{
    if (slot->p)
        return false;
    *slot = value;
    return true;
}

/* RFC 9110 8.6 */
static bool take_length(struct nj__h2_head *head, struct nj_str value)
{
    uint64_t n;

    if (head->trailers)
        return true; /* without meaning in trailers */
    if (head->length != NJ__H2_NO_LENGTH || value.n_bytes > 18 || !nj_str_parse_u64(value, &n))
        return false;
    head->length = (int64_t)n;
    return true;
}

static bool is_pseudo(uint8_t token)
{
    return token >= NJ__TOKEN_METHOD && token <= NJ__TOKEN_PSEUDO_OTHER;
}

/* RFC 9113 8.2.2: "trailers" is the only value allowed. */
static bool is_te(struct nj_str value)
{
    return nj_str_eq_nocase(value, NJ_STR("trailers"));
}

/* Process a field with a meaning for HTTP/2. False: the message is malformed. */
static bool take_special(struct nj__h2_head *head, const struct nj__hpack_field *f)
{
    if (!is_pseudo(f->token))
        head->regular_seen = true;
    else if (head->trailers || head->regular_seen) /* RFC 9113 8.3, 8.1 */
        return false;
    switch ((enum nj__token)f->token) {
    case NJ__TOKEN_METHOD:
        return take_once(&head->req.method, f->value);
    case NJ__TOKEN_SCHEME:
        return take_once(&head->req.scheme, f->value);
    case NJ__TOKEN_AUTHORITY:
        return take_once(&head->req.authority, f->value);
    case NJ__TOKEN_PATH:
        return take_once(&head->req.path, f->value);
    case NJ__TOKEN_HOST:
        return take_once(&head->host, f->value);
    case NJ__TOKEN_CONTENT_LENGTH:
        return take_length(head, f->value);
    case NJ__TOKEN_TE:
        return is_te(f->value);
    case NJ__TOKEN_PRIORITY:
        head->priority = nj__h2_priority_parse(f->value, head->priority);
        head->has_priority = true;
        return true;
    case NJ__TOKEN_EXPECT:
        nj_expect_read(f->value, &head->expects_continue, &head->expects_other);
        return true;
    case NJ__TOKEN_STATUS:
    case NJ__TOKEN_PSEUDO_OTHER:
    case NJ__TOKEN_CONN_SPECIFIC:
    case NJ__TOKEN_OTHER:
    case NJ__TOKEN_HEADER_BASE:
        break;
    }
    return false;
}

static bool take_field(struct nj__h2_head *head, const struct nj__hpack_field *f)
{
    if (f->token != NJ__TOKEN_OTHER && f->token < NJ__TOKEN_HEADER_BASE)
        return !f->malformed && take_special(head, f);
    head->regular_seen = true;
    if (f->token >= NJ__TOKEN_HEADER_BASE)
        nj_header_add(&head->req, (enum nj_header)(f->token - NJ__TOKEN_HEADER_BASE), f->value);
    return !f->malformed;
}

/* RFC 9113 8.3.1 */
static bool is_complete(struct nj__h2_head *head)
{
    if (head->bad || !head->req.method.p)
        return false;
    if (nj_str_eq(head->req.method, NJ_STR("CONNECT"))) { /* RFC 9113 8.5 */
        head->length = NJ__H2_NO_LENGTH;
        return head->req.authority.p && !head->req.scheme.p && !head->req.path.p;
    }
    if (!head->req.scheme.p || !head->req.path.p)
        return false;
    if (head->req.path.p[0] == '/')
        return true;
    if (!nj_str_eq(head->req.scheme, NJ_STR("http")) &&
        !nj_str_eq(head->req.scheme, NJ_STR("https")))
        return true;
    return nj_str_eq(head->req.path, NJ_STR("*")) && nj_str_eq(head->req.method, NJ_STR("OPTIONS"));
}

/* ---- authority ---- */

/* `host` without a port that is empty or equals `port`, the scheme's default (RFC 3986 6.2.3). A
 * colon within brackets belongs to an IPv6 address. */
static struct nj_str without_port(struct nj_str host, struct nj_str port)
{
    uint32_t n = host.n_bytes;

    while (n > 0 && host.p[n - 1] >= '0' && host.p[n - 1] <= '9')
        n--;
    if (n == 0 || host.p[n - 1] != ':')
        return host;
    const struct nj_str has = {host.p + n, host.n_bytes - n};
    if (has.n_bytes == 0 || nj_str_eq(has, port))
        host.n_bytes = n - 1;
    return host;
}

/* RFC 9113 8.3.1: host and :authority must name the same entity. CONNECT has no scheme and thus no
 * default port. */
static bool is_same_entity(const struct nj__h2_head *head)
{
    struct nj_str a = head->req.authority, b = head->host;

    if (head->req.scheme.p) {
        const struct nj_str port = head->req.scheme.n_bytes == 4 ? NJ_STR("80") : NJ_STR("443");
        a = without_port(a, port);
        b = without_port(b, port);
    }
    return nj_str_eq_nocase(a, b);
}

/* RFC 9113 8.3.1 allows other schemes for gateways only. https is accepted without TLS, since a
 * proxy may have terminated TLS. */
static bool is_our_scheme(struct nj_str scheme)
{
    if (nj_likely(scheme.n_bytes == 4 && memcmp(scheme.p, "http", 4) == 0))
        return true;
    return nj_str_eq_nocase(scheme, NJ_STR("http")) || nj_str_eq_nocase(scheme, NJ_STR("https"));
}

/* RFC 9113 8.3.1, RFC 9110 4.2.4: an authority must not contain userinfo. */
static bool has_user(struct nj_str authority)
{
    return memchr(authority.p, '@', authority.n_bytes) != NULL;
}

/* RFC 9110 4.2.1: the host of an http or https URI must not be empty. The decoder has refused empty
 * values. */
static bool names_no_host(const struct nj__h2_head *head)
{
    const struct nj_str name = head->req.authority.p ? head->req.authority : head->host;

    return !name.p || name.p[0] == ':';
}

/* Such requests are malformed. They get a response instead of a reset (RFC 9113 8.1.1), so users
 * see the reason. */
static bool contradicts_itself(const struct nj__h2_head *head)
{
    if (head->req.scheme.p && !is_our_scheme(head->req.scheme))
        return true;
    if (head->req.authority.p && has_user(head->req.authority))
        return true;
    if (nj_likely(!head->host.p))
        return false;
    return head->req.authority.p ? !is_same_entity(head) : has_user(head->host);
}

static void refuse(struct nj__h2_head *head, uint16_t status, nj_counter why)
{
    head->refuse_status = status;
    head->refuse_why = why;
}

/* Decide whether a complete head gets an error as its response. */
static void check_refusals(struct nj__h2_head *head)
{
    if (nj_unlikely(head->over_limit))
        refuse(head, 431, NJ_C_h2_header_full);
    else if (nj_unlikely(names_no_host(head)))
        refuse(head, 400, NJ_C_request_no_host);
    else if (nj_unlikely(contradicts_itself(head)))
        refuse(head, 400, NJ_C_request_contradictory);
    else if (nj_unlikely(head->expects_other))
        refuse(head, 417, NJ_C_request_expectation);
}

/* ---- limits ---- */

/* Beyond a soft limit the response is 431; beyond the hard limit the connection ends. */
static bool is_far_beyond(const struct nj_h2_limits *max, uint32_t n_bytes, uint32_t n_fields)
{
    return n_bytes > (uint64_t)max->header_bytes_max * NJ__H2_HARD_LIMIT_FACTOR ||
           n_fields > (uint64_t)max->header_fields_max * NJ__H2_HARD_LIMIT_FACTOR;
}

static bool ensure_decoder(struct nj_h2 *h)
{
    if (nj_unlikely(!h->hpack_decoder))
        h->hpack_decoder = nj__hpack_decoder_new(h->core->hpack);
    if (!h->hpack_decoder)
        nj__h2_out_of_memory(h);
    return h->hpack_decoder != NULL;
}

/* Decode all fields. Returns the last result of nj__hpack_decode_next(), or TOO_MANY. */
static int read_fields(struct nj_h2 *h, struct nj__h2_head *head)
{
    const struct nj_h2_limits *max = &h->core->limits;
    struct nj_field *to = h->core->fields;
    uint32_t n_bytes = head->n_bytes, n_fields = head->n_fields;
    struct nj__hpack_field f;
    int rv;

    while ((rv = nj__hpack_decode_next(h->hpack_decoder, &f)) > 0) {
        /* RFC 9113 6.5.2: name, value and 32 for each field. */
        n_bytes += f.name.n_bytes + f.value.n_bytes + 32;
        n_fields++;
        if (nj_unlikely(n_bytes > max->header_bytes_max || n_fields > max->header_fields_max)) {
            head->over_limit = true;
            if (is_far_beyond(max, n_bytes, n_fields))
                return TOO_MANY;
        }
        if (nj_unlikely(!take_field(head, &f)))
            head->bad = true;
        if (head->regular_seen && !head->over_limit)
            *to++ = (struct nj_field){f.name, f.value};
    }
    head->n_bytes = n_bytes;
    head->n_fields = n_fields;
    head->req.fields = h->core->fields;
    head->req.n_fields = (uint32_t)(to - h->core->fields);
    return rv;
}

bool nj__h2_head_decode(struct nj_h2 *h, struct nj__h2_head *head, const uint8_t *block, size_t n)
{
    h->core->last_block.h = NULL;
    if (!ensure_decoder(h))
        return false;
    nj__hpack_decode_begin(h->hpack_decoder, block, n);
    int rv = read_fields(h, head);
    if (nj_likely(rv == 0))
        return true;
    if (rv == NJ__HPACK_NO_MEMORY)
        nj__h2_out_of_memory(h);
    else if (rv == TOO_MANY)
        nj_h2_end_for_abuse(h, NJ_H2_ABUSE_HEADER);
    else
        nj__h2_conn_error(h, NJ_H2_COMPRESSION_ERROR);
    return false;
}

/* ---- repeated requests ---- */

/* Consecutive requests are often identical. A block that consists of indexes does not change the
 * dynamic table (RFC 7541 6.1), so an equal block after it decodes to the same head, which is
 * still in the context. */
static bool is_last_block(const struct nj_h2 *h, const uint8_t *block, size_t n)
{
    const struct nj__h2_last_block *last_block = &h->core->last_block;
    return last_block->h == h && last_block->n == n && memcmp(last_block->block, block, n) == 0;
}

/* Only an indexed field of one octet has the first bit set in every octet. */
static void remember_block(struct nj_h2 *h, const uint8_t *block, size_t n)
{
    struct nj__h2_last_block *last_block = &h->core->last_block;
    uint8_t all = 0x80;

    if (n > NJ__H2_LAST_BLOCK_MAX)
        return;
    for (size_t i = 0; i < n; i++)
        all &= last_block->block[i] = block[i];
    last_block->n = (uint32_t)n;
    last_block->h = all ? h : NULL;
}

struct nj__h2_head *nj__h2_head_decode_request(struct nj_h2 *h, const uint8_t *block, size_t n)
{
    struct nj__h2_head *head = &h->core->head;

    if (is_last_block(h, block, n))
        return head;
    memset(head, 0, offsetof(struct nj__h2_head, req.header)); /* header_set says what is valid */
    head->length = NJ__H2_NO_LENGTH;
    head->priority = NJ__H2_PRIORITY_DEFAULT;
    if (!nj__h2_head_decode(h, head, block, n))
        return NULL;
    head->bad |= !is_complete(head);
    if (!head->bad)
        check_refusals(head);
    if (!head->req.authority.p)
        head->req.authority = head->host;
    head->req.content_length = head->length > 0 ? (uint64_t)head->length : 0;
    remember_block(h, block, n);
    return head;
}

void nj__h2_last_block_forget(const struct nj_h2 *h)
{
    if (h->core->last_block.h == h)
        h->core->last_block.h = NULL;
}
