/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request and its response: the head is shown to the owner and answered, and the body of the
 * response is pulled frame by frame while the sink has room.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/assert.h"

/* Body pieces below this are copied next to their frame header: cheaper than a reference. */
#define COPY_BELOW_BYTES 512u

/* ---- a request ---- */

static struct nj_str str_of(nghttp2_rcbuf *value)
{
    if (!value)
        return NJ_STR("");
    nghttp2_vec v = nghttp2_rcbuf_get_buf(value);
    return (struct nj_str){(const char *)v.base, (uint32_t)v.len};
}

static struct nj_h2_stream *stream_new(struct nj_h2 *h, int32_t id)
{
    struct nj_h2_stream *st = nj__h2_alloc_zero(&h->core->alloc, sizeof *st);
    if (!st)
        return NULL;
    st->h = h;
    st->id = id;
    st->head_bytes = (uint32_t)h->head.n_bytes;
    st->head_fields = (uint32_t)h->head.n_fields;
    nj_list_push_back(&h->streams, &st->link);
    h->n_streams++;
    nghttp2_session_set_stream_user_data(h->session, id, st);
    return st;
}

/* A request head came in good order. */
static void request(struct nj_h2 *h, const nghttp2_frame *f)
{
    struct nj__h2_head *head = &h->head;
    nj__h2_glitch_request(h);
    struct nj_h2_stream *st = stream_new(h, f->hd.stream_id);
    if (!st) {
        nj__h2_check_memory(h);
        return;
    }
    nj_count(h->core->counters, NJ_C_requests);
    if (head->over) {
        (void)nj_h2_respond(st, 431, NULL, 0, NULL);
        return;
    }
    const struct nj_h2_request req = {
        .method = str_of(head->method),
        .scheme = str_of(head->scheme),
        /* RFC 9113 8.3.1: without :authority the host field stands in. */
        .authority = str_of(head->authority ? head->authority : head->host),
        .path = str_of(head->path),
        .ends = f->hd.flags & NGHTTP2_FLAG_END_STREAM,
    };
    st->announced = true;
    h->core->events->on_request(h->user, st, &req);
}

static int trailers(struct nj_h2 *h, const nghttp2_frame *f)
{
    nj__h2_glitch_refund(h);
    if (!h->head.over)
        return 0;
    nj__h2_stream_reset(h, f->hd.stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
    return nj__h2_glitch(h, NJ__H2_GLITCH_BAD);
}

int nj__h2_on_frame_recv(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct nj_h2 *h = user;
    int rv = 0;
    switch (f->hd.type) {
    case NGHTTP2_HEADERS:
        if (f->headers.cat == NGHTTP2_HCAT_REQUEST)
            request(h, f);
        else
            rv = trailers(h, f);
        nj__h2_head_clear(&h->head);
        break;
    case NGHTTP2_DATA:
        rv = nj__h2_glitch_padding(h, f);
        break;
    default:
        break;
    }
    return h->end ? NGHTTP2_ERR_CALLBACK_FAILURE : rv;
}

/* ---- the end of a stream ---- */

static void body_close(struct nj_h2_stream *st)
{
    struct nj_body *body = st->body;
    st->body = NULL;
    if (body)
        body->ops->close(body);
}

void nj__h2_stream_drop(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;
    nj_list_del(&st->link);
    h->n_streams--;
    body_close(st);
    if (st->announced)
        h->core->events->on_stream_close(h->user, st, st->complete);
    nj__h2_alloc_free(&h->core->alloc, st);
}

void nj__h2_stream_reset(struct nj_h2 *h, int32_t id, uint32_t error)
{
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(h->session, id);
    if (st)
        st->own_fault = true;
    int rv = nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id, error);
    nj__h2_check_memory(h);
    if (rv != 0)
        nj__h2_end(h, NJ__H2_END_MEMORY);
}

void nj__h2_stream_sent(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;
    if (st->complete)
        return;
    st->complete = true;
    body_close(st);
    nj_count(h->core->counters, NJ_C_responses);
    nj__h2_glitch_refund(h);
    /* RFC 9113 8.1: with the whole response out, tell the client to stop sending the request. */
    if (nghttp2_session_get_stream_remote_close(h->session, st->id) == 0)
        nj__h2_stream_reset(h, st->id, NGHTTP2_NO_ERROR);
}

/* ---- the response ---- */

/* Read callback of nghttp2: decide what the next DATA frame carries, without taking it. It goes
 * out within the same call of mem_send, through nj__h2_on_send_data(). */
