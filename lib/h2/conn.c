/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of a connection (RFC 9113 3.4), and PING (RFC 9113 6.7). */
#include "h2/h2_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "telem/counters_conn.h"

/* WINDOW_UPDATEs that a client may send before its first request. */
#define WINDOW_CREDIT_AT_OPEN 16u

static void conn_init(struct nj_h2 *h, struct nj_h2_context *core, void *user)
{
    uint32_t window = core->limits.window_bytes;

    h->core = core;
    h->user = user;
    h->window_credit = WINDOW_CREDIT_AT_OPEN;
    h->send_window = h->initial_window = NJ__H2_WINDOW_DEFAULT;
    h->data_max = NJ__H2_PAYLOAD_MAX;
    h->window = window ? window : NJ_H2_CONN_WINDOW_BYTES;
    if (h->window < NJ__H2_WINDOW_DEFAULT) /* the initial window can't be reduced */
        h->window = NJ__H2_WINDOW_DEFAULT;
    h->table = h->inline_table;
    h->table_mask = NJ_ARRAY_LEN(h->inline_table) - 1;
    nj_list_init(&h->streams);
    nj_list_init(&h->half_closed);
    nj_list_init(&h->ready);
    nj_list_init(&h->flushing);
}

static void h2_free(struct nj_h2 *h)
{
    struct nj_alloc *a = h->core->alloc;

    NJ_ASSERT(h->n_open == 0 && h->table == h->inline_table);
    nj__h2_last_block_forget(h);
    nj__h2_buf_free(h, &h->out);
    nj__h2_buf_free(h, &h->partial);
    nj__hpack_decoder_free(h->hpack_decoder);
    nj__hpack_encoder_free(h->hpack_encoder);
    nj_alloc_free(a, h);
}

struct nj_h2 *nj_h2_open(struct nj_h2_context *core, void *user)
{
    if (nj_alloc_would_exceed(core->alloc, 1)) {
        nj_count(core->counters, NJ_C_h2_full);
        return NULL;
    }
    struct nj_h2 *h = nj_alloc_zero(core->alloc, sizeof *h);
    if (!h)
        return NULL;
    conn_init(h, core, user);
    nj__h2_send_settings(h);
    if (h->write_closed) {
        h2_free(h);
        return NULL;
    }
    core->n_conns++;
    return h;
}

void nj_h2_close(struct nj_h2 *h)
{
    struct nj_h2_context *core = h->core;

    NJ_ASSERT(!h->busy);
    /* Calls made by the callbacks below have no effect. */
    nj__h2_record_end(h, NJ__H2_END_CLOSED, NJ_H2_NO_ERROR);
    h->write_closed = true;
    while (!nj_list_empty(&h->streams))
        nj__h2_stream_destroy(nj_container_of(h->streams.next, struct nj_h2_stream, link));
    while (!nj_list_empty(&h->half_closed))
        nj__h2_stream_destroy(nj_container_of(h->half_closed.next, struct nj_h2_stream, link));
    h2_free(h);
    core->n_conns--;
}

uint32_t nj_h2_n_streams(const struct nj_h2 *h)
{
    return h->n_streams;
}

bool nj_h2_is_idle(const struct nj_h2 *h)
{
    return h->n_streams == 0 && h->out.n == 0;
}

void nj_h2_ping(struct nj_h2 *h)
{
    static const uint8_t zeros[NJ__H2_PING_BYTES];

    if (!h->end)
        nj__h2_put_ping(h, zeros);
}

bool nj_h2_is_ping_unanswered(const struct nj_h2 *h)
{
    return h->n_pings > 0;
}

void nj_h2_prefetch(const struct nj_h2 *h)
{
    for (size_t at = 0; at < sizeof *h; at += NJ_CACHE_LINE)
        __builtin_prefetch((const uint8_t *)h + at);
}

void *nj_h2_user(const struct nj_h2 *h)
{
    return h->user;
}
