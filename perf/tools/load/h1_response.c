/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9112 4 to 7: status line, fields, and the length of a body. Contract: h1_response.h. */
#include "h1_response.h"

#include <stdlib.h>
#include <string.h>

#include "base/field_syntax.h"
#include "framing.h"

void h1_response_begin(struct h1_response *r, bool is_head)
{
    *r = (struct h1_response){.is_head = is_head, .line = r->line};
}

void h1_response_free(struct h1_response *r)
{
    free(r->line);
    r->line = NULL;
}

static enum h1_event wrong(struct h1_response *r, const char *what)
{
    r->fault = what;
    return H1_WRONG;
}

/* ---- the head ---- */

/* RFC 9112 4; a server that omits the space before an empty reason is accepted. */
static enum h1_event take_status_line(struct h1_response *r, struct nj_str line)
{
    static const struct nj_str version = NJ_STR_INIT("HTTP/1.");
    uint64_t status;

    if (line.n_bytes < 12 || !nj_str_starts_with(line, version) || line.p[8] != ' ' ||
        line.p[7] < '0' || line.p[7] > '9')
        return wrong(r, "a response without HTTP/1.x: is that an HTTP/1.1 server?");
    if (!nj_str_parse_u64((struct nj_str){line.p + 9, 3}, &status) || status < 100 ||
        (line.n_bytes > 12 && line.p[12] != ' '))
        return wrong(r, "a response without a status");
    if (!nj_syntax_allows((struct nj_str){line.p + 12, line.n_bytes - 12}, NJ_IN_VALUE))
        return wrong(r, "control characters in a status line");
    r->status = (uint16_t)status;
    r->is_1_0 = line.p[7] == '0';
    r->state = H1_FIELD_LINE;
    return H1_MORE;
}

static enum h1_event take_length(struct h1_response *r, struct nj_str value)
{
    uint64_t length;

    if (!nj_str_parse_u64(value, &length) || (r->has_length && length != r->left))
        return wrong(r, "a content-length that is malformed or not the only one");
    r->has_length = true;
    r->left = length;
    return H1_MORE;
}

/* RFC 9110 7.6.1: a list of options. */
static void take_connection(struct h1_response *r, struct nj_str value)
{
    while (value.n_bytes > 0) {
        const char *comma = memchr(value.p, ',', value.n_bytes);
        uint32_t n = comma ? (uint32_t)(comma - value.p) : value.n_bytes;
        struct nj_str option = nj_str_trim((struct nj_str){value.p, n});
        r->close |= nj_str_eq_nocase(option, NJ_STR("close"));
        r->keeps_alive |= nj_str_eq_nocase(option, NJ_STR("keep-alive"));
        nj_str_skip(&value, comma ? n + 1 : n);
    }
}

/* RFC 9112 5: a field of the head or, without effect, of the trailers. */
static enum h1_event take_field(struct h1_response *r, struct nj_str line)
{
    const char *colon = memchr(line.p, ':', line.n_bytes);
    struct nj_str name = {line.p, colon ? (uint32_t)(colon - line.p) : 0};

    if (name.n_bytes == 0 || !nj_syntax_allows(name, NJ_IN_METHOD)) /* both are tokens */
        return wrong(r, "a field without a valid name");
    nj_str_skip(&line, name.n_bytes + 1);
    struct nj_str value = nj_str_trim(line);
    if (!nj_syntax_is_value(value))
        return wrong(r, "control characters in a field");
    if (r->state == H1_TRAILER_LINE)
        return H1_MORE;
    if (nj_str_eq_nocase(name, NJ_STR("content-length")))
        return take_length(r, value);
    if (nj_str_eq_nocase(name, NJ_STR("connection")))
        take_connection(r, value);
    if (!nj_str_eq_nocase(name, NJ_STR("transfer-encoding")))
        return H1_MORE;
    if (r->is_chunked || !nj_str_eq_nocase(value, NJ_STR("chunked")))
        return wrong(r, "a transfer-encoding other than chunked, which nobody asked for");
    r->is_chunked = true;
    return H1_MORE;
}

/* RFC 9112 6.3: how the body ends. */
static enum h1_event end_head(struct h1_response *r)
{
    if (r->status == 101)
        return wrong(r, "101, though nobody asked for another protocol");
    if (r->status < 200) { /* the next head counts as part of this one */
        r->state = H1_STATUS_LINE;
        return H1_MORE;
    }
    if (r->is_chunked && (r->has_length || r->is_1_0))
        return wrong(r, "transfer-encoding with content-length, or in HTTP/1.0");
    r->close |= r->is_1_0 && !r->keeps_alive;
    if (r->is_head || r->status == 204 || r->status == 304)
        r->state = H1_COMPLETE;
    else if (r->is_chunked)
        r->state = H1_CHUNK_SIZE;
    else if (r->has_length)
        r->state = r->left > 0 ? H1_LENGTH : H1_COMPLETE;
    else
        r->state = H1_UNTIL_END;
    r->close |= r->state == H1_UNTIL_END;
    return H1_HEAD;
}

