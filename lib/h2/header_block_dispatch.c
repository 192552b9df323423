/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dispatch of header blocks: requests, trailers, and blocks to be ignored (RFC 9113 8.1).
 *
 * Every block is decoded completely, since HPACK state depends on it (RFC 9113 4.3).
 */
#include "h2/h2_internal.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

static void count_refusal(struct nj_h2 *h, nj_counter why)
{
    const struct nj_h2_events *ev = h->core->events;

    nj_count(h->core->counters, why);
    if (ev->on_refusal_counted)
        ev->on_refusal_counted(h->user, why);
}

static void refuse_request(struct nj_h2_stream *st, const struct nj_request_head *req,
                           uint16_t status)
{
    const struct nj_h2_events *ev = st->h->core->events;

    if (ev->on_refused)
        ev->on_refused(st->h->user, st, req, status);
    else
        (void)nj_h2_respond(st, status, NULL, 0, 0, NULL);
}

/* Call on_request or on_refused. */
static void pass_to_owner(struct nj_h2_stream *st, struct nj__h2_head *head)
{
    struct nj_h2 *h = st->h;
    struct nj_request_head *req = &head->req;

    nj_count(h->core->counters, NJ_C_requests);
    req->ends = st->end_received;
    req->expects_continue = head->expects_continue && !st->end_received;
    if (nj_unlikely(head->refuse_status)) {
        count_refusal(h, head->refuse_why);
        refuse_request(st, req, head->refuse_status);
        return;
    }
    st->shown_to_user = true;
    h->core->events->on_request(h->user, st, req);
}

static void begin_request(struct nj_h2 *h, uint32_t id, bool ends, const uint8_t *block, size_t n)
{
    struct nj__h2_head *head = nj__h2_head_decode_request(h, block, n);

    if (!head)
        return;
    if (head->bad || (ends && head->length > 0)) {
        count_refusal(h, NJ_C_request_malformed);
        nj__h2_stream_error(h, id, NJ_H2_PROTOCOL_ERROR);
        return;
    }
    if (nj_unlikely(head->refuse_status == 400) && !nj_h2_add_glitches(h, NJ__H2_GLITCH_ERROR))
        return;
    nj__h2_glitch_headers_ok(h);
    struct nj_h2_stream *st = nj__h2_stream_new(h, id);
    if (!st)
        return;
    st->end_received = ends;
    st->length_left = head->length;
    st->head_bytes = head->n_bytes;
    st->head_fields = head->n_fields;
    nj__h2_priority_set_initial(st, head);
    pass_to_owner(st, head);
}

/* Trailers of a request are validated and end the request. They are not passed to the owner. */
static void take_trailers(struct nj_h2_stream *st, bool ends, const uint8_t *block, size_t n)
{
    struct nj_h2 *h = st->h;
    struct nj__h2_head head = {.length = NJ__H2_NO_LENGTH,
                               .n_bytes = st->head_bytes,
                               .n_fields = st->head_fields,
                               .trailers = true};

    if (!nj__h2_head_decode(h, &head, block, n))
        return;
    if (head.bad || !ends) {
        nj__h2_stream_error(h, (uint32_t)st->id, NJ_H2_PROTOCOL_ERROR);
        return;
    }
    nj__h2_glitch_refund(h);
    if (!head.over_limit) {
        nj__h2_request_ended(st);
        return;
    }
    nj_h2_reset_stream(st, NJ_H2_ENHANCE_YOUR_CALM);
    nj_h2_add_glitches(h, NJ__H2_GLITCH_ERROR);
}

/* Decode a block only to keep the HPACK state valid. */
static bool decode_and_drop(struct nj_h2 *h, const uint8_t *block, size_t n)
{
    struct nj__h2_head head = {.length = NJ__H2_NO_LENGTH, .over_limit = true};

    return nj__h2_head_decode(h, &head, block, n);
}

/* RFC 9113 5.1.2: too many streams. The client may retry the request. */
static void refuse_stream(struct nj_h2 *h, uint32_t id)
{
    count_refusal(h, NJ_C_h2_streams_full);
    nj_count(h->core->counters, NJ_C_h2_reset_out);
    nj__h2_put_u32_frame(h, NJ__H2_RST_STREAM, id, NJ_H2_REFUSED_STREAM);
}

void nj__h2_handle_block(struct nj_h2 *h, uint32_t id, uint8_t flags, const uint8_t *block,
                         size_t n)
{
    bool ends = flags & NJ__H2_FLAG_END_STREAM, is_new = flags & NJ__H2_FLAG_NEW_STREAM;
    /* RFC 9113 6.8: streams above the last id of our GOAWAY are ignored. */
    bool too_late = h->goaways == 2;

    if (nj_likely(is_new && !too_late && h->n_open < h->core->limits.concurrent_streams_max)) {
        begin_request(h, id, ends, block, n);
        return;
    }
    struct nj_h2_stream *st = is_new ? NULL : nj__h2_find_stream(h, id);
    if (st && !st->reset) {
        take_trailers(st, ends, block, n);
    } else if (decode_and_drop(h, block, n)) {
        if (st)
            st->end_received |= ends;
        else if (is_new && !too_late)
            refuse_stream(h, id);
        else if (!is_new && nj__h2_id_bit(h, h->id_reset, id))
            nj__h2_stream_error(h, id, NJ_H2_STREAM_CLOSED);
    }
}
