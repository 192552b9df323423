/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fields of a header block: what is kept of them, the limits they are held to, and what makes a
 * request malformed (RFC 9113 8.1.1, 8.2, 8.3).
 *
 * Nothing is copied: what is kept points into the decoder, until the connection's next block.
 */
#include "h2/h2_internal.h"

#include <string.h>
#include <strings.h>

#include "base/attr.h"

/* A set of ASCII octets. */
struct octets {
    uint64_t low, high;
};

/* RFC 9110 5.6.2, token */
static const struct octets of_method = {0x03ff6cfa00000000, 0x57ffffffc7fffffe};
/* RFC 3986 3.1 */
static const struct octets of_scheme = {0x03ff680000000000, 0x07fffffe07fffffe};
/* RFC 3986 3.2: letters, digits and !$%&'()*+,-.:;=@[]_~ */
static const struct octets of_authority = {0x2fff7ff200000000, 0x47fffffeafffffff};

static bool consists_of(struct nj_str s, struct octets set)
{
    for (uint32_t i = 0; i < s.n_bytes; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c >= 128 || !((c < 64 ? set.low : set.high) >> c % 64 & 1))
            return false;
    }
    return true;
}

/* No blanks and no controls; the rest is for who maps it to something. */
static bool is_path(struct nj_str s)
{
    for (uint32_t i = 0; i < s.n_bytes; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c <= ' ' || c == 0x7f)
            return false;
    }
    return true;
}

/* Of pseudo fields and host, which come once and not empty. */
static bool take(struct nj_str *slot, struct nj_str value)
{
    if (slot->p || value.n_bytes == 0)
        return false;
    *slot = value;
    return true;
}

/* RFC 9110 8.6 */
static bool take_length(struct nj__h2_head *head, struct nj_str value)
{
    int64_t sum = 0;

    if (head->trailers)
        return true; /* it says nothing there */
    if (head->length != NJ__H2_NO_LENGTH || value.n_bytes == 0 || value.n_bytes > 18)
        return false;
    for (uint32_t i = 0; i < value.n_bytes; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return false;
        sum = sum * 10 + (value.p[i] - '0');
    }
    head->length = sum;
    return true;
}

static bool is_pseudo(uint8_t token)
{
    return token >= NJ__TOKEN_METHOD && token <= NJ__TOKEN_PSEUDO_OTHER;
}

/* RFC 9113 8.2.2: it may say that trailers are welcome, and nothing else. */
static bool is_te(struct nj_str value)
{
    return value.n_bytes == 8 && strncasecmp(value.p, "trailers", 8) == 0;
}

/* False: it makes the message malformed. */
static bool take_field(struct nj__h2_head *head, const struct nj__hpack_field *f)
{
    if (f->malformed || f->name.n_bytes == 0)
        return false;
    if (!is_pseudo(f->token))
        head->regular = true;
    else if (head->trailers || head->regular) /* RFC 9113 8.3, 8.1 */
        return false;
    switch ((enum nj__token)f->token) {
    case NJ__TOKEN_OTHER:
        return true;
    case NJ__TOKEN_METHOD:
        return consists_of(f->value, of_method) && take(&head->method, f->value);
    case NJ__TOKEN_SCHEME:
        return consists_of(f->value, of_scheme) && take(&head->scheme, f->value);
    case NJ__TOKEN_AUTHORITY:
        return consists_of(f->value, of_authority) && take(&head->authority, f->value);
    case NJ__TOKEN_PATH:
        return is_path(f->value) && take(&head->path, f->value);
    case NJ__TOKEN_HOST:
        return consists_of(f->value, of_authority) && take(&head->host, f->value);
    case NJ__TOKEN_CONTENT_LENGTH:
        return take_length(head, f->value);
    case NJ__TOKEN_TE:
        return is_te(f->value);
    case NJ__TOKEN_PRIORITY:
        head->priority = nj__h2_priority_of(f->value, head->priority);
        return true;
    case NJ__TOKEN_STATUS:
    case NJ__TOKEN_PSEUDO_OTHER:
    case NJ__TOKEN_OF_CONNECTION:
        break;
    }
    return false;
}

bool nj__h2_head_complete(struct nj__h2_head *head)
{
    if (head->bad || !head->method.p)
        return false;
    if (nj_str_eq(head->method, NJ_STR("CONNECT"))) { /* RFC 9113 8.5 */
        head->length = NJ__H2_NO_LENGTH;
        return head->authority.p && !head->scheme.p && !head->path.p;
    }
    if (!head->scheme.p || !head->path.p || (!head->authority.p && !head->host.p))
        return false;
    if (head->path.p[0] == '/')
        return true;
    if (!nj_str_eq(head->scheme, NJ_STR("http")) && !nj_str_eq(head->scheme, NJ_STR("https")))
        return true;
    return nj_str_eq(head->path, NJ_STR("*")) && nj_str_eq(head->method, NJ_STR("OPTIONS"));
}

/* RFC 9113 6.5.2: name, value and 32 for each field. False: far too much, which is an end. */
static bool count(struct nj_h2 *h, struct nj__h2_head *head, const struct nj__hpack_field *f)
{
    const struct nj_h2_limits *max = &h->core->limits;

    head->n_fields++;
    head->n_bytes += f->name.n_bytes + f->value.n_bytes + 32;
    if (nj_likely(head->n_bytes <= max->header_bytes_max &&
                  head->n_fields <= max->header_fields_max))
        return true;
    head->over = true;
    if (head->n_bytes <= (uint64_t)max->header_bytes_max * NJ__H2_HEADER_HARD &&
        head->n_fields <= (uint64_t)max->header_fields_max * NJ__H2_HEADER_HARD)
        return true;
    nj_h2_calm(h);
    return false;
}

static bool decoder(struct nj_h2 *h)
{
    if (nj_unlikely(!h->hpack_in))
        h->hpack_in = nj__hpack_in_new(h->core->hpack);
    if (!h->hpack_in)
        nj__h2_no_memory(h);
    return h->hpack_in != NULL;
}

bool nj__h2_head_read(struct nj_h2 *h, struct nj__h2_head *head, const uint8_t *block, size_t n)
{
    struct nj_field *kept = h->core->limits.keep_fields ? h->core->fields : NULL;
    struct nj__hpack_field f;
    int rv;

    if (!decoder(h))
        return false;
    nj__hpack_block(h->hpack_in, block, n);
    while ((rv = nj__hpack_next(h->hpack_in, &f)) > 0) {
        if (!count(h, head, &f))
            return false;
        if (nj_unlikely(!take_field(head, &f)))
            head->bad = true;
        if (kept && !head->over && !head->bad && !is_pseudo(f.token))
            kept[head->n_kept++] = (struct nj_field){f.name, f.value};
    }
    if (rv == -2)
        nj__h2_no_memory(h);
    else if (rv < 0)
        nj__h2_broken(h, NJ__H2_COMPRESSION_ERROR);
    return rv == 0;
}
