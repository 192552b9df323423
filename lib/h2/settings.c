/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SETTINGS, sent and received (RFC 9113 6.5). The server sends its own once, at the start, and
 * applies and acknowledges each SETTINGS of the peer.
 */
#include "h2/h2_internal.h"

#include "base/limits.h"

/* Entries accepted in one frame. About a dozen settings are defined. */
#define ENTRIES_MAX 32u

static uint8_t *put_entry(uint8_t *p, uint16_t id, uint32_t value)
{
    p[0] = (uint8_t)(id >> 8);
    p[1] = (uint8_t)id;
    nj_put_be32(p + 2, value);
    return p + NJ__H2_SETTING_BYTES;
}

/* Windows are opened even if no request body is read: some clients hang when the response arrives
 * while their window is closed (curl 7.88). */
void nj__h2_send_settings(struct nj_h2 *h)
{
    const struct nj_h2_limits *max = &h->core->limits;
    uint8_t *p = nj__h2_out_extend(h, NJ__H2_FRAME_HEAD + 4 * NJ__H2_SETTING_BYTES);

    if (!p)
        return;
    p = nj__h2_put_frame_head(p, 4 * NJ__H2_SETTING_BYTES, NJ__H2_SETTINGS, 0, 0);
    p = put_entry(p, NJ__H2_SETTING_MAX_CONCURRENT_STREAMS, max->concurrent_streams_max);
    p = put_entry(p, NJ__H2_SETTING_MAX_HEADER_LIST_SIZE, max->header_bytes_max);
    /* RFC 9218 2.1: the server keeps no dependency tree */
    p = put_entry(p, NJ__H2_SETTING_NO_RFC7540_PRIORITIES, 1);
    put_entry(p, NJ__H2_SETTING_INITIAL_WINDOW_SIZE, NJ_H2_STREAM_WINDOW_BYTES);
    if (h->window > NJ__H2_WINDOW_DEFAULT)
        nj__h2_put_u32_frame(h, NJ__H2_WINDOW_UPDATE, 0, h->window - NJ__H2_WINDOW_DEFAULT);
}

/* RFC 9113 6.5.3. One SETTINGS was sent, so one acknowledgment is expected. */
void nj__h2_settings_acked(struct nj_h2 *h)
{
    if (h->settings_acked)
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
    h->settings_acked = true;
}

/* A table smaller than ours must be announced in the next header block. A larger one is not used.
 */
static void set_table_size(struct nj_h2 *h, uint32_t n_bytes)
{
    if (!h->hpack_encoder && n_bytes >= NJ__HPACK_TABLE_BYTES)
        return;
    if (nj__h2_ensure_encoder(h))
        nj__hpack_encoder_limit(h->hpack_encoder, n_bytes);
}

/* RFC 9218 2.1.1: the value must not change after the first SETTINGS. */
static void set_no_rfc7540(struct nj_h2 *h, uint32_t value)
{
    uint8_t now = value ? NJ__H2_RFC7540_OFF : NJ__H2_RFC7540_ON;
    bool changed = h->rfc7540 ? h->rfc7540 != now : h->settings_seen && value > 0;

    if (value > 1 || changed)
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
    h->rfc7540 = now;
}

/* RFC 9113 6.5.2; unknown identifiers are ignored. */
static void apply_setting(struct nj_h2 *h, uint16_t id, uint32_t value)
{
    switch (id) {
    case NJ__H2_SETTING_HEADER_TABLE_SIZE:
        set_table_size(h, value);
        break;
    case NJ__H2_SETTING_ENABLE_PUSH:
    case NJ__H2_SETTING_ENABLE_CONNECT_PROTOCOL:
        if (value > 1)
            nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        break;
    case NJ__H2_SETTING_INITIAL_WINDOW_SIZE:
        nj__h2_set_initial_window(h, value);
        break;
    case NJ__H2_SETTING_MAX_FRAME_SIZE:
        if (value < NJ__H2_PAYLOAD_MAX || value > 0xffffffu)
            nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        h->data_max = value < NJ__H2_DATA_MAX ? value : NJ__H2_DATA_MAX;
        break;
    case NJ__H2_SETTING_NO_RFC7540_PRIORITIES:
        set_no_rfc7540(h, value);
        break;
    default:
        break;
    }
}

void nj__h2_apply_settings(struct nj_h2 *h, const uint8_t *p, uint32_t n_bytes)
{
    if (n_bytes > ENTRIES_MAX * NJ__H2_SETTING_BYTES) {
        nj_h2_end_for_abuse(h, NJ_H2_ABUSE_SETTINGS);
        return;
    }
    for (uint32_t i = 0; i < n_bytes && !h->end; i += NJ__H2_SETTING_BYTES)
        apply_setting(h, nj_get_be16(p + i), nj_get_be32(p + i + 2));
    h->settings_seen = true;
    uint8_t *ack = h->end ? NULL : nj__h2_out_extend_for_ack(h, NJ__H2_FRAME_HEAD);
    if (ack)
        nj__h2_put_frame_head(ack, 0, NJ__H2_SETTINGS, NJ__H2_FLAG_ACK, 0);
}
