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
    st->got_end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    nj_count(h->core->counters, NJ_C_requests);
    if (head->over) {
        (void)nj_h2_respond(st, 431, NULL, 0, NULL);
        if (h->core->events->on_refused)
            h->core->events->on_refused(h->user, (uint32_t)f->hd.stream_id, 431);
        return;
    }
    struct nj_h2_request req;
    nj__h2_head_show(head, st->got_end, &req);
    st->announced = true;
    h->core->events->on_request(h->user, st, &req);
}

/* Trailers of a request are checked and counted, and shown to nobody. */
static int trailers_came(struct nj_h2 *h, const nghttp2_frame *f)
{
    nj__h2_glitch_refund(h);
    if (!h->head.over) {
        nj__h2_body_end(h, f);
        return 0;
    }
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
            rv = trailers_came(h, f);
        nj__h2_head_clear(&h->head);
        break;
    case NGHTTP2_DATA:
        rv = nj__h2_glitch_data_came(h, f);
        nj__h2_body_end(h, f);
        nj__h2_late_came(h, f);
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

void nj__h2_stream_leave(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;
    bool announced = st->announced;

    nj_list_del(&st->link);
    h->n_streams--;
    body_close(st);
    st->announced = false;
    if (announced)
        h->core->events->on_stream_close(h->user, st, st->complete);
    nj__h2_body_give_back(h, st->n_held);
    st->n_held = 0;
}

void nj__h2_stream_drop(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->reset = true; /* whatever the calls below want to send on it, it is too late */
    if (st->late) {
        nj_list_del(&st->link);
        h->n_late--;
    } else {
        nj__h2_stream_leave(st);
    }
    nj__h2_alloc_free(&h->core->alloc, st->trailers);
    nj__h2_alloc_free(&h->core->alloc, st);
}

void nj__h2_stream_reset(struct nj_h2 *h, int32_t id, uint32_t error)
{
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(h->session, id);
    if (st)
        st->own_fault = st->reset = true;
    int rv = nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id, error);
    nj__h2_check_memory(h);
    if (rv != 0)
        nj__h2_end(h, NJ__H2_END_MEMORY);
}

void nj_h2_reset(struct nj_h2_stream *st, uint32_t error)
{
    if (!st->h->end && !st->reset)
        nj__h2_stream_reset(st->h, st->id, error);
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
    if (nghttp2_session_get_stream_remote_close(h->session, st->id) == 0)
        nj__h2_late_begin(st);
}

/* ---- the response ---- */

/* Trailer fields that wait for the end of the body; the strings follow the table. */
struct nj__h2_trailers {
    size_t n_fields;
    nghttp2_nv nv[];
};

static nghttp2_nv pair(const char *name, size_t n_name, const char *value, size_t n_value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, n_name, n_value, NGHTTP2_NV_FLAG_NONE};
}

static uint8_t *copy_str(uint8_t *at, struct nj_str s)
{
    if (s.n_bytes > 0)
        memcpy(at, s.p, s.n_bytes);
    return at + s.n_bytes;
}

static struct nj__h2_trailers *trailers_new(struct nj__h2_alloc *a, const struct nj_field *fields,
                                            size_t n_fields)
{
    size_t n_bytes = sizeof(struct nj__h2_trailers) + n_fields * sizeof(nghttp2_nv);
    for (size_t i = 0; i < n_fields; i++)
        n_bytes += (size_t)fields[i].name.n_bytes + fields[i].value.n_bytes;
    struct nj__h2_trailers *t = nj__h2_alloc(a, n_bytes);
    if (!t)
        return NULL;
    t->n_fields = n_fields;
    uint8_t *at = (uint8_t *)&t->nv[n_fields];
    for (size_t i = 0; i < n_fields; i++) {
        const struct nj_field *f = &fields[i];
        t->nv[i] =
            pair((char *)at, f->name.n_bytes, (char *)at + f->name.n_bytes, f->value.n_bytes);
        at = copy_str(copy_str(at, f->name), f->value);
    }
    return t;
}

