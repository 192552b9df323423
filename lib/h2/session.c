/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection: bytes in, bytes out, and how it ends.
 *
 * An end is first remembered (h->end), by whoever finds the reason and wherever in nghttp2's
 * callbacks that is; input and output turn it into a GOAWAY once nghttp2 has returned, because
 * ending a session from inside a callback is what its bugs of the past were about.
 */
#include "h2/h2_internal.h"

#include "base/assert.h"
#include "base/limits.h"

/* WINDOW_UPDATEs a client may send before it asks for anything. */
#define WINDOW_CREDIT_AT_OPEN 16u

/* Our SETTINGS, and the windows of request bodies; also where nobody reads them: clients are known
 * that stop for ever when the response comes while their window is closed (curl 7.88). */
static int submit_settings(struct nj_h2 *h)
{
    const struct nj_h2_limits *max = &h->core->limits;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max->concurrent_streams_max},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, max->header_bytes_max},
        /* RFC 9218 2.1: no dependency tree, and nothing kept of closed streams. */
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, NJ_H2_STREAM_WINDOW_BYTES},
    };
    int rv = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
                                     sizeof settings / sizeof settings[0]);
    if (rv != 0)
        return rv;
    uint32_t window = max->window_bytes ? max->window_bytes : NJ_H2_CONN_WINDOW_BYTES;
    return nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, (int32_t)window);
}

/* The session of a new connection. False when memory ran out. */
static bool session_new(struct nj_h2 *h)
{
    struct nj_h2_core *core = h->core;
    if (nghttp2_session_server_new3(&h->session, core->callbacks, h, core->option, &core->mem) != 0)
        return false;
    if (submit_settings(h) == 0)
        return true;
    nghttp2_session_del(h->session);
    return false;
}

/* Once nobody is left who could hold stale pointers, held memory may be used again. */
static void forget_failures(struct nj_h2_core *core)
{
    if (core->alloc.hold && core->n_starved == 0) {
        core->alloc.failed = false;
        nj__h2_alloc_release(&core->alloc);
    }
}

struct nj_h2 *nj_h2_open(struct nj_h2_core *core, void *user)
{
    bool full = core->alloc.bytes_used >= core->limits.bytes_max;
    struct nj_h2 *h = full ? NULL : nj__h2_alloc_zero(&core->alloc, sizeof *h);
    if (h) {
        h->core = core;
        h->user = user;
        h->window_credit = WINDOW_CREDIT_AT_OPEN;
        h->walk_skip = NGHTTP2_CLIENT_MAGIC_LEN;
        h->head.alloc = &core->alloc;
        nj_list_init(&h->streams);
        nj_list_init(&h->late);
        if (session_new(h)) {
            core->n_conns++;
            return h;
        }
    }
    nj__h2_alloc_free(&core->alloc, h);
    core->alloc.failed = false;
    forget_failures(core);
    return NULL;
}

void nj_h2_close(struct nj_h2 *h)
{
    struct nj_h2_core *core = h->core;
    NJ_ASSERT(!h->busy);
    nj__h2_end(h, NJ__H2_END_CLOSED); /* what the events below call has no effect any more */
    while (!nj_list_empty(&h->streams))
        nj__h2_stream_drop(nj_container_of(h->streams.next, struct nj_h2_stream, link));
    while (!nj_list_empty(&h->late))
        nj__h2_stream_drop(nj_container_of(h->late.next, struct nj_h2_stream, link));
    nj__h2_head_clear(&h->head);
    nghttp2_session_del(h->session);
    if (h->starved)
        core->n_starved--;
    nj__h2_alloc_free(&core->alloc, h);
    core->n_conns--;
    forget_failures(core);
}

void nj__h2_check_memory(struct nj_h2 *h)
{
    struct nj_h2_core *core = h->core;
    if (nj_likely(!core->alloc.failed))
        return;
    core->alloc.failed = false;
    h->mute = true;
    if (!h->starved) {
        h->starved = true;
        core->n_starved++;
    }
    nj__h2_end(h, NJ__H2_END_MEMORY);
}

void nj__h2_end(struct nj_h2 *h, enum nj__h2_end why)
{
    if (h->end)
        return;
    h->end = why;
    if (why == NJ__H2_END_PROTOCOL)
        nj_count(h->core->counters, NJ_C_h2_error);
    else if (why == NJ__H2_END_ABUSE)
        nj_count(h->core->counters, NJ_C_h2_abuse);
    else if (why == NJ__H2_END_MEMORY)
        h->mute = true; /* nghttp2 promises nothing about a session that ran out of memory */
}

/* Outside of nghttp2: queue the GOAWAY of an end that came up inside. */
static int settle(struct nj_h2 *h)
{
    if (!h->end)
        return 0;
    if (!h->told) {
        h->told = true;
        uint32_t code =
            h->end == NJ__H2_END_ABUSE ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR;
        if (!h->mute && nghttp2_session_terminate_session(h->session, code) != 0)
            h->mute = true;
        nj__h2_check_memory(h);
    }
    return -1;
}

