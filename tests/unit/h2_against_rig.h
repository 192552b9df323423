/* SPDX-License-Identifier: BSD-3-Clause */
/* Feeds lib/h2 and a server session of nghttp2 with equal input; for h2_against_nghttp2.c. */
#pragma once

#include "h2_rfc9113_rig.h"

#define STREAMS 64

struct model { /* frames that the client has sent on a stream */
    uint32_t id;
    bool open; /* it may go on */
    bool gone; /* reset, or in error: only ignored frames may follow */
    bool answered;
};

struct pair {
    uint64_t seed;
    uint32_t step;
    struct nj_prng prng;
    struct rfc *ours, *theirs;
    nghttp2_session *session;
    nghttp2_hd_deflater *deflater;
    struct model stream[STREAMS];
    uint32_t n_streams, id_next;
    uint32_t data_left; /* of the connection's first window */
    bool flipped;       /* a header block was broken at random */
    bool wrong;         /* one error per step: which of two is reported is undefined */
    char said[4000];    /* the last steps, for the report */
    size_t n_said;
};

static inline uint32_t below(struct pair *t, uint32_t n)
{
    return nj_prng_below(&t->prng, n);
}

static inline void note(struct pair *t, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (t->n_said < sizeof t->said - 100)
        t->n_said += (size_t)vsnprintf(t->said + t->n_said, 100, format, ap);
    va_end(ap);
}

/* ---- their side ---- */

static inline int their_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
                               size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                               void *user)
{
    struct rfc_stream *st = rfc_stream(((struct pair *)user)->theirs, (uint32_t)f->hd.stream_id);
    const struct nj_str v = {(const char *)value, (uint32_t)n_value};
    if (f->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (n_name == 7 && memcmp(name, ":method", 7) == 0)
        rfc_text(st->method, sizeof st->method, v);
    if (n_name == 7 && memcmp(name, ":scheme", 7) == 0)
        rfc_text(st->scheme, sizeof st->scheme, v);
    if (n_name == 5 && memcmp(name, ":path", 5) == 0)
        rfc_text(st->path, sizeof st->path, v);
    if (n_name == 10 || (n_name == 4 && memcmp(name, "host", 4) == 0 && !st->authority[0]))
        if (name[0] != ':' ? n_name == 4 : memcmp(name, ":authority", 10) == 0)
            rfc_text(st->authority, sizeof st->authority, v);
    return 0;
}

static inline int their_invalid_header(nghttp2_session *s, const nghttp2_frame *f,
                                       const uint8_t *name, size_t n_name, const uint8_t *value,
                                       size_t n_value, uint8_t flags, void *user)
{
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static inline int their_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct pair *t = user;
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
        return 0;
    struct rfc_stream *st = rfc_stream(t->theirs, (uint32_t)f->hd.stream_id);
    bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST) {
        st->shown = true;
        st->ends = end;
    } else {
        st->body_ended |= end;
    }
    return 0;
}

static inline int their_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data,
                             size_t n, void *user)
{
    rfc_stream(((struct pair *)user)->theirs, (uint32_t)id)->n_body += n;
    return 0;
}

static inline int their_close(nghttp2_session *s, int32_t id, uint32_t error, void *user)
{
    rfc_stream(((struct pair *)user)->theirs, (uint32_t)id)->closed = true;
    return 0;
}

static inline void their_session(struct pair *t)
{
    nghttp2_session_callbacks *c;
    nghttp2_option *o;
    nghttp2_session_callbacks_new(&c);
    nghttp2_option_new(&o);
    nghttp2_session_callbacks_set_on_header_callback(c, their_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(c, their_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, their_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, their_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, their_close);
    nghttp2_option_set_max_continuations(o, 1000);
    /* PRIORITY_UPDATE is unknown to nghttp2 here. Version 1.52 keeps a pointer to a stream that
     * such a frame named before it was opened, and writes there after the stream was freed. */
    cr_assert_eq(nghttp2_session_server_new2(&t->session, c, t, o), 0);
    nghttp2_session_callbacks_del(c);
    nghttp2_option_del(o);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 128},
                                               {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
    nghttp2_submit_settings(t->session, 0, settings, 2);
}

static inline ssize_t their_read(nghttp2_session *s, int32_t id, uint8_t *buf, size_t n,
                                 uint32_t *flags, nghttp2_data_source *source, void *user)
{
    /* The pointer itself holds the remaining length. */
    uintptr_t left = (uintptr_t)source->ptr;
    n = n < left ? n : left;
    memset(buf, 0, n);
    source->ptr = (void *)(left - n);
    if (left == n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static inline void their_answer(struct pair *t, uint32_t id, uint64_t n_bytes)
{
    nghttp2_nv nv = {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0};
    nghttp2_data_provider body = {.source.ptr = (void *)(uintptr_t)n_bytes,
                                  .read_callback = their_read};
    nghttp2_submit_response(t->session, (int32_t)id, &nv, 1, n_bytes ? &body : NULL);
}

static inline void their_go(struct pair *t)
{
    struct rfc *o = t->theirs;
    if (!o->over && o->n_in > 0)
        o->over = nghttp2_session_mem_recv(t->session, o->in, o->n_in) != (ssize_t)o->n_in;
    o->n_in = 0;
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(t->session, &p)) > 0)
        rfc_append(&o->out, &o->n_out, &o->room_out, p, (size_t)n);
    rfc_seen(o);
    o->over |= o->n_goaways > 0 && o->goaway_code != 0;
}
