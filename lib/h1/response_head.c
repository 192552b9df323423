/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of response heads (RFC 9112 4, 5), and a cache of encoded heads by stamp. What is cached
 * is the same on all connections: the status line and the fields of the caller, without those that
 * frame the message.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/status_reason.h"

#define STATUS_LINE_MAX 64u

static uint8_t *put_status_line(uint8_t *to, uint16_t status)
{
    const uint8_t digits[] = {(uint8_t)('0' + status / 100), (uint8_t)('0' + status / 10 % 10),
                              (uint8_t)('0' + status % 10), ' '};

    to = nj__h1_put_str(to, NJ_STR("HTTP/1.1 "));
    memcpy(to, digits, sizeof digits);
    to = nj__h1_put_str(to + sizeof digits, nj_status_reason(status));
    return nj__h1_put_str(to, NJ_STR("\r\n"));
}

uint8_t *nj__h1_put_field(uint8_t *to, const struct nj_field *field)
{
    bool begins_word = true;

    for (uint32_t i = 0; i < field->name.n_bytes; i++) {
        char c = field->name.p[i];
        *to++ = (uint8_t)(begins_word && c >= 'a' && c <= 'z' ? c - 0x20 : c);
        begins_word = c == '-';
    }
    to = nj__h1_put_str(to, NJ_STR(": "));
    to = nj__h1_put_str(to, field->value);
    return nj__h1_put_str(to, NJ_STR("\r\n"));
}

/* Is the field to be sent? Not a Content-Length that is malformed, or not the first: the client
 * could take it for another end of the body. */
static bool check_length(const struct nj_field *f, uint64_t *length)
{
    if (nj_likely(!nj_str_eq(f->name, NJ_STR("content-length"))))
        return true;
    return *length == NJ__H1_LENGTH_UNKNOWN && f->value.n_bytes <= 18 &&
           nj_str_parse_u64(f->value, length);
}

static struct nj__h1_cached_head *cached_at(struct nj_h1_context *ctx, uint64_t stamp)
{
    return &ctx->cached[stamp % NJ__H1_CACHED_HEADS];
}

bool nj__h1_put_cached_head(struct nj_h1 *h, uint64_t stamp, uint32_t n_more, uint64_t *length)
{
    const struct nj__h1_cached_head *head = cached_at(h->ctx, stamp);

    if (head->stamp != stamp)
        return false;
    uint8_t *p = nj__h1_out_room(h, NJ__H1_CACHED_HEAD_MAX + n_more);
    if (!p)
        return false;
    memcpy(p, head->bytes, head->n_bytes);
    h->out.n += head->n_bytes;
    *length = head->length;
    return true;
}

static void store_head(struct nj_h1_context *ctx, uint64_t stamp, const uint8_t *p, size_t n,
                       uint64_t length)
{
    struct nj__h1_cached_head *head = cached_at(ctx, stamp);

    if (n > sizeof head->bytes)
        return;
    *head = (struct nj__h1_cached_head){.stamp = stamp, .length = length, .n_bytes = (uint16_t)n};
    memcpy(head->bytes, p, n);
}

bool nj__h1_put_head(struct nj_h1 *h, uint16_t status, const struct nj_field *fields,
                     uint32_t n_fields, uint64_t stamp, uint32_t n_more, uint64_t *length)
{
    uint32_t n_max = STATUS_LINE_MAX;

    if (stamp > 0 && nj__h1_put_cached_head(h, stamp, n_more, length))
        return true;
    for (uint32_t i = 0; i < n_fields; i++)
        n_max += fields[i].name.n_bytes + fields[i].value.n_bytes + 4;
    uint8_t *p = nj__h1_out_room(h, n_max + n_more);
    if (!p)
        return false;
    uint8_t *end = put_status_line(p, status);
    *length = NJ__H1_LENGTH_UNKNOWN;
    for (uint32_t i = 0; i < n_fields; i++)
        if (check_length(&fields[i], length))
            end = nj__h1_put_field(end, &fields[i]);
    NJ_ASSERT((size_t)(end - p) <= n_max);
    if (stamp > 0)
        store_head(h->ctx, stamp, p, (size_t)(end - p), *length);
    h->out.n += (uint32_t)(end - p);
    return true;
}