static enum nj__h2_end why_failed(ssize_t error)
{
    switch (error) {
    case NGHTTP2_ERR_FLOODED: /* acknowledgments pile up and the peer does not read them */
    case NGHTTP2_ERR_TOO_MANY_SETTINGS:
        return NJ__H2_END_ABUSE;
    case NGHTTP2_ERR_NOMEM:
    case NGHTTP2_ERR_CALLBACK_FAILURE: /* ours set a reason of their own */
        return NJ__H2_END_MEMORY;
    default:
        return NJ__H2_END_PROTOCOL;
    }
}

int nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    NJ_ASSERT(!h->busy);
    if (!h->end && n_bytes > 0 && nj__h2_glitch_walk(h, data, n_bytes) == 0) {
        h->busy = true;
        ssize_t n = nghttp2_session_mem_recv(h->session, data, n_bytes);
        h->busy = false;
        nj__h2_check_memory(h);
        if (n < 0)
            nj__h2_end(h, why_failed(n));
        nj__h2_glitch_ignored(h);
    }
    return settle(h);
}

/* One block of nghttp2's, and the DATA frames before it, which go to the sink by themselves. False
 * when nothing is left. */
static bool output_step(struct nj_h2 *h)
{
    const uint8_t *block;
    ssize_t n = nghttp2_session_mem_send(h->session, &block);
    nj__h2_check_memory(h);
    if (n == 0)
        return false;
    if (n > 0 && h->sink->copy(h->sink_ctx, block, (uint32_t)n))
        return true;
    nj__h2_end(h, NJ__H2_END_MEMORY);
    h->mute = true;
    return false;
}

int nj_h2_output(struct nj_h2 *h, const struct nj_h2_sink *sink, void *sink_ctx)
{
    NJ_ASSERT(!h->busy);
    h->busy = true;
    h->sink = sink;
    h->sink_ctx = sink_ctx;
    /* At an end only control frames go out, and what is queued of them is bounded. */
    while (!h->mute && (h->end || sink->room(sink_ctx) >= NJ__H2_ROOM_MIN)) {
        if (!output_step(h))
            break;
    }
    h->sink = NULL;
    h->busy = false;
    return settle(h);
}

static void reset_sent(struct nj_h2 *h, const nghttp2_frame *f)
{
    nj_count(h->core->counters, NJ_C_h2_reset_out);
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(h->session, f->hd.stream_id);
    uint32_t error = f->rst_stream.error_code;
    if ((st && st->own_fault) || error == NGHTTP2_NO_ERROR || error == NGHTTP2_CANCEL ||
        error == NGHTTP2_REFUSED_STREAM)
        return;
    /* The peer made us reset it (CVE-2025-8671). Errors seen in a frame were charged as it came;
     * this is for those that nghttp2 tells nobody about. */
    (void)nj__h2_glitch(h, NJ__H2_GLITCH);
}

int nj__h2_on_frame_send(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct nj_h2 *h = user;
    struct nj_h2_stream *st;
    switch (f->hd.type) {
    case NGHTTP2_DATA:
    case NGHTTP2_HEADERS:
        st = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
        if (st && f->hd.flags & NGHTTP2_FLAG_END_STREAM)
            nj__h2_stream_sent(st);
        break;
    case NGHTTP2_RST_STREAM:
        reset_sent(h, f);
        break;
    case NGHTTP2_GOAWAY: /* nghttp2 found an error by itself */
        if (f->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM)
            nj__h2_end(h, NJ__H2_END_ABUSE);
        else if (f->goaway.error_code != NGHTTP2_NO_ERROR)
            nj__h2_end(h, NJ__H2_END_PROTOCOL);
        break;
    default:
        break;
    }
    return 0;
}

/* A response head that could not be sent (too big, say) would leave its stream open for ever. */
int nj__h2_on_frame_not_send(nghttp2_session *s, const nghttp2_frame *f, int error, void *user)
{
    if (f->hd.type == NGHTTP2_HEADERS && error != NGHTTP2_ERR_STREAM_CLOSED &&
        error != NGHTTP2_ERR_STREAM_CLOSING &&
        nghttp2_session_get_stream_user_data(s, f->hd.stream_id))
        nj__h2_stream_reset(user, f->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
    return 0;
}

/* Never fails: nghttp2 1.52 leaks when this does (CVE-2023-35945). */
int nj__h2_on_stream_close(nghttp2_session *s, int32_t id, uint32_t error, void *user)
{
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(s, id);
    if (st)
        nj__h2_stream_drop(st);
    return 0;
}

bool nj_h2_finished(const struct nj_h2 *h)
{
    return h->mute ||
           (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session));
}

uint32_t nj_h2_streams(const struct nj_h2 *h)
{
    return h->n_streams;
}

void nj_h2_goaway(struct nj_h2 *h)
{
    if (h->end || h->goaways == 2)
        return;
    int rv;
    if (h->goaways++ == 0) {
        rv = nghttp2_submit_shutdown_notice(h->session);
    } else {
        nj__h2_late_stop(h);
        rv = nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
                                   nghttp2_session_get_last_proc_stream_id(h->session),
                                   NGHTTP2_NO_ERROR, NULL, 0);
    }
    nj__h2_check_memory(h);
    if (rv != 0)
        nj__h2_end(h, NJ__H2_END_MEMORY);
}

void nj_h2_ping(struct nj_h2 *h)
{
    if (h->end)
        return;
    int rv = nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
    nj__h2_check_memory(h);
    if (rv != 0)
        nj__h2_end(h, NJ__H2_END_MEMORY);
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