static ssize_t body_pull(nghttp2_session *s, int32_t id, uint8_t *buf, size_t length,
                         uint32_t *data_flags, nghttp2_data_source *source, void *user)
{
    struct nj_h2_stream *st = source->ptr;
    struct nj_h2 *h = user;
    if (h->end)
        return NGHTTP2_ERR_PAUSE; /* nothing but the GOAWAY goes out any more */
    uint32_t room = h->sink->room(h->sink_ctx);
    if (room < NJ__H2_ROOM_MIN)
        return NGHTTP2_ERR_PAUSE;
    room -= NJ__H2_FRAME_HEAD;
    uint32_t n_max = length < room ? (uint32_t)length : room;
    struct nj_body *body = st->body;
    NJ_ASSERT(body);
    /* Before the peek: whoever wakes us may do so as soon as peek said no. */
    st->deferred = true;
    body->waiter = st;
    int n = body->ops->peek(body, n_max, &h->slice);
    if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    st->deferred = false;
    if (n < 0) {
        st->own_fault = true;
        body_close(st);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM with INTERNAL_ERROR */
    }
    NJ_ASSERT((uint32_t)n <= n_max);
    h->slice.n_bytes = (uint32_t)n;
    uint64_t rest = body->ops->remaining(body);
    NJ_ASSERT(rest >= (uint64_t)n);
    *data_flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (rest == (uint64_t)n)
        *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    h->slice_cut = (size_t)n == length && rest > (uint64_t)n;
    return n;
}

static bool frame_out(struct nj_h2 *h, const uint8_t *framehd, const struct nj_slice *slice)
{
    if (slice->n_bytes >= COPY_BELOW_BYTES) {
        return h->sink->copy(h->sink_ctx, framehd, NJ__H2_FRAME_HEAD) &&
               h->sink->refer(h->sink_ctx, slice);
    }
    uint8_t frame[NJ__H2_FRAME_HEAD + COPY_BELOW_BYTES];
    memcpy(frame, framehd, NJ__H2_FRAME_HEAD);
    memcpy(frame + NJ__H2_FRAME_HEAD, slice->data, slice->n_bytes);
    return h->sink->copy(h->sink_ctx, frame, NJ__H2_FRAME_HEAD + slice->n_bytes);
}

int nj__h2_on_send_data(nghttp2_session *s, nghttp2_frame *f, const uint8_t *framehd, size_t length,
                        nghttp2_data_source *source, void *user)
{
    struct nj_h2_stream *st = source->ptr;
    struct nj_h2 *h = user;
    NJ_ASSERT(length == h->slice.n_bytes && f->data.padlen == 0);
    if (!frame_out(h, framehd, &h->slice)) {
        h->mute = true; /* half a frame may stand in the sink */
        nj__h2_end(h, NJ__H2_END_MEMORY);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    st->body->ops->advance(st->body, (uint32_t)length);
    nj_count_n(h->core->counters, NJ_C_body_bytes, length);
    nj__h2_glitch_data_sent(h, length, h->slice_cut);
    return 0;
}

static void count_status(struct nj_counters *c, uint16_t status)
{
    static const enum nj_counter by_class[] = {NJ_C_status_2xx, NJ_C_status_3xx, NJ_C_status_4xx,
                                               NJ_C_status_5xx};
    nj_count(c, by_class[status / 100 - 2]);
}

static nghttp2_nv pair(const char *name, size_t n_name, const char *value, size_t n_value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, n_name, n_value, NGHTTP2_NV_FLAG_NONE};
}

static int submit(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                  size_t n_fields)
{
    char digits[3] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
                      (char)('0' + status % 10)};
    nghttp2_nv nv[1 + NJ__H2_FIELDS_OUT_MAX];
    nv[0] = pair(":status", 7, digits, sizeof digits);
    for (size_t i = 0; i < n_fields; i++) {
        nv[1 + i] = pair(fields[i].name.p, fields[i].name.n_bytes, fields[i].value.p,
                         fields[i].value.n_bytes);
    }
    nghttp2_data_provider provider = {.source.ptr = st, .read_callback = body_pull};
    return nghttp2_submit_response(st->h->session, st->id, nv, 1 + n_fields,
                                   st->body ? &provider : NULL);
}

int nj_h2_respond(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                  size_t n_fields, struct nj_body *body)
{
    struct nj_h2 *h = st->h;
    NJ_ASSERT(!st->answered && status >= 200 && status <= 599);
    NJ_ASSERT(n_fields <= NJ__H2_FIELDS_OUT_MAX);
    st->answered = true;
    st->body = body;
    if (body && body->ops->remaining(body) == 0)
        body_close(st); /* END_STREAM goes with the head */
    if (h->end) {       /* the session takes no more; the stream ends with the connection */
        body_close(st);
        return -1;
    }
    int rv = submit(st, status, fields, n_fields);
    nj__h2_check_memory(h);
    if (rv != 0) {
        body_close(st);
        if (!h->end)
            nj__h2_stream_reset(h, st->id, NGHTTP2_INTERNAL_ERROR);
        return -1;
    }
    count_status(h->core->counters, status);
    return 0;
}

void nj_h2_resume(struct nj_h2_stream *st)
{
    if (!st->deferred || st->h->end)
        return;
    st->deferred = false;
    int rv = nghttp2_session_resume_data(st->h->session, st->id);
    nj__h2_check_memory(st->h);
    if (rv != 0 && nghttp2_is_fatal(rv))
        nj__h2_end(st->h, NJ__H2_END_MEMORY);
}

struct nj_h2 *nj_h2_of(const struct nj_h2_stream *st)
{
    return st->h;
}

void nj_h2_stream_set_user(struct nj_h2_stream *st, void *user)
{
    st->user = user;
}

void *nj_h2_stream_user(const struct nj_h2_stream *st)
{
    return st->user;
}
