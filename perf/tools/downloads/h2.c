/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP/2 of a connection: sends requests, and counts the bytes of the response bodies. */
#include <stdlib.h>

#include "load.h"

#define CONN_WINDOW_MAX 0x7fffffff
#define FIXED_FIELDS    5u /* :method :scheme :authority :path range */

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)value,
                        .valuelen = strlen(value)};
}

void load_h2_send_request(struct load_slot *s)
{
    struct load *l = s->conn->load;
    nghttp2_nv nv[FIXED_FIELDS + LOAD_FIELDS_MAX];
    char range[64];
    uint32_t n = 0;

    nv[n++] = field(":method", l->o.method);
    nv[n++] = field(":scheme", "http");
    nv[n++] = field(":authority", l->o.authority);
    nv[n++] = field(":path", l->o.paths[s->group]);
    if (l->o.range) {
        s->range_from = s->index / l->o.n_paths * l->o.range;
        snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)s->range_from,
                 (unsigned long long)(s->range_from + l->o.range - 1));
        nv[n++] = field("range", range);
    }
    for (uint32_t i = 0; i < l->o.n_fields; i++, n++)
        nv[n] = field(l->o.fields[i], l->o.fields[i] + strlen(l->o.fields[i]) + 1);
    s->first_at = 0;
    s->n_bytes = 0;
    s->leave_at = l->o.leave ? 1 + nj_prng_below(&l->prng, l->o.leave) : UINT64_MAX;
    s->leaves = false;
    s->status = 0;
    s->active = l->n_begun;
    s->requested_at = l->now;
    s->stream = nghttp2_submit_request(s->conn->session, NULL, nv, n, NULL, s);
    s->state = s->stream < 0 ? LOAD_ENDED : LOAD_REQUESTED;
    s->conn->dirty = true;
    l->counts.requests++;
}

void load_slot_end(struct load_slot *s, const char *outcome)
{
    struct load *l = s->conn->load;

    if (l->rows && s->state == LOAD_REQUESTED)
        fprintf(l->rows, "%u,%u,%u,%llu,%lld,%llu,%llu,%u,%s\n", s->index, s->group, s->active,
                (unsigned long long)((s->requested_at - l->began) / NJ_US),
                s->first_at ? (long long)((s->first_at - s->requested_at) / NJ_US) : -1,
                (unsigned long long)((l->now - s->requested_at) / NJ_US),
                (unsigned long long)s->n_bytes, s->status, outcome);
    if (s->state != LOAD_ENDED)
        l->n_ended++;
    s->state = LOAD_ENDED;
}

static struct load_slot *slot_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct load_slot *s = slot_of(session, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_HEADERS && s)
        s->requested_at = load_clock(); /* it may have waited until another stream ended */
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *user)
{
    struct load_slot *s = slot_of(session, frame->hd.stream_id);

    if (s && name_bytes == 7 && memcmp(name, ":status", 7) == 0)
        s->status = (uint16_t)atoi((const char *)value);
    return 0;
}

static bool differs(const struct load_slot *s, const uint8_t *data, size_t n_bytes)
{
    const struct load_options *o = &s->conn->load->o;
    const struct load_file *f = &o->files[s->group];
    uint64_t at = s->range_from + s->n_bytes;

    return s->group < o->n_files && f->data &&
           (at + n_bytes > f->n_bytes || memcmp(f->data + at, data, n_bytes) != 0);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t n_bytes, void *user)
{
    struct load_conn *c = user;
    struct load *l = c->load;
    struct load_slot *s = slot_of(session, stream);

    if (!s)
        return 0;
    if (!s->first_at)
        s->first_at = l->now;
    if (differs(s, data, n_bytes))
        l->counts.mismatch++;
    s->n_bytes += n_bytes;
    l->counts.payload_bytes += n_bytes;
    l->chunk_bytes[s->group] += n_bytes;
    if (nj_meter_steady(&l->meter, l->now))
        s->window_bytes += n_bytes;
    if (s->n_bytes >= s->leave_at && !s->leaves) {
        s->leaves = true;
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    }
    return 0;
}

/* Ends a request. The slot then sends another one, unless it has sent all. */
static void end_request(struct load_slot *s, const char *outcome)
{
    struct load *l = s->conn->load;

    s->n_done++;
    load_slot_end(s, outcome);
    if (l->o.repeat == 0 || s->n_done < l->o.repeat) {
        l->n_ended--;
        load_slot_repeat(s);
    }
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    struct load_conn *c = user;
    struct load *l = c->load;
    struct load_slot *s = slot_of(session, stream);

    if (!s)
        return 0;
    if (s->leaves) {
        l->counts.left++;
        end_request(s, "left");
        return 0;
    }
    if (error != NGHTTP2_NO_ERROR) {
        l->counts.reset++;
        load_slot_end(s, "reset");
        return 0;
    }
    if (s->status == 200 || s->status == 206) {
        l->counts.done++;
        end_request(s, "done");
        return 0;
    }
    l->counts.other_status++;
    load_slot_end(s, "done");
    return 0;
}

static bool make_callbacks(struct load *l)
{
    if (l->callbacks)
        return true;
    if (nghttp2_session_callbacks_new(&l->callbacks))
        return false;
    nghttp2_session_callbacks_set_on_frame_send_callback(l->callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_header_callback(l->callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(l->callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(l->callbacks, on_stream_close);
    return true;
}

bool load_h2_open(struct load_conn *c)
{
    struct load *l = c->load;
    enum load_manner manner = l->o.manner;
    bool no_window = manner == LOAD_NO_STREAM || manner == LOAD_DRIBBLES;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, no_window ? 0 : l->o.window},
    };
    nghttp2_option *option;
    int failed;

    if (!make_callbacks(l) || nghttp2_option_new(&option))
        return false;
    nghttp2_option_set_no_auto_window_update(option, no_window || manner == LOAD_NO_CONN);
    failed = nghttp2_session_client_new2(&c->session, l->callbacks, c, option);
    nghttp2_option_del(option);
    if (failed || nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 2))
        return false;
    c->dirty = true;
    return manner == LOAD_NO_CONN || nghttp2_session_set_local_window_size(
                                         c->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW_MAX) == 0;
}

bool load_h2_input(struct load_conn *c, const uint8_t *data, size_t n_bytes)
{
    ssize_t consumed = nghttp2_session_mem_recv(c->session, data, n_bytes);

    c->dirty = true;
    return consumed == (ssize_t)n_bytes &&
           (nghttp2_session_want_read(c->session) || nghttp2_session_want_write(c->session));
}

void load_h2_dribble(struct load_conn *c)
{
    for (struct load_slot *s = &c->load->slots[c->index]; s; s = load_slot_next(c->load, s))
        if (s->state == LOAD_REQUESTED)
            nghttp2_submit_window_update(c->session, NGHTTP2_FLAG_NONE, s->stream, 1);
    c->dirty = true;
}
