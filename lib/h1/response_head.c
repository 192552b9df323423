/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of response heads (RFC 9112 4, 5), and a cache of encoded heads by stamp. What is cached
 * is the same on all connections: the status line and the fields of the caller, without those that
 * frame the message.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/compiler.h"

/* RFC 9110 15 */
static struct nj_str reason_of(uint16_t status)
{
    static const struct {
        uint16_t status;
        struct nj_str reason;
    } table[] = {
        {200, NJ_STR_INIT("OK")},
        {201, NJ_STR_INIT("Created")},
        {202, NJ_STR_INIT("Accepted")},
        {203, NJ_STR_INIT("Non-Authoritative Information")},
        {204, NJ_STR_INIT("No Content")},
        {205, NJ_STR_INIT("Reset Content")},
        {206, NJ_STR_INIT("Partial Content")},
        {300, NJ_STR_INIT("Multiple Choices")},
        {301, NJ_STR_INIT("Moved Permanently")},
        {302, NJ_STR_INIT("Found")},
        {303, NJ_STR_INIT("See Other")},
        {304, NJ_STR_INIT("Not Modified")},
        {307, NJ_STR_INIT("Temporary Redirect")},
        {308, NJ_STR_INIT("Permanent Redirect")},
        {400, NJ_STR_INIT("Bad Request")},
        {401, NJ_STR_INIT("Unauthorized")},
        {403, NJ_STR_INIT("Forbidden")},
        {404, NJ_STR_INIT("Not Found")},
        {405, NJ_STR_INIT("Method Not Allowed")},
        {406, NJ_STR_INIT("Not Acceptable")},
        {408, NJ_STR_INIT("Request Timeout")},
        {409, NJ_STR_INIT("Conflict")},
        {410, NJ_STR_INIT("Gone")},
        {411, NJ_STR_INIT("Length Required")},
        {412, NJ_STR_INIT("Precondition Failed")},
        {413, NJ_STR_INIT("Content Too Large")},
        {414, NJ_STR_INIT("URI Too Long")},
        {415, NJ_STR_INIT("Unsupported Media Type")},
        {416, NJ_STR_INIT("Range Not Satisfiable")},
        {417, NJ_STR_INIT("Expectation Failed")},
        {421, NJ_STR_INIT("Misdirected Request")},
        {422, NJ_STR_INIT("Unprocessable Content")},
        {425, NJ_STR_INIT("Too Early")},
        {426, NJ_STR_INIT("Upgrade Required")},
        {428, NJ_STR_INIT("Precondition Required")},
        {429, NJ_STR_INIT("Too Many Requests")},
        {431, NJ_STR_INIT("Request Header Fields Too Large")},
        {451, NJ_STR_INIT("Unavailable For Legal Reasons")},
        {500, NJ_STR_INIT("Internal Server Error")},
        {501, NJ_STR_INIT("Not Implemented")},
        {502, NJ_STR_INIT("Bad Gateway")},
        {503, NJ_STR_INIT("Service Unavailable")},
        {504, NJ_STR_INIT("Gateway Timeout")},
        {505, NJ_STR_INIT("HTTP Version Not Supported")},
        {507, NJ_STR_INIT("Insufficient Storage")},
    };

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(table); i++)
        if (table[i].status == status)
            return table[i].reason;
    return NJ_STR(""); /* it may be empty (RFC 9112 4) */
}

#define STATUS_LINE_MAX 64u

static uint8_t *put_status_line(uint8_t *to, uint16_t status)
{
    const uint8_t digits[] = {(uint8_t)('0' + status / 100), (uint8_t)('0' + status / 10 % 10),
                              (uint8_t)('0' + status % 10), ' '};

    to = nj__h1_put_str(to, NJ_STR("HTTP/1.1 "));
    memcpy(to, digits, sizeof digits);
    to = nj__h1_put_str(to + sizeof digits, reason_of(status));
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
