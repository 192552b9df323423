/* SPDX-License-Identifier: BSD-3-Clause */
#include "get.h"

#include <stdbool.h>
#include <string.h>

#define FRAME_HEAD_BYTES 9u

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4, PADDED = 8, PRIORITY = 0x20 };

/* Writes a frame header (RFC 9113 4.1) for a payload of less than 256 bytes. Returns its size. */
static uint32_t frame(uint8_t *out, uint8_t type, uint8_t flags, uint8_t stream, uint32_t n)
{
    const uint8_t head[FRAME_HEAD_BYTES] = {0, 0, (uint8_t)n, type, flags, 0, 0, 0, stream};
    memcpy(out, head, sizeof head);
    return sizeof head;
}

uint32_t get_request(uint8_t out[GET_REQUEST_BYTES], const char *path)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    /* RFC 7541 appendix A: :method GET, :scheme http; :authority and :path as literals. */
    static const uint8_t fields[] = {0x82, 0x86, 0x01, 5, 'b', 'e', 'n', 'c', 'h', 0x04};
    uint32_t n_path = (uint32_t)strnlen(path, GET_PATH_MAX), n = sizeof preface - 1;

    memcpy(out, preface, n);
    n += frame(out + n, 4, 0, 0, 0);
    n += frame(out + n, HEADERS, END_STREAM | END_HEADERS, 1, sizeof fields + 1 + n_path);
    memcpy(out + n, fields, sizeof fields);
    n += sizeof fields;
    out[n++] = (uint8_t)n_path;
    memcpy(out + n, path, n_path);
    return n + n_path;
}

/* Whether the first field is ":status: 200" of the static table (RFC 7541 appendix A). */
static bool is_200(const uint8_t *payload, uint32_t n, uint8_t flags)
{
    return n > 0 && payload[0] == 0x88 && !(flags & (PADDED | PRIORITY));
}

enum get_result get_check_response(const uint8_t *data, uint32_t n, const uint8_t *body,
                                   uint32_t n_body)
{
    uint32_t at = 0, n_got = 0;
    bool ok = false;

    while (n - at >= FRAME_HEAD_BYTES) {
        const uint8_t *f = data + at, *payload = f + FRAME_HEAD_BYTES;
        uint32_t len = (uint32_t)f[0] << 16 | (uint32_t)f[1] << 8 | f[2];
        uint8_t type = f[3], flags = f[4];
        if (n - at - FRAME_HEAD_BYTES < len)
            return GET_MORE;
        at += FRAME_HEAD_BYTES + len;
        if (type == RST_STREAM || type == GOAWAY)
            return GET_WRONG;
        if (type == HEADERS)
            ok = is_200(payload, len, flags);
        if (type == DATA) {
            if (!ok || (flags & PADDED) || len > n_body - n_got ||
                memcmp(payload, body + n_got, len) != 0)
                return GET_WRONG;
            n_got += len;
        }
        if ((type == HEADERS || type == DATA) && (flags & END_STREAM))
            return ok && n_got == n_body ? GET_OK : GET_WRONG;
    }
    return GET_MORE;
}
