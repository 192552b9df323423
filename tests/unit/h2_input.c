/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of frame_types.def: in which order they are checked, and when glitches are added. */
#include "h2_rig.h"

struct head {
    uint32_t n_bytes;
    uint8_t type, flags;
    uint32_t id;
};

/* The header of a frame, without payload. */
static int feed_head(struct rig *r, const struct head *f)
{
    uint8_t p[NJ__H2_FRAME_HEAD];

    nj__h2_put_frame_head(p, f->n_bytes, f->type, f->flags, f->id);
    return nj_h2_input(r->h, p, sizeof p);
}

static struct rig *open_rig(void)
{
    struct rig *r = rig_new(NULL);

    rig_client_new(r, 0, false);
    cr_assert_eq(rig_run(r, 0), 0);
    return r;
}

/* RFC 9113 leaves open which of two errors is reported. We check the size that no frame may have,
 * then whether the frame is allowed in this state and on the connection or a stream, then its
 * length, then whether the stream is idle. An error adds no glitch. */
Test(h2_input, order_of_checks)
{
    static const struct {
        struct head f;
        uint32_t code;
    } cases[] = {
        {{7, NJ__H2_PING, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{7, NJ__H2_PING, 0, 1}, NJ_H2_PROTOCOL_ERROR},
        {{NJ__H2_PAYLOAD_MAX + 1, NJ__H2_PING, 0, 1}, NJ_H2_FRAME_SIZE_ERROR},
        {{NJ__H2_PAYLOAD_MAX + 1, NJ__H2_DATA, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{5, NJ__H2_SETTINGS, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{5, NJ__H2_SETTINGS, 0, 1}, NJ_H2_PROTOCOL_ERROR},
        {{6, NJ__H2_SETTINGS, NJ__H2_FLAG_ACK, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{6, NJ__H2_SETTINGS, NJ__H2_FLAG_ACK, 1}, NJ_H2_PROTOCOL_ERROR},
        {{3, NJ__H2_WINDOW_UPDATE, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{3, NJ__H2_WINDOW_UPDATE, 0, 9}, NJ_H2_FRAME_SIZE_ERROR},
        {{4, NJ__H2_WINDOW_UPDATE, 0, 9}, NJ_H2_PROTOCOL_ERROR},
        {{3, NJ__H2_RST_STREAM, 0, 0}, NJ_H2_PROTOCOL_ERROR},
        {{3, NJ__H2_RST_STREAM, 0, 9}, NJ_H2_FRAME_SIZE_ERROR},
        {{4, NJ__H2_RST_STREAM, 0, 9}, NJ_H2_PROTOCOL_ERROR},
        {{7, NJ__H2_GOAWAY, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{7, NJ__H2_GOAWAY, 0, 1}, NJ_H2_PROTOCOL_ERROR},
        {{3, NJ__H2_PRIORITY_UPDATE, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
        {{3, NJ__H2_PRIORITY_UPDATE, 0, 1}, NJ_H2_PROTOCOL_ERROR},
        {{4, NJ__H2_PRIORITY, 0, 0}, NJ_H2_PROTOCOL_ERROR},
        {{0, NJ__H2_DATA, NJ__H2_FLAG_PADDED, 9}, NJ_H2_PROTOCOL_ERROR},
        {{0, NJ__H2_CONTINUATION, 0, 1}, NJ_H2_PROTOCOL_ERROR},
        {{0, NJ__H2_PUSH_PROMISE, 0, 1}, NJ_H2_PROTOCOL_ERROR},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct rig *r = open_rig();
        uint32_t before = r->h->glitches;
        cr_expect_eq(feed_head(r, &cases[i].f), -1, "case %zu", i);
        cr_expect_eq(r->h->glitches, before, "case %zu", i);
        rig_run(r, 0);
        cr_expect_eq(r->client_goaway_code, cases[i].code, "case %zu: %u", i,
                     r->client_goaway_code);
        rig_free(r);
    }
}

/* The first frame of a client must be SETTINGS without the ACK flag (RFC 9113 3.4). */
Test(h2_input, first_frame)
{
    static const struct {
        struct head f;
        uint32_t code;
    } cases[] = {
        {{7, NJ__H2_PING, 0, 0}, NJ_H2_PROTOCOL_ERROR},
        {{6, NJ__H2_SETTINGS, NJ__H2_FLAG_ACK, 0}, NJ_H2_PROTOCOL_ERROR},
        {{5, NJ__H2_SETTINGS, 0, 0}, NJ_H2_FRAME_SIZE_ERROR},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct rig *r = rig_new(NULL);
        const uint8_t *preface = (const uint8_t *)NJ__H2_PREFACE;
        cr_assert_eq(nj_h2_input(r->h, preface, NJ__H2_PREFACE_BYTES), 0);
        cr_expect_eq(feed_head(r, &cases[i].f), -1, "case %zu", i);
        cr_expect_eq(r->h->end_code, cases[i].code, "case %zu: %u", i, r->h->end_code);
        cr_expect_eq(r->h->glitches, 0, "case %zu", i);
        rig_free(r);
    }
}

/* Glitches of allowed frames. They are added before the frame has its effect, so one that exceeds
 * the budget has none. */
Test(h2_input, glitches_come_before_the_effect)
{
    static const struct {
        struct head f;
        uint32_t n_glitches;
        enum nj_h2_abuse abuse;
    } cases[] = {
        {{6, NJ__H2_SETTINGS, 0, 0}, NJ__H2_GLITCH, NJ_H2_ABUSE_SETTINGS},
        {{8, NJ__H2_GOAWAY, 0, 0}, NJ__H2_GLITCH, NJ_H2_ABUSE_FRAMES},
        {{4, NJ__H2_PRIORITY_UPDATE, 0, 0}, NJ__H2_GLITCH, NJ_H2_ABUSE_PRIORITIES},
        {{1000, NJ__H2_PRIORITY_UPDATE, 0, 0}, NJ__H2_GLITCH, NJ_H2_ABUSE_PRIORITIES},
        {{5, NJ__H2_PRIORITY, 0, 9}, NJ__H2_GLITCH, NJ_H2_ABUSE_PRIORITIES},
        {{4, NJ__H2_PRIORITY, 0, 9}, NJ__H2_GLITCH, NJ_H2_ABUSE_PRIORITIES},
        {{4, NJ__H2_RST_STREAM, 0, 1}, NJ__H2_GLITCH_RESET, NJ_H2_ABUSE_RESETS},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct rig *r = open_rig();
        rig_ask(r, "/1l");
        cr_assert_eq(rig_run(r, 0), 0);
        uint32_t before = r->h->glitches;
        feed_head(r, &cases[i].f);
        cr_expect_eq(r->h->glitches, before + cases[i].n_glitches, "case %zu", i);
        cr_expect_eq(r->h->peer_goaway, cases[i].f.type == NJ__H2_GOAWAY, "case %zu", i);
        rig_free(r);

        r = open_rig();
        rig_ask(r, "/1l");
        cr_assert_eq(rig_run(r, 0), 0);
        cr_assert(nj_h2_add_glitches(r->h, r->h->core->limits.glitches_max - r->h->glitches));
        cr_expect_eq(feed_head(r, &cases[i].f), -1, "case %zu", i);
        cr_expect_eq(nj_h2_abuse_reason(r->h), cases[i].abuse, "case %zu", i);
        cr_expect_eq(r->h->payload_mode, NJ__H2_PAYLOAD_SKIP, "case %zu", i);
        cr_expect_not(r->h->peer_goaway, "case %zu", i);
        cr_expect_eq(r->n_closed, 0, "case %zu", i);
        rig_free(r);
    }
}