int nj_h2_trailers(struct nj_h2_stream *st, const struct nj_field *fields, size_t n_fields)
{
    struct nj_h2 *h = st->h;
    NJ_ASSERT(!st->trailers && n_fields <= NJ__H2_FIELDS_OUT_MAX);
    if (h->end || st->end_shown)
        return -1;
    st->trailers = trailers_new(&h->core->alloc, fields, n_fields);
    nj__h2_check_memory(h);
    return st->trailers ? 0 : -1;
}

/* The body ends with the frame being made: it bears END_STREAM, or the trailers behind it do. An
 * empty frame without END_STREAM is not sent at all. nghttp2 asks only while the peer's windows are
 * open, so an end that comes without bytes waits for them as a byte would. */
static int show_end(struct nj_h2_stream *st, uint32_t *data_flags, int n)
{
    st->end_shown = true;
    *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!st->trailers)
        return n;
    *data_flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    int rv =
        nghttp2_submit_trailer(st->h->session, st->id, st->trailers->nv, st->trailers->n_fields);
    return rv == 0 ? n : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Nothing to show: the end of the body, or not yet. */
static int nothing(struct nj_h2_stream *st, uint32_t *data_flags)
{
    if (st->body->ops->remaining(st->body) > 0)
        return NGHTTP2_ERR_DEFERRED;
    st->deferred = false;
    return show_end(st, data_flags, 0);
}

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
    uint64_t rest = body ? body->ops->remaining(body) : 0;
    if (rest == 0)
        return show_end(st, data_flags, 0);
    /* Before the peek: whoever wakes us may do so as soon as peek said no. */
    st->deferred = true;
    body->waiter = st;
    int n = body->ops->peek(body, n_max, &h->slice);
    if (n == 0)
        return nothing(st, data_flags);
    st->deferred = false;
    if (n < 0) {
        st->own_fault = true;
        body_close(st);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM with INTERNAL_ERROR */
    }
    NJ_ASSERT((uint32_t)n <= n_max);
    h->slice.n_bytes = (uint32_t)n;
    if (rest == NJ_BODY_UNKNOWN)
        rest = body->ops->remaining(body); /* the peek may have come upon the end */
    NJ_ASSERT(rest >= (uint64_t)n);
    *data_flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    h->slice_cut = (size_t)n == length && rest > (uint64_t)n;
    return rest == (uint64_t)n ? show_end(st, data_flags, n) : n;
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
                                   st->end_shown ? NULL : &provider);
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
        body_close(st);
    if (h->end || st->reset) { /* it takes no more */
        body_close(st);
        return h->end ? -1 : 0;
    }
    if (!st->body && !st->trailers)
        st->end_shown = true; /* END_STREAM goes with the head */
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

/* nghttp2 opens a window that SETTINGS made negative by what WINDOW_UPDATEs bring. */
enum nj_h2_hold nj_h2_hold(const struct nj_h2_stream *st)
{
    nghttp2_session *s = st->h->session;

    if (!st->body || st->reset || st->h->end)
        return NJ_H2_HOLD_NONE;
    if (st->deferred)
        return NJ_H2_HOLD_OURS;
    if (nghttp2_session_get_stream_remote_window_size(s, st->id) <= 0)
        return NJ_H2_HOLD_STREAM;
    return nghttp2_session_get_remote_window_size(s) <= 0 ? NJ_H2_HOLD_CONN : NJ_H2_HOLD_NONE;
}

static struct nj_h2_stream *announced_from(const struct nj_h2 *h, const struct nj_list *n)
{
    for (; n != &h->streams; n = n->next) {
        struct nj_h2_stream *st =
            nj_container_of((struct nj_list *)(uintptr_t)n, struct nj_h2_stream, link);
        if (st->announced && !st->reset)
            return st;
    }
    return NULL;
}

struct nj_h2_stream *nj_h2_first(const struct nj_h2 *h)
{
    return announced_from(h, h->streams.next);
}

struct nj_h2_stream *nj_h2_next(const struct nj_h2_stream *st)
{
    return announced_from(st->h, st->link.next);
}

uint32_t nj_h2_stream_id(const struct nj_h2_stream *st)
{
    return (uint32_t)st->id;
}

uint32_t nj_h2_stream_held(const struct nj_h2_stream *st)
{
    return st->n_held;
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
