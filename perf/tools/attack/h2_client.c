/* SPDX-License-Identifier: BSD-3-Clause */
#include "h2_client.h"

#include <string.h>

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7, WINDOW_UPDATE = 8 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4, PADDED = 8, PRIORITY = 0x20 };
#define STATUS_200 0x88u /* RFC 7541 appendix A */

/* Writes a frame header (RFC 9113 4.1) for a payload of less than 256 bytes. */
static uint32_t frame(uint8_t *out, uint8_t type, uint8_t flags, uint32_t stream, uint32_t n)
{
    const uint8_t head[H2_HEAD_BYTES] = {0,
                                         0,
                                         (uint8_t)n,
                                         type,
                                         flags,
                                         (uint8_t)(stream >> 24),
                                         (uint8_t)(stream >> 16),
                                         (uint8_t)(stream >> 8),
                                         (uint8_t)stream};
    memcpy(out, head, sizeof head);
    return sizeof head;
}

uint32_t h2_begin(struct h2_client *c, uint8_t out[H2_MESSAGE_BYTES])
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    /* With the initial 65,535 this is 2^31 - 1 (RFC 9113 6.9.1). */
    static const uint8_t increment[] = {0x7f, 0xff, 0x00, 0x00};
    uint32_t n = sizeof preface - 1;

    *c = (struct h2_client){0};
    memcpy(out, preface, n);
    n += frame(out + n, SETTINGS, 0, 0, 0);
    n += frame(out + n, WINDOW_UPDATE, 0, 0, sizeof increment);
    memcpy(out + n, increment, sizeof increment);
    return n + sizeof increment;
}

static nj_ns *slot(struct h2_client *c, uint32_t number)
{
    return &c->sent_at[number & (H2_OPEN_MAX - 1)];
}

bool h2_may_ask(const struct h2_client *c)
{
    return c->sent_at[c->n_asked & (H2_OPEN_MAX - 1)] == 0 && c->n_asked < 1u << 29;
}

/* The first request adds :authority and :path to the dynamic table; later ones name the entries,
 * as clients do (RFC 7541 6.1, 6.2.1). */
uint32_t h2_ask(struct h2_client *c, uint8_t out[H2_MESSAGE_BYTES], const char *path, nj_ns now)
{
    static const uint8_t again[] = {0x82, 0x86, 0xbf, 0xbe};
    uint8_t first[H2_MESSAGE_BYTES] = {0x82, 0x86, 0x41, 5, 'b', 'e', 'n', 'c', 'h', 0x44};
    uint32_t n_path = (uint32_t)strnlen(path, H2_PATH_BYTES_MAX), n_first = 10;

    first[n_first++] = (uint8_t)n_path;
    memcpy(first + n_first, path, n_path);
    n_first += n_path;
    const uint8_t *block = c->n_asked ? again : first;
    uint32_t n_block = c->n_asked ? sizeof again : n_first;
    uint32_t n = frame(out, HEADERS, END_STREAM | END_HEADERS, 2 * c->n_asked + 1, n_block);
    memcpy(out + n, block, n_block);
    *slot(c, c->n_asked++) = now;
    c->n_open++;
    return n + n_block;
}

uint32_t h2_owed(struct h2_client *c, uint8_t out[H2_MESSAGE_BYTES])
{
    if (!c->owes_settings_ack)
        return 0;
    c->owes_settings_ack = false;
    return frame(out, SETTINGS, ACK, 0, 0);
}

static void stream_ended(struct h2_client *c, h2_answered *answered, void *ctx)
{
    uint32_t stream = ((uint32_t)c->head[5] & 0x7f) << 24 | (uint32_t)c->head[6] << 16 |
                      (uint32_t)c->head[7] << 8 | c->head[8];
    nj_ns *sent_at = slot(c, stream / 2);

    if (*sent_at == 0)
        return;
    c->n_open--;
    answered(ctx, *sent_at);
    *sent_at = 0;
}

static void frame_ended(struct h2_client *c, h2_answered *answered, void *ctx)
{
    uint8_t type = c->head[3], flags = c->head[4];

    c->n_head = 0;
    if (type == SETTINGS && !(flags & ACK))
        c->owes_settings_ack = true;
    if ((type == HEADERS || type == DATA) && (flags & END_STREAM))
        stream_ended(c, answered, ctx);
}

/* A whole frame header. False: a frame that ends the stream or the connection. */
static bool frame_begins(struct h2_client *c)
{
    uint8_t type = c->head[3], flags = c->head[4];

    c->n_left = (uint32_t)c->head[0] << 16 | (uint32_t)c->head[1] << 8 | c->head[2];
    c->may_have_status = type == HEADERS;
    return type != RST_STREAM && type != GOAWAY &&
           !(type == HEADERS && (flags & (PADDED | PRIORITY)));
}

bool h2_input(struct h2_client *c, const uint8_t *data, uint32_t n, h2_answered *answered,
              void *ctx)
{
    for (uint32_t at = 0; at < n;) {
        if (c->n_head < H2_HEAD_BYTES) {
            c->head[c->n_head++] = data[at++];
            if (c->n_head < H2_HEAD_BYTES)
                continue;
            if (!frame_begins(c))
                return false;
        } else {
            uint32_t part = n - at < c->n_left ? n - at : c->n_left;
            if (c->may_have_status && data[at] != STATUS_200)
                return false;
            c->may_have_status = false;
            c->n_left -= part;
            at += part;
        }
        if (c->n_left == 0)
            frame_ended(c, answered, ctx);
    }
    return true;
}