/* ---- chunks (RFC 9112 7.1) ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = nj_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The size, and extensions, which are ignored. */
static enum h1_event take_chunk_size(struct h1_response *r, struct nj_str line)
{
    uint32_t n = 0;

    r->left = 0;
    for (int digit; n < line.n_bytes && (digit = hex_digit(line.p[n])) >= 0; n++) {
        if (r->left >> 60)
            return wrong(r, "a chunk beyond 2^64 bytes");
        r->left = r->left << 4 | (unsigned)digit;
    }
    if (n == 0)
        return wrong(r, "a chunk without a size");
    nj_str_skip(&line, n);
    line = nj_str_trim(line);
    if (line.n_bytes > 0 && (line.p[0] != ';' || !nj_syntax_is_value(line)))
        return wrong(r, "a chunk with a malformed size or extension");
    r->n_head = 0; /* from here on, of the trailers */
    r->state = r->left > 0 ? H1_CHUNK : H1_TRAILER_LINE;
    return H1_MORE;
}

/* ---- lines ---- */

static enum h1_event take_line(struct h1_response *r, struct nj_str line)
{
    switch (r->state) {
    case H1_STATUS_LINE:
        return take_status_line(r, line);
    case H1_FIELD_LINE:
        return line.n_bytes > 0 ? take_field(r, line) : end_head(r);
    case H1_CHUNK_SIZE:
        return take_chunk_size(r, line);
    case H1_CHUNK_END:
        r->state = H1_CHUNK_SIZE;
        return line.n_bytes == 0 ? H1_MORE : wrong(r, "a chunk that is longer than its size");
    case H1_TRAILER_LINE:
        if (line.n_bytes > 0)
            return take_field(r, line);
        r->state = H1_COMPLETE;
        return H1_MORE;
    case H1_LENGTH:
    case H1_UNTIL_END:
    case H1_CHUNK:
    case H1_COMPLETE:
        break; /* these have no lines */
    }
    return H1_MORE;
}

/* Adds a part of a line to the former ones. */
static bool gather(struct h1_response *r, const uint8_t *data, uint32_t n)
{
    if (!r->line)
        r->line = malloc(H1_LINE_BYTES);
    if (!r->line || n > H1_LINE_BYTES - r->n_line)
        return false;
    memcpy(r->line + r->n_line, data, n);
    r->n_line += n;
    return true;
}

/* Consumes a line, or the part of it that has arrived. */
static enum h1_event take_line_part(struct h1_response *r, const uint8_t **data, uint32_t *n_bytes)
{
    const uint8_t *at = *data, *end = memchr(at, '\n', *n_bytes);
    uint32_t n = end ? (uint32_t)(end - at) + 1 : *n_bytes;
    struct nj_str line = {(const char *)at, n};

    *data += n;
    *n_bytes -= n;
    r->n_head += n;
    if (r->n_head > LOAD_HEAD_BYTES)
        return wrong(r, "a head beyond 64 KiB");
    if (!end || r->n_line > 0) {
        if (!gather(r, at, n))
            return wrong(r, "a line beyond 8 KiB, or no memory");
        line = (struct nj_str){r->line, r->n_line};
    }
    if (!end)
        return H1_MORE;
    r->n_line = 0;
    if (line.n_bytes < 2 || line.p[line.n_bytes - 2] != '\r')
        return wrong(r, "a line that does not end with CRLF");
    line.n_bytes -= 2;
    return take_line(r, line);
}

static enum h1_event take_body(struct h1_response *r, const uint8_t **data, uint32_t *n_bytes,
                               uint32_t *n_body)
{
    uint32_t n = *n_bytes;

    if (r->state != H1_UNTIL_END) {
        n = n < r->left ? n : (uint32_t)r->left;
        r->left -= n;
        if (r->left == 0)
            r->state = r->state == H1_CHUNK ? H1_CHUNK_END : H1_COMPLETE;
    }
    *data += n;
    *n_bytes -= n;
    *n_body = n;
    return H1_BODY;
}

enum h1_event h1_response_take(struct h1_response *r, const uint8_t **data, uint32_t *n_bytes,
                               uint32_t *n_body)
{
    enum h1_event event = H1_MORE;

    while (event == H1_MORE && r->state != H1_COMPLETE && *n_bytes > 0) {
        bool is_body = r->state == H1_LENGTH || r->state == H1_UNTIL_END || r->state == H1_CHUNK;
        event = is_body ? take_body(r, data, n_bytes, n_body) : take_line_part(r, data, n_bytes);
    }
    return event == H1_MORE && r->state == H1_COMPLETE ? H1_OVER : event;
}
