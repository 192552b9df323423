/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of response heads (RFC 9112 4, 5), and a cache of encoded heads by stamp. What is cached
 * is the same on all connections: the status line and the fields of the caller, without those that
 * frame the message.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/field_line.h"
#include "base/status_reason.h"

/* Is the field to be sent? Not a Content-Length that is malformed, or not the first: the client
 * could take it for another end of the body. */
static bool check_length(const struct nj_field *f, uint64_t *length)
{
    if (nj_likely(!nj_str_eq(f->name, NJ_STR("content-length"))))
        return true;
    return *length == NJ_BODY_LEN_UNKNOWN && f->value.n_bytes <= 18 &&
           nj_str_parse_u64(f->value, length);
}

bool nj__h1_put_cached_head(struct nj_h1 *h, uint64_t stamp, uint32_t n_more, uint64_t *length)
{
    const struct nj__h1_cached_head *head = &h->ctx->cached[stamp % NJ__H1_CACHED_HEADS];

    if (head->stamp != stamp || !nj__h1_out_room(h, NJ__H1_CACHED_HEAD_MAX + n_more))
        return false;
    *length = head->length;
    return nj__h1_out_append(h, head->bytes, head->n_bytes);
}

bool nj__h1_put_head(struct nj_h1 *h, uint16_t status, const struct nj_field *fields,
                     uint32_t n_fields, uint64_t stamp, uint32_t n_more, uint64_t *length)
{
    struct nj__h1_cached_head *cached = &h->ctx->cached[stamp % NJ__H1_CACHED_HEADS];
    uint32_t n_max = 64 /* the status line */, n;
    char digits[NJ_U64_DIGITS_MAX];

    for (uint32_t i = 0; i < n_fields; i++)
        n_max += nj_field_line_bytes(&fields[i]);
    uint8_t *p = nj__h1_out_room(h, n_max + n_more);
    if (!p)
        return false;
    uint8_t *end = nj_str_put(p, NJ_STR("HTTP/1.1 "));
    end = nj_str_put(end, nj_str_of_u64(digits, status));
    end = nj_str_put(end, NJ_STR(" "));
    end = nj_str_put(end, nj_status_reason(status));
    end = nj_str_put(end, NJ_STR("\r\n"));
    *length = NJ_BODY_LEN_UNKNOWN;
    for (uint32_t i = 0; i < n_fields; i++)
        if (check_length(&fields[i], length))
            end = nj_field_line_put(end, &fields[i]);
    n = (uint32_t)(end - p);
    NJ_ASSERT(n <= n_max);
    h->out.n += n;
    if (stamp > 0 && n <= sizeof cached->bytes) {
        memcpy(cached->bytes, p, n);
        cached->n_bytes = (uint16_t)n;
        cached->length = *length;
        cached->stamp = stamp;
    }
    return true;
}
