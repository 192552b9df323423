/* SPDX-License-Identifier: BSD-3-Clause */
/* The HTTP/2 part of a client (RFC 9113): an nghttp2 session that sends requests and checks every
 * response. */
#include <stdlib.h>

#include "base/assert.h"
#include "conn.h"
#include "sim.h"

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), strlen(n), strlen(v), 0              \
    }

static struct sim_request *request_of(struct sim_conn *c, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(c->h2, stream);
}

static void wrong(struct sim_conn *c, const struct sim_request *r, const char *what)
{
    nj_sim_fail(c->sim,
                "conn %u stream %d %s %s: %s (status %u, length %lu, %lu of %lu bytes came)",
                c->index, r->stream, r->method, r->path, what, r->got_status,
                (unsigned long)r->got_length, (unsigned long)r->got, (unsigned long)r->body_bytes);
}

static bool is_busy(const struct sim_request *r)
{
    return r->may_be_busy && r->got_status == 503;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct sim_request *r = request_of(user, frame->hd.stream_id);

    if (!r)
        return 0;
    if (n_name == 7 && memcmp(name, ":status", 7) == 0)
        r->got_status = (uint16_t)strtoul((const char *)value, NULL, 10);
    if (n_name == 14 && memcmp(name, "content-length", 14) == 0)
        r->got_length = strtoull((const char *)value, NULL, 10);
    if (n_name == 13 && memcmp(name, "last-modified", 13) == 0)
        r->version = nj_sim_version_of((const char *)value, n_value);
    (void)s;
    (void)flags;
    return 0;
}

static void check_head(struct sim_conn *c, struct sim_request *r)
{
    bool busy = is_busy(r);
    static const char busy_text[] = "503 Service Unavailable\n";

    if (++r->n_heads > 1)
        wrong(c, r, "a second response");
    if (busy) { /* the rest checks against this */
        r->text = busy_text;
        r->length = sizeof busy_text - 1;
        r->body_bytes = strcmp(r->method, "HEAD") == 0 ? 0 : r->length;
        r->breaks = r->may_break = false;
    } else if (r->got_status != r->status) {
        wrong(c, r, "status");
    } else if (r->may_break) {
        r->length = r->body_bytes = nj_sim_version_size(&r->file, r->version);
    }
    if (r->got_length != r->length)
        wrong(c, r, "content-length");
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *user)
{
    struct sim_conn *c = user;

    c->heard = true;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        struct sim_request *r = request_of(c, frame->hd.stream_id);
        if (r)
            check_head(c, r);
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        c->last_served = frame->goaway.last_stream_id;
        nj_sim_log(c->sim, "conn %u: GOAWAY, last stream %d", c->index,
                   frame->goaway.last_stream_id);
        c->was_late = nj_sim_mix_delays(&c->sim->mix) &&
                      frame->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM;
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR && !c->was_late)
            nj_sim_fail(c->sim, "conn %u: GOAWAY with error %u", c->index,
                        frame->goaway.error_code);
    }
    (void)s;
    return 0;
}

static int on_sent(nghttp2_session *s, const nghttp2_frame *frame, void *user)
{
    struct sim_request *r = request_of(user, frame->hd.stream_id);

    if (r && frame->hd.type == NGHTTP2_HEADERS)
        r->sent = true;
    (void)s;
    return 0;
}

static void watch_data(struct sim_conn *c, const struct sim_request *r, size_t n)
{
    struct sim_watch *w = c->watch;

    w->n_bytes += n;
    if (r->got == 0 && w->n_first < w->n_room)
        w->first[w->n_first++] = c->sim->now - r->asked_at;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
                   void *user)
{
    struct sim_conn *c = user;
    struct sim_request *r = request_of(c, stream);

    if (!r)
        return 0;
    if (r->got + n > r->body_bytes) {
        wrong(c, r, "body too long");
        return 0;
    }
    bool same = r->text ? memcmp(r->text + r->got, data, n) == 0
                        : nj_sim_file_check(r->file.id, r->version, r->got, data, n) == n;
    if (!same)
        wrong(c, r, "bytes of the body");
    if (c->watch)
        watch_data(c, r, n);
    r->got += n;
    if (r->got > r->reset_after && !r->was_reset) {
        r->was_reset = true;
        nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    }
    (void)flags;
    return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t error, void *user)
{
    struct sim_conn *c = user;
    struct sim_request *r = request_of(c, stream);

    if (!r)
        return 0;
    c->n_done++;
    r->closed = true;
    if (c->watch)
        c->watch->n_done++;
    nj_sim_log(c->sim, "conn %u stream %d: %s %s: status %u, %lu bytes, error %u", c->index, stream,
               r->method, r->path, r->got_status, (unsigned long)r->got, error);
    if (r->was_reset ||
        (error == NGHTTP2_REFUSED_STREAM && (c->sim->draining || nj_sim_mix_delays(&c->sim->mix))))
        return 0;
    if (r->breaks) {
        if (error != NGHTTP2_INTERNAL_ERROR || r->got >= r->body_bytes)
            wrong(c, r, "a file that breaks did not break the stream");
        return 0;
    }
    if (r->may_break && error == NGHTTP2_INTERNAL_ERROR && r->got < r->body_bytes &&
        nj_sim_may_have_broken(c->sim, &r->file, r->asked_at))
        return 0;
    if (error != NGHTTP2_NO_ERROR)
        wrong(c, r, nghttp2_http2_strerror(error));
    else if (r->n_heads != 1 || r->got != r->body_bytes)
        wrong(c, r, "incomplete");
    (void)s;
    return 0;
}

static ssize_t upload(nghttp2_session *s, int32_t stream, uint8_t *buf, size_t n, uint32_t *flags,
                      nghttp2_data_source *source, void *user)
{
    struct sim_request *r = source->ptr;
    uint64_t left = r->upload - r->uploaded;

    n = n < left ? n : (size_t)left;
    memset(buf, 'u', n);
    r->uploaded += n;
    if (r->uploaded == r->upload)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    (void)s;
    (void)stream;
    (void)user;
    return (ssize_t)n;
}

static void ask(struct sim_conn *c, struct sim_request *r)
{
    r->n_heads = 0; /* it may be requested again */
    r->got = r->uploaded = 0;
    r->sent = r->closed = false;
    nghttp2_data_provider body = {.source.ptr = r, .read_callback = upload};
    nghttp2_nv nv[] = {NV(":method", r->method), NV(":scheme", c->tls.on ? "https" : "http"),
                       NV(":authority", "sim"), NV(":path", r->path)};

    r->stream = nghttp2_submit_request(c->h2, NULL, nv, 4, r->upload ? &body : NULL, r);
    NJ_CHECK(r->stream > 0);
    r->asked_at = c->sim->now;
}

/* Keeps the planned number of requests open until GOAWAY. */
static void ask_more(struct sim_conn *c)
{
    while (c->n_begun < c->n_requests && c->n_begun - c->n_done < c->parallel &&
           nghttp2_session_check_request_allowed(c->h2))
        ask(c, &c->req[c->n_begun++ % SIM_REQUESTS_MAX]);
}

static void open_h2(struct sim_conn *c)
{
    nghttp2_session_callbacks *cb;
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->window};

    NJ_CHECK(nghttp2_session_callbacks_new(&cb) == 0);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    NJ_CHECK(nghttp2_session_client_new(&c->h2, cb, c) == 0);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, &window, 1);
    nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0, (int32_t)c->window);
    ask_more(c);
}

static void input(struct sim_conn *c, const uint8_t *data, size_t n_bytes)
{
    ssize_t n = nghttp2_session_mem_recv(c->h2, data, n_bytes);

    if (n != (ssize_t)n_bytes)
        nj_sim_fail(c->sim, "conn %u: nghttp2 says %s", c->index, nghttp2_strerror((int)n));
    ask_more(c);
}

static size_t output(struct sim_conn *c, const uint8_t **data)
{
    ssize_t n = nghttp2_session_mem_send(c->h2, data);

    if (n == 0) { /* a sent reset has ended its stream: others may start */
        ask_more(c);
        n = nghttp2_session_mem_send(c->h2, data);
    }
    NJ_CHECK(n >= 0);
    return (size_t)n;
}

static bool is_done(const struct sim_conn *c)
{
    bool no_more = c->n_begun == c->n_requests || !nghttp2_session_check_request_allowed(c->h2);
    return no_more && c->n_done == c->n_begun;
}

static void bye(struct sim_conn *c)
{
    c->said_bye = true;
    nghttp2_session_terminate_session(c->h2, NGHTTP2_NO_ERROR);
}

static void check_end(struct sim_conn *c)
{
    if (c->n_begun < c->n_requests && !c->sim->draining)
        nj_sim_fail(c->sim, "conn %u ended, %u of %u requests were never sent", c->index,
                    c->n_requests - c->n_begun, c->n_requests);
    if (c->sim->draining && !c->heard)
        return; /* too late */
    for (uint32_t i = 0; i < c->n_begun && i < SIM_REQUESTS_MAX; i++) {
        const struct sim_request *r = &c->req[i];
        bool due = (r->sent || !c->sim->draining) && r->stream <= c->last_served;
        if (due && !r->closed)
            wrong(c, r, "connection ended without an answer");
    }
}

const struct sim_http nj_sim_h2 = {open_h2, input, output, is_done, bye, check_end};
